"""What this application offers: nothing to the command line but attacks on members."""
