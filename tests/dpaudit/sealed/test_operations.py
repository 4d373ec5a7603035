"""What the custodian answers: how far one unit moves it, and what it refuses without rows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from brute_tables import row_hash, rows_of
from effort import examples
from sealed_tables import (
    CARRIERS,
    COLUMNS,
    SECRET,
    UNITS,
    WARDS,
    Asked,
    Texts,
    held,
    random_row,
    random_table,
)

from dpaudit import (
    AddRemove,
    Contribution,
    DiscreteLaplace,
    ExponentialMechanism,
    FixedSizeSampling,
    Gaussian,
    Group,
    Invocation,
    Laplace,
    Membership,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.auditing.replaying.recording import RecordingNoise, ReplayingNoise, Step
from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.ledger import FloatNoise, Ledger
from dpaudit.mechanisms import (
    ContinualGaussian,
    ContinualLaplace,
    Norm,
    RandomizedResponse,
    StableHistogram,
    UnaryEncoding,
)
from dpaudit.mechanisms.choice import Noise, NoisyMax, PermuteAndFlip, TopK
from dpaudit.mechanisms.continual import BinaryTree
from dpaudit.plan import Relation
from dpaudit.sealed.operations import Operations
from dpaudit.sealed.sealable import require_population
from dpaudit.sealed.sums import Steps, are_wider

PERSON = PrivacyUnit("person")
RELATIONS = [AddRemove(), ReplaceOne(), ZeroOut()]
PARTS = ["ward A1", "ward other"]


def bounded(mechanism: Any, bound: float, relation: Relation, at: str, **facts: Any) -> Invocation:
    rows = facts.pop("rows", None)
    return Invocation.bounded(
        mechanism, Contribution(bound, rows), PERSON, relation, TrustModel.CENTRAL, at=at, **facts
    )


def chosen(mechanism: Any, relation: Relation, at: str, **facts: Any) -> Invocation:
    return Invocation(mechanism, 1.0, PERSON, relation, TrustModel.CENTRAL, at=at, **facts)


# -- random programs -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Use:
    """An invocation, and what a program asks for it.

    Attributes:
        invocation: as declared.
        ask: releases of rows by the ledger.
    """

    invocation: Invocation
    ask: Callable[[Asked, Any], Any]


def uses(rng: random.Random, relation: Relation) -> list[Use]:
    """One use of every release, of random bounds."""
    wide = 1 if isinstance(relation, AddRemove) else 2
    bound = rng.choice([0.3, 1.0, 2.5, 7.0, 1e4, 2.0**27, 1e-30])
    rows = rng.choice([None, 1, 2, 5])
    some = rows or 3
    noise = rng.choice([Laplace(2.0), Gaussian(2.0)])
    keys = StableHistogram.calibrated(epsilon=1.0, delta=1e-3, key_sensitivity=wide * some)
    quantile = ExponentialMechanism(1.0, float(some))
    columns = rng.choice(
        [["age", "cost"], ["cost"], ["huge"], ["age", "1", "CASE WHEN sick THEN 2 END"]]
    )
    matrix = [[rng.randint(-2, 2) for _ in columns] for _ in range(3)]

    def linear(asked: Asked, rows: Any) -> Any:
        own = columns if "huge" not in columns else ["age"]
        found = rows.vector(own).linear([line[: len(own)] for line in matrix])
        return found.encode("clip", bound=20).encode("outer") if encoded else found

    encoded = rng.random() < 0.5
    edges = {"column": "age", "edges": [0, 18, 65]}
    return [
        Use(
            bounded(noise, bound, relation, "sum", rows=rows),
            lambda a, r: a.ledger.sum(r.vector(columns), at="sum"),
        ),
        Use(
            bounded(noise, bound, relation, "linear", rows=rows),
            lambda a, r: a.ledger.sum(linear(a, r), at="linear"),
        ),
        Use(
            bounded(noise, bound, relation, "count", rows=rows),
            lambda a, r: a.ledger.count(r, at="count"),
        ),
        Use(
            bounded(rng.choice([noise, DiscreteLaplace(2.0)]), 2.0, relation, "cells", rows=rows),
            lambda a, r: a.ledger.histogram(r, ["ward", edges], at="cells"),
        ),
        Use(
            bounded(quantile, 1.0, relation, "quantile", rows=some),
            lambda a, r: a.ledger.quantile(r.vector("age"), 0.3, [0, 18, 65], at="quantile"),
        ),
        Use(
            bounded(keys, 1.0, relation, "keys", rows=some),
            lambda a, r: a.ledger.stable_histogram(r, "town", at="keys"),
        ),
        Use(
            chosen(NoisyMax(1.0, float(some), noise=Noise.LAPLACE), relation, "choose"),
            lambda a, r: a.ledger.choose(r.group_rows(some), "ward", at="choose"),
        ),
    ]


def narrowed(rng: random.Random) -> Callable[[Any], Any]:
    """A random pipeline, the same for every table."""
    steps: list[Callable[[Any], Any]] = [
        lambda rows: rows.filter("age >= 18 OR sick"),
        lambda rows: rows.filter("town <> 'Ulm'"),
        lambda rows: rows.with_columns(half="age * 0.5").filter("half < 40"),
        lambda rows: rows.group_rows(3),
    ]
    picked = rng.sample(steps, rng.randint(0, 3))

    def of(rows: Any) -> Any:
        for step in picked:
            rows = step(rows)
        return rows

    return of


def neighbour(rng: random.Random, rows: Sequence[Texts], relation: Relation) -> list[Texts]:
    """The rows with one unit removed, replaced, or without what it contributes."""
    names = sorted({row["who"] for row in rows if row["who"]})
    unit = rng.choice(names)
    kept = [row for row in rows if row["who"] != unit]
    if isinstance(relation, ReplaceOne):
        extreme = rng.random() < 0.5
        again = [random_row(rng, unit) for _ in range(rng.choice([1, 1, 7]))]
        if extreme:
            again = [row | {"age": "-5", "cost": "-50", "huge": f"-{2**53}"} for row in again]
        return kept + again
    return kept  # whose contribution is zero is in no sum


def distance(one: Step, other: Step) -> Fraction | float:
    """How far two values before noise lie apart, exactly where they are bounded sums."""
    if one.invocation.contribution is None or one.invocation.mechanism.norm == "change":
        return one.distance(other)
    moved = [
        Fraction(float(a)) - Fraction(float(b))
        for a, b in zip(np.ravel(one.value), np.ravel(other.value), strict=True)
    ]
    if one.invocation.mechanism.norm == "l1":
        return sum(map(abs, moved), Fraction(0))
    squares = sum((each * each for each in moved), Fraction(0))
    bound = Fraction(one.invocation.sensitivity)
    return bound if squares <= bound**2 else math.inf


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("seed", range(examples(8, 200)))
def test_one_unit_moves_no_release_by_more_than_declared(
    seed: int, relation: Relation, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    rows = [*random_table(rng), random_row(rng, "p1")]
    every = uses(rng, relation)
    plan = Plan.of(*(use.invocation for use in every))
    pipeline, beside = narrowed(rng), neighbour(rng, rows, relation)

    def released(table: Sequence[Texts], noise: Any) -> list[Step]:
        with held(tmp_path, table, plan, noise=noise) as asked:
            for use in every:
                use.ask(asked, pipeline(asked.data))
            return asked.steps

    first = released(rows, RecordingNoise(np.random.default_rng(0)))
    second = released(beside, ReplayingNoise(np.random.default_rng(0), first))
    assert len(first) == len(second) == len(every)
    for one, other in zip(first, second, strict=True):
        assert distance(one, other) <= Fraction(one.invocation.sensitivity), one.place


def test_how_far_answers_may_differ_is_not_rounded() -> None:
    low, high = np.array(-1.0), np.array(2.0**-60)
    assert float(high - low) == 1.0
    assert are_wider(1.0, Norm.L1, low, high)


# -- groups ----------------------------------------------------------------------------------------


def by_ward(relation: Relation, membership: Membership = Membership.VALUE) -> Plan:
    return Plan.of(
        *(
            bounded(Laplace(2.0), 1.0, relation, ward, group=Group(ward, membership))
            for ward in WARDS
        )
    )


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("seed", range(examples(5, 100)))
def test_a_unit_is_in_one_group_and_moves_one_or_two(
    seed: int, relation: Relation, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    rows = [*random_table(rng), random_row(rng, "p1")]
    beside = neighbour(rng, rows, relation)

    def counts(table: Sequence[Texts]) -> list[float]:
        with held(tmp_path, table, by_ward(relation)) as asked:
            for ward, own in asked.data.partition("ward").items():
                asked.ledger.count(own.filter("age IS NOT NULL OR true"), at=ward)
            return [float(step.value) for step in asked.steps]

    moved = [abs(a - b) for a, b in zip(counts(rows), counts(beside), strict=True)]
    declared = 1 if not relation.replaces and not isinstance(relation, ZeroOut) else 2
    assert sum(each > 0 for each in moved) <= declared
    assert max(moved) <= 1


def test_groups_are_by_value_and_cost_two_where_a_unit_is_replaced(tmp_path: Path) -> None:
    assert [len(each) for each in by_ward(AddRemove()).by_unit()] == [1, 1, 1]
    assert [len(each) for each in by_ward(ReplaceOne()).by_unit()] == [2]
    with (
        pytest.raises(InputError, match=r"declare Group\(name, Membership.VALUE\)"),
        held(tmp_path, [], by_ward(AddRemove(), Membership.POSITION)),
    ):
        pass


def test_groups_by_position_are_of_named_units(tmp_path: Path) -> None:
    plan = Plan.of(
        *(
            Invocation(
                Laplace(1.0),
                2.0,
                PERSON,
                ReplaceOne(),
                TrustModel.JOINT,
                group=Group(place),
                at=place,
            )
            for place in ("first", "then")
        )
    )
    rows = [{"who": unit, "age": str(age)} for unit, age in (("a", 1), ("b", 1), ("c", 90))]
    with held(tmp_path, rows, plan, roster=["a", "b", "c"]) as asked:
        ages, ledger = asked.data.vector("age"), asked.ledger
        for wrong in (
            lambda: ledger.sum(ages, at="first"),
            lambda: ledger.count(asked.data, at="first"),
        ):
            with pytest.raises(PlanMismatchError, match="name its units"):
                wrong()
        counted = asked.answer("count", of=0, at="first", units=["a"])  # which names nobody there
        assert counted["kind"] == "PlanMismatchError"
        ledger.sum(ages, units=["a", "c"], at="first")
        with pytest.raises(PlanMismatchError, match="was named for another"):
            ledger.sum(ages, units=["a", "b"], at="then")
        ledger.sum(ages, units=["b"], at="then")
        found = [float(step.value) for step in asked.steps]
        assert found == pytest.approx([2.0, 1.0], abs=1e-7)  # 1, and 90 that counts as 1


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_groups_are_all_by_value_or_all_by_position(relation: Relation, tmp_path: Path) -> None:
    """A unit of a ward could else be named for another group too, of which it pays for one."""
    wards, named = Group(WARDS[0], Membership.VALUE), Group("named")
    plan = Plan.of(
        bounded(Laplace(2.0), 1.0, relation, "ward", group=wards),
        bounded(Laplace(2.0), 1.0, relation, "named", group=named),
    )
    with (
        pytest.raises(InputError, match="by value or by position"),
        held(tmp_path, [], plan, roster=["a"]),
    ):
        pass


def answered(group: Group) -> Invocation:
    own = Laplace(2.0, clip=(0.0, 1.0))
    about = PERSON, ReplaceOne(), TrustModel.LOCAL
    return Invocation(own, 1.0, *about, at="own", group=group, total=2)


def test_who_answers_for_a_group_is_in_no_sum_of_another(tmp_path: Path) -> None:
    central = bounded(Laplace(2.0), 1.0, ReplaceOne(), "sum", group=Group("other"))
    plan = Plan.of(answered(Group("answering")), central)
    with held(tmp_path, [], plan, roster=["a", "b"]) as asked:
        ages, ledger = asked.data.vector("age"), asked.ledger
        ledger.answers(ages, units=["a"], at="own")
        with pytest.raises(PlanMismatchError, match="'a' is named for group other"):
            ledger.sum(ages, units=["a", "b"], at="sum")
        ledger.sum(ages, units=["b"], at="sum")
        with pytest.raises(PlanMismatchError, match="'b' is named for group answering"):
            ledger.answers(ages, units=["b"], at="own")
    with (
        pytest.raises(InputError, match="by value; who answers is named"),
        held(tmp_path, [], Plan.of(answered(Group("A1", Membership.VALUE))), roster=["a"]),
    ):
        pass


def test_there_is_one_partition_and_each_key_has_its_label(tmp_path: Path) -> None:
    rows = [{"who": "a", "ward": "A1", "age": "3"}, {"who": "b", "ward": "Ünï", "age": "5"}]
    with held(tmp_path, rows, by_ward(AddRemove())) as asked:
        parts = asked.data.partition("ward", ["A1", "Ünï"])
        assert list(asked.data.partition("ward")) == WARDS  # the same one, with other keys
        with pytest.raises(PlanMismatchError, match="rows of that key"):
            asked.ledger.count(parts["A1"], at="Ünï")
        with pytest.raises(PlanMismatchError, match="rows of that key"):
            asked.ledger.count(asked.data, at="Ünï")
        for rows_of in (asked.data.filter("age > 3"), asked.data.group_rows(1)):
            with pytest.raises(InputError, match="already partitioned"):
                rows_of.partition("ward")
        with pytest.raises(InputError, match="some units only"):
            parts["A1"].partition("ward")
        asked.ledger.count(parts["A1"].filter("age > 3"), at="A1")
        assert [float(step.value) for step in asked.steps] == [0.0]
    with held(tmp_path, rows, by_ward(AddRemove())) as asked:
        assert list(asked.data.partition("age", [3, 5])) == [3, 5]


def test_rows_that_are_held_are_divided_anew_in_each_run(tmp_path: Path) -> None:
    rows = [{"who": "a", "ward": "A1", "age": "3"}, {"who": "b", "ward": "Ünï", "age": "5"}]
    with held(tmp_path, rows, by_ward(AddRemove())) as asked:
        for column in ("ward", "age"):
            sides = asked.operations.trials, asked.operations.real
            table = SimpleNamespace(roster=(), known=asked.operations._handles[0].known)
            again = Operations(asked.ledger.plan, table, *sides)
            said = again.answer({"op": "partition", "of": 0, "column": column, "keys": None})
            wanted = WARDS if column == "ward" else []
            assert [key for key, _ in said.get("value", [])] == wanted
            keys = {"op": "partition", "of": 0, "column": "age", "keys": [3]}
            assert ("value" in again.answer(keys)) is (column == "age")


# -- samples ---------------------------------------------------------------------------------------


def test_a_sample_serves_one_release_at_its_label_and_its_units_alone_count(
    tmp_path: Path,
) -> None:
    rows = [{"who": f"u{n}", "age": str(n)} for n in range(20) for _ in range(n % 3)]
    plan = Plan.of(
        bounded(Laplace(1.0), 5.0, AddRemove(), "a", count=2, sampling=PoissonSampling(0.5)),
        bounded(Laplace(1.0), 5.0, AddRemove(), "b", sampling=PoissonSampling(0.5)),
        bounded(Laplace(1.0), 5.0, AddRemove(), "c"),
    )
    with held(tmp_path, rows, plan) as asked:
        drawn = asked.ledger.sample(asked.data, at="a")
        for wrong, at in ((drawn, "b"), (drawn, "c"), (asked.data, "a")):
            with pytest.raises(PlanMismatchError, match="its own last sample"):
                asked.ledger.count(wrong, at=at)
        with pytest.raises(InputError, match="already a sample"):
            asked.ledger.sample(drawn, at="b")
        with pytest.raises(PlanMismatchError, match="has not been released yet"):
            asked.ledger.sample(asked.data, at="a")
        asked.ledger.count(drawn.filter("age >= 0"), at="a")
        (step,) = asked.steps
        assert step.sample is not None
        held_rows = {f"u{n}": n % 3 for n in range(20)}
        assert float(step.value) == sum(
            held_rows[unit] for unit, took in step.sample.items() if took
        )
        with pytest.raises(PlanMismatchError):
            asked.ledger.count(drawn, at="a")
        asked.ledger.count(asked.ledger.sample(asked.data, at="a"), at="a")
        with pytest.raises(PlanMismatchError):
            asked.ledger.count(drawn, at="a")


def test_a_part_of_a_sample_is_of_those_who_were_drawn(tmp_path: Path) -> None:
    rows = [{"who": f"u{n}", "ward": WARDS[n % 2]} for n in range(40)]
    each = [
        bounded(
            Laplace(1.0),
            1.0,
            ReplaceOne(),
            ward,
            group=Group(ward, Membership.VALUE),
            sampling=FixedSizeSampling(10, 40),
        )
        for ward in WARDS[:2]
    ]
    with held(tmp_path, rows, Plan.of(*each)) as asked:
        for ward, own in asked.data.partition("ward", WARDS[:2]).items():
            asked.ledger.count(asked.ledger.sample(own, at=ward), at=ward)
        for ward, step in zip(WARDS, asked.steps, strict=False):
            assert step.sample is not None
            wards = {row["who"]: row["ward"] for row in rows}
            took = [unit for unit, drawn in step.sample.items() if drawn]
            assert len(took) == 10
            assert float(step.value) == sum(wards[unit] == ward for unit in took)


def drawn_of(relation: Relation, size: int, population: int) -> Plan:
    sampling = FixedSizeSampling(size, population)
    return Plan.of(bounded(Laplace(1.0), 1.0, relation, "s", sampling=sampling, count=9))


@pytest.mark.parametrize("relation", [ReplaceOne(), ZeroOut()], ids=str)
def test_who_has_no_rows_is_of_the_population_that_a_roster_lists(
    relation: Relation, tmp_path: Path
) -> None:
    """A run of one table, and a refusal of its neighbour, would tell them apart."""
    plan, roster = drawn_of(relation, 2, 3), ["a", "b", "c"]
    beside = [{"who": "b"}, {"who": "c"}, {"who": "of no roster"}]
    for rows in ([{"who": "a"}, *beside], beside, []):
        with held(tmp_path, rows, plan, roster=roster) as asked:
            require_population(plan, len(asked.operations.real.store.units()))
            for _ in range(9):
                asked.ledger.count(asked.ledger.sample(asked.data, at="s"), at="s")
            present = {row["who"] for row in rows} & {*roster}
            for step in asked.steps:
                assert step.sample is not None
                took = {unit for unit, drawn in step.sample.items() if drawn}
                assert len(took) == 2
                assert float(step.value) == len(took & present)


def test_samples_of_a_fixed_size_need_a_roster_where_units_are_zeroed(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="list a roster in the table, or declare replace-one"),
        held(tmp_path, [], drawn_of(ZeroOut(), 2, 3)),
    ):
        pass
    with held(tmp_path, [], drawn_of(ReplaceOne(), 2, 3)):
        pass


def test_rows_of_units_that_a_roster_does_not_list_are_of_none(tmp_path: Path) -> None:
    plan = Plan.of(bounded(Laplace(1.0), 5.0, ReplaceOne(), "c"))
    rows = [{"who": "a"}, {"who": "z"}, {"who": "z"}]
    with held(tmp_path, rows, plan, roster=["b", "a"]) as asked:
        asked.ledger.count(asked.data, at="c")
        assert [float(step.value) for step in asked.steps] == [1.0]
        assert "of the roster" in asked.answer("of_units", of=0, units=["z"])["error"]
        assert "error" in asked.answer("of_units", of=0, units=[["a"]])


# -- streams ---------------------------------------------------------------------------------------


def streamed(relation: Relation, law: Any, **facts: Any) -> Plan:
    facts = {"participations": 2, "min_separation": 2} | facts
    mechanism = law(factorization=BinaryTree(6), **facts)
    return Plan.of(Invocation(mechanism, 1.0, PERSON, relation, TrustModel.CENTRAL, at="s"))


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("seed", range(examples(3, 60)))
def test_a_unit_moves_a_stream_at_few_steps_by_little(
    seed: int, law: str, relation: Relation, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    cyclic = rng.choice([None, True])
    made = {
        "gaussian": lambda **f: ContinualGaussian(sigma=1.0, cyclic=cyclic, **f),
        "laplace": lambda **f: ContinualLaplace(scale=1.0, cyclic=cyclic, **f),
    }[law]
    plan = streamed(relation, made)
    mechanism = plan.invocations[0].mechanism
    rows = [*random_table(rng), random_row(rng, "p1")]
    conditions = [rng.choice(["true", "age >= 18", "sick", "false"]) for _ in range(6)]

    def values(table: Sequence[Texts]) -> Any:
        with held(tmp_path, table, plan) as asked:
            stream = asked.ledger.stream((2,), at="s")
            for condition in conditions:
                stream.add(asked.data.filter(condition).vector(["age", "cost"]))
            return np.array([step.value for step in asked.steps])

    one, other = values(rows), values(neighbour(rng, rows, relation))
    apart = [mechanism.norm.length(change) for change in one - other]
    assert max(apart) <= 1.0 + 1e-12
    moved = [step for step, length in enumerate(apart) if length]
    if relation.replaces:  # at the steps of the one, and at those of the other
        assert len(moved) <= 2 * mechanism.participations
    else:
        assert mechanism.may_take_part(moved)


def test_a_unit_that_may_not_take_part_any_more_adds_nothing(tmp_path: Path) -> None:
    rows = [{"who": unit, "age": str(age)} for unit, age in (("a", 1), ("b", 100), ("b", 7))]
    plan = streamed(AddRemove(), lambda **f: ContinualGaussian(sigma=1.0, **f))
    with held(tmp_path, rows, plan) as asked:
        stream = asked.ledger.stream((), at="s")
        every, late = asked.data.vector("1"), asked.data.filter("age = 7").vector("1")
        for vectors in (every, every, every, late, late, every):
            stream.add(vectors)
        found = [round(float(step.value), 6) for step in asked.steps]
        assert found == [2, 0, 2, 0, 0, 0]
        with pytest.raises(InputError, match="steps is 6"):
            stream.add(every)


def test_no_answer_is_a_whole_stream(tmp_path: Path) -> None:
    """Its entries would be steps, at all of which its unit takes part."""
    law = ContinualGaussian(sigma=1.0, factorization=BinaryTree(8), participations=1)
    own = Invocation(law, 1.0, PERSON, ReplaceOne(), TrustModel.LOCAL, at="s")
    columns = {"x": {"type": "number", "range": [-0.17, 0.17], "step": 0.01}}
    rows = [{"who": "a", "x": "0.17"}]
    with held(tmp_path, rows, Plan.of(own), columns=columns, roster=["a"]) as asked:
        with pytest.raises(InputError, match="states by itself how far a unit may move its answer"):
            asked.ledger.answers(asked.data.vector(["x"] * 8), at="s")
        assert not asked.steps


def test_steps_of_a_unit_are_its_own_and_never_fixed(tmp_path: Path) -> None:
    fixed = streamed(ReplaceOne(), lambda **f: ContinualGaussian(sigma=1.0, fixed_steps=True, **f))
    with pytest.raises(InputError, match="leave fixed_steps out"), held(tmp_path, [], fixed):
        pass


@pytest.mark.parametrize("seed", range(examples(4, 60)))
def test_a_unit_that_is_named_for_a_step_moves_that_step_alone(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    plan = streamed(ReplaceOne(), lambda **f: ContinualGaussian(sigma=1.0, fixed_steps=True, **f))
    roster = ["p1", "o'brien", "6"]
    rows = [*random_table(rng), random_row(rng, "p1")]
    moved = [*(row for row in rows if row["who"] != "p1"), random_row(rng, "p1")]
    named = [[each] for each in rng.sample(roster, 3)]

    def values(table: Sequence[Texts]) -> Any:
        with held(tmp_path, table, plan, roster=roster) as asked:
            stream = asked.ledger.stream((2,), at="s")
            vectors = asked.data.vector(["age", "cost"])
            with pytest.raises(InputError, match="name the units"):
                stream.add(vectors)
            for names in named:
                stream.add(vectors, units=names)
            return np.array([step.value for step in asked.steps])

    for names, change in zip(named, values(rows) - values(moved), strict=True):
        assert np.linalg.norm(change) <= (1.0 + 1e-12 if names == ["p1"] else 0.0)


def test_a_unit_is_named_for_no_more_steps_than_declared(tmp_path: Path) -> None:
    plan = streamed(ReplaceOne(), lambda **f: ContinualGaussian(sigma=1.0, fixed_steps=True, **f))
    rows = [{"who": unit, "age": "1"} for unit in ("a", "b")]
    with held(tmp_path, rows, plan, roster=["a", "b"]) as asked:
        stream, ones = asked.ledger.stream((), at="s"), asked.data.vector("age * 0.5")
        stream.add(ones, units=["a"])
        for names in (["a"], ["a", "b"], ["c"], ["b", "b"]):  # too soon, or of nobody
            with pytest.raises((InputError, PlanMismatchError), match=r"names? |named"):
                stream.add(ones, units=names)
        stream.add(ones, units=["b"])
        stream.add(ones, units=["a"])
        with pytest.raises(PlanMismatchError, match="more steps"):
            stream.add(ones, units=["a"])
        assert [float(step.value) for step in asked.steps] == [0.5, 0.5, 0.5]


def test_a_step_that_was_refused_is_none_of_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the table that was tried before nor the unit that was named has taken it."""
    plan = streamed(ReplaceOne(), lambda **f: ContinualGaussian(sigma=1.0, fixed_steps=True, **f))
    with held(tmp_path, [{"who": "a", "age": "1"}], plan, roster=[*"abcd"]) as asked:
        stream, ones = asked.ledger.stream((), at="s"), asked.data.vector("age * 0.5")
        tried = iter([True, False])
        own = Steps.try_step

        def refuse(steps: Steps, *given: Any) -> None:
            own(steps, *given)
            if not next(tried, True):
                raise InputError("it fails.")

        monkeypatch.setattr(Steps, "try_step", refuse)
        with pytest.raises(InputError, match="it fails"):
            stream.add(ones, units=["a"])
        for name in "ababcd":
            stream.add(ones, units=[name])
        assert len(asked.steps) == 6


# -- answers ---------------------------------------------------------------------------------------


def local(mechanism: Any, units: int, sensitivity: float = 1.0) -> Plan:
    about = (PERSON, ReplaceOne(), TrustModel.LOCAL)
    return Plan.of(Invocation(mechanism, sensitivity, *about, total=units, at="own"))


@pytest.mark.parametrize("seed", range(examples(5, 60)))
def test_one_unit_moves_its_own_answer_alone(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    roster = [unit for unit in UNITS if unit] + ["nobody"]
    rows = [*random_table(rng), random_row(rng, "p1")]
    clipped = Laplace(2.0, clip=(-1.0, 1.0))

    def answers(table: Sequence[Texts]) -> dict[str, float]:
        with held(tmp_path, table, local(clipped, len(roster), 2.0), roster=roster) as asked:
            released = asked.ledger.answers(asked.data.vector("cost"), default=0.25, at="own")
            assert len(released) == len(roster)
            return {str(step.unit): float(step.value) for step in asked.steps}

    beside = neighbour(rng, rows, ReplaceOne())
    one, other = answers(rows), answers(beside)
    assert list(one) == roster
    assert sum(one[unit] != other[unit] for unit in roster) <= 1
    assert one["nobody"] == 0.25


@pytest.mark.parametrize("seed", range(examples(3, 60)))
def test_the_answer_of_a_unit_is_its_first_row_by_the_keyed_hash(seed: int, tmp_path: Path) -> None:
    rows = [random_row(random.Random(seed * 100 + n), UNITS[n % 2]) for n in range(12)]
    roster = UNITS[:2]
    plan = local(Laplace(2.0, clip=(-1e4, 1e4)), 2, 2e4)
    with held(tmp_path, rows, plan, roster=roster) as asked:
        asked.ledger.answers(asked.data.vector("cost"), at="own")
        found = [float(step.value) for step in asked.steps]
    plain = rows_of({"source": "rows.csv", "unit": "who", "columns": COLUMNS}, tmp_path, {})
    plain.sort(key=lambda row: row_hash(row, CARRIERS, SECRET))
    firsts = [next(row["cost"] for row in plain if row[""] == unit) for unit in roster]
    assert found == [float(each or 0) for each in firsts]


def test_a_choice_is_of_as_few_rows_of_a_unit_as_it_declares(tmp_path: Path) -> None:
    halves = PermuteAndFlip(1.0, 2.0, monotonic=True)
    plan = Plan.of(
        chosen(ExponentialMechanism(1.0, 2.0), AddRemove(), "two"),
        chosen(halves, AddRemove(), "monotonic"),
        bounded(Laplace(1.0), 1.0, AddRemove(), "sum"),
    )
    with held(tmp_path, [], plan) as asked:
        for rows in (asked.data, asked.data.group_rows(3), asked.data.filter("sick")):
            with pytest.raises(InputError, match="which group_rows bounds"):
                asked.ledger.choose(rows, "ward", at="two")
        few = asked.data.group_rows(3).filter("sick").group_rows(2).filter("age > 3")
        asked.ledger.choose(few, "ward", at="two")
        asked.ledger.choose(few, "ward", at="monotonic")
        with pytest.raises(InputError, match="is not a mechanism of choice"):
            asked.ledger.choose(few, "ward", at="sum")
    moved = chosen(halves, ReplaceOne(), "x")
    for wrong, words in ((moved, "declare span 2"), (replace(moved, sensitivity=0.0), "declare 1")):
        with held(tmp_path, [], Plan.of(wrong)) as asked, pytest.raises(InputError, match=words):
            asked.ledger.choose(asked.data.group_rows(2), "ward", at="x")


def test_an_answer_that_the_mechanism_does_not_take_is_the_default(tmp_path: Path) -> None:
    rows = [{"who": "a", "age": "1"}, {"who": "b", "age": "5"}, {"who": "c", "age": "7"}]
    said = "CASE WHEN age = 1 THEN 1 WHEN age = 5 THEN 0.5 ELSE 0 END"
    response = RandomizedResponse.calibrated(epsilon=1.0, k=2)
    with held(tmp_path, rows, local(response, 3), roster=["a", "b", "c"]) as asked:
        asked.ledger.answers(asked.data.vector(said), default=1, at="own")
        assert [int(step.value) for step in asked.steps] == [1, 1, 0]


def test_who_has_no_rows_answers_zero_where_units_are_zeroed(tmp_path: Path) -> None:
    (own,) = local(Laplace(2.0, clip=(-1.0, 1.0)), 1, 2.0).invocations
    plan = Plan.of(replace(own, relation=ZeroOut(), sensitivity=1.0))
    with held(tmp_path, [], plan, roster=["a"]) as asked:
        with pytest.raises(InputError, match="default is not 0"):
            asked.ledger.answers(asked.data.vector("cost"), default=1, at="own")
        asked.ledger.answers(asked.data.vector("cost"), at="own")


def test_the_owner_is_told_no_more_than_a_message_holds_whatever_the_rows_are(
    tmp_path: Path,
) -> None:
    plan = Plan.of(bounded(Laplace(1.0), 1.0, AddRemove(), "sum"))
    with held(tmp_path, [], plan) as asked:
        wide = asked.data.vector(["age"]).linear([[1]] * 10_000)
        for number in range(209):
            wide.tell_owner(f"mean {number}")
        with pytest.raises(InputError, match="the owner takes at most 2097152 numbers"):
            wide.tell_owner("one more")


def test_answers_may_not_differ_by_more_than_declared(tmp_path: Path) -> None:
    with held(tmp_path, [], local(Laplace(2.0), 1, 10.0), roster=["a"]) as asked:
        with pytest.raises(InputError, match="more than its sensitivity"):
            asked.ledger.answers(asked.data.vector("age"), at="own")
        with pytest.raises(InputError, match="more than its sensitivity"):
            asked.ledger.answers(asked.data.vector("age % 3"), default=100, at="own")
        asked.ledger.answers(asked.data.vector("age % 3"), default=10, at="own")


# -- the same as the ledger's own ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(examples(5, 60)))
def test_releases_equal_those_of_the_ledger_at_the_same_seed(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = [row for row in random_table(rng, largest=4) if row["who"]]
    keys = StableHistogram.calibrated(epsilon=9.0, delta=0.1, key_sensitivity=60)
    choice = ExponentialMechanism(1.0, 60.0)
    plan = Plan.of(
        bounded(Laplace(2.0), 1e5, AddRemove(), "sum", rows=60),
        bounded(DiscreteLaplace(2.0), 60.0, AddRemove(), "count", rows=60),
        bounded(Gaussian(2.0), 60.0, AddRemove(), "cells", rows=60),
        bounded(choice, 1.0, AddRemove(), "quantile", rows=60),
        bounded(keys, 1.0, AddRemove(), "keys", rows=60),
    )
    ages = [_age(row["age"]) for row in rows]
    units = [row["who"] for row in rows]
    own = Ledger(plan, rng=np.random.default_rng(seed))
    known = [(row["town"], row["who"]) for row in rows if row["town"]]
    wanted = [
        own.sum(ages, units=units, at="sum") if rows else own.sum(np.zeros(0), at="sum"),
        own.count(len(rows), units=units or None, at="count"),
        own.histogram([row["ward"] for row in rows], WARDS, units=units, at="cells"),
        own.quantile(ages, 0.5, [0.0, 18.0, 65.0], units=units, at="quantile"),
        own.stable_histogram([t for t, _ in known], units=[u for _, u in known], at="keys"),
    ]
    with held(tmp_path, rows, plan, noise=Same(np.random.default_rng(seed))) as asked:
        data, ledger = asked.data, asked.ledger
        found = [
            ledger.sum(data.vector("age"), at="sum"),
            ledger.count(data, at="count"),
            ledger.histogram(data, "ward", at="cells"),
            ledger.quantile(data.vector("age"), 0.5, [0, 18, 65], at="quantile"),
            ledger.stable_histogram(data, "town", at="keys"),
        ]
    for mine, theirs in zip(found, wanted, strict=True):
        if isinstance(theirs, dict):
            assert mine == theirs
        else:
            np.testing.assert_array_equal(mine, theirs)


class Same(RecordingNoise):
    """Noise of the same draws as that of a ledger with the seed."""


def _age(text: str) -> int:
    try:
        number = float(text)
    except ValueError:
        return 0
    if not math.isfinite(number) or number != int(number):
        return 0
    return int(min(max(number, -5), 110))


# -- refusals --------------------------------------------------------------------------------------

EVERYTHING = Plan.of(
    bounded(Laplace(1.0), 3.0, AddRemove(), "sum", count=3),
    bounded(DiscreteLaplace(1.0), 3.0, AddRemove(), "count", count=3),
    bounded(Gaussian(1.0), 2.0**40, AddRemove(), "wide", count=3),
    bounded(Laplace(1e-300), 1e-200, AddRemove(), "narrow", count=3),
    bounded(ExponentialMechanism(1.0, 2.0), 1.0, AddRemove(), "quantile", rows=2, count=3),
    bounded(
        StableHistogram.calibrated(epsilon=1.0, delta=0.1),
        1.0,
        AddRemove(),
        "keys",
        rows=1,
        count=3,
    ),
    chosen(TopK(1.0, 5.0, k=2), AddRemove(), "choose", count=3),
    bounded(Laplace(1.0), 3.0, AddRemove(), "sampled", sampling=PoissonSampling(0.4), count=3),
    bounded(Laplace(1.0), 3.0, AddRemove(), "A1", group=Group("A1", Membership.VALUE), count=3),
    Invocation(
        ContinualGaussian(sigma=1.0, factorization=BinaryTree(4), participations=1),
        1.0,
        PERSON,
        AddRemove(),
        TrustModel.CENTRAL,
        at="stream",
        count=3,
    ),
)
LABELS = [*(each.at for each in EVERYTHING.invocations), "", "none", None, 5, "x" * 10**5]
TEXTS = ["age", "cost", "huge", "huge * huge", "cost * 0.01", "ward", "age // 3", "1e300", "'"]
TEXTS += [
    "sick",
    "age > 3",
    "town = 'Ulm'",
    "CASE WHEN sick THEN huge END",
    "x" * 3000,
    "",
    "1" * 40,
]
TEXTS += ["huge + 1", "age * 1e15", "0 * huge", "count(age)", "made0", "made1", "NULL", "town"]
TEXTS += ["town = '\ud800'", "town <> '\0'", "TRIM(town) = '\u200b'", "age = 1 -- x"]
ODD: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    2**53,
    2**70,
    10**400,
    0.5,
    1e308,
    [],
    {},
    [[]],
    "x",
    [None],
]
ODD += [["inf"], {"array": [1], "type": "object", "shape": [10**9]}, {"list": 3}, [10**400]]


RIGHT: dict[str, Any] = {
    "sum": {"of": 1, "at": "sum"},
    "mean": {"of": 1, "total": "sum", "count": "count"},
    "count": {"of": 0, "at": "count"},
    "histogram": {"of": 0, "by": "ward", "at": "wide"},
    "quantile": {"of": 1, "share": 0.5, "candidates": [0, 1], "at": "quantile"},
    "stable_histogram": {"of": 0, "column": "town", "at": "keys"},
    "choose": {"of": 3, "by": ["ward", "sick"], "at": "choose"},
    "answers": {"of": 1, "default": 1, "at": "own"},
    "sample": {"of": 0, "at": "sampled"},
    "stream": {"shape": [], "at": "stream"},
    "add": {"of": 1, "stream": 4},
    "filter": {"of": 0, "condition": "age > 3"},
    "with_columns": {"of": 0, "columns": {"made0": "age"}},
    "group_rows": {"of": 0, "most": 2},
    "partition": {"of": 0, "column": "ward", "keys": None},
    "vector": {"of": 0, "columns": "huge"},
    "linear": {"of": 2, "matrix": [[1, 2], [3, 4]]},
    "encode": {"of": 2, "by": "clip", "options": {"bound": 50}},
    "tell_owner": {"of": 0, "name": "x"},
    "left": {},
}
"""Of each operation one that may be right; handles 1 to 3 are a number, two numbers, and few rows,
and 4 is a stream."""
FIRST = [("vector", {"columns": "age"}), ("vector", {"columns": ["age", "cost"]})]
FIRST += [("group_rows", {"most": 2}), ("stream", {"shape": [], "at": "stream"})]


def random_request(rng: random.Random, handles: int) -> dict[str, Any]:
    """A request that may be right, or wrong in any way."""

    def one(*of: Any) -> Any:
        return rng.choice(of)

    column = one("ward", "age", "huge", "sick", "town", "cost", "no")
    edges = one([0, 5, 9], [-5, 2**53], [0], [1, 0], ["a", 1], [0, 10**400])
    other = {
        "of": rng.randint(0, handles),
        "at": rng.choice(LABELS),
        "total": rng.choice(LABELS),
        "count": rng.choice(LABELS),
        "condition": rng.choice(TEXTS),
        "columns": one(
            {one("made0", "AGE", ""): rng.choice(TEXTS)}, rng.choices(TEXTS, k=2), "huge"
        ),
        "most": one(1, 5, 10**6, 10**60, -1),
        "column": column,
        "keys": one(["A1"], [1, 2], ["A1", 1], [], ["\ud800"], ["\0", "A1"]),
        "matrix": [[one(0, 1, -3, 2**30, 2**53) for _ in range(one(1, 2))]] * one(1, 2, 400),
        "options": one({}, {"bound": one(0, 1e-9, 10**400, "1")}, {"bound": 1, "ends": [[0, 0]]}),
        "by": one("age", "outer", {"column": column, "edges": edges}, ["ward", "sick"], []),
        "share": one(0, 1, -1, 1e-9),
        "candidates": one([1.0, 0.0], [0, 1e308], ["1", "inf"], [None], [], [10**400]),
        "default": one(0, 1.5, [1, 2]),
        "shape": one([1], [2], [-1], [10**9], [2, 2], [0]),
        "stream": rng.randint(0, handles + 2),
        "name": one("", "y" * 10**5, 3, "\ud800"),
    }
    op = rng.choice([*RIGHT])
    request = {"op": op} | RIGHT[op]
    for name in request:
        if name != "op" and rng.random() < 0.3:
            request[name] = other[name]
    if rng.random() < 0.1:
        request[rng.choice([*request])] = rng.choice(ODD)
    return request


@pytest.mark.parametrize("rows", [[], [{"who": "a"}]], ids=["no rows", "a row"])
@pytest.mark.parametrize("some", [True, False], ids=["with a row", "without one"])
@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "all units"])
def test_what_fails_of_a_row_or_of_none_is_met_before_the_rows_are(
    rows: list[Texts], some: bool, sampled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ended there would tell whether anybody is among the rows."""
    own = Ledger.count

    def count(ledger: Ledger, *given: Any, units: Any, **named: Any) -> Any:
        if bool(len(units)) is some:
            raise InputError("it fails.")
        return own(ledger, *given, units=units, **named)

    monkeypatch.setattr(Ledger, "count", count)
    more = {"sampling": PoissonSampling(0.01)} if sampled else {}
    plan = Plan.of(bounded(Laplace(1.0), 5.0, AddRemove(), "c", **more))
    with held(tmp_path, rows, plan) as asked:
        of = asked.answer("sample", of=0, at="c")["value"] if sampled else 0
        assert asked.answer("count", of=of, at="c")["error"] == "it fails."


def test_what_was_refused_in_a_trial_is_not_charged_there(tmp_path: Path) -> None:
    """Else the request that is right would be refused as one too many."""
    total = bounded(Laplace(1.0), 5.0, AddRemove(), "total")
    count = bounded(Laplace(1.0), 1.0, AddRemove(), "count")
    other = Invocation(Laplace(1.0), 1.0, PERSON, AddRemove(), TrustModel.CENTRAL, at="other")
    with held(tmp_path, [{"who": "a", "age": "3"}], Plan.of(total, count, other)) as asked:
        ages = asked.answer("vector", of=0, columns="age")["value"]["handle"]
        wrong = asked.answer("mean", of=ages, total="total", count="other")
        assert "declared without a contribution" in wrong["error"]
        assert asked.answer("left")["value"] == 0
        assert "value" in asked.answer("mean", of=ages, total="total", count="count")


@pytest.mark.parametrize("seed", range(examples(10, 300)))
def test_what_is_refused_follows_from_requests_alone(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = [*random_table(rng), {"who": "z", "town": "t" * 10**5, "huge": str(2**53)}]
    plan = rng.choice([EVERYTHING, local(rng.choice(OWN), 7, 1.0)])
    (tmp_path / "none").mkdir()
    roster = {"roster": ["p1", "z", "nobody"]}
    with (
        held(tmp_path, rows, plan, noise=FloatNoise(), **roster) as full,
        held(tmp_path / "none", [], plan, noise=FloatNoise(), **roster) as empty,
    ):
        for op, more in FIRST:
            assert full.answer(op, of=0, **more) == empty.answer(op, of=0, **more)
        for number in range(120):
            request = random_request(rng, 4 + number // 3)
            one, other = (each.operations.answer(request) for each in (full, empty))
            assert one.get("error") == other.get("error"), request
            assert one.get("kind") == other.get("kind"), request
            if request["op"] in ("vector", "linear", "encode", "partition", "filter"):
                assert one == other


OWN = [
    RandomizedResponse.calibrated(epsilon=1.0, k=3),
    UnaryEncoding(k=3, lie=0.2),
    Laplace(1.0, clip=(0.0, 0.5)),
    DiscreteLaplace(1.0),
]
