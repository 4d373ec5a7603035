"""Sealed runs: the author's code holds handles, and its process has no way to the data."""
