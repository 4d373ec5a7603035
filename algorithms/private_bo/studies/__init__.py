"""Searches by Optuna whose objective is private: it sees what a ledger released, and no more.

:mod:`~private_bo.studies.study` puts any study behind a ledger's door;
:mod:`~private_bo.studies.search` tunes models of scikit-learn by scores on private rows. Both need
the extra ``optuna``, which is imported when a study is made.
"""

from private_bo.studies.search import PrivateSearch
from private_bo.studies.study import PrivateStudy, PrivateTrials

__all__ = ["PrivateSearch", "PrivateStudy", "PrivateTrials"]
