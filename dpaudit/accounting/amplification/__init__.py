"""What sampling makes of a mechanism's privacy loss."""
