"""Who said it: statements in signed envelopes, and what a policy demands of them.

An application, of ``dpaudit keygen``, ``sign`` and ``verify --key``. What was signed is the
payload's bytes: nothing beside them is believed.
"""
