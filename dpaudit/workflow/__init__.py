"""What the commands do, as functions: each goes from names and paths to results on disk."""
