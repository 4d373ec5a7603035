"""Attacks on outsourced Bayesian optimisation, and the counterexample to its privacy theorem.

``python -m audits.outsourced refute`` writes it, and ``python -m audits.outsourced replay FILE``
draws it again from the certificate.
"""
