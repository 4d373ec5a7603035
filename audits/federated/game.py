"""The game: did agent n send vectors, or nothing? The adversary sees every broadcast.

The adversary is another agent. It knows all that is public (weights, q, z, S) and the vectors of
every agent but one, and it wants to know whether that one, the canary, took part. It does not know
who was sampled. In the worst case the canary sends one vector of the largest norm that clipping
leaves, S/√P, in every round, and all others send zeros: against any others that do not know the
canary, the broadcasts are those of this game plus vectors that the adversary could draw by itself,
because agents are sampled independently of each other. So nobody tells the two cases apart better
than in this game, and here the likelihood ratio has a closed form.

In round t the canary moves the joint vector by c_t = (φ_n^(i) S/(q√P))_i along its own direction
if it is sampled; in all other directions there is noise alone, independent of it. So with
u_t = <y_t, c_t>/σ_t² - ‖c_t‖²/2σ_t² the log-likelihood ratio of a run is
Σ_t ln(1 - q + q exp(u_t)), where σ_t = z φ_max S/q.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import (
    AccountantName,
    AuditPair,
    AuditRecord,
    Claim,
    InputError,
    Plan,
    guarantee,
    privacy_curve,
)
from dpaudit.auditing import audit_release
from dpaudit.auditing.evidence.events import Event, expected_lower_bound, pilot_size
from dpaudit.auditing.evidence.joint import joint_lower_bound
from dpaudit.base import validate
from private_bo.federated import DPFTSDE, Reliance, SamplingScheme

Floats = NDArray[np.float64]
_THRESHOLDS = 200
_CHUNK = 10_000
_SHARES = 2  # directions that share the error rate


def landmines(
    rate: float = 0.35, noise: float = 1.0, *, rounds: int = 40, **fields: Any
) -> DPFTSDE:
    """The setting of the paper's landmine experiment: N = 29, P = 4, S = 22, 1 − p_t = 1/t.

    Args:
        rate: q.
        noise: z.
        rounds: T.
        fields: others of the algorithm.
    """
    setting: dict[str, Any] = {"agents": 29, "regions": 4, "clip": 22.0, "features": 100}
    setting |= {"reliance": Reliance.INVERSE, "rate": rate, "noise_multiplier": noise}
    return DPFTSDE(**({**setting, "rounds": rounds} | fields))


def certified_claim(algorithm: DPFTSDE) -> Claim:
    """What the attack is held against: the ε of the PLD with the true sensitivity, at N^-1.1."""
    delta = algorithm.target_delta
    return Claim(proved_epsilon(algorithm.plan(), delta), delta)


@cache
def proved_epsilon(plan: Plan, delta: float) -> float:
    """ε of the PLD; kept, as servers with a mistake declare the plan of the right one."""
    return guarantee(plan, delta, AccountantName.PLD).epsilon


def proved_curve(algorithm: DPFTSDE) -> Callable[[ArrayLike], Floats]:
    """All of δ(ε) that is proved."""
    return _curve(algorithm.plan())


@cache
def _curve(plan: Plan) -> Callable[[ArrayLike], Floats]:
    """Points are kept, as every audit asks for much the same ones."""
    exact = privacy_curve(plan)
    at = cache(lambda epsilon: float(exact(np.array([epsilon]))[0]))

    def curve(epsilons: ArrayLike) -> Floats:
        asked = np.asarray(epsilons, dtype=np.float64)
        return np.array([at(epsilon) for epsilon in asked.ravel().tolist()]).reshape(asked.shape)

    return curve


def canary_pair(algorithm: DPFTSDE) -> AuditPair:
    """The canary in the worst place, present or not."""
    (pair,) = algorithm.audit_pairs()
    return pair


@dataclass(frozen=True, eq=False)
class CanaryLikelihoodRatio:
    """Log-likelihood ratio of a run in which the canary takes part, against one where it does not.

    Attributes:
        shifts: c_t, (T, P).
        sigmas: σ_t, (T,).
        rate: q.
    """

    shifts: Floats
    sigmas: Floats
    rate: float
    name: str = "log-likelihood ratio of all broadcasts"
    method: str = "white-box membership inference over the whole run"

    @classmethod
    def of(cls, algorithm: DPFTSDE) -> CanaryLikelihoodRatio:
        """For the canary of the algorithm's own pair.

        Raises:
            InputError: if agents are not sampled independently.
        """
        if algorithm.sampling is not SamplingScheme.POISSON:
            raise InputError(
                f"sampling is {algorithm.sampling}; it must be poisson, as this game is the worst "
                "case only where agents are sampled independently."
            )
        pair = canary_pair(algorithm)
        norm = algorithm.clip / math.sqrt(algorithm.regions)
        weights = algorithm.public_weights.values[:, :, pair.x["agent"]]
        return cls(weights * (norm / algorithm.rate), algorithm.sigmas, algorithm.rate)

    def __call__(self, outputs: Floats) -> Floats:
        """Broadcasts (n, T, P), or (n, T, P, M) with the canary along the first entry, to (n,)."""
        along = outputs[..., 0] if outputs.ndim == 4 else outputs
        precision = self.shifts / np.square(self.sigmas)[:, None]
        exponents = np.einsum("ntp,tp->nt", along, precision)
        exponents -= np.einsum("tp,tp->t", self.shifts, precision) / 2
        if self.rate < 1:
            exponents = np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + exponents)
        # Single precision, as for other ratios: the last bits of a double are those of the output.
        total: Floats = exponents.sum(axis=1).astype(np.float32).astype(np.float64)
        return total


def audit(
    algorithm: DPFTSDE,
    *,
    runs: int = 100_000,
    confidence: float = 0.95,
    seed: int = 0,
    stop_early: bool = False,
) -> AuditRecord:
    """Attack the certified curve δ(ε) with the exact likelihood ratio.

    Args:
        algorithm: under attack.
        runs: on each side.
        confidence: of the verdict and of the bound.
        seed: of the experiment.
        stop_early: stop at the refutation.
    """
    claim = certified_claim(algorithm)
    return audit_release(
        algorithm.audit_release,
        canary_pair(algorithm),
        epsilon=claim.epsilon,
        delta=claim.delta,
        runs=runs,
        confidence=confidence,
        seed=seed,
        curve=proved_curve(algorithm),
        score=CanaryLikelihoodRatio.of(algorithm),
        learn=False,
        stop_early=stop_early,
    )


@dataclass(frozen=True)
class Bounds:
    """Lower bounds on ε in both directions, which hold together at the stated confidence.

    Attributes:
        remove: events likelier with the canary than without.
        add: events likelier without it.
        delta: at which both hold.
        confidence: of both together.
        runs: on each side.
    """

    remove: float
    add: float
    delta: float
    confidence: float
    runs: int

    @property
    def epsilon(self) -> float:
        """The larger of the two bounds."""
        return max(self.remove, self.add)


def white_box(
    algorithm: DPFTSDE, *, runs: int = 100_000, confidence: float = 0.95, seed: int = 0
) -> Bounds:
    """What simulated transcripts of the game show, adding the canary and removing it.

    A tenth of the runs chooses a threshold for each direction; the others test both thresholds by
    exact joint tests, at half the error rate each.

    Args:
        algorithm: under attack.
        runs: on each side.
        confidence: of both bounds together.
        seed: of the runs.

    Raises:
        InputError: if there are fewer than 2 runs.
    """
    score, pair = CanaryLikelihoodRatio.of(algorithm), canary_pair(algorithm)
    validate.integer_at_least(2, runs=runs)
    with_canary, without = (
        _scores(algorithm, score, data, runs, np.random.default_rng([seed, side]))
        for side, data in enumerate((pair.x, pair.x_prime))
    )
    each = 1 - (1 - confidence) / _SHARES
    delta = algorithm.target_delta
    remove = _one_way(with_canary, without, delta, each)
    add = _one_way(-without, -with_canary, delta, each)
    return Bounds(remove, add, delta, confidence, runs)


def _scores(
    algorithm: DPFTSDE,
    score: CanaryLikelihoodRatio,
    data: Any,
    runs: int,
    rng: np.random.Generator,
) -> Floats:
    """Of ``runs`` transcripts, a few at a time."""
    sizes = [min(_CHUNK, runs - start) for start in range(0, runs, _CHUNK)]
    return np.concatenate([score(algorithm.audit_release(data, size, rng)) for size in sizes])


def _one_way(likelier: Floats, other: Floats, delta: float, confidence: float) -> float:
    """Lower bound on ε from an event of large scores, chosen on the first runs."""
    from scipy.special import ndtri

    cut = pilot_size(likelier.size)
    thresholds = np.quantile(likelier[:cut], np.linspace(0.02, 0.999, _THRESHOLDS))
    p, q = (
        (np.searchsorted(np.sort(-side[:cut]), -thresholds, side="right") + 0.5) / (cut + 1)
        for side in (likelier, other)
    )
    # Both the test's and the pilot's error count against an event.
    margin = -float(ndtri(1 - confidence)) * (likelier.size - cut) ** -0.5 + cut**-0.5
    best = int(expected_lower_bound(p, q, delta, margin).argmax())
    event = Event(lower=float(thresholds[best]))
    counts = event.count(likelier[cut:], other[cut:])
    return joint_lower_bound(counts, delta, confidence)
