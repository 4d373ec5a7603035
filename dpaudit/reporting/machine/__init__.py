"""Reports for machines."""
