"""Plans that were once certified wrongly, slowly or not at all; they are always tried."""

from __future__ import annotations

from tests.benchmarks.soundness.uses import Case, Use


def _sampled(kind: str, scale: float, rate: float, count: int = 1, delta: float = 1e-6) -> Case:
    facts = {"scale" if "laplace" in kind else "sigma": scale}
    return Case(
        f"known: {kind} {scale:g}, q={rate:g}, {count:g} ×",
        "add-remove",
        (Use(kind, facts, 1.0, count, rate),),
        delta,
    )


def _choice(epsilon: float, count: int, delta: float) -> Case:
    uses = (Use("exponential", {"epsilon": epsilon}, 1.0, count),)
    return Case(f"known: {count} × exponential {epsilon:g}", "replace-one", uses, delta)


_CLIPPED = Use("laplace", {"scale": 1.0, "clip": (-1.0, 1.0)}, 1.0, local=True)
_TREE = {"sigma": 1.0, "participations": 1, "matrix": ("binary-tree", {"steps": 64})}

KNOWN: tuple[Case, ...] = (
    Case("known: clip in a ball", "metric-ball", (_CLIPPED,), 0.0, radius=10.0),
    *(
        Case("known: response, zero-out, q=.1", "zero-out",
             (Use("pure-black-box", {"epsilon": 2.0}, rate=0.1),), delta)
        for delta in (0.0, 1e-6)
    ),
    _choice(1.0, 1, 1e-3),
    _choice(0.1, 20, 1e-3),
    Case("known: tree, moved", "replace-one", (Use("continual-gaussian", _TREE),), 1e-6),
    _sampled("gaussian", 0.02, 0.1),
    _sampled("gaussian", 0.03, 1e-3, 10**5),
    _sampled("gaussian", 0.02, 1e-5, 300),
    _sampled("laplace", 0.002, 1e-4, 1000),
    _sampled("gaussian", 0.1, 1e-5, 10**6),
    _sampled("discrete-laplace", 0.02, 1e-5, 1000),
    _sampled("discrete-laplace", 0.01, 1e-5, 1000),
    _sampled("gaussian", 75093.0, 1e-3, 430_000_000),
    Case("known: 3 × laplace 3 is 1", "add-remove", (Use("laplace", {"scale": 3.0}, 1.0, 3),), 0.0),
)  # fmt: skip
