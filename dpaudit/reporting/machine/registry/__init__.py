"""A draft record for the OpenDP deployments registry."""
