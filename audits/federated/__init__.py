"""Membership inference against one agent of federated Thompson sampling, over a whole run.

``python -m audits.federated`` prints what the attack shows beside what is certified, for several
sampling rates and noises, and what it makes of servers with a mistake in them.
"""
