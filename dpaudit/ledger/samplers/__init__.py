"""What draws the noise of mechanisms: floats, exact integers, and streams.

A mechanism names these modules and runs what they have for its class (``base/by_class.py``); a law
loads none of them. They draw for whoever holds a generator or a source, and charge nothing: that
is the ledger's.
"""
