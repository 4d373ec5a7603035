"""Plans from and to the events of dp-accounting.

An event states noise in units of what one record contributes; an invocation states the sensitivity
under its relation. They differ by the relation's contribution factor: a noise multiplier of 10 is a
noise of 10 on a sensitivity of 1 under add-remove, and of 2 under replace-one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    ConcentratedBlackBox,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    PureBlackBox,
    RandomizedResponse,
)
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

if TYPE_CHECKING:
    from dp_accounting import DpEvent

__all__ = ["from_dp_event", "to_dp_event"]

_Use = tuple[Mechanism, float, int, Sampling | None]


def from_dp_event(
    event: DpEvent,
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


def to_dp_event(plan: Plan) -> DpEvent:
    """The dp-accounting event of a plan, for sequential composition on one unit.

    Noise multipliers are rounded down, so that an event never promises more noise than the plan.

    Raises:
        UnsupportedError: if an invocation has no event, or disjoint groups of units are treated
            differently; the message names it.
    """
    from dp_accounting import dp_event as dp

    groups = plan.by_unit()
    if len(groups) > 1:
        raise UnsupportedError(
            "the plan composes in parallel over groups of units, which no DpEvent can say; "
            "convert one group at a time."
        )
    events = [_event_of(invocation) for invocation in groups[0]]
    return events[0] if len(events) == 1 else dp.ComposedDpEvent(events)


def _uses(event: DpEvent, relation: Relation, count: int) -> Iterator[_Use]:
    """Walk an event that is repeated ``count`` times."""
    from dp_accounting import dp_event as dp

    if isinstance(event, dp.NoOpDpEvent):
        return
    if isinstance(event, dp.SelfComposedDpEvent):
        if event.count > 0:
            yield from _uses(event.event, relation, count * event.count)
        return
    if isinstance(event, dp.ComposedDpEvent):
        for part in event.events:
            yield from _uses(part, relation, count)
        return
    if isinstance(event, dp.PoissonSampledDpEvent):
        drawn: Sampling = PoissonSampling(event.sampling_probability)
        yield from _sampled(event, relation, count, drawn)
        return
    if isinstance(event, dp.SampledWithoutReplacementDpEvent):
        drawn = FixedSizeSampling(event.sample_size, event.source_dataset_size)
        yield from _sampled(event, relation, count, drawn)
        return
    mechanism, sensitivity = _mechanism_of(event, relation)
    yield mechanism, sensitivity, count, None


def _sampled(event: Any, relation: Relation, count: int, drawn: Sampling) -> Iterator[_Use]:
    """The one release that uses a sample; several from one sample are not several samples."""
    inner = list(_uses(event.event, relation, 1))
    if any(sampling is not None for _, _, _, sampling in inner):
        raise UnsupportedError(f"{_name(event)} has another sampling inside; flatten them.")
    if len(inner) == 1 and inner[0][2] == 1:
        mechanism, sensitivity, _, _ = inner[0]
        yield mechanism, sensitivity, count, drawn
        return
    if not inner:
        return
    if not all(isinstance(mechanism, Gaussian) for mechanism, _, _, _ in inner):
        raise UnsupportedError(
            f"{_name(event)} makes several releases from one sample; that has a counterpart only "
            "where all of them are Gaussian."
        )
    # Several Gaussian releases of one sample are one release of the stacked vector.
    precision = sum(
        (
            Fraction(sensitivity / mechanism.sigma) ** 2 * uses
            for mechanism, sensitivity, uses, _ in inner
            if isinstance(mechanism, Gaussian)
        ),
        Fraction(0),
    )
    sensitivity = relation.contribution_factor
    sigma = sensitivity / math.sqrt(precision) * (1 - 2.0**-50)
    yield Gaussian(sigma), sensitivity, count, drawn


def _mechanism_of(event: Any, relation: Relation) -> tuple[Mechanism, float]:
    """The mechanism of a single release and its sensitivity."""
    from dp_accounting import dp_event as dp

    factor = relation.contribution_factor
    if isinstance(event, dp.GaussianDpEvent) and event.noise_multiplier > 0:
        return Gaussian(event.noise_multiplier), factor
    if isinstance(event, dp.LaplaceDpEvent) and event.noise_multiplier > 0:
        return Laplace(event.noise_multiplier), factor
    if isinstance(event, dp.DiscreteLaplaceDpEvent) and event.noise_parameter > 0:
        scale = _down(1 / Fraction(event.noise_parameter))
        return DiscreteLaplace(scale), factor * event.sensitivity
    if isinstance(event, dp.RandomizedResponseDpEvent) and event.noise_parameter > 0:
        if isinstance(relation, AddRemove):
            raise UnsupportedError(
                f"{_name(event)} is for replace-one; an added answer would be seen by its number."
            )
        return RandomizedResponse(event.noise_parameter, max(event.num_buckets, 2)), 1.0
    if isinstance(event, dp.ZCDpEvent) and event.xi == 0:
        return ConcentratedBlackBox(event.rho), 1.0
    raise UnsupportedError(f"{_name(event)} has no counterpart among dpaudit's mechanisms.")


def _event_of(invocation: Invocation) -> DpEvent:
    from dp_accounting import dp_event as dp

    event = _single(invocation)
    drawn = invocation.sampling
    if isinstance(drawn, PoissonSampling):
        event = dp.PoissonSampledDpEvent(drawn.rate, event)
    if isinstance(drawn, FixedSizeSampling):
        event = dp.SampledWithoutReplacementDpEvent(drawn.population, drawn.size, event)
    return event if invocation.count == 1 else dp.SelfComposedDpEvent(event, invocation.count)


def _single(invocation: Invocation) -> DpEvent:
    from dp_accounting import dp_event as dp

    mechanism, sensitivity = invocation.mechanism, invocation.sensitivity
    if sensitivity == 0:
        return dp.NoOpDpEvent()
    if isinstance(mechanism, RandomizedResponse):
        return dp.RandomizedResponseDpEvent(mechanism.p, mechanism.k)
    if isinstance(mechanism, ConcentratedBlackBox):
        return dp.ZCDpEvent(mechanism.rho)
    if isinstance(invocation.relation, MetricBall):
        raise UnsupportedError(
            f"{invocation.describe()} is for a metric-ball, a relation that no DpEvent knows."
        )
    share = Fraction(sensitivity) / Fraction(invocation.relation.contribution_factor)
    if isinstance(mechanism, Gaussian):
        return dp.GaussianDpEvent(_down(Fraction(mechanism.sigma) / share))
    if isinstance(mechanism, Laplace):
        return dp.LaplaceDpEvent(_down(Fraction(mechanism.scale) / share))
    if isinstance(mechanism, DiscreteLaplace) and share.denominator == 1:
        parameter = float(1 / Fraction(mechanism.scale))
        while 1 / Fraction(parameter) > Fraction(mechanism.scale):
            parameter = math.nextafter(parameter, math.inf)
        return dp.DiscreteLaplaceDpEvent(parameter, int(share))
    if isinstance(mechanism, PureBlackBox | ApproximateBlackBox):
        raise UnsupportedError(
            f"{invocation.describe()} has no DpEvent: dp-accounting knows no (ε, δ) black box."
        )
    raise UnsupportedError(f"{invocation.describe()} has no DpEvent.")


def _down(value: Fraction) -> float:
    """The largest float that is not above an exact number."""
    rounded = float(value)
    return math.nextafter(rounded, 0.0) if Fraction(rounded) > value else rounded


def _name(event: object) -> str:
    return type(event).__name__
