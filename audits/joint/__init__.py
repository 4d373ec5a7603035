"""Attacks on the joint algorithm: transcripts of whole runs, and known mistakes that they find."""
