"""How the algorithms of the papers are run once, with privacy and without, for their figures."""
