"""Generators of noise that code takes in hand."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats

from dpaudit import AddRemove, FloatNoise, Laplace, Ledger, Plan, PlanMismatchError, PrivacyUnit
from dpaudit.observing import noting, through
from dpaudit.plan import Invocation, TrustModel

FRESH = np.random.default_rng


def rules(code, library="numpy"):
    with noting(AddRemove(), library) as notes:
        code()
    return [each.rule for each in notes.findings]


def drawn(rng):
    return 3.0 + rng.laplace(scale=2.0)


def legacy():
    return 3.0 + np.random.laplace(scale=2.0)  # noqa: NPY002


def after(handle):
    """Noise of a fresh generator that is handled then."""

    def code():
        rng = np.random.default_rng()
        drawn(rng)
        handle(rng)

    return code


def around(handle):
    """Noise of the shared generator that is handled before."""

    def code():
        handle()
        legacy()

    return code


SEEDED = {
    "a number": lambda: drawn(np.random.default_rng(7)),
    "a drawn number": lambda: drawn(np.random.default_rng(np.random.randint(2**31))),  # noqa: NPY002
    "a sequence": lambda: drawn(np.random.default_rng(np.random.SeedSequence())),
    "a child of a seeded one": lambda: drawn(np.random.default_rng(7).spawn(1)[0]),
    "the shared one": around(lambda: np.random.seed(7)),  # noqa: NPY002
    "of scipy": lambda: 3.0 + stats.laplace.rvs(scale=2.0, random_state=7),
    "of a frozen law": lambda: 3.0 + stats.laplace(scale=2.0).rvs(random_state=7),
}
IN_HAND = {
    "state": after(lambda rng: rng.bit_generator.state),
    "copy": after(copy.copy),
    "deep copy": after(copy.deepcopy),
    "pickle": after(pickle.dumps),
    "shared state": around(lambda: np.random.get_state()),  # noqa: NPY002
    "shared state set": around(lambda: np.random.set_state(np.random.get_state())),  # noqa: NPY002
}
HONEST = {
    "fresh": lambda: drawn(np.random.default_rng()),
    "a child": lambda: drawn(np.random.default_rng().spawn(1)[0]),
    "shared": legacy,
    "other numbers": after(lambda rng: rng.permutation(5)),
    "of scipy": lambda: 3.0 + stats.laplace.rvs(scale=2.0),
    "of scipy by a generator": lambda: (
        3.0 + stats.norm.rvs(scale=2.0, random_state=np.random.default_rng())
    ),
    "another is seeded": lambda: (
        drawn(np.random.default_rng()),
        np.random.default_rng(7).random(),
    ),
}


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed(name):
    assert rules(SEEDED[name]) == ["generator-seeded"]


@pytest.mark.parametrize("name", IN_HAND)
def test_a_state(name):
    assert rules(IN_HAND[name]) == ["generator-in-hand"]


@pytest.mark.parametrize("name", HONEST)
def test_what_nobody_knows(name):
    assert rules(HONEST[name]) == []


def test_copies_draw_as_they_would():
    with noting(AddRemove(), "numpy"):
        rng = np.random.default_rng(7)
        copied = copy.deepcopy(rng)
        assert copied.random() == rng.random() == FRESH(7).random()


def test_torch():
    torch = pytest.importorskip("torch")

    def noisy(**given):
        return torch.zeros(1) + torch.normal(0.0, 2.0, (1,), **given)

    def told(handle):
        return rules(lambda: (handle(), noisy()), "torch")

    kept = torch.get_rng_state()
    assert told(lambda: torch.manual_seed(7)) == ["generator-seeded"]
    assert told(lambda: torch.random.manual_seed(7)) == ["generator-seeded"]
    assert told(lambda: torch.initial_seed()) == ["generator-in-hand"]
    assert told(lambda: torch.get_rng_state()) == ["generator-in-hand"]
    assert told(lambda: torch.set_rng_state(kept)) == ["generator-in-hand"]
    assert told(lambda: torch.random.fork_rng().__enter__()) == ["generator-in-hand"]
    assert rules(lambda: noisy(generator=torch.Generator()), "torch") == ["generator-seeded"]
    assert told(lambda: torch.randperm(3)) == []
    assert rules(lambda: noisy(generator=torch.default_generator), "torch") == []


def test_diffprivlib():
    tools = pytest.importorskip("diffprivlib.tools")

    def mean(**given):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tools.mean([1.0, 2.0], epsilon=1.0, bounds=(0, 3), **given)

    assert rules(lambda: mean(random_state=7), "diffprivlib") == ["generator-seeded"]
    assert rules(mean, "diffprivlib") == []


@pytest.mark.parametrize("wrong", [True, False])
def test_a_ledger_keeps_a_result_back_whose_noise_is_known(wrong):
    about = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    plan = Plan.of(Invocation(Laplace(2.0), 1.0, *about, at="drawn: laplace"))
    ledger = Ledger(plan, noise=FloatNoise())
    if not wrong:
        with through(ledger, "numpy"):
            drawn(np.random.default_rng())
        return
    block = through(ledger, "numpy")
    with pytest.raises(PlanMismatchError, match="reads the state"), block:
        after(lambda rng: rng.bit_generator.state)()
