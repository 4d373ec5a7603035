import json

import numpy as np
import pytest
from examples import LAPLACE, gaussian_invocation, response_plan

from dpaudit import Durability, FloatNoise, Laplace, Ledger, Plan
from dpaudit.accounting import guarantee
from dpaudit.base.errors import (
    BudgetExceededError,
    ClosedLedgerError,
    InputError,
    JournalError,
    PlanMismatchError,
)
from dpaudit.ledger import read_journal
from dpaudit.mechanisms import BinaryTree, ContinualGaussian


def open_ledger(plan=None, **options):
    return Ledger(plan or response_plan(), rng=np.random.default_rng(1), **options)


def test_release_is_the_mechanism_with_the_ledgers_noise():
    value = open_ledger().release(LAPLACE, 1.5, unit="ann", at="answer")
    assert value == LAPLACE.release(1.5, np.random.default_rng(1))


def test_undeclared_and_different_invocations_are_refused_before_noise():
    ledger = open_ledger()
    with pytest.raises(PlanMismatchError, match=r"a label that is not declared; .* 'answer'"):
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
    with pytest.raises(PlanMismatchError, match="this one has been charged that often"):
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

    ledger = open_ledger(budget=Nothing())
    state = ledger.noise._rng.bit_generator.state
    with pytest.raises(BudgetExceededError, match="laplace at 'answer'"):
        ledger.release(LAPLACE, 0.0, unit="ann", at="answer")
    assert ledger.noise._rng.bit_generator.state == state
    assert len(ledger) == 0


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
    mechanism = ContinualGaussian(sigma=2.0, factorization=BinaryTree(steps=3), participations=1)
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
    with pytest.raises(PlanMismatchError, match="this one has been charged"):
        ledger.release(LAPLACE, 1.0, unit="ann")
    ledger = open_ledger()
    ledger.release(LAPLACE, 1.0, unit="ann")
    with pytest.raises(PlanMismatchError, match="any one unit"):
        ledger.release(LAPLACE, 1.0)
    assert guarantee(ledger.spent()).epsilon == 1.0


def test_a_local_value_of_more_entries_than_declared_is_refused():
    ledger = open_ledger()
    with pytest.raises(InputError, match="a value of 2000 entries moves by up to 8000"):
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
    with pytest.raises(InputError, match="plan is a NoneType; it must be a Plan"):
        Ledger(None)
    with pytest.raises(InputError, match="rng is a int"):
        Ledger(response_plan(), rng=5)


# -- what is private stays private, and what is odd stays outside ----------------------------------


class Treacherous:
    """A value that asks for a release while it is converted."""

    def __init__(self, ledger):
        self.ledger, self.inner = ledger, None

    def __array__(self, dtype=None, copy=None):
        self.inner = self.ledger.release(LAPLACE, 1.0, unit="bob")
        return np.array(0.5)


def test_a_value_that_releases_is_one_more_release():
    ledger = open_ledger()
    value = Treacherous(ledger)
    ledger.release(LAPLACE, value, unit="ann")
    assert value.inner is not None
    assert [entry.unit for entry in ledger] == ["bob", "ann"]


def test_a_mechanism_that_releases_while_it_draws_is_refused():
    class Nested(Laplace):
        kind = "nested-laplace"

        def sample(self, values, rng):
            return ledger.release(self, 1.0, at="inner")

    nested = Nested(4.0, clip=(-2.0, 2.0))
    outer = gaussian_invocation(mechanism=nested, at="outer")
    ledger = open_ledger(Plan.of(outer, gaussian_invocation(mechanism=nested, at="inner")))
    with pytest.raises(InputError, match="another one is being made"):
        ledger.release(nested, 1.0, at="outer")


def test_a_value_that_changes_after_the_check_does_not_matter():
    value = np.array(1.5)

    class Changing:
        def admit(self, invocation):
            value[()] = 1e9

    ledger = open_ledger(response_plan(count=3), budget=Changing())
    assert ledger.release(LAPLACE, value, unit="ann") == LAPLACE.release(
        1.5, np.random.default_rng(1)
    )


@pytest.mark.parametrize("unit", ["text", "hash"])
def test_units_of_odd_types_are_refused(unit):
    class Shifty(str):
        __slots__ = ()

        def __hash__(self):
            return id(self)

        def __eq__(self, other):
            return self is other

    ledger = open_ledger()
    with pytest.raises(InputError, match="unit is a Shifty"):
        ledger.release(LAPLACE, 0.0, unit=Shifty(unit))
    ledger.release(LAPLACE, 0.0, unit=np.array(["ann"])[0])
    assert [type(entry.unit) for entry in ledger] == [str]


SECRETS = ["HIV+ positive", ["HIV+"], {"HIV+": 1}, b"HIV+", object(), 3j, [[1.0], [1.0, 2.0]]]


@pytest.mark.parametrize("value", SECRETS, ids=lambda value: type(value).__name__)
def test_no_error_shows_a_value(value):
    with pytest.raises(InputError, match="value is of type") as caught:
        open_ledger().release(LAPLACE, value, unit="ann")
    assert "HIV" not in str(caught.value)
    error = caught.value
    while error is not None:
        assert "HIV" not in repr(error)
        error = error.__context__


def test_each_of_several_units():
    ledger = open_ledger(response_plan(total=4))
    drawn = ledger.release_each(LAPLACE, [1.5, 1.0, 0.5], units=["ann", "bob", "cid"])
    rng = np.random.default_rng(1)
    assert drawn == [LAPLACE.release(value, rng) for value in (1.5, 1.0, 0.5)]
    assert [entry.unit for entry in ledger] == ["ann", "bob", "cid"]
    for values, units, message in [
        ([1.0], ["ann"], "this one has been charged"),
        ([1.0, 1.0], ["dan", "dan"], "this one has been charged"),
        ([1.0, 1.0], ["dan", "eve"], "4 times in all"),
        ([1.0, 1.0], ["dan"], "2 entries and units 1"),
        ([1.0, np.nan], ["dan", "eve"], "NaN"),
    ]:
        with pytest.raises((InputError, PlanMismatchError), match=message):
            ledger.release_each(LAPLACE, values, units=units)
    assert len(ledger) == 3


def test_a_journal_that_cannot_be_written_closes_the_ledger(tmp_path, monkeypatch):
    ledger = open_ledger(journal=tmp_path / "ledger.jsonl")
    ledger.release(LAPLACE, 1.0, unit="ann")
    state = ledger.noise._rng.bit_generator.state

    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        with pytest.raises(JournalError, match="No space left"):
            ledger.release(LAPLACE, 1.0, unit="bob")
    assert ledger.noise._rng.bit_generator.state == state
    with pytest.raises(ClosedLedgerError, match="its journal was not written"):
        ledger.release(LAPLACE, 1.0, unit="cid")
    assert [entry.unit for entry in ledger] == ["ann"]


@pytest.mark.parametrize("durability", list(Durability))
def test_the_line_is_there_before_the_noise_is(tmp_path, durability):
    path = tmp_path / "ledger.jsonl"

    class Looking(FloatNoise):
        def release(self, entry, value):
            seen.append(len(read_journal(path).releases))
            return super().release(entry, value)

    seen = []
    ledger = Ledger(response_plan(), noise=Looking(), journal=path, durability=durability)
    for user in "abc":
        ledger.release(LAPLACE, 0.0, unit=user)
    assert seen == [1, 2, 3]


def test_all_lines_of_a_batch_are_there_before_any_noise_is(tmp_path):
    path, seen = tmp_path / "ledger.jsonl", []

    class Looking(FloatNoise):
        def release(self, entry, value):
            seen.append(len(read_journal(path).releases))
            return super().release(entry, value)

    class Together(Looking):
        def release_each(self, entries, values):
            return [self.release(*each) for each in zip(entries, values, strict=True)]

    for number, noise in enumerate((Looking(), Together())):
        path = tmp_path / f"ledger {number}.jsonl"
        ledger = Ledger(response_plan(), noise=noise, journal=path)
        ledger.release_each(LAPLACE, [0.0] * 3, units="abc")
    assert seen == [3] * 6


def test_the_seed_of_an_interrupted_run_repeats_no_noise(tmp_path):
    path = tmp_path / "ledger.jsonl"
    whole = open_ledger(response_plan(total=9))
    expected = {whole.release(LAPLACE, 0.0, unit=f"user {user}") for user in range(9)}
    first = open_ledger(response_plan(total=9), journal=path)
    drawn = [first.release(LAPLACE, 0.0, unit=f"user {user}") for user in range(3)]
    assert set(drawn) < expected
    first.journal.release()
    for start in (3, 6):
        again = Ledger.resume(path, rng=np.random.default_rng(1))
        assert again.seeded
        drawn += [again.release(LAPLACE, 0.0, unit=f"user {start + user}") for user in range(3)]
        again.journal.release()
    assert len(set(drawn)) == 9
    assert not set(drawn[3:]) & expected


def test_noise_of_a_seed_is_not_forgotten_by_who_goes_on_without_one(tmp_path):
    path = tmp_path / "ledger.jsonl"
    first = open_ledger(journal=path)
    first.release(LAPLACE, 0.0, unit="ann", at="answer")
    first.journal.release()
    again = Ledger.resume(path, noise=FloatNoise())
    again.release(LAPLACE, 0.0, unit="bob", at="answer")
    assert again.seeded
    again.journal.release()
    assert Ledger.resume(path, noise=FloatNoise()).seeded
