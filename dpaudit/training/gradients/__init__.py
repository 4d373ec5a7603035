"""Trainings of a loss of one example: dpaudit samples, clips, adds noise, and gives out that alone.

:mod:`dpaudit.training` names what is public.
"""
