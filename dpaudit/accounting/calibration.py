"""The least noise, or the most use, that a target allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from dpaudit import validate
from dpaudit.accounting.guarantees import compose
from dpaudit.accounting.proved import AccountantName
from dpaudit.errors import InputError
from dpaudit.plan import Plan, PoissonSampling
from dpaudit.validate import shown

__all__ = ["Calibration", "Parameter", "calibrate"]


class Parameter(Enum):
    """One number of a plan, with the direction in which it protects more."""

    SIGMA = "sigma"
    SCALE = "scale"
    P = "p"
    COUNT = "count"
    RATE = "rate"


@dataclass(frozen=True)
class Calibration:
    """What :func:`calibrate` found.

    Attributes:
        value: the least σ, scale or p, or the largest count or rate.
        plan: the plan with that value.
        epsilon: its proved ε, at most the target.
        delta: δ of the target.
    """

    value: float
    plan: Plan
    epsilon: float
    delta: float


def calibrate(
    plan: Plan | Callable[[float], Plan],
    parameter: Parameter,
    *,
    epsilon: float,
    delta: float = 0.0,
    accountant: str = AccountantName.BEST,
    at: str = "",
    tolerance: float = 1e-6,
) -> Calibration:
    """Find the value of one parameter for which the proved ε just meets a target.

    The guarantee's upper end is monotone in each parameter; its root is bracketed and bisected, and
    the value returned was itself accounted, so that the target holds exactly.

    Args:
        plan: a plan, of which the invocation labelled ``at`` is changed, or a function that makes
            the plan for a value.
        parameter: which number is sought.
        epsilon: target, at least 0.
        delta: target, in [0, 1).
        accountant: the name of the one whose guarantee has to meet the target.
        at: label of the invocation; not needed for a function or a plan of one invocation.
        tolerance: relative width at which the search ends; counts are exact.

    Raises:
        InputError: if no value meets the target, or the invocation has no such parameter.
        UnsupportedError: if the accountant has no theorem for the plan.

    >>> from dpaudit.mechanisms import Laplace
    >>> from dpaudit.plan import Invocation
    >>> from dpaudit.plan.relations import AddRemove, PrivacyUnit, TrustModel
    >>> once = Invocation(Laplace(20.0), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    >>> calibrate(Plan.of(once), Parameter.COUNT, epsilon=1.0).value
    20
    """
    epsilon = validate.non_negative(epsilon=epsilon)
    delta = validate.probability(delta=delta)
    tolerance = validate.open_fraction(tolerance=tolerance)
    make = _with_parameter(plan, parameter, at) if isinstance(plan, Plan) else plan

    def cost(value: float) -> float:
        return compose(make(value), accountant).epsilon(delta).upper

    def meets(value: float) -> bool:
        return cost(value) <= epsilon

    value = _SEARCHES[parameter](meets, tolerance)
    if value is None:
        raise InputError(
            f"no {parameter.value} meets epsilon {epsilon} at delta {delta}; choose a larger "
            "epsilon or delta, or more noise elsewhere in the plan."
        )
    return Calibration(value, make(value), cost(value), delta)


def _least_noise(meets: Callable[[float], bool], tolerance: float) -> float | None:
    """The least positive number: doubling or halving from 1, then bisection of the logarithm."""
    high = 1.0
    if meets(high):
        while high > 1e-100 and meets(high / 2):
            high /= 2
        return _bisect(meets, high, high / 2, tolerance)
    while not meets(high):
        high *= 2
        if high > 1e15:
            return None
    return _bisect(meets, high, high / 2, tolerance)


def _least_share(meets: Callable[[float], bool], tolerance: float) -> float | None:
    """The least number in (0, 1] that protects enough, where more protects more."""
    if not meets(1.0):
        return None
    high = 1.0
    while high > 1e-100 and meets(high / 2):
        high /= 2
    return _bisect(meets, high, high / 2, tolerance)


def _largest_share(meets: Callable[[float], bool], tolerance: float) -> float | None:
    """The largest number in (0, 1] that protects enough, where less protects more."""
    if meets(1.0):
        return 1.0
    low = 0.5
    while not meets(low):
        low /= 2
        if low < 1e-15:
            return None
    return _bisect(meets, low, low * 2, tolerance)


def _largest_count(meets: Callable[[float], bool], _: float) -> int | None:
    """The largest whole number, to 10^12, that protects enough."""
    if not meets(1):
        return None
    good = 1
    while good < 10**12 and meets(2 * good):
        good *= 2
    bad = 2 * good
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if meets(middle) else (good, middle)
    return good


def _bisect(meets: Callable[[float], bool], good: float, bad: float, tolerance: float) -> float:
    while abs(math.log(good / bad)) > tolerance:
        middle = math.sqrt(good) * math.sqrt(bad)
        good, bad = (middle, bad) if meets(middle) else (good, middle)
    return good


_SEARCHES: dict[Parameter, Callable[[Callable[[float], bool], float], float | None]] = {
    Parameter.SIGMA: _least_noise,
    Parameter.SCALE: _least_noise,
    Parameter.P: _least_share,
    Parameter.COUNT: _largest_count,
    Parameter.RATE: _largest_share,
}


def _with_parameter(plan: Plan, parameter: Parameter, at: str) -> Callable[[float], Plan]:
    """The function that puts a value in its place."""
    found = [n for n, each in enumerate(plan.invocations) if not at or each.at == at]
    if len(found) != 1:
        labels = ", ".join(repr(each.at) for each in plan.invocations[:20])
        raise InputError(f"at is {shown(at)}; it must be the label of one invocation: {labels}.")
    index = found[0]
    target = plan.invocations[index]
    field = parameter.value
    if parameter in (Parameter.SIGMA, Parameter.SCALE, Parameter.P):
        if not hasattr(target.mechanism, field):
            raise InputError(f"{target.describe()} has no parameter {field}.")
    elif parameter is Parameter.RATE and not isinstance(target.sampling, PoissonSampling):
        raise InputError(f"{target.describe()} has no rate; it must have Poisson sampling.")

    def make(value: float) -> Plan:
        if parameter is Parameter.COUNT:
            changed = replace(target, count=int(value), total=None)
        elif parameter is Parameter.RATE:
            changed = replace(target, sampling=PoissonSampling(value))
        else:
            changed = replace(target, mechanism=replace(target.mechanism, **{field: value}))
        invocations = list(plan.invocations)
        invocations[index] = changed
        return Plan(tuple(invocations))

    return make
