"""No ε below the truth: of plans that were edited under an old witness, and of engines that err.

The truth is an oracle's that knows neither the engine nor the checker.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import pytest

from dpaudit import Gaussian, Laplace, checker
from dpaudit.accounting import guarantee, guarantees
from dpaudit.accounting.amplification import PlainPair
from dpaudit.accounting.amplification.poisson import PoissonAmplification
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.certificate.checking import witness_of
from dpaudit.mechanisms import GaussianPair, LaplacePair
from tests.benchmarks.soundness.oracle.truth import truth
from tests.benchmarks.soundness.uses import Case, Use, declared

DELTA = 1e-5
_GAUSSIAN = Use("gaussian", {"sigma": 2.0}, 1.0, 100, 0.05)
_LAPLACE = Use("laplace", {"scale": 4.0}, 1.0, 20)
CASES = {
    "sampled": Case("sampled", "add-remove", (_GAUSSIAN,), DELTA),
    "one": Case("one", "add-remove", (Use("gaussian", {"sigma": 3.0}),), DELTA),
    "laplace": Case("laplace", "add-remove", (_LAPLACE,), DELTA),
    "both": Case("both", "add-remove", (_GAUSSIAN, replace(_LAPLACE, count=3)), DELTA),
    "few": Case("few", "add-remove", (replace(_GAUSSIAN, count=3, rate=0.4),), DELTA),
    "response": Case(
        "response", "add-remove", (Use("randomized-response", {"p": 0.9}, 1.0, 60),), DELTA
    ),
}

LONG = {"sampled", "both"}
"""Cases that take most of the time; ``few`` is sampled too, ``checker_mutants`` has them all."""
NAMES = [pytest.param(each, marks=pytest.mark.pages if each in LONG else ()) for each in CASES]

Edit = Callable[[Case], Case]


def first(**changed: object) -> Edit:
    return lambda case: replace(case, uses=(replace(case.uses[0], **changed), *case.uses[1:]))


def louder(share: float) -> Edit:
    """Less noise: a smaller scale, or fewer uniform answers."""

    def edit(case: Case) -> Case:
        use = case.uses[0]
        return first(facts={key: value * share for key, value in use.facts.items()})(case)

    return edit


def times(factor: float) -> Edit:
    return lambda case: first(count=int(case.uses[0].count * factor) + 1)(case)


def oftener(factor: float) -> Edit:
    return lambda case: first(rate=min((case.uses[0].rate or 1.0) * factor, 1.0))(case)


EDITS: dict[str, Edit] = {
    "half the noise": louder(0.5),
    "a percent less noise": louder(0.99),
    "a tenth less noise": louder(0.9),
    "one use more": times(1.0),
    "twice the uses": times(2.0),
    "a hundred times the uses": times(100.0),
    "twice the rate": oftener(2.0),
    "no sampling": first(rate=None),
    "a smaller delta": lambda case: replace(case, delta=1e-9),
    "another invocation": lambda case: replace(
        case, uses=(*case.uses, Use("gaussian", {"sigma": 2.0}))
    ),
    "every use twice": lambda case: replace(case, uses=case.uses * 2),
}


def record_of(case: Case) -> dict[str, object]:
    return {"plan": declared(case).to_dict(), "guarantee": {"delta": case.delta}}


def require_sound(proof: checker.Proof, case: Case) -> None:
    """That δ at the proved ε is not below what the oracle finds."""
    if proof.epsilon is None:
        return
    curve = truth(case, case.delta)
    assert curve is not None
    assert curve.lower(float(proof.epsilon) * (1 + 1e-12)) <= case.delta


@pytest.fixture(scope="module")
def witnesses() -> dict[str, object]:
    return {
        name: json.loads(json.dumps(witness_of(declared(case), guarantee(declared(case), DELTA))))
        for name, case in CASES.items()
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("edit", EDITS)
def test_an_old_witness_proves_nothing_false_of_an_edited_plan(name, edit, witnesses):
    case = EDITS[edit](CASES[name])
    proof = checker.prove(record_of(case) | {"witness": witnesses[name]})
    require_sound(proof, case)
    without = {key: value for key, value in witnesses[name].items() if key != "epsilon"}
    require_sound(checker.prove(record_of(case) | {"witness": without}), case)


def _one_way(pair_of: type) -> Callable[..., tuple[object, object]]:
    def directed(self: PoissonAmplification, pair: object) -> tuple[object, object]:
        return pair_of(pair, self.rate), pair_of(pair, self.rate)

    return directed


def _weaker(share: float) -> Callable[..., tuple[object, object]]:
    def directed(self: PoissonAmplification, pair: object) -> tuple[object, object]:
        rate = self.rate * share
        return RemovedPair(pair, rate), AddedPair(pair, rate)  # type: ignore[arg-type]

    return directed


def _costless(self: PoissonAmplification, pair: object) -> tuple[object, object]:
    return PlainPair(GaussianPair(1e-9)), PlainPair(GaussianPair(1e-9))


def _share(kind: type, share: float) -> object:
    made = kind.pair
    return lambda self, sensitivity: made(self, sensitivity * share)


def _stated(share: float) -> Callable[..., object]:
    """What is stated in place of what was found."""
    found = guarantees.guarantee

    def stated(plan: object, delta: float) -> object:
        whole = found(plan, delta)  # type: ignore[arg-type]
        return replace(whole, epsilon=whole.epsilon * share)

    return stated


MUTANTS: dict[str, tuple[object, str, object]] = {
    "the add direction is dropped": (PoissonAmplification, "directed", _one_way(RemovedPair)),
    "the remove direction is dropped": (PoissonAmplification, "directed", _one_way(AddedPair)),
    "a tenth of the rate": (PoissonAmplification, "directed", _weaker(0.1)),
    "a percent less of the rate": (PoissonAmplification, "directed", _weaker(0.99)),
    "another law from a cache": (PoissonAmplification, "directed", _costless),
    "half the sensitivity": (Gaussian, "pair", _share(Gaussian, 0.5)),
    "a percent less of the sensitivity": (Gaussian, "pair", _share(Gaussian, 0.99)),
    "half the sensitivity of Laplace": (Laplace, "pair", _share(Laplace, 0.5)),
    "a third of the loss": (Laplace, "pair", lambda self, s: LaplacePair(s / self.scale / 3)),
    "no cost at all": (Laplace, "pair", lambda self, s: LaplacePair(1e-9)),
    "a percent less is stated": (guarantees, "guarantee", _stated(0.99)),
    "nothing is stated": (guarantees, "guarantee", _stated(0.0)),
    "half is stated": (guarantees, "guarantee", _stated(0.5)),
}


def concerns(owner: object, case: Case) -> bool:
    """Whether a mutant of it changes what the engine makes of the case."""
    kinds = {Gaussian: "gaussian", Laplace: "laplace"}
    if owner is PoissonAmplification:
        return any(use.rate is not None for use in case.uses)
    return owner not in kinds or any(use.kind == kinds[owner] for use in case.uses)


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        pytest.param(mutant, name, marks=pytest.mark.pages if name in LONG else ())
        for mutant, (owner, *_) in MUTANTS.items()
        for name, case in CASES.items()
        if concerns(owner, case)
    ],
)
def test_an_engine_that_errs_makes_no_false_proof(name, mutant):
    owner, attribute, wrong = MUTANTS[mutant]
    case = CASES[name]
    with mock.patch.object(owner, attribute, wrong):
        found = guarantees.guarantee(declared(case), DELTA)
        witness = witness_of(declared(case), found)
    proof = checker.prove(record_of(case) | {"witness": json.loads(json.dumps(witness))})
    require_sound(proof, case)
    assert proof.epsilon is not None, proof.reason


@pytest.mark.pages
def test_the_mutants_are_unsound():
    """Each understates some case, so that there is something to be found."""
    for mutant, (owner, attribute, wrong) in MUTANTS.items():
        understated = []
        for case in CASES.values():
            with mock.patch.object(owner, attribute, wrong):
                found = guarantees.guarantee(declared(case), DELTA)
            curve = truth(case, DELTA)
            assert curve is not None
            understated.append(curve.lower(found.epsilon) > DELTA)
        assert any(understated) or mutant == "the add direction is dropped", mutant
