"""Wrong subjects whose bounded query is given rows that were made of everybody's."""
