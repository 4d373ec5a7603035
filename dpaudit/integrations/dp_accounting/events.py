"""Plans from and to the events of dp-accounting.

An event states noise in units of what one record contributes; an invocation states the sensitivity
under its relation. They differ by the relation's contribution factor: a noise multiplier of 10 is a
noise of 10 on a sensitivity of 1 under add-remove, and of 2 under replace-one.

A mechanism that this module does not know takes part once its event is registered::

    @dp_event.register(MyMechanism)
    def _(mechanism, invocation):
        return MyDpEvent(...)

and the other way with ``counterpart.register(MyDpEvent)``; a sampling scheme with
``sampled_event.register(MySampling)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import singledispatch

import numpy as np
from dp_accounting import dp_event as dp

from dpaudit.accounting.amplification import covered
from dpaudit.errors import InputError, UnsupportedError
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
    Plan,
    PoissonSampling,
    PrivacyUnit,
    Relation,
    Sampling,
    TrustModel,
)

__all__ = [
    "contributions",
    "counterpart",
    "dp_event",
    "from_dp_event",
    "sampled_event",
    "to_dp_event",
]

_Use = tuple[Mechanism, float, int, Sampling | None]


# -- plans to events ------------------------------------------------------------------------------


def to_dp_event(plan: Plan) -> dp.DpEvent:
    """The dp-accounting event of a plan, for sequential composition on one unit.

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
        invocation = covered(invocation)
    if invocation.sensitivity > 0:
        event = dp_event(invocation.mechanism, invocation)
    if invocation.sampling is not None:
        event = sampled_event(invocation.sampling, event)
    return event if invocation.count == 1 else dp.SelfComposedDpEvent(event, invocation.count)


@singledispatch
def dp_event(mechanism: Mechanism, invocation: Invocation) -> dp.DpEvent:
    """The event of one unsampled use of a mechanism, whose sensitivity is not 0.

    Raises:
        UnsupportedError: if there is none.
    """
    raise UnsupportedError(f"{invocation.describe()} has no DpEvent.")


def contributions(invocation: Invocation) -> Fraction:
    """The sensitivity in units of what one record contributes.

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
dp_event.register(ConcentratedBlackBox, lambda own, use: dp.ZCDpEvent(own.rho))


@dp_event.register(ContinualGaussian)
def _(mechanism: ContinualGaussian, invocation: Invocation) -> dp.DpEvent:
    """A tree in which each record occurs once, or else the Gaussian release of all its nodes."""
    tree = mechanism.factorization
    rooted = isinstance(tree, BinaryTree) and tree.release_root and not mechanism.symmetric
    if rooted and mechanism.participations == 1 and not isinstance(invocation.relation, AddRemove):
        noise = _multiplier(mechanism.sigma, invocation)
        return dp.SingleEpochTreeAggregationDpEvent(noise, tree.steps)
    pair = mechanism.pair(float(contributions(invocation)))
    return dp.GaussianDpEvent(1 / pair.mu * (1 - 2.0**-50))


@dp_event.register(ContinualLaplace)
def _(mechanism: ContinualLaplace, invocation: Invocation) -> dp.DpEvent:
    """The Laplace release of all nodes, whose distances add up to the sensitivity."""
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
    """The event of a release that uses a sample.

    Raises:
        UnsupportedError: if there is none.
    """
    raise UnsupportedError(f"{sampling.kind} sampling has no DpEvent.")


sampled_event.register(
    PoissonSampling, lambda scheme, event: dp.PoissonSampledDpEvent(scheme.rate, event)
)
sampled_event.register(
    FixedSizeSampling,
    lambda scheme, event: dp.SampledWithoutReplacementDpEvent(
        scheme.population, scheme.size, event
    ),
)


# -- events to plans ------------------------------------------------------------------------------


def from_dp_event(
    event: dp.DpEvent,
    *,
    relation: Relation,
    unit: PrivacyUnit,
    trust: TrustModel = TrustModel.CENTRAL,
) -> Plan:
    """The plan that a dp-accounting event describes.

    Args:
        event: an event of dp-accounting, nested as it may be.
        relation: the relation that is to be accounted for.
        unit: who is protected; events do not say.
        trust: who sees raw data; events do not say.

    Raises:
        UnsupportedError: if an event has no exact counterpart; the message names it.
        InputError: if the event releases nothing.
    """
    uses = list(_uses(event, relation, 1))
    if not uses:
        raise InputError("the event is a NoOpDpEvent; a plan needs at least one release.")
    return Plan.of(
        *(
            Invocation(mechanism, sensitivity, unit, relation, trust, count, sampling=sampling)
            for mechanism, sensitivity, count, sampling in uses
        )
    )


@singledispatch
def counterpart(event: dp.DpEvent, relation: Relation) -> tuple[Mechanism, float]:
    """The mechanism of a single release and its sensitivity under the relation.

    Raises:
        UnsupportedError: if there is none; the message names the event.
    """
    raise UnsupportedError(f"{_name(event)} has no counterpart among dpaudit's mechanisms.")


def _require_noise(event: dp.DpEvent, amount: float) -> float:
    if amount > 0:
        return amount
    raise UnsupportedError(f"{_name(event)} has no counterpart without noise.")


@counterpart.register(dp.GaussianDpEvent)
@counterpart.register(dp.LaplaceDpEvent)
def _(event: dp.DpEvent, relation: Relation) -> tuple[Mechanism, float]:
    kind = Gaussian if isinstance(event, dp.GaussianDpEvent) else Laplace
    return kind(_require_noise(event, event.noise_multiplier)), relation.contribution_factor


@counterpart.register(dp.DiscreteLaplaceDpEvent)
def _(event: dp.DiscreteLaplaceDpEvent, relation: Relation) -> tuple[Mechanism, float]:
    scale = round_down(1 / Fraction(_require_noise(event, event.noise_parameter)))
    return DiscreteLaplace(scale), relation.contribution_factor * event.sensitivity


@counterpart.register(dp.RandomizedResponseDpEvent)
def _(event: dp.RandomizedResponseDpEvent, relation: Relation) -> tuple[Mechanism, float]:
    if isinstance(relation, AddRemove):
        raise UnsupportedError(
            f"{_name(event)} is for replace-one; an added answer would be seen by its number."
        )
    share = _require_noise(event, event.noise_parameter)
    return RandomizedResponse(share, max(event.num_buckets, 2)), 1.0


@counterpart.register(dp.SingleEpochTreeAggregationDpEvent)
def _(event: dp.SingleEpochTreeAggregationDpEvent, relation: Relation) -> tuple[Mechanism, float]:
    """The tree of most levels: a record is in one of them, and in its nodes, once."""
    if isinstance(relation, AddRemove):
        raise UnsupportedError(
            f"{_name(event)} is for zero-out or replace-one; a missing record would move the steps "
            "of others."
        )
    sigma = _require_noise(event, event.noise_multiplier)
    steps = max(np.atleast_1d(event.step_counts).tolist(), default=0)
    if steps < 1:
        raise UnsupportedError(f"{_name(event)} has no counterpart without steps.")
    tree = BinaryTree(steps, release_root=True)
    # Whoever replaces a record stands in its place.
    once = ContinualGaussian(sigma=sigma, factorization=tree, participations=1, fixed_steps=True)
    return once, relation.contribution_factor


@counterpart.register(dp.ZCDpEvent)
def _(event: dp.ZCDpEvent, relation: Relation) -> tuple[Mechanism, float]:
    if event.xi != 0:
        raise UnsupportedError(f"{_name(event)} has no counterpart unless its xi is 0.")
    return ConcentratedBlackBox(event.rho), 1.0


def _uses(event: dp.DpEvent, relation: Relation, count: int) -> Iterator[_Use]:
    """Walk an event that is repeated ``count`` times."""
    match event:
        case dp.NoOpDpEvent():
            return
        case dp.SelfComposedDpEvent():
            if event.count > 0:
                yield from _uses(event.event, relation, count * event.count)
        case dp.ComposedDpEvent():
            for part in event.events:
                yield from _uses(part, relation, count)
        case dp.PoissonSampledDpEvent():
            rate = PoissonSampling(event.sampling_probability)
            yield from _sampled(event, relation, count, rate)
        case dp.SampledWithoutReplacementDpEvent():
            subset = FixedSizeSampling(event.sample_size, event.source_dataset_size)
            yield from _sampled(event, relation, count, subset)
        case dp.MixtureOfGaussiansDpEvent():
            yield from _mixed(event, relation, count)
        case _:
            yield *counterpart(event, relation), count, None


def _mixed(event: dp.MixtureOfGaussiansDpEvent, relation: Relation, count: int) -> Iterator[_Use]:
    """A mixture of no shift and one shift: a Gaussian release of a Poisson sample."""
    shifts: dict[float, Fraction] = {}
    for shift, share in zip(event.sensitivities, event.sampling_probs, strict=True):
        if share > 0:
            shifts[abs(shift)] = shifts.get(abs(shift), Fraction(0)) + Fraction(share)
    rate = 1 - shifts.pop(0.0, Fraction(0))
    if not isinstance(relation, AddRemove):
        raise UnsupportedError(f"{_name(event)} has a counterpart under add-remove alone.")
    if len(shifts) > 1 or any(shift < 0 for shift in event.sensitivities):
        raise UnsupportedError(
            f"{_name(event)} has a counterpart only where its sensitivities are 0 and one other."
        )
    sigma = _require_noise(event, event.standard_deviation)
    for shift in shifts:
        sampling = PoissonSampling(round_up(rate)) if rate < 1 else None
        yield Gaussian(sigma), shift, count, sampling


def _sampled(
    event: dp.PoissonSampledDpEvent | dp.SampledWithoutReplacementDpEvent,
    relation: Relation,
    count: int,
    drawn: Sampling,
) -> Iterator[_Use]:
    """The one release that uses a sample; several from one sample are not several samples."""
    inner = list(_uses(event.event, relation, 1))
    if any(sampling is not None for _, _, _, sampling in inner):
        raise UnsupportedError(f"{_name(event)} has another sampling inside; flatten them.")
    if not inner:
        return
    mechanism, sensitivity, uses, _ = inner[0]
    if len(inner) > 1 or uses > 1:
        mechanism, sensitivity = _stacked(event, inner, relation), relation.contribution_factor
    yield mechanism, sensitivity, count, drawn


def _stacked(event: dp.DpEvent, inner: list[_Use], relation: Relation) -> Gaussian:
    """Several Gaussian releases of one sample as one release of the stacked vector."""
    precision = Fraction(0)
    for mechanism, sensitivity, uses, _ in inner:
        if not isinstance(mechanism, Gaussian):
            raise UnsupportedError(
                f"{_name(event)} makes several releases from one sample; that has a counterpart "
                "only where all of them are Gaussian."
            )
        precision += Fraction(sensitivity / mechanism.sigma) ** 2 * uses
    return Gaussian(relation.contribution_factor / math.sqrt(precision) * (1 - 2.0**-50))


def _name(event: object) -> str:
    return type(event).__name__
