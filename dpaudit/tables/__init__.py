"""Releases of tables: declared queries over rows that no code of an author touches."""
