"""Attacks on the joint algorithm: transcripts of whole runs."""
