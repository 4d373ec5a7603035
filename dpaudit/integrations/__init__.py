"""Plans, trainings and services of other libraries.

Each library has a module or package of its own, which imports it: ``dpaudit.training.opacus``.
This package imports none of them.
"""
