"""Audits of declared algorithms: neighbours, transcripts and exact enumeration."""
