"""What each mechanism releases when a unit is drawn so many times, on finitely many cells.

To merge outputs into cells can only hide: what two laws on cells cost, neighbours do cost. A unit
that is drawn adds to a value, or moves a choice, by one declared step; drawn v times it moves v.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from tests.benchmarks.soundness.oracle.laws import Floats
from tests.benchmarks.soundness.oracle.streams import factors

Tail = Callable[[Floats], Floats]

SUMS = (
    "gaussian", "laplace", "discrete-gaussian", "discrete-laplace", "individual-gaussian",
    "staircase", "truncated-laplace", "laplace-vector", "gaussian-vector", "continual-gaussian",
    "continual-laplace",
)  # fmt: skip
"""Those to which a unit that is zeroed or absent adds nothing."""
WHOLE = ("discrete-gaussian", "discrete-laplace", "pure-black-box", "approximate-black-box",
         "stable-histogram")  # fmt: skip


@dataclass(frozen=True)
class Outputs:
    """Masses of cells, a row for each displacement, and the cells that alone can have none."""

    masses: Floats
    ends: Floats


@dataclass(frozen=True)
class Noise:
    """A symmetric law of noise: P[noise > x], how far it reaches, how far one step moves."""

    above: Tail
    reach: float
    step: float
    whole: bool = False
    ends: bool = False


def outputs(kind: str, facts: Any, shift: float, moves: Sequence[float], few: bool) -> Outputs:
    """The laws of the outputs at each of these displacements, in declared steps."""
    if kind == "randomized-response":
        return _response(facts["p"], facts.get("k", 2), moves)
    if kind in ("exponential", "top-k"):  # the first choice, of two sets of candidates
        odds = facts["epsilon"] * (np.array(moves) - 0.5)
        return Outputs(np.stack([expit(-odds), expit(odds)], axis=1), np.zeros(2, bool))
    if kind in _AHEAD:  # the first of two candidates, or one query, that moves up by a step
        ahead = np.array([_AHEAD[kind](facts["epsilon"], 2 * (move - 1)) for move in moves])
        return Outputs(np.stack([1 - ahead, ahead], axis=1), np.zeros(2, bool))
    if kind in ("unary-encoding", "subset-selection"):
        return _encoded(kind, facts, moves)
    noise = _noise(kind, facts, shift)
    made = _cells(noise, moves, few)
    failure = facts.get("delta", 0.0) if kind == "approximate-black-box" else 0.0
    if not failure:
        return made
    told = np.concatenate([made.masses * (1 - failure), np.eye(len(moves)) * failure], axis=1)
    return Outputs(told, np.append(made.ends, np.ones(len(moves), bool)))


def _flipped(epsilon: float, ahead: float) -> float:
    """That permute-and-flip chooses a candidate so many units before the other, per e^−ε/2."""
    behind = math.exp(-epsilon / 2 * abs(ahead)) / 2
    return 1 - behind if ahead > 0 else behind


def _noisier(epsilon: float, ahead: float) -> float:
    """The same by two Laplace noises of scale 2/ε: P[their difference > x] for x ≥ 0 is known."""
    x = epsilon / 2 * abs(ahead)
    behind = math.exp(-x) * (0.5 + x / 4)
    return 1 - behind if ahead > 0 else behind


def _above(epsilon: float, ahead: float) -> float:
    """That one query so many half units above is, by noise on the threshold and on the query."""
    x, one, two = abs(ahead) / 2 * epsilon, 1 / 0.25, 2 / 0.75
    top = one**2 * math.exp(-x / one) - two**2 * math.exp(-x / two)
    behind = top / (2 * (one**2 - two**2))
    return 1 - behind if ahead > 0 else behind


_AHEAD: dict[str, Callable[[float, float], float]] = {
    "permute-and-flip": _flipped, "noisy-max": _noisier, "sparse-vector": _above,
}  # fmt: skip


def _encoded(kind: str, facts: Any, moves: Sequence[float]) -> Outputs:
    """The bits of three answers at most: of whoever is not drawn, and of those on either side."""
    k, shown = facts["k"], min(facts["k"], 3)
    size, p, rows = facts.get("members", 1), facts.get("p", 0.0), []
    for move in moves:
        truth = 0 if move == 0 else 1 if move > 0 else shown - 1 if k > 2 else 0
        row = []
        for bits in itertools.product((0, 1), repeat=shown):
            if kind == "unary-encoding":
                ones = [0.5 if at == truth else facts["lie"] for at in range(shown)]
                chances = [q if bit else 1 - q for q, bit in zip(ones, bits, strict=True)]
                row.append(math.prod(chances))
                continue
            sets = math.comb(k - shown, size - sum(bits)) if sum(bits) <= size else 0
            own = bits[truth] / math.comb(k - 1, size - 1)
            row.append(sets * (p / math.comb(k, size) + (1 - p) * own))
        rows.append(row)
    masses = np.array(rows)
    return Outputs(masses, np.zeros(masses.shape[1], bool))


def _response(p: float, k: int, moves: Sequence[float]) -> Outputs:
    """Whoever is not drawn answers 0; those on either side of it 1 and, if there is a third, 2."""
    rows = []
    for move in moves:
        masses = np.full(min(k, 3), p / k)
        answer = 0 if move == 0 else 1 if move > 0 else len(masses) - 1 if k > 2 else 0
        masses[answer] += 1 - p
        rows.append(masses)
    return Outputs(np.array(rows), np.zeros(min(k, 3), bool))


def _noise(kind: str, facts: Any, shift: float) -> Noise:
    if kind in ("laplace-vector", "gaussian-vector"):
        ratios = np.array(facts["sensitivities"]) / np.array(facts["scales"])
        if kind == "laplace-vector":  # its worst coordinate alone
            return _laplace(1.0, float(ratios.max()))
        return _gaussian(1.0, float(np.hypot.reduce(ratios)))
    if kind == "continual-gaussian":
        found = factors(facts, 2, moves=False)
        root = math.sqrt(found[0]) if found is not None else 1.0  # the first node alone
        return _gaussian(facts["sigma"] * (math.sqrt(2) if facts["symmetric"] else 1), shift * root)
    if kind == "concentrated-black-box":
        return _gaussian(1.0, math.sqrt(2 * facts["rho"]))
    if kind in ("pure-black-box", "approximate-black-box"):
        return _geometric(1 / facts["epsilon"], 1.0)
    if kind == "stable-histogram":  # a key far above the threshold
        return _geometric(facts["scale"], 1.0)
    if kind == "discrete-laplace":
        return _geometric(facts["scale"], shift)
    if kind == "discrete-gaussian":
        return _discrete_gaussian(facts["sigma"], shift)
    if kind == "staircase":
        return _staircase(facts["epsilon"], facts["width"], facts["share"], shift)
    if kind == "truncated-laplace":
        return _ended(facts["scale"], facts["bound"], shift)
    if "sigma" in facts:
        return _gaussian(facts["sigma"], shift)
    return _laplace(facts["scale"], shift)


def _gaussian(sigma: float, step: float) -> Noise:
    return Noise(lambda x: ndtr(-x / sigma), 9 * sigma, step)


def _laplace(scale: float, step: float) -> Noise:
    return Noise(lambda x: np.exp(-x / scale) / 2, 40 * scale, step)


def _geometric(scale: float, step: float) -> Noise:
    ratio = math.exp(-1 / scale)
    return Noise(lambda x: ratio ** (np.floor(x) + 1) / (1 + ratio), 40 * scale, step, whole=True)


def _discrete_gaussian(sigma: float, step: float) -> Noise:
    last = math.ceil(38 * sigma) + 2
    masses = np.exp(-((np.arange(-last, last + 1) / sigma) ** 2) / 2)
    tails = np.append(np.cumsum(masses[::-1])[::-1] / masses.sum(), 0.0)

    def above(x: Floats) -> Floats:
        at = np.clip(np.floor(x) + 1 + last, 0, len(tails) - 1).astype(int)
        return np.asarray(tails[at])

    return Noise(above, 9 * sigma + 3, step, whole=True)


def _staircase(epsilon: float, width: float, share: float | None, step: float) -> Noise:
    """Of height a up to γΔ, and e^−ε of the one before on each Δ from there on."""
    b = math.exp(-epsilon)
    inner = 1 / (1 + math.exp(min(epsilon / 2, 700))) if share is None else share
    top = (1 - b) / (2 * width * (inner + b * (1 - inner)))

    def above(x: Floats) -> Floats:
        far = np.maximum(x / width - inner, 0.0)
        j = np.floor(far)
        rest = top * width * (b ** (j + 1) * (j + 1 - far) + b ** (j + 2) / (1 - b))
        return rest + top * np.maximum(inner * width - x, 0.0)

    return Noise(above, min(40 / epsilon + 2, 30) * width, step)


def _ended(scale: float, bound: float, step: float) -> Noise:
    def above(x: Floats) -> Floats:
        size = np.minimum(x, bound)
        part = np.exp(-size / scale) * np.expm1((size - bound) / scale)
        return np.asarray(part / (2 * math.expm1(-bound / scale)))

    return Noise(above, bound, step, ends=True)


def _cells(noise: Noise, moves: Sequence[float], few: bool) -> Outputs:
    """Between places spread over all laws, and where one of them is centred or ends."""
    at = np.array([math.floor(m * noise.step) if noise.whole else m * noise.step for m in moves])
    if noise.whole and any(m % 1 for m in moves):  # two halves are at most one
        half = int(noise.step) // 2
        at = np.array([math.copysign(half, m) if m % 1 else m * noise.step for m in moves])
    low, high = at.min() - noise.reach, at.max() + noise.reach
    edges = np.append(np.linspace(low, high, 7 if few else 41), at)
    near = 1.0 if noise.whole else noise.reach * 1e-2
    for reach in (noise.reach / 12, noise.reach / 4):
        edges = np.append(edges, [at - reach, at + reach])
    if noise.whole:
        edges = np.unique(np.floor(edges)) + 0.5
        edges = np.append(edges, np.floor(at)[:, None] + [-1.5, -0.5, 0.5, 1.5])
    elif noise.ends:
        edges = np.append(edges, [at - noise.reach, at + noise.reach])
        near = 1e-9 * noise.reach
    edges = np.unique(edges)
    edges = edges[np.append(True, np.diff(edges) > near * 0.999)]
    rows = []
    for place in at:
        gap = edges - place
        far = noise.above(np.abs(gap))  # whole numbers are half of one away from any edge
        below, above = np.where(gap > 0, 1 - far, far), np.where(gap > 0, far, 1 - far)
        middle = np.where(gap[:-1] >= 0, far[:-1] - far[1:], below[1:] - below[:-1])
        rows.append(np.concatenate([below[:1], np.maximum(middle, 0.0), above[-1:]]))
    return Outputs(np.array(rows), np.full(len(edges) + 1, noise.ends))
