"""Random plans, certified and compared with an oracle that shares no accounting code."""
