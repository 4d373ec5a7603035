"""Plans and guarantees in the terms of other libraries.

An application: it goes with this folder and its line in :mod:`dpaudit.base.applications`.
"""
