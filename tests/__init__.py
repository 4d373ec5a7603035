"""All tests; a package, as a library that they need installs a package of this name."""
