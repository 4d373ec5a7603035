"""The least noise for which a claim is certified."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.accounting import compose, least_noise
from dpaudit.accounting.calibration import SMALLEST
from dpaudit.base import files, validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.numbers import down, up
from dpaudit.base.validate import shown
from dpaudit.certificate import Certificate, Claim, SubjectRecord, Verdict, certify
from dpaudit.certificate.claim import USUAL_DELTA
from dpaudit.certificate.risk import advantage
from dpaudit.mechanisms import AdditiveNoise, GaussianHistogram, Mechanism, StableHistogram
from dpaudit.plan import Invocation, Plan, PrivateSelection
from dpaudit.project.describing import example_of, plan_text
from dpaudit.project.plan_file import read_plan
from dpaudit.project.targets import parse_claim, parse_settings

AROUND = (0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0)
"""Multiples of the noise that was found, whose costs are told beside it."""

_TOLERANCE = 1e-6
_NEARBY = tuple(2.0 ** (step / 4) for step in range(-80, 201))
Place = tuple[int, ...]
"""The number of an invocation, and of one of the run of a selection."""
CONFIDENCE = 0.95
"""Of an accuracy where none is named."""
_PLAN_KEYS = ("unit", "relation", "trust")


def _more(value: float, factor: float) -> float:
    return float(up(value * factor).replace("∞", "inf"))  # which no mechanism takes


def _less(value: float, factor: float) -> float:
    return float(down(value / factor))


def _odds(value: float, factor: float) -> float:
    return min(1.0, float(up(factor * value / (1 - value + factor * value))))


_NOISE: dict[str, tuple[float, Callable[[float, float], float]]] = {
    "sigma": (1.0, _more),
    "scale": (1.0, _more),
    "p": (0.5, _odds),
    "lie": (0.5, _odds),
    "epsilon": (1.0, _less),
    "rho": (1.0, lambda value, factor: _less(value, factor * factor)),
}
"""Parameters that say how much noise there is: where to start, and what ``factor`` times as much
is, with six digits, rounded to the side of more noise."""


@dataclass(frozen=True)
class Cost:
    """The cost of a multiple of the noise.

    Attributes:
        factor: of the noise that was found.
        noise: the parameter of the first invocation that is changed.
        epsilon: the proved ε, at the calibration's δ.
        advantage: the proved largest |TPR − FPR|.
        certified: whether the claim holds.
    """

    factor: float
    noise: float
    epsilon: float
    advantage: float
    certified: bool


@dataclass(frozen=True)
class Calibration:
    """A plan with the least noise for a claim.

    Attributes:
        certificate: of that plan and claim; certified.
        content: the tables of its plan file.
        noise: parameter and value of each invocation whose noise was sought, by label.
        costs: of multiples of that noise.
        confidence: with what probability noise is said to reach no further.
    """

    certificate: Certificate
    content: Mapping[str, Any]
    noise: Mapping[str, tuple[str, float]]
    costs: tuple[Cost, ...]
    confidence: float = CONFIDENCE

    @property
    def reaches(self) -> dict[str, float]:
        """How far noise reaches with that confidence, by label, where that is known."""
        found = {}
        for label, mechanism in _mechanisms(self.certificate.plan).values():
            if label in self.noise and isinstance(mechanism, AdditiveNoise):
                with suppress(UnsupportedError):
                    found[label] = mechanism.accuracy(self.confidence)
        return found

    def save(self, path: Path) -> Path:
        """Write the plan file, whole or not at all."""
        return files.write(path, plan_text(self.content))

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        known = self.certificate.to_dict()
        proved = known["guarantee"]
        return {
            "claim": known["claim"],
            "verdict": known["verdict"],
            "noise": [{"at": at, name: value} for at, (name, value) in self.noise.items()],
            "accuracy": [
                {"at": at, "confidence": self.confidence, "within": each}
                for at, each in self.reaches.items()
            ],
            "guarantee": {name: proved[name] for name in ("epsilon", "delta", "accountant")},
            "costs": [
                vars(cost) | {"epsilon": cost.epsilon if cost.epsilon < math.inf else None}
                for cost in self.costs
            ],
            "plan": plan_text(self.content),
        }


def calibrate_target(
    name: str,
    settings: Sequence[str],
    claim: str | None,
    at: str = "",
    accuracy: float | None = None,
    confidence: float = CONFIDENCE,
) -> Calibration:
    """The least noise of a mechanism or a plan file, or the most that is accurate enough.

    Args:
        name: the kind of a mechanism, or a plan file.
        settings: ``key=value`` texts of the mechanism's invocation and of ``[plan]``.
        claim: what is to be certified, as it is written in a plan file; the plan's own by default.
        at: label of the one invocation whose noise is sought; all by a common factor if empty.
        accuracy: how far noise may reach; the claim is then judged, where there is one.
        confidence: of the accuracy.

    Raises:
        InputError: if an argument is wrong, or no noise certifies the claim.
        UnsupportedError: if no accountant has a theorem for the plan.
    """
    given, stated = parse_settings(settings), parse_claim(claim)
    if name.endswith(".toml"):
        if given:
            raise InputError("--set is given for a plan file; edit the file instead.")
        content = files.read_toml(name, what="plan file")
        stated = stated or read_plan(content).claim
    else:
        content = _content(name, given)
    if accuracy is not None:
        return accurate(content, accuracy, confidence, at, stated)
    if stated is None:
        raise InputError(
            "--claim is missing; give the claim to certify, such as 'advantage = 0.1'."
        )
    return calibrated(content, stated, at)


def _content(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A plan of one invocation, with some noise to begin with."""
    named = Mechanism.named(kind)
    name = _parameter(named.keys())
    start = {} if name is None else {name: _NOISE[name][0]}
    if issubclass(named, PrivateSelection):
        start = {key: value for key, value in example_of(named).items() if key != "kind"}
    sensitivity = {} if {"sensitivity", "contribution"} & given.keys() else {"sensitivity": 1.0}
    head = {"unit": "row", "relation": "add-remove", "trust": "central"}
    head |= {key: given[key] for key in _PLAN_KEYS if key in given}
    own = {key: value for key, value in given.items() if key not in _PLAN_KEYS}
    return {"plan": head, "invocation": [{"mechanism": kind, **start, **sensitivity, **own}]}


def _parameter(keys: Sequence[str]) -> str | None:
    """The key that says how much noise there is."""
    return next((key for key in _NOISE if key in keys), None)


def calibrated(content: Mapping[str, Any], claim: Claim, at: str = "") -> Calibration:
    """The least noise of a plan, to a relative 1e-5: a factor of all noise, or of one invocation's.

    What is proved falls as noise grows, so the factor is bracketed and bisected. The plan is then
    rounded, to more noise, and certified as it is written.

    Args:
        content: the tables of a plan file.
        claim: what is to be certified.
        at: label of the invocation whose noise is sought; all of them if empty.

    Raises:
        InputError: if the content is wrong, or no noise certifies the claim.
        UnsupportedError: if no accountant has a theorem for the plan.
    """
    places = _places(content, at)
    refused: list[Exception] = []

    def meets(factor: float) -> bool:
        try:
            return claim.excess(compose(_plan(_scaled(content, places, factor)))) is None
        except (InputError, UnsupportedError) as error:
            refused.append(error)
            return False

    factor = least_noise(meets)
    kinds = {_item(content["invocation"], place)["mechanism"] for place in places}
    if factor is None and {StableHistogram.kind, GaussianHistogram.kind} & kinds:
        # Behind a threshold that stays, noise that hides counts tells keys: there is a window.
        near = next((near for near in _NEARBY if meets(near)), 1.0)
        more = least_noise(lambda more: meets(near * more))
        factor = None if more is None else near * more
    if factor is None:
        changed = {place[0] for place in places}
        rest = [item for n, item in enumerate(content["invocation"]) if n not in changed]
        if not refused and rest and claim.excess(compose(_plan({**content, "invocation": rest}))):
            raise InputError(
                f"the other invocations alone exceed {claim}; add noise to "
                f"them, and not only to {shown(at)}."
            )
        if not refused:
            pure = claim.delta == 0 and claim.risk is None
            other = "claim a δ above 0" if pure else f"claim a larger {claim.measure}"
            raise InputError(f"no noise certifies {claim}; {other}, or release less often.")
        if isinstance(refused[0], UnsupportedError):
            raise refused[0]
        raise InputError(f"no noise that can be declared certifies {claim}: {refused[-1]}")
    if factor <= SMALLEST:
        raise InputError(
            f"any noise certifies {claim}, however little; claim a smaller {claim.measure}."
        )
    for attempt in range(20):
        written = {**_scaled(content, places, factor), "claim": claim_table(claim)}
        certificate = certify(_plan(written), subject=SubjectRecord("calibrated"), claim=claim)
        if certificate.verdict is Verdict.CERTIFIED:
            break
        factor *= 1 + 2**attempt * _TOLERANCE
    else:
        raise InputError(f"no noise near {factor:.6g} times the given one certifies {claim}.")
    assert certificate.guarantee is not None
    delta = certificate.guarantee.delta
    costs = (_cost(written, places, claim, delta, each) for each in AROUND)
    return Calibration(
        certificate,
        {name: written[name] for name in ("plan", "claim", "invocation")},
        _noise(certificate.plan, written, places),
        tuple(cost for cost in costs if cost is not None),
    )


def accurate(
    content: Mapping[str, Any],
    within: float,
    confidence: float = CONFIDENCE,
    at: str = "",
    claim: Claim | None = None,
) -> Calibration:
    """The most noise that stays within so much, and what it proves.

    Args:
        content: the tables of a plan file.
        within: how far noise may reach, in each entry.
        confidence: with what probability at least.
        claim: what is judged; without one what is proved at δ = 0, or else at 1e-5.
        at: label of the one invocation whose noise is sought; of one alone the reach is asked.

    Raises:
        InputError: if the content is wrong, no noise stays within, or several invocations have
            noise and none is named.
        UnsupportedError: if the mechanism does not say how far its noise reaches.
    """
    within = validate.positive(accuracy=within)
    places = _places(content, at)
    if len(places) != 1:
        raise InputError(f"{len(places)} invocations have noise; name one of them with --at.")
    (place,) = places

    def reach(less: float) -> float:
        _, mechanism = _mechanisms(_plan(_scaled(content, places, 1 / less)))[place]
        if not isinstance(mechanism, AdditiveNoise):
            raise UnsupportedError(
                f"{mechanism.kind} adds no noise to numbers, so it has no accuracy."
            )
        return mechanism.accuracy(confidence)

    reach(1.0)  # which may not be known
    less = least_noise(lambda less: reach(less) <= within, tolerance=1e-9)
    if less is None:
        raise InputError(
            f"no noise stays within {within:g}; whole-number noise reaches at least 1."
        )
    while reach(less) > within:
        less *= 1 + 1e-5
    written = _scaled(content, places, 1 / less)
    plan, subject = _plan(written), SubjectRecord("calibrated")
    if claim is None:
        pure = compose(plan).epsilon(0.0).upper
        delta = 0.0 if pure < math.inf else USUAL_DELTA
        proved = certify(plan, subject=subject, delta=delta).guarantee
        if proved is None or proved.epsilon == math.inf:
            raise InputError(f"no finite ε is proved for noise that stays within {within:g}.")
        claim = Claim(float(up(proved.epsilon)), delta)
    certificate = certify(plan, subject=subject, claim=claim)
    tables = {"plan": written["plan"], "claim": claim_table(claim)}
    tables |= {"invocation": written["invocation"]}
    return Calibration(certificate, tables, _noise(plan, written, places), (), confidence)


def fitting(
    content: Mapping[str, Any], admits: Callable[[Plan], bool]
) -> dict[str, tuple[str, float]] | None:
    """The least noise of a plan with which something admits it; None where no noise is enough.

    Args:
        content: the tables of a plan file.
        admits: whether a plan, with noise as it is written, may be released.

    Raises:
        InputError: if the content is wrong.
    """
    places = _places(content, "")

    def meets(factor: float) -> bool:
        try:
            return admits(_plan(_scaled(content, places, factor)))
        except InputError:
            return False

    factor = least_noise(meets)
    if factor is None:
        return None
    return _noise(_plan(content), _scaled(content, places, factor), places)


def _plan(content: Mapping[str, Any]) -> Plan:
    return read_plan({name: each for name, each in content.items() if name != "claim"}).plan


def claim_table(claim: Claim) -> dict[str, Any]:
    """A claim as a plan file states it."""
    return {key: value for key, value in claim.to_dict().items() if value != ""}


def _places(content: Mapping[str, Any], at: str) -> dict[Place, str]:
    """The places of the invocations whose noise is sought, and the parameters that say it."""
    plan = _plan(content)
    labels = [invocation.at for invocation in plan.invocations]
    if at and at not in labels:
        known = ", ".join(map(shown, labels[:20]))
        raise InputError(f"--at is {shown(at)}; it must be the label of an invocation: {known}.")
    found: dict[Place, str] = {}
    parts: list[tuple[Place, Invocation]]
    for number, invocation in enumerate(plan.invocations):
        if invocation.sensitivity == 0 or (at and at != invocation.at):
            continue
        if isinstance(invocation.mechanism, PrivateSelection):
            own = enumerate(invocation.mechanism.run.invocations)
            parts = [((number, place), each) for place, each in own if each.sensitivity]
        else:
            parts = [((number,), invocation)]
        for place, each in parts:
            name = _parameter(each.mechanism.keys())
            if name is None:
                raise InputError(
                    f"{each.describe()} has no parameter that scales noise; name another "
                    "invocation with --at."
                )
            found[place] = name
    if not found:
        raise InputError("no invocation needs noise: every sensitivity is 0.")
    return found


def _item(items: Sequence[Any], place: Place) -> Any:
    """The table at a place: of an invocation, or of one of a run of it."""
    first, *rest = place
    return items[first]["run"][rest[0]] if rest else items[first]


def _scaled(
    content: Mapping[str, Any], places: Mapping[Place, str], factor: float
) -> dict[str, Any]:
    """The tables with that many times the noise."""
    items = deepcopy(content["invocation"])
    for place, name in places.items():
        item = _item(items, place)
        item[name] = _NOISE[name][1](item[name], factor)
    return {**content, "invocation": items}


def _noise(
    plan: Plan, content: Mapping[str, Any], places: Mapping[Place, str]
) -> dict[str, tuple[str, float]]:
    named, items = _mechanisms(plan), content["invocation"]
    return {named[at][0]: (name, _item(items, at)[name]) for at, name in places.items()}


def _mechanisms(plan: Plan) -> dict[Place, tuple[str, Mechanism]]:
    """The label and the mechanism at each place, those of a selection's run for it."""
    found: dict[Place, tuple[str, Mechanism]] = {}
    for number, each in enumerate(plan.invocations):
        if isinstance(each.mechanism, PrivateSelection):
            for place, own in enumerate(each.mechanism.run.invocations):
                found[number, place] = f"{each.at}, {own.at}", own.mechanism
        else:
            found[(number,)] = each.at, each.mechanism
    return found


def _cost(
    content: Mapping[str, Any],
    places: Mapping[Place, str],
    claim: Claim,
    delta: float,
    factor: float,
) -> Cost | None:
    """Return what that multiple costs; None where a parameter cannot be so large or small."""
    scaled = content if factor == 1 else _scaled(content, places, factor)
    place, name = next(iter(places.items()))
    try:
        whole = compose(_plan(scaled))
    except (InputError, UnsupportedError):
        return None
    return Cost(
        factor,
        _item(scaled["invocation"], place)[name],
        whole.epsilon(delta).upper,
        advantage(whole),
        claim.excess(whole) is None,
    )
