"""The law of one use of each mechanism before sampling, from the mechanism's definition.

Each function takes the mechanism's fields and the distance of neighbouring values, at least and at
most, and gives fields of :class:`tests.benchmarks.soundness.oracle.costs.Cost`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath as mp
import numpy as np

from tests.benchmarks.soundness.oracle import closed
from tests.benchmarks.soundness.oracle.integers import (
    discrete_gaussian,
    discrete_laplace,
    table,
    truncated_gaussian,
)
from tests.benchmarks.soundness.oracle.laws import (
    BoundedRangeLaw,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    TruncatedLaw,
)


def _gaussian(facts: Any, shifts: tuple[Fraction, Fraction]) -> dict[str, Any]:
    sigma = Fraction(facts["sigma"]) ** 2 * (2 if facts.get("symmetric") else 1)
    moved = shifts if "matrix" in facts else tuple(shift * shift for shift in shifts)
    square = tuple(one / sigma for one in moved)
    laws = [GaussianLaw(_root(one)) for one in square]
    return {
        "lower": lambda _: laws[0],
        "upper": laws[1] if square[0] != square[1] else laws[0],
        "curves": tuple(partial(closed.gaussian_delta, one) for one in square),
        "range": (mp.inf, mp.inf),
        "square": square,
    }


def _root(square: Fraction) -> float:
    with mp.workdps(40):
        return float(mp.sqrt(closed.exact(square)))


def _laplace(facts: Any, shifts: tuple[Fraction, Fraction]) -> dict[str, Any]:
    ratios = [shift / Fraction(facts["scale"]) for shift in shifts]
    laws = [LaplaceLaw(float(ratio)) for ratio in ratios]
    return {
        "lower": lambda _: laws[0],
        "upper": laws[1],
        "curves": tuple(partial(closed.laplace_delta, ratio) for ratio in ratios),
        "range": tuple(closed.exact(ratio) for ratio in ratios),
    }


def _truncated(facts: Any, shifts: tuple[Fraction, Fraction]) -> dict[str, Any] | None:
    scale, end = Fraction(facts["scale"]), Fraction(facts["bound"]) / Fraction(facts["scale"])
    ratio = shifts[1] / scale
    if shifts[0] != shifts[1] or ratio >= 2 * end:
        return None
    law = TruncatedLaw(float(ratio), float(end))
    curve = partial(closed.truncated_delta, ratio, end)
    return {
        "lower": lambda _: law,
        "upper": law,
        "curves": (curve, curve),
        "range": (mp.inf, mp.inf),
    }


def _stable(facts: Any, _: Any) -> dict[str, Any]:
    """Of one key: at the threshold, or new; either at most the worst (ε, δ)-private release."""
    with mp.workdps(60):
        ratio, first = mp.exp(-1 / closed.exact(facts["scale"])), math.ceil(facts["threshold"])
        masses = [(1 / (1 + ratio), ratio / (1 + ratio)), (ratio / (1 + ratio), 1 / (1 + ratio))]
        told = ratio ** (first - 1) / (1 + ratio)
        new = [(told, mp.mpf(0)), (1 - told, mp.mpf(1))]
        ends = mp.log(max((1 - told * (1 + ratio)) / ratio, 1))
        share = float((1 - told) / (1 + mp.exp(-ends)))
    e, q, low = float(ends), float(told), float((1 - told) / (1 + mp.exp(ends)))
    top = float(-mp.log(ratio))
    one, two = (float(each) for each in masses[0])
    at = FiniteLaw(np.array([-top, top]), np.array([two, one]), np.array([one, two]), span=top)
    worst = FiniteLaw(
        np.array([-e, e]), np.array([low, share]), np.array([share, low]), q, q, span=e
    )
    if e == 0:
        worst = FiniteLaw(np.zeros(1), np.array([1 - q]), np.array([1 - q]), q, q)

    def curve(asked: float) -> closed.Number:
        return max(closed.table_delta(each, asked) for each in (masses, new))

    return {
        "lower": lambda _: at,
        "upper": worst,
        "curves": (curve, curve),
        "range": (mp.inf, mp.inf),
    }


def _response(facts: Any, _: Any) -> dict[str, Any]:
    p, k = facts["p"], facts.get("k", 2)
    if p == 1:
        return table(np.zeros(1), [1.0], [1.0], None, lambda e: mp.mpf(0), mp.mpf(0))
    with mp.workdps(60):
        lie = closed.exact(p) / k
        truth = 1 - closed.exact(p) + lie
        top = mp.log(truth / lie)
        masses = [(truth, lie), ((k - 2) * lie, (k - 2) * lie), (lie, truth)]
    e = float(top)
    low, high, rest = float(lie), float(truth), float((k - 2) * lie)
    if k == 2:
        made = table(np.array([-e, e]), [low, high], [high, low], e, None, top)
    else:
        made = table(np.array([-e, 0.0, e]), [low, rest, high], [high, rest, low], e, None, top)
    curve = partial(closed.table_delta, masses)
    return made | {"curves": (curve, curve)}


def _bits(facts: Any, _: Any) -> dict[str, Any]:
    """So many independent answers of two that differ, j of them told as they are."""
    p, differing = facts["p"], min(2 * facts["ones"], facts["bits"])
    if p == 1:
        return _response({"p": 1}, None)
    with mp.workdps(60):
        lie = closed.exact(p) / 2
        step = mp.log((1 - lie) / lie)
        truths = [
            mp.binomial(differing, j) * (1 - lie) ** j * lie ** (differing - j)
            for j in range(differing + 1)
        ]
    e, masses = float(step), [*zip(truths[::-1], truths, strict=True)]
    own = np.array([float(each) for each in truths])
    losses = e * (2.0 * np.arange(differing + 1) - differing)
    made = table(losses, own, own[::-1], e, None, differing * step)
    curve = partial(closed.table_delta, masses)
    return made | {"curves": (curve, curve)}


def _shuffled(facts: Any, _: Any) -> dict[str, Any] | None:
    """Of one answer among equal ones: how many ones are reported. Others may cost more."""
    from scipy.stats import binom

    lie, reports = facts["p"] / 2, facts["reports"]
    if facts["p"] == 1:
        return _response({"p": 1}, None)
    others = binom.pmf(np.arange(reports), reports - 1, lie)
    zero, one = np.append(others, 0.0), np.append(0.0, others)
    p, q = (1 - lie) * one + lie * zero, (1 - lie) * zero + lie * one
    kept = (p > 1e-290) & (q > 1e-290)
    law = FiniteLaw(np.log(p / q)[kept], p[kept], q[kept])
    with mp.workdps(60):
        top = mp.log((1 - closed.exact(lie)) / closed.exact(lie))
    return {"lower": lambda _: law, "upper": None, "curves": None, "range": (top, top)}


def _black_box(facts: Any, shifts: Any) -> dict[str, Any]:
    """Of a group of units the worst that is known is Laplace noise of so long a shift."""
    size = int(shifts[0])
    e, failure = facts["epsilon"] * size, facts.get("delta", 0.0)
    with mp.workdps(60):
        top = closed.exact(facts["epsilon"]) * size
    share = (1 - failure) / (1 + math.exp(-e))
    rest = (1 - failure) * math.exp(-e) / (1 + math.exp(-e))
    law = FiniteLaw(
        np.array([-e, e]), np.array([rest, share]), np.array([share, rest]), failure, failure, e
    )
    if e == 0:
        one = np.array([1 - failure])
        law = FiniteLaw(np.zeros(1), one, one, failure, failure)
    own = partial(closed.response_delta, top, failure=failure)
    least: Law = law if size == 1 else LaplaceLaw(e)
    below = own if size == 1 else partial(closed.laplace_delta, Fraction(facts["epsilon"]) * size)
    if failure and size > 1:
        return {
            "lower": lambda _: least,
            "upper": None,
            "curves": (below, lambda e: 1.0),
            "range": (top, mp.inf),
        }
    above = mp.inf if failure else top
    return {"lower": lambda _: least, "upper": law, "curves": (below, own), "range": (above, above)}


def _exponential(facts: Any, shifts: Any) -> dict[str, Any]:
    """Two sets of candidates, of which one rises and the other falls, of any weight."""
    e = facts["epsilon"] * int(shifts[0])
    with mp.workdps(60):
        top = closed.exact(facts["epsilon"]) * int(shifts[0])

    def law(share: float) -> Law:
        mean = math.exp((e - min(max(share, 0.0), e)) / 2) if e < 1400 else math.inf
        if not 1 < mean < 1e300 or e > 600:
            return FiniteLaw(np.array([0.0]), np.ones(1), np.ones(1))
        q = (mean - 1) / math.expm1(e)
        return FiniteLaw(
            np.array([-math.log(mean), e - math.log(mean)]),
            np.array([(1 - q) / mean, q * math.exp(e) / mean]),
            np.array([1 - q, q]),
        )

    curve = partial(closed.choice_delta, e)
    return {
        "lower": law,
        "upper": BoundedRangeLaw(e),
        "curves": (curve, curve),
        "range": (top, top),
    }


def _further_choice(facts: Any, shifts: Any) -> dict[str, Any]:
    """Of those that are left: neighbours are fixed, so that it may cost nothing but at its end."""
    nothing = FiniteLaw(np.zeros(1), np.ones(1), np.ones(1))
    return _exponential(facts, shifts) | {"lower": lambda _: nothing, "curves": None}


def _staircase(facts: Any, shifts: tuple[Fraction, Fraction]) -> dict[str, Any]:
    """The density passes one step more on [t, t + s) beyond each of its steps t = γΔ, γΔ + Δ, …

    But as |x|, where the first is nearer to 0 than s/2. Times the height there, a e^(−jε) after j
    steps, that is a (min(s, 2γΔ) + s e^−ε/(1 − e^−ε)).
    """
    e, width = facts["epsilon"], closed.exact(facts["width"])
    with mp.workdps(700 if e > 20 else 60):
        b, s = mp.exp(-closed.exact(e)), closed.exact(shifts[1])
        share = facts["share"]
        inner = 1 / (1 + mp.exp(closed.exact(e) / 2)) if share is None else closed.exact(share)
        steps = (1 - b) * min(s, 2 * inner * width) + s * b
        top = steps / (2 * width * (inner + b * (1 - inner)))
        masses = [(top, b * top), (1 - top - b * top, 1 - top - b * top), (b * top, top)]
        p = [float(max(one, mp.mpf(0))) for _, one in masses]
    losses = np.array([-e, 0.0, e])
    made = table(losses, p, p[::-1], e, None, closed.exact(e))

    def curve(asked: float) -> closed.Number:
        return mp.mpf(0) if asked >= e else closed.table_delta(masses, asked)

    return made | {"curves": (curve, curve)}


def _concentrated(facts: Any, shifts: Any) -> dict[str, Any]:
    square = 2 * Fraction(facts["rho"]) * int(shifts[0]) ** 2
    law = GaussianLaw(_root(square)) if square else FiniteLaw(np.zeros(1), np.ones(1), np.ones(1))
    return {
        "lower": lambda _: law,
        "upper": None,
        "curves": (
            partial(closed.gaussian_delta, square),
            partial(closed.concentrated_delta, square / 2),
        ),
        "range": (mp.inf, mp.inf),
        "square": (square, square),
        "concentrated": True,
    }


BASES: dict[str, Callable[[Any, tuple[Fraction, Fraction]], dict[str, Any] | None]] = {
    "gaussian": _gaussian,
    "individual-gaussian": _gaussian,
    "continual-gaussian": _gaussian,
    "shuffled": _shuffled,
    "laplace": _laplace,
    "truncated-laplace": _truncated,
    "truncated-discrete-gaussian": truncated_gaussian,
    "continual-laplace": _laplace,
    "discrete-laplace": discrete_laplace,
    "discrete-gaussian": discrete_gaussian,
    "randomized-response": lambda facts, _: _response(facts, _),
    "bit-vector-response": _bits,
    "exponential": _exponential,
    "further-choice": _further_choice,
    "stable-histogram": _stable,
    "staircase": _staircase,
    "pure-black-box": _black_box,
    "approximate-black-box": _black_box,
    "concentrated-black-box": _concentrated,
}
