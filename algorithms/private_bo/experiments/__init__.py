"""Experiments of the papers, each one command that writes its figure and tables."""
