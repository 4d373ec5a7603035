"""Plans composed by dp-accounting: on its grids from above and from below, or by Rényi curves.

Its accountants are not asked for a whole plan, as they have one relation for all events, ignore the
count of randomised response, and give no number from below. Its laws and curves have no such
limits: here each is that of one event at the sensitivity which the plan declares.

Sampled releases aside, a release with a given sensitivity has the same law under every relation, so
its noise is stated in units of that sensitivity, as under add-remove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce, singledispatch

import numpy as np
from dp_accounting import dp_event as dp
from dp_accounting import rdp
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.privacy_accountant import NeighboringRelation

from dpaudit.accounting.amplification import cover
from dpaudit.accounting.terms import merged
from dpaudit.base.errors import UnsupportedError
from dpaudit.interchange.dp_accounting.events import dp_event, sampled_event
from dpaudit.plan import AddRemove, Invocation, Relation, ReplaceOne, ZeroOut

_NEIGHBOURS = {
    AddRemove: NeighboringRelation.ADD_OR_REMOVE_ONE,
    ReplaceOne: NeighboringRelation.REPLACE_ONE,
    ZeroOut: NeighboringRelation.REPLACE_SPECIAL,
}
"""The relations that dp-accounting knows, for samples."""

_DEVIATIONS = 10.0
"""Standard deviations of a Gaussian that its laws hold: beyond, the mass is below e^-50."""


@dataclass(frozen=True)
class Use:
    """An event and how often it occurs.

    Attributes:
        invocation: what it stands for, for messages.
        event: one occurrence, its noise in units of the declared sensitivity.
        count: how often.
        neighbours: dp-accounting's relation, which matters to samples and randomised response.
    """

    invocation: Invocation
    event: dp.DpEvent
    count: int
    neighbours: NeighboringRelation


@dataclass(frozen=True)
class Grid:
    """The grid on which a law is discretised.

    Attributes:
        interval: between its losses.
        pessimistic: whether losses are rounded up, so that ε is an upper bound, or else down.
    """

    interval: float
    pessimistic: bool = True


def uses(invocations: Sequence[Invocation]) -> list[Use]:
    """Return the events of invocations on one unit; equal ones are one.

    Raises:
        UnsupportedError: if one has no event, or dp-accounting knows no such relation.
    """
    return [_use(one, count) for one, count in merged(invocations) if one.sensitivity > 0]


def _use(invocation: Invocation, count: int) -> Use:
    whole = cover(invocation) if invocation.sampling is None else invocation
    alone = replace(whole, relation=AddRemove(), count=1, total=None, sampling=None)
    event = dp_event(invocation.mechanism, alone)
    if invocation.sampling is None:
        local = isinstance(event, dp.RandomizedResponseDpEvent)
        neighbours = _NEIGHBOURS[ReplaceOne if local else AddRemove]
    else:
        event = sampled_event(invocation.sampling, event)
        neighbours = _neighbours(invocation.relation)
    return Use(invocation, event, count, neighbours)


def _neighbours(relation: Relation) -> NeighboringRelation:
    try:
        return _NEIGHBOURS[type(relation)]
    except KeyError:
        raise UnsupportedError(
            f"{relation} is a relation that dp-accounting does not know for samples."
        ) from None


# -- privacy loss distributions -------------------------------------------------------------------


def grid_epsilon(composed: Sequence[Use], delta: float, grid: Grid) -> float:
    """Bound ε of a composition by privacy loss distributions, from above or from below.

    Raises:
        UnsupportedError: if dp-accounting has no law for an event.
    """
    laws = [law(each.event, each, grid) for each in composed]
    nothing = pld.identity(grid.interval, grid.pessimistic)
    whole = reduce(lambda one, other: one.compose(other), laws, nothing)
    return float(whole.get_epsilon_for_delta(delta))


@singledispatch
def law(event: dp.DpEvent, use: Use, grid: Grid) -> pld.PrivacyLossDistribution:
    """Return the privacy loss distribution of all occurrences of an event.

    Raises:
        UnsupportedError: if dp-accounting has none.
    """
    raise unsupported(use)


@law.register(dp.GaussianDpEvent)
def _(event: dp.GaussianDpEvent, use: Use, grid: Grid) -> pld.PrivacyLossDistribution:
    return pld.from_gaussian_mechanism(
        event.noise_multiplier / math.sqrt(use.count), **_settings(grid)
    )


@law.register(dp.LaplaceDpEvent)
def _(event: dp.LaplaceDpEvent, use: Use, grid: Grid) -> pld.PrivacyLossDistribution:
    one = pld.from_laplace_mechanism(event.noise_multiplier, **_settings(grid))
    return one.self_compose(use.count)


@law.register(dp.DiscreteLaplaceDpEvent)
def _(event: dp.DiscreteLaplaceDpEvent, use: Use, grid: Grid) -> pld.PrivacyLossDistribution:
    one = pld.from_discrete_laplace_mechanism(
        event.noise_parameter, event.sensitivity, **_settings(grid)
    )
    return one.self_compose(use.count)


@law.register(dp.RandomizedResponseDpEvent)
def _(event: dp.RandomizedResponseDpEvent, use: Use, grid: Grid) -> pld.PrivacyLossDistribution:
    one = pld.from_randomized_response(
        event.noise_parameter,
        event.num_buckets,
        pessimistic_estimate=grid.pessimistic,
        value_discretization_interval=grid.interval,
    )
    return one.self_compose(use.count)


@law.register(dp.PoissonSampledDpEvent)
def _(event: dp.PoissonSampledDpEvent, use: Use, grid: Grid) -> pld.PrivacyLossDistribution:
    inner, rate = event.event, event.sampling_probability
    replaced = use.neighbours is NeighboringRelation.REPLACE_ONE
    if isinstance(inner, dp.GaussianDpEvent):
        # Its law for replace-one doubles the sensitivity, which is of one record's contribution.
        one = pld.from_gaussian_mechanism(
            inner.noise_multiplier * (2 if replaced else 1),
            sampling_prob=rate,
            neighboring_relation=use.neighbours,
            **_settings(grid),
        )
    elif isinstance(inner, dp.LaplaceDpEvent) and not replaced:
        one = pld.from_laplace_mechanism(
            inner.noise_multiplier, sampling_prob=rate, **_settings(grid)
        )
    else:
        raise unsupported(use)
    return one.self_compose(use.count)


@law.register(dp.MixtureOfGaussiansDpEvent)
def _(event: dp.MixtureOfGaussiansDpEvent, use: Use, grid: Grid) -> pld.PrivacyLossDistribution:
    parts = event.sensitivities, event.sampling_probs
    one = pld.from_mixture_gaussian_mechanism(event.standard_deviation, *parts, **_settings(grid))
    return one.self_compose(use.count)


def _settings(grid: Grid) -> dict[str, float | bool]:
    """Choose its wider way of rounding for lower bounds, which the tighter does not know."""
    return {
        "value_discretization_interval": grid.interval,
        "pessimistic_estimate": grid.pessimistic,
        "use_connect_dots": grid.pessimistic,
    }


@singledispatch
def loss(event: dp.DpEvent, use: Use) -> float:
    """Return the largest absolute loss of the composed law; infinity where there is none."""
    return math.inf


def _gaussian_loss(ratio: float) -> float:
    return ratio * ratio / 2 + _DEVIATIONS * ratio


loss.register(
    dp.GaussianDpEvent,
    lambda event, use: _gaussian_loss(math.sqrt(use.count) / event.noise_multiplier),
)
loss.register(dp.LaplaceDpEvent, lambda event, use: 1 / float(event.noise_multiplier))
loss.register(
    dp.DiscreteLaplaceDpEvent, lambda event, use: float(event.noise_parameter * event.sensitivity)
)


@loss.register(dp.RandomizedResponseDpEvent)
def _(event: dp.RandomizedResponseDpEvent, use: Use) -> float:
    other = event.noise_parameter / event.num_buckets
    return math.log((1 - event.noise_parameter + other) / other)


@loss.register(dp.MixtureOfGaussiansDpEvent)
def _(event: dp.MixtureOfGaussiansDpEvent, use: Use) -> float:
    return _gaussian_loss(max(event.sensitivities) / float(event.standard_deviation))


@loss.register(dp.PoissonSampledDpEvent)
def _(event: dp.PoissonSampledDpEvent, use: Use) -> float:
    """Return that of one unsampled release, where there is a law of samples."""
    replaced = use.neighbours is NeighboringRelation.REPLACE_ONE
    known = isinstance(event.event, dp.GaussianDpEvent) or (
        isinstance(event.event, dp.LaplaceDpEvent) and not replaced
    )
    return loss(event.event, replace(use, count=1)) if known else math.inf


# -- Rényi curves ---------------------------------------------------------------------------------


def renyi_epsilon(composed: Sequence[Use], delta: float) -> float:
    """Return an upper bound on ε of a composition, by Rényi divergences at dp-accounting's orders.

    Raises:
        UnsupportedError: if dp-accounting has no curve for an event.
    """
    total = np.zeros(len(rdp.RdpAccountant().orders))
    for each in composed:
        total += each.count * renyi_curve(each)
    return float(rdp.compute_epsilon(rdp.RdpAccountant().orders, total, delta)[0])


def renyi_curve(use: Use) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return Rényi divergences of one occurrence, at dp-accounting's orders.

    Raises:
        UnsupportedError: if dp-accounting has none.
    """
    if not has_renyi_curve(use):
        raise unsupported(use)
    accountant = rdp.RdpAccountant(neighboring_relation=use.neighbours)
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = accountant.compose(use.event).rdp
    return found


def has_renyi_curve(use: Use) -> bool:
    """Tell whether dp-accounting has Rényi divergences of an event."""
    return bool(rdp.RdpAccountant(neighboring_relation=use.neighbours).supports(use.event))


def unsupported(use: Use) -> UnsupportedError:
    """Return the error of an event that dp-accounting cannot compose; it names the invocation."""
    sampling = use.invocation.sampling
    how = "" if sampling is None else f", {sampling.kind} sampled under {use.invocation.relation}"
    return UnsupportedError(f"dp-accounting cannot compose {use.invocation.describe()}{how}.")
