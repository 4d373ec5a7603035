"""Invocations from OpenDP measurements, by their proved privacy maps."""

from __future__ import annotations

from typing import Any

from dpaudit import validate
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import ApproximateBlackBox, ConcentratedBlackBox, Mechanism, PureBlackBox
from dpaudit.plan import Invocation, PrivacyUnit, Relation, TrustModel

__all__ = ["from_opendp_measurement"]


def from_opendp_measurement(
    measurement: Any,
    d_in: Any,
    *,
    relation: Relation,
    unit: PrivacyUnit,
    trust: TrustModel = TrustModel.CENTRAL,
    delta: float | None = None,
    count: int = 1,
    at: str = "",
) -> Invocation:
    """The black box that a measurement is proved to be at an input distance.

    Pure ε, (ε, δ) and ρ-zCDP output measures are taken as they are; a measure that gives a curve
    needs ``delta``, at which it is read.

    Args:
        measurement: an ``opendp`` measurement, or anything with its ``map`` and ``output_measure``.
        d_in: distance of neighbours in the measurement's input metric *under the relation*; for
            symmetric distance 1 under add-remove and 2 under replace-one.
        relation: the relation that ``d_in`` stands for.
        unit: who is protected.
        trust: who sees raw data.
        delta: δ at which a privacy curve is read.
        count: number of uses.
        at: label of the place in the algorithm.

    Raises:
        InputError: if the map refuses the distance, or a δ is missing.
        UnsupportedError: if the output measure is another one.
    """
    try:
        privacy = measurement.map(d_in)
    except Exception as error:  # noqa: BLE001  # the library raises its own exceptions
        raise InputError(f"the measurement's map refuses d_in={d_in!r}: {error}.") from None
    mechanism = _mechanism(str(measurement.output_measure), privacy, delta)
    return Invocation(mechanism, 1.0, unit, relation, trust, count, at=at)


def _mechanism(measure: str, privacy: Any, delta: float | None) -> Mechanism:
    """The black box of an output measure, by the name that OpenDP prints."""
    name = measure.replace(" ", "")
    if name.startswith("MaxDivergence"):
        return PureBlackBox(validate.non_negative(epsilon=privacy))
    if name.startswith("ZeroConcentratedDivergence"):
        return ConcentratedBlackBox(validate.non_negative(rho=privacy))
    if name.startswith("Approximate(MaxDivergence"):
        epsilon, own = privacy
        return _approximate(epsilon, own)
    if name.startswith("SmoothedMaxDivergence"):
        if delta is None:
            raise InputError("delta is missing; the measurement's privacy curve is read at a δ.")
        return _approximate(privacy.epsilon(validate.probability(delta=delta)), delta)
    raise UnsupportedError(
        f"output measure is {measure}; it must be pure, approximate or zero-concentrated."
    )


def _approximate(epsilon: Any, delta: Any) -> Mechanism:
    epsilon = validate.non_negative(epsilon=epsilon)
    delta = validate.probability(delta=delta)
    return ApproximateBlackBox(epsilon, delta) if delta else PureBlackBox(epsilon)
