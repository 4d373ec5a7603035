"""What is said, whoever renders it: headline, statement, tables."""
