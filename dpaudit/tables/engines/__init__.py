"""What computes the whole numbers of a release: DuckDB here, or on the workers of a cluster."""
