"""What dp-accounting says of a certificate."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from accounting_builders import plan, poisson, use

from dpaudit.certificate import Certificate, SecondOpinion, SubjectRecord, certify
from dpaudit.interchange.dp_accounting import second_opinion
from dpaudit.mechanisms import (
    ConcentratedBlackBox,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Opaque,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.plan import FixedSizeSampling, MetricBall, PoissonSampling, ReplaceOne, ZeroOut

DELTA = 1e-5
REPLACE = ReplaceOne()


def certificate(*invocations: Any, delta: float = DELTA) -> Certificate:
    return certify(plan(*invocations), subject=SubjectRecord("x", {}, None, ""), delta=delta)


def opinion(*invocations: Any, delta: float = DELTA) -> SecondOpinion:
    return second_opinion(certificate(*invocations, delta=delta))


def stating(made: Certificate, epsilon: float, bound: float | None = None) -> Certificate:
    """A certificate with another number, as a fault of an accountant would make it."""
    assert made.guarantee is not None
    return replace(made, guarantee=replace(made.guarantee, epsilon=epsilon, error_bound=bound))


@pytest.mark.parametrize(
    ("invocations", "epsilon"),
    [
        ([use(Gaussian(1.0))], 4.377178),
        ([use(Gaussian(10.0), 2.0, REPLACE)], 0.725522),
        ([use(RandomizedResponse(0.5), relation=REPLACE, count=100)], 90.7815),
        ([use(Laplace(20.0), count=100)], 1.9477),
        ([use(Gaussian(1.0), count=1000, sampling=poisson(0.01))], 1.8282),
        ([use(Gaussian(1.0), count=1000, sampling=poisson(0.01), relation=ZeroOut())], 1.8282),
        ([use(Laplace(1.0), count=100, sampling=poisson(0.1))], 4.1523),
        ([use(DiscreteLaplace(3.0), 3.0, REPLACE, count=10)], 9.9978),
        ([use(Gaussian(4.0), count=1000, sampling=PoissonSampling(0.01, rows=5))], 1.5872),
        (
            [use(Gaussian(4.0), 2.0, REPLACE, count=1000, sampling=PoissonSampling(0.01, None, 1))],
            0.5614,
        ),
        ([use(ConcentratedBlackBox(0.1), count=10)], 7.077),
        ([use(Laplace(3.0), 3.0, MetricBall(2.0), count=10)], 10.0),
        ([use(Gaussian(3.0), count=10, group="a"), use(Laplace(2.0), group="b")], 4.653),
    ],
    ids=str,
)
def test_the_two_agree(invocations: Any, epsilon: float) -> None:
    found = opinion(*invocations)
    assert found.agrees is True
    assert not found.contradicts
    assert found.epsilon == pytest.approx(epsilon, rel=0.01)
    assert "they agree within 1%" in found.reason
    assert found.reason.count(". ") == 0


def test_an_upper_bound_of_theirs_that_is_larger_contradicts_nothing() -> None:
    found = opinion(use(Gaussian(5.0), 2.0, REPLACE, count=9, sampling=FixedSizeSampling(10, 100)))
    assert (found.agrees, found.accountant) == (True, "Rényi DP")
    assert "dpaudit's is" in found.reason
    assert "% tighter" in found.reason
    assert "dpaudit (pld) proves" in found.reason


def test_many_distinct_events_go_to_renyi_divergences(capfd: pytest.CaptureFixture[str]) -> None:
    found = opinion(*(use(Gaussian(300.0 + step)) for step in range(300)))
    assert (found.agrees, found.accountant) == (True, "Rényi DP")
    assert tuple(capfd.readouterr()) == ("", "")  # of what dp-accounting prints


def test_an_epsilon_that_is_too_small_is_contradicted() -> None:
    found = second_opinion(stating(certificate(use(Gaussian(1.0))), 4.0))
    assert (found.agrees, found.contradicts) == (False, True)
    assert found.lower is not None
    assert 4.3 < found.lower <= 4.3772
    assert "they contradict each other" in found.reason


def test_an_epsilon_that_is_too_large_is_loose_and_no_contradiction() -> None:
    found = second_opinion(stating(certificate(use(Gaussian(1.0))), 5.0))
    assert (found.agrees, found.contradicts) == (True, False)
    assert "promises less than could be proved" in found.reason


def test_a_lower_end_that_is_too_large_is_a_disagreement() -> None:
    found = second_opinion(stating(certificate(use(Gaussian(1.0))), 5.0, 0.1))
    assert (found.agrees, found.contradicts) == (False, False)
    assert "no ε below 4.9 holds" in found.reason


def test_rounding_on_a_grid_is_no_contradiction(capfd: pytest.CaptureFixture[str]) -> None:
    found = opinion(use(RandomizedResponse(0.9), relation=REPLACE, count=10_000))
    assert found.agrees is True
    assert found.lower is not None
    assert found.epsilon is not None
    assert found.lower <= found.ours[1] <= found.epsilon  # type: ignore[operator]
    assert "lower end" in found.reason
    assert tuple(capfd.readouterr()) == ("", "")


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (certificate(use(Laplace(1.0)), delta=0.0), "no finite ε at δ = 0"),
        (certificate(use(PureBlackBox(1.0), at="box")), "pure-black-box at 'box' has no DpEvent"),
        (certificate(use(Opaque("secret sauce", 1.0))), "proves no finite ε"),
        (certificate(use(Gaussian(1.0), 0.0)), "nothing that depends on the data"),
        (
            certificate(use(Laplace(1.0), count=10, sampling=FixedSizeSampling(1, 9))),
            "fixed-size sampled under add-remove",
        ),
        (
            certificate(*(use(DiscreteLaplace(300.0 + step)) for step in range(65))),
            "65 distinct events",
        ),
        (
            certificate(use(DiscreteLaplace(9e6), count=2 * 10**6, at="often")),
            "'often' occurs 2000000 times",
        ),
        (certificate(use(DiscreteLaplace(1.0), count=99), delta=1e-14), "δ = 1e-14 is below"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_why_there_is_none_is_one_sentence(made: Certificate, reason: str) -> None:
    found = second_opinion(made)
    assert (found.agrees, found.epsilon, found.accountant, found.contradicts) == (
        None,
        None,
        None,
        False,
    )
    assert reason in found.reason
    assert found.reason.startswith("dp-accounting ")
    assert found.reason.endswith(".")
    assert ".." not in found.reason


def test_work_of_minutes_is_refused_at_once() -> None:
    made = certificate(*(use(Gaussian(9.0 + step), sampling=poisson(0.1)) for step in range(80)))
    start = time.perf_counter()
    assert "80 distinct events" in second_opinion(made).reason
    assert time.perf_counter() - start < 5


def test_interleaved_events_are_counted_and_not_composed_one_by_one() -> None:
    mechanisms = (Gaussian(300.0), Laplace(500.0))
    found = opinion(*(use(mechanisms[step % 2], at=str(step)) for step in range(5500)))
    assert (found.agrees, found.accountant) == (True, "privacy loss distributions")


def test_it_is_written_as_json_values() -> None:
    found = opinion(use(Gaussian(1.0)))
    record = found.to_dict()
    assert record["agrees"] is True
    assert record["delta"] == DELTA
    assert len(record["ours"]) == 2
