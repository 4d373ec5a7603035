"""Tables of the paper on outsourced optimisation."""
