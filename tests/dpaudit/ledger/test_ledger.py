import json

import numpy as np
import pytest
from examples import LAPLACE, gaussian_invocation, response_plan

from dpaudit import Laplace, Ledger, Plan
from dpaudit.accounting import guarantee
from dpaudit.errors import BudgetExceededError, ClosedLedgerError, InputError, PlanMismatchError
from dpaudit.mechanisms import BinaryTree, ContinualGaussian


def open_ledger(plan=None, **options):
    return Ledger(plan or response_plan(), rng=np.random.default_rng(1), **options)


def test_release_is_the_mechanism_with_the_ledgers_noise():
    value = open_ledger().release(LAPLACE, 1.5, unit="ann", at="answer")
    assert value == LAPLACE.release(1.5, np.random.default_rng(1))


def test_undeclared_and_different_invocations_are_refused_before_noise():
    ledger = open_ledger()
    with pytest.raises(PlanMismatchError, match="'question' is not declared"):
        ledger.release(LAPLACE, 1.0, unit="ann", at="question")
    with pytest.raises(PlanMismatchError, match=r"declares Laplace\(scale=4.0"):
        ledger.release(Laplace(2.0), 1.0, unit="ann", at="answer")
    assert len(ledger) == 0
    assert ledger.release(LAPLACE, 1.5, unit="ann") == LAPLACE.release(
        1.5, np.random.default_rng(1)
    )


def test_a_user_who_answers_twice_is_refused_or_charged_twice():
    ledger = open_ledger()
    ledger.release(LAPLACE, 1.0, unit="ann", at="answer")
    with pytest.raises(PlanMismatchError, match="response 'ann' has been charged that often"):
        ledger.release(LAPLACE, 1.0, unit="ann", at="answer")
    twice = open_ledger(response_plan(count=2, total=3))
    for user in ("ann", "ann", "bob"):
        twice.release(LAPLACE, 1.0, unit=user, at="answer")
    assert guarantee(twice.spent()).epsilon == 2.0
    assert guarantee(twice.plan).epsilon == 2.0


def test_distinct_users_compose_in_parallel():
    ledger = open_ledger()
    for user in ("ann", "bob", "cid"):
        ledger.release(LAPLACE, 1.0, unit=user, at="answer")
    ledger.check()
    spent = ledger.spent()
    assert len(spent.invocations) == 1
    assert spent.invocations[0].total == 3
    assert guarantee(spent).epsilon == 1.0


def test_too_many_and_too_few_releases_are_named():
    ledger = open_ledger()
    for user in "abc":
        ledger.release(LAPLACE, 0.0, unit=user, at="answer")
    with pytest.raises(PlanMismatchError, match="declared 3 times in all"):
        ledger.release(LAPLACE, 0.0, unit="d", at="answer")
    with (
        pytest.raises(PlanMismatchError, match="declared 3 times and ran 1 times"),
        open_ledger() as ledger,
    ):
        ledger.release(LAPLACE, 0.0, unit="a", at="answer")


def test_bad_values_leave_no_trace():
    ledger = open_ledger()
    for value in (float("nan"), "x", None):
        with pytest.raises(InputError):
            ledger.release(LAPLACE, value, unit="ann", at="answer")
    assert len(ledger) == 0
    with pytest.raises(PlanMismatchError, match="nothing has been released"):
        ledger.spent()


def test_closed_ledgers_take_nothing():
    ledger = open_ledger()
    ledger.close()
    ledger.close()
    with pytest.raises(ClosedLedgerError):
        ledger.release(LAPLACE, 0.0, unit="ann", at="answer")


def test_budget_is_asked_before_noise_is_drawn():
    class Nothing:
        def admit(self, invocation):
            raise BudgetExceededError(f"{invocation.describe()} would exceed the budget.")

    ledger = open_ledger().within(Nothing())
    state = ledger.noise._rng.bit_generator.state
    with pytest.raises(BudgetExceededError, match="laplace at 'answer'"):
        ledger.release(LAPLACE, 0.0, unit="ann", at="answer")
    assert ledger.noise._rng.bit_generator.state == state
    assert len(ledger) == 0
    with pytest.raises(InputError, match="cannot be replaced or undone"):
        ledger.within(Nothing())


def test_releases_that_touch_everybody_add_to_every_unit():
    everyone = gaussian_invocation(at="mean")
    own = gaussian_invocation(sigma=2.0, at="own", total=2)
    ledger = open_ledger(Plan.of(everyone, own))
    ledger.release(everyone.mechanism, [1.0, 2.0], at="mean")
    for user in ("ann", "bob"):
        ledger.release(own.mechanism, 0.0, unit=user, at="own")
    spent = ledger.spent()
    assert len(spent.by_unit()) == 1
    expected = guarantee(Plan.of(everyone, gaussian_invocation(sigma=2.0)), 1e-5).epsilon
    assert guarantee(spent, 1e-5).epsilon == pytest.approx(expected)


def test_journal_holds_places_and_units_but_no_values(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with open_ledger(journal=path) as ledger:
        for user, value in zip("abc", (1.25, -1.75, 0.375), strict=True):
            ledger.release(LAPLACE, value, unit=user, at="answer")
    text = path.read_text()
    assert not any(value in text for value in ("1.25", "-1.75", "0.375"))
    entry = json.loads(text.splitlines()[1])
    assert entry["at"] == "answer"
    assert entry["unit"] == "a"
    assert __name__.rpartition(".")[2] in entry["source"]


def test_a_stream_is_one_invocation_and_ends_where_declared():
    mechanism = ContinualGaussian(sigma=2.0, factorization=BinaryTree(steps=3))
    ledger = open_ledger(Plan.of(gaussian_invocation(mechanism=mechanism, at="sums")))
    stream = ledger.stream(mechanism, (2,), at="sums")
    released = [stream.add([1.0, 0.0]) for _ in range(3)]
    expected = mechanism.release([[1.0, 0.0]] * 3, np.random.default_rng(1))
    np.testing.assert_allclose(released, expected)
    with pytest.raises(InputError, match="3"):
        stream.add([0.0, 0.0])
    ledger.check()
    with pytest.raises(PlanMismatchError, match="charged that often"):
        ledger.stream(mechanism, (2,), at="sums")


def test_releases_that_touch_everybody_count_for_every_unit():
    """One after the other, in any order, nobody is charged more than is declared."""
    ledger = open_ledger()
    ledger.release(LAPLACE, 1.0)
    with pytest.raises(PlanMismatchError, match="response 'ann'"):
        ledger.release(LAPLACE, 1.0, unit="ann")
    ledger = open_ledger()
    ledger.release(LAPLACE, 1.0, unit="ann")
    with pytest.raises(PlanMismatchError, match="any one unit"):
        ledger.release(LAPLACE, 1.0)
    assert guarantee(ledger.spent()).epsilon == 1.0


def test_a_local_value_of_more_entries_than_declared_is_refused():
    ledger = open_ledger()
    with pytest.raises(InputError, match="value has 2000 entries, which can move by 8000"):
        ledger.release(LAPLACE, np.full(2000, 1.0), unit="ann")
    with pytest.raises(InputError, match="value is empty"):
        ledger.release(LAPLACE, [], unit="ann")
    assert len(ledger) == 0


@pytest.mark.parametrize("unit", [3, np.int64(3), ("a", 1), [1], "", "\ud800", 1.5, True])
def test_units_are_names(unit, tmp_path):
    ledger = open_ledger(journal=tmp_path / "ledger.jsonl")
    state = ledger.noise._rng.bit_generator.state
    with pytest.raises(InputError, match="unit"):
        ledger.release(LAPLACE, 1.0, unit=unit)
    ledger.close()
    assert ledger.noise._rng.bit_generator.state == state
    assert len(ledger) == 0


def test_ledgers_are_of_plans_and_generators():
    with pytest.raises(InputError, match="plan is None"):
        Ledger(None)
    with pytest.raises(InputError, match="rng is 5"):
        Ledger(response_plan(), rng=5)
