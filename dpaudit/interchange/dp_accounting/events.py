"""Plans as events of dp-accounting.

An event states noise in units of what one record contributes; an invocation states the sensitivity
under its relation. They differ by the relation's contribution factor: a noise multiplier of 10 is a
noise of 10 on a sensitivity of 1 under add-remove, and of 2 under replace-one.

A mechanism that this module does not know takes part once its event is registered::

    @dp_event.register(MyMechanism)
    def _(mechanism, invocation):
        return MyDpEvent(...)

and a sampling scheme with ``sampled_event.register(MySampling)``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

from dp_accounting import dp_event as dp

from dpaudit.accounting.amplification import cover
from dpaudit.accounting.amplification.mixtures import binomial_tail
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import (
    BinaryTree,
    ConcentratedBlackBox,
    ContinualGaussian,
    ContinualLaplace,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    RandomizedResponse,
)
from dpaudit.mechanisms.rounding import round_down, round_up
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    Invocation,
    MetricBall,
    MixtureSampling,
    Plan,
    PoissonSampling,
    Sampling,
    TruncatedPoissonSampling,
)


def to_dp_event(plan: Plan) -> dp.DpEvent:
    """Return the dp-accounting event of a plan, for sequential composition on one unit.

    Noise multipliers are rounded down, so that an event never promises more noise than the plan.

    Raises:
        UnsupportedError: if an invocation has no event, or disjoint groups of units are treated
            differently; the message names it.
    """
    groups = plan.by_unit()
    if len(groups) > 1:
        raise UnsupportedError(
            "the plan composes in parallel over groups of units, which no DpEvent can say; "
            "convert one group at a time."
        )
    events = [_event_of(invocation) for invocation in groups[0]]
    return events[0] if len(events) == 1 else dp.ComposedDpEvent(events)


def _event_of(invocation: Invocation) -> dp.DpEvent:
    event = dp.NoOpDpEvent()
    if invocation.sampling is None:
        invocation = cover(invocation)
    if invocation.sensitivity > 0:
        event = dp_event(invocation.mechanism, invocation)
    if invocation.sampling is not None:
        event = sampled_event(invocation.sampling, event)
    return event if invocation.count == 1 else dp.SelfComposedDpEvent(event, invocation.count)


@singledispatch
def dp_event(mechanism: Mechanism, invocation: Invocation) -> dp.DpEvent:
    """Return the event of one unsampled use of a mechanism, whose sensitivity is not 0.

    Raises:
        UnsupportedError: if there is none.
    """
    raise UnsupportedError(f"{invocation.describe()} has no DpEvent.")


def contributions(invocation: Invocation) -> Fraction:
    """Return the sensitivity in units of what one record contributes.

    Raises:
        UnsupportedError: if the relation is one that no event knows.
    """
    if isinstance(invocation.relation, MetricBall):
        raise UnsupportedError(
            f"{invocation.describe()} is for a metric-ball, a relation that no DpEvent knows."
        )
    return Fraction(invocation.sensitivity) / Fraction(invocation.relation.contribution_factor)


def _multiplier(noise: float, invocation: Invocation) -> float:
    return round_down(Fraction(noise) / contributions(invocation))


dp_event.register(Gaussian, lambda own, use: dp.GaussianDpEvent(_multiplier(own.sigma, use)))
dp_event.register(Laplace, lambda own, use: dp.LaplaceDpEvent(_multiplier(own.scale, use)))
dp_event.register(RandomizedResponse, lambda own, use: dp.RandomizedResponseDpEvent(own.p, own.k))
dp_event.register(ConcentratedBlackBox, lambda own, use: dp.ZCDpEvent(own.rho, own.xi or 0.0))


@dp_event.register(ContinualGaussian)
def _(mechanism: ContinualGaussian, invocation: Invocation) -> dp.DpEvent:
    """Return a tree with each record once, or else the Gaussian release of all nodes."""
    tree = mechanism.factorization
    rooted = isinstance(tree, BinaryTree) and tree.release_root and not mechanism.symmetric
    if rooted and mechanism.participations == 1 and not isinstance(invocation.relation, AddRemove):
        noise = _multiplier(mechanism.sigma, invocation)
        return dp.SingleEpochTreeAggregationDpEvent(noise, tree.steps)
    pair = mechanism.pair(float(contributions(invocation)))
    return dp.GaussianDpEvent(1 / pair.mu * (1 - 2.0**-50))


@dp_event.register(ContinualLaplace)
def _(mechanism: ContinualLaplace, invocation: Invocation) -> dp.DpEvent:
    """Return the Laplace release of all nodes, whose distances add up to the sensitivity."""
    ratio = mechanism.pair(1.0).ratio * contributions(invocation)
    return dp.LaplaceDpEvent(round_down(1 / ratio))


@dp_event.register(DiscreteLaplace)
def _(mechanism: DiscreteLaplace, invocation: Invocation) -> dp.DpEvent:
    share = contributions(invocation)
    if share.denominator != 1:
        raise UnsupportedError(
            f"{invocation.describe()} has a sensitivity of {float(share):g} contributions; a "
            "DpEvent needs a whole number."
        )
    return dp.DiscreteLaplaceDpEvent(round_up(1 / Fraction(mechanism.scale)), int(share))


@singledispatch
def sampled_event(sampling: Sampling, event: dp.DpEvent) -> dp.DpEvent:
    """Return the event of a release that uses a sample.

    Raises:
        UnsupportedError: if there is none.
    """
    raise UnsupportedError(f"{sampling.kind} sampling has no DpEvent.")


@sampled_event.register(PoissonSampling)
def _(sampling: PoissonSampling, event: dp.DpEvent) -> dp.DpEvent:
    if not sampling.rows:
        return dp.PoissonSampledDpEvent(sampling.rate, event)
    weights = binomial_tail(sampling.rows, sampling.rate) if sampling.rate < 1 else None
    if weights is None or not isinstance(event, dp.GaussianDpEvent):
        raise UnsupportedError(f"units of {sampling.rows} sampled rows have no DpEvent.")
    shifts = list(range(len(weights)))
    return dp.MixtureOfGaussiansDpEvent(event.noise_multiplier, shifts, list(weights))


@sampled_event.register(MixtureSampling)
def _(sampling: MixtureSampling, event: dp.DpEvent) -> dp.DpEvent:
    if not isinstance(event, dp.GaussianDpEvent):
        raise UnsupportedError("mixture sampling has a DpEvent for Gaussian noise alone.")
    rest = max(1 - math.fsum(sampling.rates), 0.0)
    shifts, weights = [*sampling.shares], [*sampling.rates]
    if rest > 0:
        shifts, weights = [0.0, *shifts], [rest, *weights]
    return dp.MixtureOfGaussiansDpEvent(event.noise_multiplier, shifts, weights)


@sampled_event.register(TruncatedPoissonSampling)
def _(sampling: TruncatedPoissonSampling, event: dp.DpEvent) -> dp.DpEvent:
    if not isinstance(event, dp.GaussianDpEvent):
        raise UnsupportedError("truncated-poisson sampling has a DpEvent for Gaussian noise alone.")
    return dp.TruncatedSubsampledGaussianDpEvent(
        sampling.population, sampling.rate, sampling.size, event.noise_multiplier
    )


sampled_event.register(
    FixedSizeSampling,
    lambda scheme, event: dp.SampledWithoutReplacementDpEvent(
        scheme.population, scheme.size, event
    ),
)
