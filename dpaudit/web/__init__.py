"""The book in a browser, and for programs."""
