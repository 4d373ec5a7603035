"""Plans from and to the history of an opacus accountant; opacus itself is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpaudit import validate
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Gaussian
from dpaudit.mechanisms.rounding import round_down
from dpaudit.plan import AddRemove, Invocation, Plan, PoissonSampling, PrivacyUnit, TrustModel

__all__ = ["from_opacus_history", "to_opacus_history"]


def from_opacus_history(
    history: Sequence[tuple[float, float, int]],
    *,
    unit: PrivacyUnit,
    trust: TrustModel = TrustModel.CENTRAL,
) -> Plan:
    """The plan of ``accountant.history``: Poisson-sampled Gaussian noise under add-remove.

    Args:
        history: (noise multiplier, sample rate, steps) for each phase of the training.
        unit: who is protected, the example in opacus.
        trust: who sees raw data.

    Raises:
        InputError: if an entry is not of that form, or there is none.

    >>> plan = from_opacus_history([(1.1, 0.01, 1000)], unit=PrivacyUnit("example"))
    >>> plan.invocations[0].count
    1000
    """
    if not history:
        raise InputError("history is empty; it must hold (noise_multiplier, sample_rate, steps).")
    return Plan.of(*(_phase(entry, unit, trust) for entry in history))


def to_opacus_history(plan: Plan) -> list[tuple[float, float, int]]:
    """The history that opacus keeps of such a training; noise multipliers are rounded down.

    Raises:
        UnsupportedError: if an invocation is not Gaussian noise, with Poisson sampling or without,
            under add-remove.
    """
    if len(plan.by_unit()) > 1:
        raise UnsupportedError("the plan has disjoint groups of units, which opacus cannot say.")
    return [_entry(invocation) for invocation in plan.invocations if invocation.sensitivity > 0]


def _phase(entry: Sequence[float], unit: PrivacyUnit, trust: TrustModel) -> Invocation:
    try:
        noise, rate, steps = entry
    except (TypeError, ValueError):
        raise InputError(
            f"history holds {entry!r}; it must hold (noise_multiplier, sample_rate, steps)."
        ) from None
    mechanism = Gaussian(validate.positive(noise_multiplier=noise))
    sampling = PoissonSampling(validate.fraction(sample_rate=rate))
    count = validate.integer_at_least(1, steps=steps)
    return Invocation(mechanism, 1.0, unit, AddRemove(), trust, count, sampling=sampling)


def _entry(invocation: Invocation) -> tuple[float, float, int]:
    mechanism, sampling = invocation.mechanism, invocation.sampling
    if (
        not isinstance(mechanism, Gaussian)
        or not isinstance(invocation.relation, AddRemove)
        or not isinstance(sampling, PoissonSampling | None)
    ):
        raise UnsupportedError(
            f"{invocation.describe()} has no opacus history; it must be Gaussian noise, all units "
            "or a Poisson sample, under add-remove."
        )
    noise = round_down(Fraction(mechanism.sigma) / Fraction(invocation.sensitivity))
    return noise, 1.0 if sampling is None else sampling.rate, invocation.count
