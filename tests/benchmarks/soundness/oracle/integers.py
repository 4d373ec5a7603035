"""The laws of integer noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath as mp
import numpy as np

from tests.benchmarks.soundness.oracle import closed
from tests.benchmarks.soundness.oracle.closed import Number
from tests.benchmarks.soundness.oracle.laws import FiniteLaw

_LARGEST_LAW = 2_000_000


def table(
    losses: np.ndarray[Any, Any], p: Any, q: Any, span: float | None, curve: Any, top: Number
) -> dict[str, Any]:
    law = FiniteLaw(losses, np.asarray(p), np.asarray(q), span=span)
    curves = None if curve is None else (curve, curve)
    return {"lower": lambda _: law, "upper": law, "curves": curves, "range": (top, top)}


def discrete_laplace(facts: Any, shifts: tuple[Fraction, Fraction]) -> dict[str, Any] | None:
    """At output k in 0…s the loss is (2k − s)/b; what lies outside is as at the ends."""
    scale, shift = facts["scale"], int(shifts[1])
    if shift > _LARGEST_LAW:
        return None
    k = np.arange(shift + 1.0)
    q = np.exp(-k / scale) * math.tanh(0.5 / scale)
    q[0], q[-1] = (
        1 / (1 + math.exp(-1 / scale)),
        math.exp(-shift / scale) / (1 + math.exp(-1 / scale)),
    )
    curve = partial(_discrete_laplace_delta, facts["scale"], shift) if shift <= 2000 else None
    top = closed.exact(Fraction(shift) / Fraction(scale))
    return table((2 * k - shift) / scale, q[::-1], q, 1 / scale, curve, top)


def _discrete_laplace_delta(scale: float, shift: int, epsilon: float) -> Number:
    with mp.workdps(closed.digits(scale, epsilon or 1.0)):
        b, e = closed.exact(scale), closed.exact(epsilon)
        ratio = mp.exp(-1 / b)
        total = mp.mpf(0)
        for k in range(shift + 1):  # P's mass at k is Q's at s − k
            if (2 * k - shift) / b <= e:
                continue
            p = _step(shift - k, shift, ratio)
            total += p * -mp.expm1(e - (2 * k - shift) / b)
        return total


def _step(k: int, shift: int, ratio: Number) -> Number:
    if k == 0:
        return 1 / (1 + ratio)
    return ratio**k * ((1 - ratio) if k < shift else mp.mpf(1)) / (1 + ratio)


def truncated_gaussian(facts: Any, shifts: tuple[Fraction, Fraction]) -> dict[str, Any] | None:
    """At output k in s − B…B the loss is (2k − s)s/2σ²; beyond, one of both has no mass."""
    sigma, bound, shift = facts["sigma"], facts["bound"], int(shifts[1])
    if shift > 2 * bound:
        return None
    with mp.workdps(60):
        square = 2 * closed.exact(sigma) ** 2
        mass = {k: mp.exp(-mp.mpf(k * k) / square) for k in range(-bound, bound + 1)}
        whole = mp.fsum(mass.values())
        inside = range(shift - bound, bound + 1)
        both = [(mass[k - shift] / whole, mass[k] / whole) for k in inside]
        told = mp.fsum(mass[j] for j in range(bound - shift + 1, bound + 1)) / whole
        losses = np.array([float((2 * k - shift) * shift / square) for k in inside])
    p, q = (np.array([float(each[side]) for each in both]) for side in (0, 1))
    failure = float(told)
    if not (p > 0).all() or not (q > 0).all():
        return None
    law = FiniteLaw(losses, p, q, failure, failure, shift / sigma**2)
    curve = partial(closed.table_delta, [*both, (told, mp.mpf(0))])
    return {
        "lower": lambda _: law,
        "upper": law,
        "curves": (curve, curve),
        "range": (mp.inf, mp.inf),
    }


def discrete_gaussian(facts: Any, shifts: tuple[Fraction, Fraction]) -> dict[str, Any] | None:
    sigma, shift = facts["sigma"], int(shifts[1])
    reach = math.ceil(38.6 * sigma) + 1
    if reach > _LARGEST_LAW or shift > reach:
        return None
    total = sigma * math.sqrt(2 * math.pi)
    if sigma < 1e3:
        with mp.workdps(40):
            total = float(mp.jtheta(3, 0, mp.exp(-1 / (2 * closed.exact(sigma) ** 2))))
    k = np.arange(-reach, shift + reach + 1.0)
    q = np.exp(-((k / sigma) ** 2) / 2) / total
    p = np.exp(-(((k - shift) / sigma) ** 2) / 2) / total
    losses = (2 * k - shift) * shift / (2 * sigma * sigma)
    span = shift / (sigma * sigma)
    return table(losses, p, q, span, None, mp.inf)
