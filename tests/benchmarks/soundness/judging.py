"""What the package certifies of a case, beside what the oracle finds."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dpaudit import Plan
from dpaudit.accounting import AccountantName, Guarantee, Interval, compose, guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from tests.benchmarks.soundness.oracle.closed import Curve, least_epsilon
from tests.benchmarks.soundness.oracle.truth import truth
from tests.benchmarks.soundness.uses import Case, declared
from tests.benchmarks.soundness.verdict import Verdict

SLOW, LONGEST = 5.0, 60
"""Processor seconds of one proof: what counts as slow, and when it is broken off."""
ACCOUNTANTS = [name for name in AccountantName if name is not AccountantName.BEST]


class TooLongError(Exception):
    """A proof was broken off."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Breaks off what takes longer, in seconds of the processor."""

    def stop(*_: object) -> None:
        raise TooLongError(f"broken off after {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def first_miss(case: Case, curve: Curve) -> str:
    """The first end that is beyond what the oracle has said, or ""; by ε at the case's δ alone."""
    verdict = Verdict(case)
    try:
        plan = declared(case)
    except (InputError, UnsupportedError):
        return ""
    intervals = _by_accountant(plan, verdict) | _reversed(case)
    for name, each in intervals.items():
        if each.upper < math.inf and (least := curve.lower(each.upper)) > case.delta:
            return f"{name}: ε ≤ {each.upper:.6g}, where δ is at least {float(least):.3g}"
        if each.lower and case.size == 1 and curve.upper(min(each.lower, 1e300)) < case.delta:
            return f"{name}: ε ≥ {each.lower:.6g}, where δ is less"
    return next((f"{kind}: {text}" for kind, text in verdict.misses if kind != "slow"), "")


def judged(case: Case, deep: bool = True) -> Verdict:
    """Certify a case by every accountant, and compare each with the oracle."""
    verdict = Verdict(case)
    try:
        plan = declared(case)
    except (InputError, UnsupportedError) as error:
        verdict.refused = str(error)
        return verdict
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a miss
        verdict.misses.append(("crash", f"plan: {type(error).__name__}: {error}"))
        return verdict
    whole = _certified(plan, verdict)
    intervals = _by_accountant(plan, verdict)
    try:
        with time_limit(2 * LONGEST):
            curve = truth(case, case.delta, deep)
            if curve is not None:
                intervals |= _reversed(case)
                verdict.method = curve.method
                _compare(verdict, whole, intervals, curve)
                _compare_deltas(verdict, plan, whole, curve)
    except Exception as error:  # noqa: BLE001  # of the oracle or of what it asks
        verdict.failed = f"{type(error).__name__}: {error}"
    return verdict


def _certified(plan: Plan, verdict: Verdict) -> Guarantee | None:
    start = time.process_time()
    whole = None
    try:
        with time_limit(LONGEST):
            whole = guarantee(plan, verdict.case.delta)
    except UnsupportedError as error:
        verdict.refused = str(error)
    except TooLongError as error:
        verdict.misses.append(("slow", f"best: {error}"))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a miss
        verdict.misses.append(("crash", f"best: {type(error).__name__}: {error}"))
    verdict.seconds = time.process_time() - start
    if SLOW < verdict.seconds < LONGEST:
        verdict.misses.append(("slow", f"best: {verdict.seconds:.1f} s"))
    if whole is not None:
        bound = whole.error_bound
        verdict.proved = (None if bound is None else whole.epsilon - bound, whole.epsilon)
        numbers = [
            whole.epsilon,
            bound or 0.0,
            *(x for p in whole.curve for x in (p.epsilon, p.delta)),
        ]
        if any(math.isnan(one) for one in numbers):
            verdict.misses.append(("NaN", "best: a number of the guarantee is NaN"))
    return whole


def _by_accountant(plan: Plan, verdict: Verdict) -> dict[str, Interval]:
    found = {}
    for name in ACCOUNTANTS:
        start = time.process_time()
        try:
            with time_limit(LONGEST):
                found[str(name)] = compose(plan, name).epsilon(verdict.case.delta)
        except UnsupportedError:
            continue
        except TooLongError as error:
            verdict.misses.append(("slow", f"{name}: {error}"))
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a miss
            verdict.misses.append(("crash", f"{name}: {type(error).__name__}: {error}"))
        seconds = time.process_time() - start
        if SLOW < seconds < LONGEST:
            verdict.misses.append(("slow", f"{name}: {seconds:.1f} s"))
    return found


def _reversed(case: Case) -> dict[str, Interval]:
    """The same uses in the other order, after what the process has seen of the first."""
    if len(case.uses) < 2 or not case.uses[0].enumerated:
        return {}
    try:
        plan = declared(replace(case, uses=case.uses[::-1]))
        return {"reversed": compose(plan).epsilon(case.delta)}
    except UnsupportedError:
        return {}


def _compare(
    verdict: Verdict, whole: Guarantee | None, intervals: dict[str, Interval], curve: Curve
) -> None:
    """Each ε with the curve at that ε, so that nothing is inverted.

    A plan for several units is declared from what is proved of one, so that a lower end of its cost
    is none of what the units cost.
    """
    delta = verdict.case.delta
    ends = {name: (each.lower, each.upper) for name, each in intervals.items()}
    if verdict.proved is not None:
        ends["best"] = verdict.proved
    for name, (lower, upper) in ends.items():
        if math.isnan(upper) or (lower is not None and math.isnan(lower)):
            verdict.misses.append(("NaN", f"{name}: {lower}, {upper}"))
            continue
        if upper < math.inf and (least := curve.lower(upper)) > delta:
            text = f"{name}: ε ≤ {upper!r}, where δ is at least {float(least):.6g}"
            verdict.misses.append(("unsound", text))
        if lower and verdict.case.size == 1 and (most := curve.upper(min(lower, 1e300))) < delta:
            text = f"{name}: ε ≥ {lower!r}, where δ is at most {float(most):.6g}"
            verdict.misses.append(("lower end", text))
    start = verdict.proved[1] if verdict.proved and verdict.proved[1] < math.inf else 1.0
    verdict.truth = (
        _sharpened(least_epsilon(curve.lower, delta, start), curve, delta),
        least_epsilon(curve.upper, delta, start),
    )
    for point in () if whole is None else whole.curve[::3]:
        if (least := curve.lower(point.epsilon)) > point.delta:
            text = f"curve: δ({point.epsilon!r}) ≤ {point.delta!r}, at least {float(least):.6g}"
            verdict.misses.append(("unsound", text))
            break


def _sharpened(found: float, curve: Curve, delta: float) -> float:
    """The largest ε at which the lower end is above δ: far from it that end says nothing."""
    if found > 0:
        return found
    high = least_epsilon(curve.upper, delta, 1.0)
    for share in (0.999, 0.99, 0.97, 0.9, 0.8, 0.6, 0.4):
        if math.isfinite(high) and curve.lower(share * high) > delta:
            low, top = share * high, high
            for _ in range(30):
                middle = (low + top) / 2
                low, top = (middle, top) if curve.lower(middle) > delta else (low, middle)
            return low
    return 0.0


def _compare_deltas(verdict: Verdict, plan: Plan, whole: Guarantee | None, curve: Curve) -> None:
    """δ at a bit less than the certified ε."""
    if whole is None or not whole.epsilon < math.inf:
        return
    for epsilon in (whole.epsilon * 0.9,):
        try:
            with time_limit(LONGEST):
                interval = compose(plan).delta(epsilon)
        except TooLongError as error:
            verdict.misses.append(("slow", f"δ({epsilon!r}): {error}"))
            return
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a miss
            verdict.misses.append(("crash", f"δ({epsilon!r}): {type(error).__name__}: {error}"))
            return
        if math.isnan(interval.upper):
            verdict.misses.append(("NaN", f"δ({epsilon!r})"))
        if curve.lower(epsilon) > interval.upper:
            text = (
                f"δ({epsilon!r}) ≤ {interval.upper!r}, at least {float(curve.lower(epsilon)):.6g}"
            )
            verdict.misses.append(("unsound", text))
        below = interval.lower if verdict.case.size == 1 else None
        if below is not None and curve.upper(epsilon) < below:
            text = f"δ({epsilon!r}) ≥ {interval.lower!r}, at most {float(curve.upper(epsilon)):.6g}"
            verdict.misses.append(("lower end", text))
