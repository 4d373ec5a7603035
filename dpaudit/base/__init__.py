"""What all rooms stand on: errors, checks of values, records, files, chains of hashes, tables.

Nothing here knows a mechanism, a plan or a certificate, and nothing imports upwards. Checks raise
the errors of :mod:`dpaudit.base.errors`, whose sentences never hold a private value.
"""
