"""The commands of the book: what an organisation may still release, and what it has released."""
