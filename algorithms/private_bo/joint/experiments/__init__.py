"""Figures and tables of the paper on joint privacy."""
