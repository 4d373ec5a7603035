"""Engines that are wrong and files that are edited: does the checker ever prove what is false?

Run ``python -m tests.benchmarks.checker_mutants [WORD...]``. A mutant breaks one thing of the
engine, which then certifies and writes the witness. An edit changes one thing of a certificate or
of its witness. No proof may be below what an oracle finds that knows neither engine nor checker;
each mutant must state an ε below it for some case, else it is printed as harmless.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import json
import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any
from unittest import mock

from dpaudit import Gaussian, Laplace, Plan, RandomizedResponse, checker
from dpaudit.accounting.amplification import PlainPair
from dpaudit.accounting.amplification.fixed_size import FixedSizeAmplification
from dpaudit.accounting.amplification.poisson import PoissonAmplification
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.base.errors import DpAuditError
from dpaudit.certificate.checking import witness_of
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    ContinualGaussian,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    GaussianPair,
    PureBlackBox,
)
from tests.benchmarks.soundness.oracle.truth import truth
from tests.benchmarks.soundness.uses import Case, Use, declared

best, guarantees, terms = (
    importlib.import_module(f"dpaudit.accounting.{name}")
    for name in ("best", "guarantees", "terms")
)
"""Modules, of which two share their name with a function."""
DELTA = 1e-5
_GAUSSIAN = Use("gaussian", {"sigma": 2.0}, 1.0, 100, 0.05)
_LAPLACE = Use("laplace", {"scale": 4.0}, 1.0, 20)
_TREE = ("binary-tree", {"steps": 16})


def one(name: str, *uses: Use, relation: str = "add-remove", **facts: Any) -> Case:
    """A case at the usual δ."""
    return Case(name, relation, uses, DELTA, **facts)


CASES = {
    case.name: case
    for case in (
        one("sampled", _GAUSSIAN),
        one("few", replace(_GAUSSIAN, count=3, rate=0.4)),
        one("gaussian", Use("gaussian", {"sigma": 3.0}, 1.0, 2)),
        one("laplace", _LAPLACE),
        one("both", _GAUSSIAN, replace(_LAPLACE, count=3)),
        one("two", Use("gaussian", {"sigma": 3.0}), Use("gaussian", {"sigma": 1.5}, 1.0, 3)),
        one("shifts", Use("gaussian", {"sigma": 3.0}), Use("gaussian", {"sigma": 3.0}, 2.0)),
        one("response", Use("randomized-response", {"p": 0.9}, 1.0, 60)),
        one("integers", Use("discrete-laplace", {"scale": 3.0}, 1.0, 20)),
        one("lattice", Use("discrete-gaussian", {"sigma": 3.0}, 1.0, 5, 0.3)),
        one("choice", Use("exponential", {"epsilon": 0.5}, 1.0, 1)),
        one("pure", Use("pure-black-box", {"epsilon": 0.3}, 1.0, 10)),
        one("approximate", Use("approximate-black-box", {"epsilon": 0.3, "delta": 4e-7}, 1.0, 20)),
        one("subset", replace(_GAUSSIAN, rate=None, subset=(10, 100)), relation="replace-one"),
        one("taken", replace(_GAUSSIAN, rate=None, drawn=("taken", 10, 100))),
        one("groups", *(replace(_LAPLACE, count=n, group=f"{n}") for n in (1, 9)), _LAPLACE),
        one(
            "moving",
            *(replace(_LAPLACE, count=n, group=f"{n}", by_value=True) for n in (3, 9)),
            relation="replace-one",
        ),
        one(
            "stream",
            Use("continual-gaussian", {"sigma": 4.0, "matrix": _TREE, "participations": 3}),
        ),
        one(
            "replaced",
            Use("continual-gaussian", {"sigma": 4.0, "matrix": _TREE, "participations": 1}),
            relation="replace-one",
        ),
    )
}


def record_of(case: Case) -> dict[str, Any]:
    """What the checker reads of a certificate."""
    return {"plan": declared(case).to_dict(), "guarantee": {"delta": case.delta}}


def is_false(proof: checker.Proof, case: Case) -> bool:
    """Whether δ at the proved ε is below what the oracle finds."""
    if proof.epsilon is None:
        return False
    curve = truth(case, float(proof.delta))
    assert curve is not None, case.name
    return curve.lower(float(proof.epsilon) * (1 + 1e-12)) > float(proof.delta)


# -- engines ---------------------------------------------------------------------------------------

Engine = tuple[object, str, object, str]
"""Where it is broken, what is there instead, and for which cases."""


def noisier(kind: type, field: str, factor: float) -> Callable[..., Any]:
    """The law of another parameter."""
    made = kind.pair  # type: ignore[attr-defined]
    return lambda self, s: made(replace(self, **{field: getattr(self, field) * factor}), s)


def remembered(kind: type, first: Any) -> Callable[..., Any]:
    """The law of another mechanism, whatever is asked for."""
    pair = first.pair(1.0)
    return lambda self, s: pair


def merged(count: Callable[[list[int]], int], *alike: str) -> Callable[..., Any]:
    """Uses are alike by some of their facts, and the counts of each kind are put together so."""

    def wrong(invocations: Any) -> list[Any]:
        kinds: dict[str, list[Any]] = {}
        for each in invocations:
            kinds.setdefault(repr([getattr(each, name) for name in alike]), []).append(each)
        return [
            (found[0], max(count([each.count for each in found]), 0)) for found in kinds.values()
        ]

    return wrong


def seen(change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Each use is taken for another one."""
    cover = terms.cover
    return lambda use: cover(change(use))


def stated(change: Callable[[float], float], delta: Callable[[float], float] = float) -> Any:
    """Another number is stated than what was found."""
    found = guarantees.guarantee

    def wrong(plan: Any, asked: float) -> Any:
        whole = found(plan, delta(asked))
        return replace(whole, epsilon=change(whole.epsilon), delta=asked)

    return wrong


def sampled(kind: type, change: Callable[[float], float], *pairs: type) -> Callable[..., Any]:
    """Another rate, or one direction in place of both."""

    def directed(self: Any, pair: Any) -> tuple[Any, Any]:
        rate = change(self.rate)
        return pairs[0](pair, rate), pairs[-1](pair, rate)

    return directed


def units(change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Other sets of invocations than one unit touches."""
    by_unit = Plan.by_unit
    return lambda self: change(by_unit(self))


ALL = ("mechanism", "sensitivity", "sampling", "relation")
_LAWS = (
    (Gaussian, "sigma", "gaussian sampled"),
    (Laplace, "scale", "laplace"),
    (DiscreteLaplace, "scale", "integers"),
    (DiscreteGaussian, "sigma", "lattice"),
    (RandomizedResponse, "p", "response"),
    (ExponentialMechanism, "epsilon", "choice"),
    (PureBlackBox, "epsilon", "pure"),
    (ApproximateBlackBox, "epsilon", "approximate"),
    (ContinualGaussian, "sigma", "stream"),
)


def engines() -> Iterator[tuple[str, Engine]]:
    """Every mutant of the engine."""
    for kind, field, cases in _LAWS:
        more = field in ("sigma", "scale", "p")
        for share in (0.5, 0.9, 0.99):
            factor = min(1 / share if more else share, 1.11 if field == "p" else 2.0)
            changed = noisier(kind, field, factor)
            yield f"{share:.0%} of the loss of {kind.__name__}", (kind, "pair", changed, cases)
    for kind, first, cases in (
        (Gaussian, Gaussian(90.0), "gaussian sampled"),
        (RandomizedResponse, RandomizedResponse(0.999), "response"),
        (PureBlackBox, PureBlackBox(0.001), "pure"),
    ):
        name = f"a cache gives {kind.__name__} the law of {first}"
        yield name, (kind, "pair", remembered(kind, first), cases)
    same = "two shifts both"
    yield "sensitivity is no part of a law", alike("mechanism", "sampling", cases=same)
    yield "fields are no part of a law", alike("sensitivity", cases="two")
    yield "all laws are equal", alike("relation", cases=same)
    counts: dict[str, Callable[[list[int]], int]] = {
        "one use fewer": lambda counts: sum(counts) - 1,
        "half of the uses": lambda counts: sum(counts) // 2,
        "the count is forgotten": lambda counts: 1,
        "how many invocations there are": len,
        "a percent fewer uses": lambda counts: sum(counts) * 99 // 100,
    }
    for name, count in counts.items():
        yield name, (terms, "merged", merged(count, *ALL), "gaussian laplace groups sampled")
    for name, place in {"the first": slice(1, None), "the last": slice(None, -1)}.items():
        left_out = lambda given, place=place: merged(sum, *ALL)(list(given)[place])  # noqa: E731
        yield f"{name} invocation is left out", (terms, "merged", left_out, "both two")
    plain = lambda self, pair: (PlainPair(GaussianPair(1e-9)),) * 2  # noqa: E731
    for kind, cases in (
        (PoissonAmplification, "sampled few"),
        (FixedSizeAmplification, "subset"),
    ):
        for name, change in {
            "a tenth of the rate": lambda q: q / 10,
            "a tenth less of the rate": lambda q: 0.9 * q,
            "a percent less of the rate": lambda q: 0.99 * q,
            "the rate squared": lambda q: q * q,
        }.items():
            wrong = sampled(kind, change, RemovedPair, AddedPair)
            yield f"{name}, {kind.__name__}", (kind, "directed", wrong, cases)
        name = f"the remove direction is dropped, {kind.__name__}"
        yield name, (kind, "directed", sampled(kind, float, AddedPair), cases)
        yield f"samples cost nothing, {kind.__name__}", (kind, "directed", plain, cases)
    named = {
        "half of every distance": lambda use: replace(use, sensitivity=use.sensitivity / 2),
        "a percent less of every distance": lambda use: replace(
            use, sensitivity=use.sensitivity * 0.99
        ),
    }
    for name, change in named.items():
        yield name, (terms, "cover", seen(change), "gaussian laplace sampled stream")
    yield "units that others replace", (terms, "cover", seen(halved_if_taken), "taken")
    yield "streams that move are taken for those that stay", (
        terms, "cover", seen(stays), "replaced",
    )  # fmt: skip
    for name, change in {
        "of groups the first alone": lambda sets: sets[:1],
        "what concerns all is left out of groups": lambda sets: tuple(
            tuple(each for each in own if each.group is not None) or own for own in sets
        ),
        "no two groups are touched": lambda sets: tuple(own[:1] for own in sets),
        "the shortest list": lambda sets: (min(sets, key=lambda own: sum(u.count for u in own)),),
    }.items():
        yield name, (Plan, "by_unit", units(change), "groups moving")
    yield "the least of groups", (guarantees, "_largest", min_of, "groups")
    for share in (0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999):
        wrong = stated(lambda epsilon, share=share: epsilon * share)
        yield f"{share} of ε is stated", (guarantees, "guarantee", wrong, "gaussian laplace pure")
    for factor in (1.1, 10.0, 1000.0):
        wrong = stated(float, lambda delta, factor=factor: delta * factor)
        yield f"{factor} of δ", (guarantees, "guarantee", wrong, "gaussian sampled response")
    of_best = best.BestComposition.epsilon
    for share in (0.3, 0.98):
        lower = lambda self, delta, share=share: guarantees.Interval(  # noqa: E731
            None, of_best(self, delta).upper * share
        )
        yield f"{share} of the best", (best.BestComposition, "epsilon", lower, "sampled gaussian")


def alike(*facts: str, cases: str) -> Engine:
    """Laws that are equal in these facts count as one, with all uses."""
    return terms, "merged", merged(sum, *facts), cases


def min_of(intervals: Any) -> Any:
    """The smallest in place of the largest."""
    return min(intervals, key=lambda each: each.upper)


def halved_if_taken(use: Any) -> Any:
    """As if nobody had the place of an absent unit."""
    return use if use.sampling is None else replace(use, sensitivity=use.sensitivity / 2)


def stays(use: Any) -> Any:
    """As if a replaced unit contributed at the same steps."""
    return replace(use, mechanism=replace(use.mechanism, fixed_steps=True))


def tried(mutant: Engine, understated: Any, false: Any) -> None:
    """One engine on its cases, in a process of its own, so that no cache is shared."""
    owner, attribute, wrong, names = mutant
    for name in names.split():
        case = CASES[name]
        plan = declared(case)
        with mock.patch.object(owner, attribute, wrong), contextlib.suppress(DpAuditError):
            whole = guarantees.guarantee(plan, DELTA)
            witness = json.loads(json.dumps(witness_of(plan, whole)))
            claimed = Fraction(repr(whole.epsilon))
            understated.value |= is_false(checker.Proof(claimed, Fraction(repr(DELTA))), case)
            proof = checker.prove(record_of(case) | {"witness": witness})
            false.value |= is_false(proof, case)


# -- edits -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edit:
    """A changed file, and the plan that it now speaks of."""

    name: str
    record: dict[str, Any]
    case: Case


EXTRA = {
    "a gaussian": Use("gaussian", {"sigma": 2.0}),
    "a laplace": Use("laplace", {"scale": 1.0}),
    "an answer": Use("randomized-response", {"p": 0.3}),
    "a black box": Use("pure-black-box", {"epsilon": 1.0}),
}


def planned(case: Case) -> Iterator[tuple[str, Case]]:
    """The same plan with one thing that costs more, or less."""
    first, *others = case.uses

    def changed(**facts: Any) -> Case:
        return replace(case, uses=(replace(first, **facts), *others))

    for factor in (0.2, 0.5, 0.9, 0.99, 0.9999, 1.1):
        facts = {key: value * factor for key, value in first.facts.items() if key != "p"}
        yield f"{factor} of the noise", changed(facts={**first.facts, **facts})
    for count in (1, first.count + 1, first.count * 2, first.count * 20, 10**4):
        yield f"{count} uses", changed(count=count)
    for shift in (2.0, 3.0):
        if first.kind in ("gaussian", "laplace", "discrete-laplace"):
            yield f"{shift} times as far", changed(shift=shift)
    for rate in (None, 0.051, 0.1, 0.5, 0.999):
        if first.rate is not None:
            yield f"a rate of {rate}", changed(rate=rate)
    for delta in (1e-6, 1e-9, 1e-20, 1e-3):
        yield f"δ of {delta}", replace(case, delta=delta)
    for name, use in EXTRA.items():
        yield f"and {name}", replace(case, uses=(*case.uses, use))
    yield "every use twice", replace(case, uses=case.uses * 2)
    yield "zero-out", replace(case, relation="zero-out")


def in_witness(own: Any) -> Iterator[tuple[str, Any]]:
    """The same witness with one number that is another."""
    for key, values in {
        "bits": (17, 30, 45, 1000, 4096),
        "limit": (16, 40, 40_000),
        "cut": (1, 3, 8, 10**6),
        "round": (1, 3, 6, 64),
    }.items():
        for value in values:
            yield f"{key} {value}", own | {key: value}
    for name, moved in {
        "a finer grid": lambda k, low, high: [k + 1, low, high],
        "a coarser grid": lambda k, low, high: [k - 1, low, high],
        "a far coarser grid": lambda k, low, high: [k - 5, low, high],
        "half of the grid": lambda k, low, high: [k, low // 2, high // 2],
        "no losses below": lambda k, low, high: [k, -1, high],
        "no losses above": lambda k, low, high: [k, low, 1],
        "a grid above": lambda k, low, high: [k, high, 2 * high],
        "a grid below": lambda k, low, high: [k, 2 * low, low],
        "two points": lambda k, low, high: [k, 0, 1],
    }.items():
        yield name, own | {"grids": [[moved(*grid) for grid in law] for law in own["grids"]]}
    yield "ways that change places", own | {"grids": [law[::-1] for law in own["grids"]]}
    yield "laws that change places", own | {"grids": own["grids"][::-1]}
    yield "one way alone", own | {"grids": [law[:1] for law in own["grids"]]}
    yield "a law less", own | {"grids": own["grids"][1:]}
    yield "a law more", own | {"grids": own["grids"] * 2}
    yield "a note", own | {"note": "true"}


STATED = (0.0, 0.5, 0.99, 0.9999, 1 - 1e-9)
DEARER: dict[str, Any] = {
    "count": (2e2, "100", True, 0, -1, 10**16),
    "sensitivity": (-1.0, "1", None, 1e400, float("nan")),
    "sampling": ({}, {"scheme": "poisson"}, {"scheme": "poisson", "rate": -0.1}, "poisson"),
    "relation": ({}, "unknown", {"kind": "metric-ball"}),
    "mechanism": ({}, {"kind": "gaussian"}, {"kind": "gaussian", "sigma": 2.0, "free": True}),
    "trust": ("local", "blind", None),
    "discount": (0.5,),
    "group": ({}, {"name": "a", "membership": "none"}, 1),
}
"""Values of an invocation that make it none, or cost no less."""


def edits(case: Case, others: dict[str, Any]) -> Iterator[Edit]:
    """Every edit of the certificate of a case, with its own witness or with another's."""
    base, witness = record_of(case), others[case.name]
    for keep in (True, False):
        own = {key: value for key, value in witness.items() if keep or key != "epsilon"}
        for name, other in planned(case):
            yield Edit(name, record_of(other) | {"witness": own}, other)
        for place, grids in enumerate(own["sets"]):
            for name, changed in () if grids is None else in_witness(grids):
                sets = [*own["sets"][:place], changed, *own["sets"][place + 1 :]]
                yield Edit(name, base | {"witness": own | {"sets": sets}}, case)
        for name, other in others.items():
            yield Edit(f"the witness of {name}", base | {"witness": other}, case)
    for share in STATED:
        less = witness | {"epsilon": witness["epsilon"] * share}
        yield Edit(f"{share} is stated", base | {"witness": less}, case)
        claim = {"epsilon": share, "delta": 0.5}
        yield Edit(f"a claim of {share}", base | {"witness": witness, "claim": claim}, case)
    for sets in ([], [None] * 2, witness["sets"] * 2, {}, None):
        yield Edit(f"sets {str(sets)[:20]}", base | {"witness": witness | {"sets": sets}}, case)
    for key, values in DEARER.items():
        for value in values:
            record = copy.deepcopy(base | {"witness": witness})
            record["plan"]["invocations"][0][key] = value
            yield Edit(f"{key} {value}", record, case)
    for key in [each.name for each in fields(Use)] + ["mechanism", "relation", "unit", "trust"]:
        record = copy.deepcopy(base | {"witness": witness})
        if record["plan"]["invocations"][0].pop(key, None) is not None:
            yield Edit(f"no {key}", record, case)


def tried_edits(words: list[str]) -> tuple[set[str], int, int]:
    """Names of the kinds of edits, how many files, and how many proofs are false."""
    names, files, false = set[str](), 0, 0
    bases = [CASES[name] for name in ("sampled", "laplace", "both", "response", "integers")]
    witnesses = {}
    for case in bases:
        plan = declared(case)
        witnesses[case.name] = json.loads(
            json.dumps(witness_of(plan, guarantees.guarantee(plan, DELTA)))
        )
    for case in bases:
        for edit in edits(case, witnesses):
            if not all(word in edit.name for word in words):
                continue
            names.add(edit.name)
            files += 1
            try:
                proof = checker.prove(edit.record)
            except checker.InputError:
                continue
            if is_false(proof, edit.case):
                false += 1
                print(f"FALSE: {case.name}, {edit.name}: {float(proof.epsilon or 0)!r}")
    return names, files, false


def main() -> None:
    """Print the counts; fail if a proof is false."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--only", choices=("engines", "edits"))
    arguments = parser.parse_args()
    forked = multiprocessing.get_context("fork")
    unsound = harmless = bad = 0
    for name, mutant in engines() if arguments.only != "edits" else ():
        if not all(word in name for word in arguments.words):
            continue
        understated, false = forked.Value("b", 0), forked.Value("b", 0)
        child = forked.Process(target=tried, args=(mutant, understated, false))
        child.start()
        child.join()
        unsound += understated.value
        bad += false.value
        if false.value or child.exitcode or not understated.value:
            harmless += not understated.value
            said = "FALSE PROOF" if false.value else f"harmless, exit {child.exitcode}"
            print(f"{said}: {name}", flush=True)
    print(f"engines: {unsound} unsound, {harmless} harmless, {bad} with a false proof", flush=True)
    if arguments.only != "engines":
        names, files, false_files = tried_edits(arguments.words)
        bad += false_files
        print(f"edits: {len(names)} kinds, {files} files, {false_files} with a false proof")
    raise SystemExit(bad > 0)


if __name__ == "__main__":
    main()
