"""The locally private algorithms: what each one declares beside the base class, and how it runs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from crowds import ALGORITHMS, ledger_of, make, run

from dpaudit.base.errors import InputError
from private_bo.local import LDPATAGPUCB, LDPTGPUCB, LDPMoMAGPUCB


def test_tuned_epochs_need_not_fill_the_horizon() -> None:
    assert LDPMoMAGPUCB(plays_per_epoch=10).plan().invocations[0].total == 1000
    assert LDPMoMAGPUCB(plays_per_epoch=3).plan().invocations[0].total == 999


@pytest.mark.parametrize("kind", [LDPATAGPUCB, LDPTGPUCB])
def test_recorded_sellers_are_charged_for_every_answer(kind: type) -> None:
    subject = kind(steps=740, answers_per_user=2)  # all answers that the 370 sellers can give
    data = subject.load("taipei-sellers", np.random.default_rng(0))
    with ledger_of(subject) as ledger:
        subject.run(data, ledger, np.random.default_rng(0))
    charges = Counter(entry.unit for entry in ledger)
    assert len(charges) == 370
    assert set(charges.values()) == {2}
    (spent,) = ledger.spent().invocations
    assert (spent.count, spent.total) == (2, 740)
    assert not data.available.any()


def test_moma_plays_recorded_sellers_where_a_whole_epoch_is_left() -> None:
    subject = LDPMoMAGPUCB(steps=100, plays_per_epoch=5)
    data = subject.load("taipei-sellers", np.random.default_rng(0))
    with ledger_of(subject) as ledger:
        subject.run(data, ledger, np.random.default_rng(0))
    assert len({entry.unit for entry in ledger}) == 100


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_same_seed_same_run(kind: type) -> None:
    subject = make(kind, steps=60)
    runs = [run(subject, subject.load("synthetic", np.random.default_rng(7)), s) for s in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_moma_learns() -> None:
    """At an ε that leaves signal, the mean of 8 runs is far below uniform play."""
    relative = []
    for seed in range(8):
        subject = LDPMoMAGPUCB(epsilon=8.0, plays_per_epoch=5, width_multiplier=0.03)
        data = subject.load("synthetic-se", np.random.default_rng(seed))
        regret = run(subject, data, seed)
        relative.append(regret[-1] / (1000 * (data.f.max() - data.f.mean())))
    assert np.mean(relative) < 0.5


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"plays_per_epoch": 0}, "plays_per_epoch"),
        ({"plays_per_epoch": 2.5}, "plays_per_epoch"),
        ({"moment": 0.0}, "moment"),
        ({"moment": 1.5}, "moment"),
        ({"steps": 200}, "steps"),
        ({"steps": 9, "plays_per_epoch": 10}, "steps"),
    ],
)
def test_bad_epochs_are_one_sentence(settings: dict[str, object], name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name} is "):
        LDPMoMAGPUCB(**settings)
