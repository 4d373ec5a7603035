"""Right subjects, as users would write them, to count the false alarms of a rehearsal."""
