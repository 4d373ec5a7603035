"""Accountants that add numbers: pure, Gaussian, zCDP, Rényi and moments."""
