"""Sealed runs: code that asks about private data holds none of them.

The code of an author runs in a process of its own, the *analyst*, that has no way to the data but
one socket, on which the *custodian* answers with releases of the ledger.
"""
