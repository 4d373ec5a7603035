"""Trainings of models through a ledger (opacus, Hugging Face, Flower), and attacks on members.

An application: it goes with this folder and its line in :mod:`dpaudit.base.applications`.
"""
