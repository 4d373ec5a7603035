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

* *Random allocation to k of T releases*: draw k disjoint sets of ⌊T/k⌋ releases, then one of each;
  by symmetry any k releases are as likely. To tell the sets can only cost more, and then the unit
  is in one of each, drawn on its own: k allocations to one of ⌊T/k⌋, composed (Feldman and Shenfeld
  2025, *Privacy amplification by random allocation*, whose reduction from k to 1 it is).
* *Groups of units that take turns* in a stream, at least as many as C has bands: a unit's columns
  have then no row in common, so that the rows from one of its turns to the next are one sampled
  release, of the sensitivity of a column, whatever was released before (Choquette-Choo et al. 2023,
  *(Amplified) banded matrix factorization*, Theorem 4). Else all of a group take part.
* *Truncated samples and draws with replacement*: their sensitivity becomes that of all that they
  may change, see :mod:`~dpaudit.accounting.amplification.truncated`.
* *Units of several rows*, each drawn on its own: their sensitivity is that of all rows, of
  which a random number is drawn, or where no law of their number is known (see
  :mod:`~dpaudit.accounting.amplification.mixtures`), any of k rows is drawn with probability
  1 − (1 − q)^k, and then the others and the drawn ones are within k steps of the others alone.
* *Random shares* of what is no noisy sum, or of replaced units: any share counts as the whole, as
  the curve is convex in each law.
* *Poisson sampling of replaced units* of which the ``contribution`` c is known: two of them are
  within 2c, whatever is declared, and one is within c of none.

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
from dpaudit.accounting.amplification.mixtures import binomial_tail
from dpaudit.accounting.amplification.poisson import (
    is_absent,
    is_location,
    part_bound,
)
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Gaussian, Laplace, LaplacePair, Mechanism, Norm
from dpaudit.mechanisms.black_box import steps_apart
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.mechanisms.rounding import round_up, up
from dpaudit.plan import (
    AddRemove,
    CyclicPoissonSampling,
    FixedSizeSampling,
    MetricBall,
    MixtureSampling,
    PoissonSampling,
    RandomAllocation,
    ReplaceOne,
    Sampling,
    TruncatedPoissonSampling,
    WithReplacementSampling,
    ZeroOut,
)
from dpaudit.plan import Invocation as Use


def cover(use: Use) -> Use:
    """Return the invocation, or one of no smaller cost, of which a theorem speaks; once for each.

    Its count is how many uses stand for those of the declared one.

    Raises:
        UnsupportedError: if there is none; it names the invocation.
    """
    sampling, mechanism = use.sampling, use.mechanism
    if use.sensitivity == 0:
        return use
    if _is_displaced(use):
        assert isinstance(mechanism, Continual)
        use = _longer(use, mechanism.displacement)
    if isinstance(sampling, RandomAllocation):
        return _once(use, sampling)
    if isinstance(sampling, CyclicPoissonSampling):
        return _turns(use, sampling)
    if isinstance(sampling, MixtureSampling):
        if is_absent(use) and is_location(use):
            return use
        sampling = PoissonSampling(min(up(sampling.inclusion, 8), 1.0))
        use = replace(use, sampling=sampling)
    if isinstance(sampling, PoissonSampling):
        return _bounded(_drawn_together(use, sampling))
    if isinstance(sampling, TruncatedPoissonSampling):
        return _truncated(use, sampling)
    if not isinstance(sampling, FixedSizeSampling | WithReplacementSampling):
        return use
    zeroed = isinstance(use.relation, ZeroOut) and mechanism.zeroed_is_absent
    if isinstance(sampling, WithReplacementSampling):
        size = sampling.size * (2 if zeroed or isinstance(use.relation, AddRemove) else 1)
        whole = _steps(use, size)
        if (
            sampling.population == 1
            or binomial_tail(sampling.size, 1 / sampling.population) is None
        ):
            return replace(whole, sampling=None)
        return replace(whole, relation=ReplaceOne()) if zeroed else whole
    if isinstance(use.relation, AddRemove):
        rate = round_up(Fraction(sampling.size, sampling.population))
        return replace(_steps(use, 2), sampling=PoissonSampling(rate))
    if zeroed and sampling.size < sampling.population:
        return replace(_steps(use, 2), relation=ReplaceOne())
    return use


def _once(use: Use, sampling: RandomAllocation) -> Use:
    """The use with each of the times in a part of its own."""
    times = sampling.times or 1
    part, epochs = sampling.steps // times, use.count // sampling.steps
    count = epochs * times * part
    if times == 1 or use.count % sampling.steps:
        return use
    return replace(use, count=count, total=count, sampling=RandomAllocation(part))


def _turns(use: Use, sampling: CyclicPoissonSampling) -> Use:
    """As many sampled releases as a unit has turns, or the stream where they are none."""
    stream = use.mechanism
    assert isinstance(stream, Continual)
    steps = stream.factorization.steps
    elsewhere = use.relation.replaces and not stream.fixed_steps
    if elsewhere or sampling.rate == 1 or stream.factorization.bandwidth > sampling.groups:
        return replace(use, sampling=None)
    pair = replace(stream, participations=1, min_separation=1).pair(use.sensitivity)
    turn: tuple[Mechanism, float] = (Gaussian(1.0), pair.gaussian_mu or 0.0)
    if isinstance(pair, LaplacePair):
        turn = Laplace(1.0), round_up(pair.ratio)
    count, drawn = use.count * -(-steps // sampling.groups), PoissonSampling(sampling.rate)
    one = replace(
        use, mechanism=turn[0], sensitivity=turn[1], count=count, total=count, sampling=drawn
    )
    if sampling.size is None or sampling.population is None:
        return one
    cut = TruncatedPoissonSampling(sampling.rate, sampling.size, sampling.population)
    return cover(replace(one, sampling=cut))


def _truncated(use: Use, sampling: TruncatedPoissonSampling) -> Use:
    """The use with the sensitivity of a replacement, or as the scheme that it amounts to."""
    if sampling.rate == 1 or sampling.size >= sampling.population:
        drawn: Sampling = PoissonSampling(sampling.rate, contribution=sampling.contribution)
        if sampling.size < sampling.population:
            drawn = FixedSizeSampling(sampling.size, sampling.population)
        return cover(replace(use, sampling=drawn))
    if is_absent(use):
        return _steps(use, 2)
    part = part_bound(sampling, use)
    if part is None or isinstance(use.relation, MetricBall):
        return use
    longer = round_up(2 * Fraction(part))
    return replace(use, sensitivity=longer, sampling=replace(sampling, contribution=part))


def _drawn_together(use: Use, sampling: PoissonSampling) -> Use:
    """The use with the law of how many rows of a unit are drawn, or with one row for all."""
    rows = sampling.rows or 1
    if rows == 1:
        return use
    whole = _steps(use, rows)
    drawn = is_absent(use) and is_location(use) and sampling.rate < 1
    if drawn and binomial_tail(rows, sampling.rate) is not None:
        return whole
    part = sampling.contribution
    longer = None if part is None else round_up(Fraction(part) * rows)
    rate = min(up(sampling.touching, 8), 1.0)
    return replace(whole, sampling=PoissonSampling(rate, contribution=longer))


def _bounded(use: Use) -> Use:
    """The use with twice the contribution as its sensitivity, where units are replaced."""
    part = None
    if isinstance(use.sampling, PoissonSampling) and use.sampling.rate < 1:
        part = part_bound(use.sampling, use)
    if part is None:
        return use
    return replace(use, sensitivity=round_up(2 * Fraction(part)))


def fallback(use: Use) -> tuple[str, str] | None:
    """Tell what is counted in place of an invocation, and which declaration would cost less.

    Raises:
        UnsupportedError: as :func:`cover`.
    """
    if use.sensitivity == 0:
        return None
    instead = cover(use)
    drawn = amplification(instead.sampling, instead)
    kind = "" if use.sampling is None else f"{use.sampling.kind} samples under {use.relation}"
    if isinstance(drawn, KnownParticipation):
        return (
            f"No theorem amplifies these {kind}, so the proof takes the drawn units as known: "
            f"with probability {drawn.rate:.3g} a use has its full cost, and otherwise none.",
            "Declare it under add-remove, or as a noisy sum under zero-out. Under "
            "replace-one, declare samples of fixed size, or a contribution.",
        )
    if instead == use:
        return None
    if isinstance(use.sampling, CyclicPoissonSampling):
        if instead.sampling is not None or use.sampling.rate == 1:
            return None
        return (
            "The turns of a unit overlap, or a neighbouring unit has other turns, so the proof "
            "counts every unit as drawn at each turn of its group.",
            f"Take a banded-toeplitz of at most {use.sampling.groups} bands; if units are "
            "replaced, also state fixed_steps = true.",
        )
    if isinstance(use.sampling, MixtureSampling):
        return (
            "If the release is not a noisy sum, or if units are replaced, the proof counts any "
            "share of a unit's part as the whole part.",
            "Noisy sums with Gaussian or Laplace noise, under add-remove or zero-out, cost less.",
        )
    if isinstance(use.sampling, PoissonSampling):
        if not use.sampling.rows or use.sampling == instead.sampling:
            return None
        return (
            f"If one of the {use.sampling.rows} rows of a unit is drawn, the proof counts all of "
            "them as drawn.",
            "Noisy sums with Gaussian or Laplace noise, under add-remove or zero-out, cost less.",
        )
    if _is_displaced(use):
        times = instead.sensitivity / use.sensitivity
        return (
            "A unit may contribute at other steps than the unit that it replaces, so the proof "
            f"counts {times:.4g} times the sensitivity.",
            "State fixed_steps = true if the steps at which a unit contributes are public.",
        )
    if isinstance(use.relation, ReplaceOne) or isinstance(use.sampling, RandomAllocation):
        return None
    return (
        f"In {kind}, another unit takes the place of one that is not drawn, so the proof counts "
        "two changes of the data instead of one.",
        "Declare the sensitivity of a replacement, under replace-one.",
    )


def _is_displaced(use: Use) -> bool:
    """Tell whether neighbours may have contributions at different steps of a stream."""
    places = FixedSizeSampling | TruncatedPoissonSampling | WithReplacementSampling
    mechanism, drawn = use.mechanism, isinstance(use.sampling, places)
    if not isinstance(mechanism, Continual) or not use.relation.replaces:
        return False
    return drawn or not mechanism.fixed_steps


def _longer(use: Use, factor: float) -> Use:
    longer = round_up(Fraction(use.sensitivity) * Fraction(factor))
    try:
        use.mechanism.pair(longer)
    except InputError as error:
        raise refusal(use, f"for its largest possible change, {error}") from None
    return replace(use, sensitivity=longer)


def _steps(use: Use, size: int) -> Use:
    """The invocation for data so many steps of its relation apart."""
    if use.mechanism.norm is not Norm.CHANGE:
        return _longer(use, size)
    several = use.mechanism.for_group(size)
    if several is None:
        try:
            pair, failure = use.mechanism.pair_and_failure(use.sensitivity)
            several = steps_apart(pair.pure_epsilon, failure, size)
        except UnsupportedError:
            raise refusal(use, TAKEN_PLACE) from None
    return replace(use, mechanism=several, sensitivity=1.0)
