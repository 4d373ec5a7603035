"""Models tuned by scores on private rows."""

from __future__ import annotations

import numpy as np
import pytest
from rehearsals import Gossip, rules
from subject_conformance import SubjectConformance

from dpaudit import Ledger, guarantee
from dpaudit.base.errors import InputError
from private_bo.studies import PrivateSearch

optuna = pytest.importorskip("optuna")
SMALL = PrivateSearch(trials=3, held_out=40)


class Few(PrivateSearch):
    """The same on 120 rows."""

    def load(self, source, rng):
        x, y = super().load(source, rng)
        return x[:120], y[:120]


def data() -> tuple[np.ndarray, np.ndarray]:
    return Few().load("digits", np.random.default_rng(0))


class TestPrivateSearch(SubjectConformance):
    subject = SMALL

    def data(self):
        return data()

    def neighbour(self):
        x, y = data()
        y[-1] = (y[-1] + 1) % 10
        return x, y

    def bad_data(self):
        x, y = data()
        yield x[:40], y[:40]
        yield x, y[:-1]


def test_a_rehearsal_finds_nothing() -> None:
    assert rules(Few(trials=2, held_out=40)) == set()


def test_a_rehearsal_finds_a_score_that_is_published() -> None:
    class Mistaken(Gossip, Few):
        def run(self, data, ledger, rng):
            result = PrivateSearch.run(self, data, ledger, rng)
            result.summary["classes"] = data[1][-40:].tolist()
            return result

    assert "result-not-from-releases" in rules(Mistaken(trials=2, held_out=40))


def test_a_held_out_row_pays_for_all_trials() -> None:
    subject = PrivateSearch(epsilon=0.5, delta=1e-6, trials=9)
    (each,) = subject.plan().invocations
    assert (each.count, each.sensitivity) == (9, pytest.approx(1 / 600))
    assert guarantee(subject.plan(), 1e-6).epsilon == pytest.approx(0.5, rel=1e-6)
    assert subject.audit_release(0.25, 5, np.random.default_rng(0)).shape == (5, 9)


def test_it_tunes() -> None:
    """The best release is that of a good model, at noise of a hundredth."""
    subject = PrivateSearch(epsilon=8.0, trials=12, held_out=600)
    assert subject.private.mechanism.sigma < 0.01
    found = subject.load("digits", np.random.default_rng(0))
    with Ledger(subject.plan(), rng=np.random.default_rng(0)) as ledger:
        result = subject.run((found[0][-900:], found[1][-900:]), ledger, np.random.default_rng(0))
    released = result.series["released"]
    assert result.summary["best"] == pytest.approx(result.summary["best"])
    assert max(released) > 0.9
    assert min(released) < 0.6


def test_unknown_data_are_one_sentence() -> None:
    with pytest.raises(InputError, match="data is 'nowhere'"):
        SMALL.load("nowhere", np.random.default_rng(0))
