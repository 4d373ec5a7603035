"""Evidence from samples: bounds, tests and e-values with finite-sample error rates."""
