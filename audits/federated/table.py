"""What the attack shows beside what is certified, and what it makes of wrong servers.

Every line runs the attack on a setting of sampling rate and noise, and gives its bound beside the
certified ε. Wrong servers are entries in the form of the catalogue, judged in the same way.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from audits.catalogue.entry import Entry
from audits.catalogue.measuring import Row as CatalogueRow
from audits.catalogue.measuring import audit_repeatedly
from audits.federated.game import (
    Bounds,
    CanaryLikelihoodRatio,
    canary_pair,
    certified_claim,
    landmines,
    proved_curve,
    proved_epsilon,
    white_box,
)
from audits.federated.servers import (
    ClippedToWhole,
    EndToEnd,
    EveryoneSampled,
    ForgottenLargestWeight,
    Others,
    Served,
    SilentWhenEmpty,
)
from private_bo.federated import DPFTSDE, Sensitivity

ALPHA = 1e-6
"""Error rate of every verdict on a server."""

SETTINGS = (
    *((rate, 1.0) for rate in (0.1, 0.15, 0.2, 0.25, 0.35)),
    *((0.35, noise) for noise in (1.6, 2.0, 3.0, 4.0)),
)
"""q and z of the paper's landmine experiment (Figure 3)."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        algorithm: under attack.
        published: the classic moments accountant's ε, as the paper prints it.
        paper: ε of the PLD with the paper's sensitivity.
        true: ε of the PLD with the true one, which is what the attack is held against.
        bounds: what the attack shows.
        seconds: of the attack.
    """

    algorithm: DPFTSDE
    published: float
    paper: float
    true: float
    bounds: Bounds
    seconds: float

    @property
    def share(self) -> float:
        """How much of the certified ε is shown to be real."""
        return self.bounds.epsilon / self.true


def rows(
    settings: Iterable[tuple[float, float]] = SETTINGS,
    *,
    rounds: int = 40,
    runs: int = 100_000,
    seed: int = 0,
) -> Iterator[Row]:
    """The table over q and z, line by line.

    Args:
        settings: pairs of q and z.
        rounds: T.
        runs: simulated transcripts on each side.
        seed: of the transcripts.
    """
    for rate, noise in settings:
        algorithm = landmines(rate, noise, rounds=rounds)
        coarse = replace(algorithm, declared=Sensitivity.PAPER).plan()
        paper = proved_epsilon(coarse, algorithm.target_delta)
        start = time.perf_counter()
        bounds = white_box(algorithm, runs=runs, seed=seed)
        seconds = time.perf_counter() - start
        published = algorithm.published_loss
        yield Row(algorithm, published, paper, certified_claim(algorithm).epsilon, bounds, seconds)


def small(kind: type[Served] = Served, others: Others | None = None) -> Served:
    """A server of the landmine setting with 10 rounds, so that a run takes a millisecond."""
    public: dict[str, Any] = {"agents": 29, "regions": 4, "rate": 0.35, "clip": 22.0, "rounds": 10}
    return kind(**public) if others is None else kind(**public, others=others)


def entries() -> tuple[Entry, ...]:
    """Running servers, right and wrong, in the form of the catalogue of mechanisms."""
    wrong = (
        ("everyone sampled", EveryoneSampled),
        ("no noise on empty rounds", SilentWhenEmpty),
        ("φ_max forgotten", ForgottenLargestWeight),
        ("clipped to S, not S/√P", ClippedToWhole),
    )
    right = (
        _entry("simulated game, T = 40", landmines(), 10_000),
        _entry("server, others send zeros", small(others=Others.ZEROS), 300),
        _entry("server, others send nothing", small(others=Others.SILENCE), 1_000),
        _entry("whole algorithm, honest agents", EndToEnd(), 200),
    )
    return (*(_entry(name, small(kind, Others.SILENCE), 1_000) for name, kind in wrong), *right)


def judge_server(entry: Entry, *, seed: int = 0, seeds: int = 1) -> CatalogueRow:
    """Audits of one server, each with an error rate of ``ALPHA``, and its whole budget of runs."""
    return audit_repeatedly(entry, seed, seeds, confidence=1 - ALPHA, whole=True)


def _entry(name: str, subject: DPFTSDE, runs: int) -> Entry:
    claim, pair = certified_claim(subject), canary_pair(subject)
    plan = subject.true_plan() if isinstance(subject, Served) else subject.plan()
    true = math.inf if plan is None else proved_epsilon(plan, claim.delta)
    return Entry(
        name,
        plan == subject.plan(),
        claim,
        pair.x,
        pair.x_prime,
        true,
        runs,
        subject.audit_release,
        proved_curve(subject),
        CanaryLikelihoodRatio.of(subject),
    )
