"""Trainings and services of other libraries, recorded in a ledger.

Each integration is a module of its own that imports its library: ``dpaudit.integrations.opacus``.
This package imports none of them.
"""
