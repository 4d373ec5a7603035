"""What the suites of other accountants expect, and what is proved here of the same settings."""
