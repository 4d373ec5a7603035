"""The comparators without privacy."""

from dataclasses import fields as dataclass_fields
from dataclasses import replace

import numpy as np

from dpaudit import Ledger
from dpaudit.project import RunResult
from private_bo.federated import (
    DPFTSDE,
    FTS,
    FTSDE,
    PlainTS,
    synthetic,
)

SMALL = DPFTSDE(agents=8, regions=2, rate=0.5, features=10, rounds=6, initial=3, clip=4.0)
PROBLEM = synthetic(8, seed=1, points=60)


def run(subject: DPFTSDE, data: object = PROBLEM, seed: int = 0) -> tuple[RunResult, Ledger]:
    ledger = Ledger(subject.plan(), rng=np.random.default_rng(seed))
    with ledger:
        result = subject.run(data, ledger, np.random.default_rng(seed + 1))
    return result, ledger


def test_without_noise_sampling_and_clipping_it_is_fts_de() -> None:
    quiet = replace(SMALL, rate=1.0, noise_multiplier=1e-15, clip=1e4)
    fields = {field.name: getattr(SMALL, field.name) for field in dataclass_fields(FTSDE)}
    exact = FTSDE(**fields).run(PROBLEM, np.random.default_rng(1))
    assert run(quiet)[0].for_owner.series == exact.for_owner.series
    one = FTS(**{**fields, "regions": 1}).run(PROBLEM, np.random.default_rng(1))
    assert (
        one.owner == FTSDE(**{**fields, "regions": 1}).run(PROBLEM, np.random.default_rng(1)).owner
    )


def test_plain_thompson_sampling_hears_nobody() -> None:
    alone = PlainTS(agents=8, features=10, rounds=6, initial=3).run(
        PROBLEM, np.random.default_rng(1)
    )
    assert alone.for_owner.summary["queries that followed a broadcast"] == 0
    followed = run(SMALL)[0].for_owner.summary
    assert followed["queries that followed a broadcast"] >= 8  # all of them at t = 1
    assert 1 <= followed["rounds in which an agent followed the broadcast"] <= 6
