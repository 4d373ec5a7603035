"""Invocations that a theorem covers, in place of those that none does.

Where no theorem speaks of an invocation as it is declared, one that costs no less stands for it, so
that one line of a plan never leaves the whole without a proof:

* *A stream in which another unit may contribute at other steps*: its sensitivity is multiplied by
  ``displacement``. Subsets of fixed size move steps too: one unit is drawn in place of another.
* *Subsets of fixed size under add-remove*: a subset has the additional unit with probability
  q ≤ m/n, in place of one of the others. So the release is (1 − q)A + qB in place of A, where B is
  two steps of the relation from A, to remove a unit and to add one. By joint convexity over the
  others that costs what Poisson sampling with rate m/n makes of two steps.
* *Subsets of fixed size under zero-out*, where zeroed is absent: a unit, the zeroed one, and one
  drawn in its place are within two steps of each other, so that two steps are a replacement.

Two steps cost twice the sensitivity in a norm (triangle inequality), else what is proved of any
mechanism. A sample that is drawn alike for both neighbours costs at most what
:class:`~dpaudit.accounting.amplification.known_participation.KnownParticipation` says.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpaudit.accounting.amplification.base import amplification, refusal
from dpaudit.accounting.amplification.fixed_size import TAKEN_PLACE
from dpaudit.accounting.amplification.known_participation import KnownParticipation
from dpaudit.errors import UnsupportedError
from dpaudit.mechanisms import Norm
from dpaudit.mechanisms.black_box import steps_apart
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.mechanisms.rounding import round_up
from dpaudit.plan import AddRemove, FixedSizeSampling, PoissonSampling, ReplaceOne, ZeroOut
from dpaudit.plan import Invocation as Use


def covered(use: Use) -> Use:
    """The invocation, or one that costs no less, of which a theorem speaks.

    Raises:
        UnsupportedError: if there is none; it names the invocation.
    """
    sampling, mechanism = use.sampling, use.mechanism
    if use.sensitivity == 0:
        return use
    if _is_displaced(use):
        assert isinstance(mechanism, Continual)
        use = _longer(use, mechanism.displacement)
    if not isinstance(sampling, FixedSizeSampling):
        return use
    if isinstance(use.relation, AddRemove):
        rate = round_up(Fraction(sampling.size, sampling.population))
        return replace(_two_steps(use), sampling=PoissonSampling(rate))
    some = sampling.size < sampling.population
    if some and isinstance(use.relation, ZeroOut) and mechanism.zeroed_is_absent:
        return replace(_two_steps(use), relation=ReplaceOne())
    return use


def fallback(use: Use) -> tuple[str, str] | None:
    """What is counted in place of an invocation, and which declaration would cost less.

    Raises:
        UnsupportedError: as :func:`covered`.
    """
    if use.sensitivity == 0:
        return None
    instead = covered(use)
    drawn = amplification(instead.sampling, instead)
    kind = "" if use.sampling is None else f"{use.sampling.kind} samples under {use.relation}"
    if isinstance(drawn, KnownParticipation):
        return (
            f"No theorem amplifies these {kind}, so that who is drawn counts as known: with "
            f"probability {drawn.rate:.3g} a use costs all of its noise, and else nothing.",
            "Declare it under add-remove, or as a noisy sum under zero-out; replacements are "
            "amplified for samples of fixed size.",
        )
    if instead == use:
        return None
    if _is_displaced(use):
        times = instead.sensitivity / use.sensitivity
        return (
            "A unit may contribute at other steps than the one that it replaces, which counts as "
            f"{times:.4g} times the sensitivity.",
            "Say fixed_steps = true if at which steps a unit contributes is public.",
        )
    return (
        f"In {kind} another unit takes the place of one that is not drawn, which counts as two "
        "changes of the data in place of one.",
        "Declare the sensitivity of a replacement, under replace-one.",
    )


def _is_displaced(use: Use) -> bool:
    """Whether neighbours may have contributions at different steps of a stream."""
    mechanism, drawn = use.mechanism, isinstance(use.sampling, FixedSizeSampling)
    if not isinstance(mechanism, Continual) or not use.relation.replaces:
        return False
    return drawn or not mechanism.fixed_steps


def _longer(use: Use, factor: float) -> Use:
    return replace(use, sensitivity=round_up(Fraction(use.sensitivity) * Fraction(factor)))


def _two_steps(use: Use) -> Use:
    """The invocation for data two steps of its relation apart."""
    if use.mechanism.norm is not Norm.CHANGE:
        return _longer(use, 2.0)
    two = use.mechanism.for_group(2)
    if two is None:
        try:
            pair, failure = use.mechanism.pair_and_failure(use.sensitivity)
            two = steps_apart(pair.pure_epsilon, failure, 2)
        except UnsupportedError:
            raise refusal(use, TAKEN_PLACE) from None
    return replace(use, mechanism=two, sensitivity=1.0)
