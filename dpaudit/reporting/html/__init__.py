"""Reports as one HTML page without external resources."""
