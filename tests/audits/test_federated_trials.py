"""What the federated experiments run."""

from __future__ import annotations

import numpy as np
import pytest

from audits.paper_rows.trials.federated import Task, figure_2, figure_3, one_run
from private_bo.federated import DPFTS, DPFTSDE, FTSDE, PlainTS, synthetic


def test_the_settings_are_those_of_the_figures() -> None:
    shown = figure_2(Task.SYNTHETIC)
    rates = [each.rate for name, each in shown.items() if name.startswith("q = ")]  # type: ignore[union-attr]
    assert rates == [0.15, 0.5]  # 0.25 is that of the other panels
    kinds = [type(shown[name]).__name__ for name in ("TS", "FTS", "FTS-DE, P = 2", "FTS-DE, P = 4")]
    assert kinds == ["PlainTS", "FTS", "FTSDE", "FTSDE"]
    assert [shown[f"z = {z}"].published_loss for z in ("1.2", "1.5")] == pytest.approx(  # type: ignore[union-attr]
        [7.39, 5.22], abs=0.01
    )
    tuned = [each for each in figure_3(Task.LANDMINES).values() if isinstance(each, DPFTSDE)]
    published = [15.17, 7.12, 5.14, 3.05, 2.16, 3.75, 5.98, 7.69, 9.82]
    assert [each.published_loss for each in tuned] == pytest.approx(published, abs=0.01)


@pytest.mark.parametrize("task", list(Task))
def test_each_algorithm_is_run_once(task) -> None:
    shown = figure_2(task) if task in (Task.SYNTHETIC, Task.RUGGED) else figure_3(task)
    assert len(set(shown.values())) == len(shown)


SMALL = DPFTSDE(agents=6, rate=0.5, features=10, rounds=3, initial=3)
ALIKE = {name: getattr(SMALL, name) for name in ("agents", "features", "rounds", "initial")}


@pytest.mark.parametrize(
    "algorithm", [SMALL, DPFTS(**ALIKE, rate=0.5), FTSDE(**ALIKE), PlainTS(**ALIKE)]
)
def test_a_run_is_that_of_its_seeds(algorithm) -> None:
    problem = synthetic(6, seed=np.random.default_rng(0), length_scale=0.03)
    one, again, other = (one_run(algorithm, problem, seed, 2) for seed in (1, 1, 3))
    assert one.shape == (4,)
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert np.array_equal(one_run(algorithm, problem, 1, 4), one) == (
        algorithm is not SMALL and not isinstance(algorithm, DPFTS)
    )
