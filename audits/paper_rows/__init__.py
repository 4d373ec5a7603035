"""One page of what four papers state and what comes out here: ``python -m audits.paper_rows``."""
