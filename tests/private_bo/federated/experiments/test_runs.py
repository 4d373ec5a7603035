"""Trials of the federated algorithms."""

import numpy as np

from private_bo.federated import DPFTS, DPFTSDE, FTSDE, PlainTS
from private_bo.federated.experiments.cells import (
    Task,
    problem_of,
    regrets_of,
)

SMALL = DPFTSDE(agents=6, rate=0.5, features=10, rounds=3, initial=3)


def test_results_do_not_depend_on_the_workers() -> None:
    alike = {f: getattr(SMALL, f) for f in ("agents", "features", "rounds", "initial")}
    algorithms = [SMALL, DPFTS(**alike, rate=0.5), FTSDE(**alike), PlainTS(**alike)]
    one = regrets_of(algorithms, None, trials=3, seed=4, workers=1)
    two = regrets_of(algorithms, None, trials=3, seed=4, workers=2)
    assert list(one) == list(two) == algorithms
    for algorithm in algorithms:
        assert one[algorithm].shape == (3, 4)
        assert np.array_equal(one[algorithm], two[algorithm])
    assert not np.array_equal(one[SMALL][0], one[SMALL][1])


def test_synthetic_functions_are_new_in_every_trial() -> None:
    assert problem_of(Task.SYNTHETIC, 10) is None
