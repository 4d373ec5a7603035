"""Figure 2 of the paper on local privacy, and a training tuned by it."""
