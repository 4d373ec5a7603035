"""Tests of drawn noise against the law that is declared."""
