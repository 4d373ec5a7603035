"""The attacks that were made for one algorithm, and are stronger there than the general one.

They know which part of a release tells the most, and on which pair of neighbours. ``audits.papers``
puts what they show into the certificate beside the audits that ``dpaudit check`` makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from audits.outsourced.attacks import attack
from audits.outsourced.counterexample import attack_curator
from dpaudit import AccountantName, AuditPair, AuditRecord, guarantee, privacy_curve
from dpaudit.auditing import LinearScore, audit_release
from dpaudit.base.errors import InputError
from dpaudit.project import Subject
from dpaudit.project.targets import configuration
from private_bo.federated import DPFTSDE, SamplingScheme
from private_bo.joint import JointGPUCB, LocalJointGPUCB
from private_bo.outsourced import CertifiedCurator, Curator

CONFIDENCE = 1 - 1e-6
"""Of every verdict: these reports are made anew again and again, and must not cry wolf."""

PROBLEM = "grid"
"""Private rows of the paper's synthetic experiment, on which the curators are attacked."""


@singledispatch
def attacks(subject: Subject) -> tuple[AuditRecord, ...]:
    """Every attack that knows this algorithm; none where the general one knows as much.

    The general attack is the likelihood ratio of a mechanism where the plan has one and releases
    its output as it is; there nothing stronger exists.

    Args:
        subject: under attack, at its own claim or, for federated algorithms, at the certified ε.
    """
    return ()


@attacks.register(Curator)
@attacks.register(CertifiedCurator)
def _curators(subject: Curator | CertifiedCurator) -> tuple[AuditRecord, ...]:
    """Column spaces, canary rows and, for the paper's, the branch; their error rate is 1e-6."""
    found = attack_curator(type(subject).__name__, PROBLEM, subject.epsilon)
    if found.subject.configuration != configuration(subject):
        raise InputError(
            f"subject is {subject!r:.200}; it must have the dimensions of the {PROBLEM}, and "
            "else the defaults."
        )
    return found.audits


@attacks.register
def _joint(subject: JointGPUCB) -> tuple[AuditRecord, ...]:
    return (likelihood_ratio_audit(subject, runs=20_000, confidence=CONFIDENCE),)


@attacks.register
def _local_joint(subject: LocalJointGPUCB) -> tuple[AuditRecord, ...]:
    # Large ε at large δ: the event that shows it has a small probability.
    return (likelihood_ratio_audit(subject, runs=16_000_000, confidence=CONFIDENCE),)


@attacks.register
def _federated(subject: DPFTSDE) -> tuple[AuditRecord, ...]:
    """Membership inference over the whole run, by another agent that sees every broadcast."""
    return (membership_audit(subject, runs=100_000, confidence=CONFIDENCE),)


# -- joint algorithms: the farthest pair, by its likelihood ratio ----------------------------------

Floats = NDArray[np.float64]
Joint = JointGPUCB | LocalJointGPUCB
METHOD = "exact likelihood ratio of the farthest pair"


def farthest(subject: Joint) -> AuditPair:
    """The pair whose contributions are farthest apart: the noise is isotropic on them."""
    return max(_pairs(subject), key=lambda pair: float(np.linalg.norm(_move(subject, pair))))


def likelihood_ratio_audit(
    subject: Joint, *, runs: int, confidence: float, seed: int = 0
) -> AuditRecord:
    """Test the claim with the best score there is; only the threshold is chosen on a pilot.

    Args:
        subject: under attack, at its own claim.
        runs: on each side.
        confidence: of the verdict and of the bound.
        seed: of the experiment.
    """
    pair = farthest(subject)
    # For Gaussian noise that is isotropic on the contributions, the log-likelihood ratio is this
    # inner product and a constant.
    score = LinearScore(tuple(_move(subject, pair).ravel().tolist()))
    record = attack(subject, pair, runs=runs, confidence=confidence, seed=seed, score=score)
    facts = {**record.details, "null": "(ε, δ) alone", "why_this_pair": pair.why}
    return replace(record, method=METHOD, details=facts)


def _pairs(subject: Joint) -> Iterator[AuditPair]:
    """The subject's own, and one that moves y² the most: that entry is the paper's alone."""
    yield from subject.audit_pairs()
    low, high = subject.reward_range
    yield AuditPair(
        {"features": [1.0, 0.0], "reward": high},
        {"features": [0.0, 1.0], "reward": min(high, max(low, 0.0))},
        "orthogonal arms with the largest and the smallest square of a reward",
    )


def _move(subject: Joint, pair: AuditPair) -> Floats:
    """By how much the noiseless contribution of one user differs."""
    return subject.contribution(pair.x) - subject.contribution(pair.x_prime)


# -- federated algorithms: one agent's membership, by the likelihood ratio of a whole run ----------
#
# Did agent n send vectors, or nothing? The adversary is another agent. It knows all that is public
# (weights, q, z, S) and the vectors of every agent but one, the canary. It does not know who was
# sampled. In the worst case the canary sends one vector of the largest norm that clipping leaves,
# S/√P, in every round, and all others send zeros: against any others that do not know the canary,
# the broadcasts are those of this game plus vectors that the adversary could draw by itself,
# because agents are sampled independently of each other. So nobody tells the two cases apart better
# than in this game, and here the likelihood ratio has a closed form.
#
# In round t the canary moves the joint vector by c_t = (φ_n^(i) S/(q√P))_i along its own direction
# if it is sampled; in all other directions there is noise alone, independent of it. So with
# u_t = <y_t, c_t>/σ_t² - ‖c_t‖²/2σ_t² the log-likelihood ratio of a run is
# Σ_t ln(1 - q + q exp(u_t)), where σ_t = z φ_max S/q.


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
        (pair,) = algorithm.audit_pairs()
        norm = algorithm.clip / math.sqrt(algorithm.regions)
        weights = algorithm.public_weights.values[:, :, pair.x["agent"]]
        return cls(weights * (norm / algorithm.rate), algorithm.sigmas, algorithm.rate)

    def __call__(self, outputs: Floats) -> Floats:
        """Broadcasts (n, T, P) along the canary's direction, to (n,)."""
        precision = self.shifts / np.square(self.sigmas)[:, None]
        exponents = np.einsum("ntp,tp->nt", outputs, precision)
        exponents -= np.einsum("tp,tp->t", self.shifts, precision) / 2
        if self.rate < 1:
            exponents = np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + exponents)
        # Single precision, as for other ratios: the last bits of a double are those of the output.
        total: Floats = exponents.sum(axis=1).astype(np.float32).astype(np.float64)
        return total


def membership_audit(
    algorithm: DPFTSDE, *, runs: int, confidence: float, seed: int = 0
) -> AuditRecord:
    """Attack the certified curve δ(ε) with the exact likelihood ratio.

    Args:
        algorithm: under attack, at the ε of the PLD with the true sensitivity.
        runs: on each side.
        confidence: of the verdict and of the bound.
        seed: of the experiment.
    """
    plan, delta = algorithm.plan(), algorithm.target_delta
    (pair,) = algorithm.audit_pairs()
    return audit_release(
        algorithm.audit_release,
        pair,
        epsilon=guarantee(plan, delta, AccountantName.PLD).epsilon,
        delta=delta,
        runs=runs,
        confidence=confidence,
        seed=seed,
        curve=privacy_curve(plan),
        score=CanaryLikelihoodRatio.of(algorithm),
        learn=False,
    )
