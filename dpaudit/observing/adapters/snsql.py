"""SmartNoise SQL: what its mechanisms are in a plan.

Each number of each group is a release. One unit moves the numbers of all groups together by no more
than its rows can, so one of them by that much.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from snsql.sql import odometer
from snsql.sql._mechanisms import Gaussian, Laplace

from dpaudit import mechanisms as kinds
from dpaudit.observing import Patch, Reading, Recorder


class SmartNoise:
    """The adapter."""

    library = "smartnoise-sql"
    versions = ("1.0.",)
    packages = ("snsql", "opendp", "pandas", "numpy")

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Patch noise, the threshold that hides rare groups, and charges."""
        for kind, law in ((Laplace, kinds.Laplace), (Gaussian, kinds.Gaussian)):
            yield Patch(kind, "release", recorder.reading(partial(_noise, recorder, law)))
            yield Patch(kind, "threshold", partial(_censored, recorder))
        spend = recorder.replacing(partial(_spent, recorder), within_draws=True)
        yield Patch(odometer.OdometerHeterogeneous, "spend", spend)


def _noise(recorder: Recorder, law: Any, own: Any, vals: Any) -> Reading:
    recorder.memory[id(own)] = own  # as long as it is held, its id is its own
    far = max(abs(own.lower), abs(own.upper)) * own.max_contrib
    facts = {"scale": own.scale, "rows": own.max_contrib}
    value, among = np.array(vals, float), (1, id(own))
    return Reading(law.__name__, law(own.scale), far, value, facts=facts, among=among)


def _censored(recorder: Recorder, original: Any) -> Any:
    """Take SmartNoise's word on which groups are shown at all."""

    def threshold(own: Any) -> Any:
        if recorder.quiet:
            return original.fget(own)
        mechanism = kinds.Opaque("threshold of groups", 0.0, own.delta)
        facts = {"delta": own.delta, "scale": own.scale}
        reading = Reading("threshold", mechanism, 1.0, 0.0, (0.0, own.delta), facts)
        return recorder.release(reading, lambda: original.fget(own))

    return property(threshold)


def _spent(recorder: Recorder, original: Any, own: Any, privacy: Any = None) -> Any:
    """Return what an odometer sums to, by the theorem that it uses."""
    made = original(own, privacy)
    recorder.charge(own.steps[-1][0], own.steps[-1][1])
    recorder.memory.setdefault("odometers", {})[id(own)] = own
    recorder.total_by(partial(_total, recorder.memory["odometers"]))
    return made


def _total(odometers: dict[int, Any]) -> tuple[float, float]:
    epsilons, deltas = zip(*(own.spent for own in odometers.values()), strict=True)
    return float(sum(epsilons)), float(sum(deltas))


ADAPTER = SmartNoise()
