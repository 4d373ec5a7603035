"""Public auditing tools beside dpaudit, on rows of the catalogue: ``python -m audits.peers``."""
