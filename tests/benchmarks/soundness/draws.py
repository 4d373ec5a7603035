"""Numbers and mechanisms at random: mostly usual ones, some at the ends of floats."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from tests.benchmarks.soundness.uses import Use

COUNTS = (1, 1, 1, 2, 3, 10, 30, 100, 1000, 10**4, 10**5, 10**6, 4 * 10**8, 10**9)


def between(rng: random.Random, low: float, high: float) -> float:
    """Log-uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def noise(rng: random.Random) -> float:
    """A scale of noise: mostly usual, some far out, a few at the ends of floats."""
    kind = rng.random()
    if kind < 0.7:
        return between(rng, 0.3, 50.0)
    if kind < 0.96:
        return between(rng, 1e-2, 1e6)
    return rng.choice([1e-300, 1e-30, 1e-8, 1e30, 1e300])


def epsilon(rng: random.Random) -> float:
    """Of one use."""
    return between(rng, 0.01, 5.0) if rng.random() < 0.75 else between(rng, 1e-6, 1e3)


def rate(rng: random.Random) -> float:
    """Of Poisson sampling."""
    return rng.choice([between(rng, 1e-3, 0.5), between(rng, 1e-7, 1.0), 1e-7, 0.999, 1.0])


def facts(rng: random.Random, kind: str) -> tuple[dict[str, Any], float]:
    """Fields of a mechanism, and a sensitivity."""
    shift = rng.choice([1.0, 1.0, 2.0, between(rng, 1e-3, 1e3)])
    whole = float(rng.choice([1, 1, 2, 7, 100]))
    p = rng.choice([0.5, rng.uniform(0.01, 1.0), between(rng, 1e-12, 1.0), 1.0])
    factorization = matrix(rng)
    pattern = {"participations": rng.choice([1, 1, 2, 3]), "min_separation": rng.choice([1, 2, 5])}
    pattern |= rng.choice([{}, {}, {"cyclic": True}])
    makers: dict[str, Callable[[], tuple[dict[str, Any], float]]] = {
        "gaussian": lambda: ({"sigma": noise(rng)}, shift),
        "individual-gaussian": lambda: ({"sigma": noise(rng), "steps": 5}, shift),
        "laplace": lambda: ({"scale": noise(rng)}, shift),
        "discrete-gaussian": lambda: ({"sigma": between(rng, 0.1, 300.0)}, min(whole, 7.0)),
        "discrete-laplace": lambda: ({"scale": between(rng, 0.02, 300.0)}, whole),
        "randomized-response": lambda: ({"p": p, "k": rng.choice([2, 2, 3, 50])}, 1.0),
        "exponential": lambda: ({"epsilon": epsilon(rng)}, 1.0),
        "permute-and-flip": lambda: ({"epsilon": epsilon(rng)}, 1.0),
        "noisy-max": lambda: ({"epsilon": epsilon(rng)}, 1.0),
        "sparse-vector": lambda: (
            {"epsilon": epsilon(rng), "threshold": 0.0, "threshold_share": 0.25},
            1.0,
        ),
        "unary-encoding": lambda: (
            {"k": rng.choice([2, 3, 50]), "lie": rng.uniform(0.01, 0.49)},
            1.0,
        ),
        "bit-vector-response": lambda: (
            {"p": p, "bits": rng.choice([1, 8, 200]), "ones": rng.choice([1, 1, 5, 60])},
            1.0,
        ),
        "subset-selection": lambda: (
            {"k": rng.choice([3, 4, 50]), "p": max(p, 1e-9), "members": rng.choice([1, 2])},
            1.0,
        ),
        "top-k": lambda: ({"epsilon": epsilon(rng), "k": rng.choice([1, 2, 3, 10])}, 1.0),
        "laplace-vector": lambda: (_box(rng), 1.0),
        "gaussian-vector": lambda: (_box(rng), 1.0),
        "staircase": lambda: (
            {"epsilon": epsilon(rng), "width": shift, "share": rng.choice([None, rng.random()])},
            shift * rng.choice([1.0, 1.0, 0.5, 1e-3]),
        ),
        "truncated-laplace": lambda: _ended(rng),
        "truncated-discrete-gaussian": lambda: (
            {"sigma": between(rng, 0.2, 20.0), "bound": rng.choice([1, 3, 20, 300])},
            rng.choice([1.0, 1.0, 2.0, 5.0]),
        ),
        "stable-histogram": lambda: (_thresholded(rng), 1.0),
        "pure-black-box": lambda: ({"epsilon": epsilon(rng)}, 1.0),
        "approximate-black-box": lambda: (
            {"epsilon": epsilon(rng), "delta": rng.choice([1e-12, 1e-8, 1e-4, 0.0])},
            1.0,
        ),
        "concentrated-black-box": lambda: ({"rho": between(rng, 1e-6, 30.0)}, 1.0),
        "shuffled": lambda: ({"p": max(p, 1e-3), "reports": rng.choice([1, 2, 5, 30, 200])}, 1.0),
        "continual-gaussian": lambda: (
            {"sigma": between(rng, 0.5, 30), "matrix": factorization, **pattern}
            | {"symmetric": rng.random() < 0.2},
            shift,
        ),
        "continual-laplace": lambda: (
            {"scale": between(rng, 0.5, 300), "matrix": factorization, **pattern},
            shift,
        ),
    }
    made, moved = makers[kind]()
    if "ones" in made:
        made["ones"] = min(made["ones"], made["bits"])
    return made, moved


def _ended(rng: random.Random) -> tuple[dict[str, Any], float]:
    """Noise that ends after some or many of its scales, and a shift up to twice as far."""
    bound = between(rng, 0.01, 100.0)
    share = rng.choice([1.0, 0.1, 1.9, between(rng, 1e-3, 1.0), between(rng, 1e-3, 1.0)])
    return {"scale": bound / between(rng, 0.05, 60.0), "bound": bound}, bound * share


def _thresholded(rng: random.Random) -> dict[str, Any]:
    """Noise behind a threshold of some of its scales, and keys of a unit."""
    scale = between(rng, 1e-3, 1e6) if rng.random() < 0.2 else between(rng, 0.05, 50.0)
    threshold = 2 + round(scale * rng.choice([0.0, 1.0, between(rng, 1.0, 40.0), 800.0]))
    keys = rng.choice([1, 1, 2, 5, 100])
    return {"scale": scale, "threshold": float(threshold), "key_sensitivity": keys}


def _box(rng: random.Random) -> dict[str, Any]:
    """Scales and sensitivities of up to five coordinates, some of which are alike."""
    many = rng.choice([1, 2, 3, 5])
    scales = [rng.choice([noise(rng), 8.0]) for _ in range(many)]
    moves = [rng.choice([1.0, 0.0, between(rng, 1e-3, 1e3)]) for _ in range(many)]
    return {"scales": tuple(scales), "sensitivities": tuple(moves)}


def matrix(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A short stream's factorisation, so that all patterns can be tried."""
    steps = rng.choice([1, 2, 3, 5, 8, 13, 16, 31])
    kinds = ["binary-tree", "honaker-tree", "square-root-toeplitz", "buffered-toeplitz"]
    kind = rng.choice([*kinds, "banded-toeplitz", "own-toeplitz", "own-matrix"])
    fields: dict[str, Any] = {"steps": steps}
    if kind == "own-toeplitz":
        inverse = rng.random() < 0.5
        shares = [rng.random() for _ in range(rng.choice([1, 2, 5]))]
        falls = sorted((rng.random() for _ in shares), reverse=True)
        others = [-share / len(shares) for share in shares] if inverse else falls
        return kind, fields | {"coefficients": (1.0, *others), "inverse": inverse}
    if kind == "own-matrix":
        bands = rng.choice([1, 2, 31])
        rows = [
            (*(rng.random() / steps * (n - at < bands) for at in range(n)), 1 + rng.random())
            for n in range(steps)
        ]
        return kind, {"rows": tuple(rows)}
    if kind.endswith("tree"):
        fields["release_root"] = rng.random() < 0.3
    if kind.startswith("buffered"):
        fields |= {"pole_rates": (1e-3, 0.1), "zero_rates": (1e-2,)}
    if kind.startswith("banded"):
        fields["bands"] = rng.choice([1, 2, 5])
    return kind, fields


def use(rng: random.Random, kind: str, counts: tuple[int, ...] = COUNTS) -> Use:
    """One use of that kind."""
    fields, shift = facts(rng, kind)
    return Use(kind, fields, shift, rng.choice(counts))
