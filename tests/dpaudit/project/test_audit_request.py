"""One record for what an audit is asked: the same by options, by a table and in Python.

How runs are drawn: one object, its fields, and the same fields as keywords.
"""

from dataclasses import fields
from typing import get_type_hints

import pytest

from dpaudit import AuditPair, Claim, InputError
from dpaudit.cli.commands import audit_options
from dpaudit.plan import AddRemove, MetricBall
from dpaudit.project import Execution
from dpaudit.project.audit_request import (
    REPEATABLE,
    SECONDS,
    AuditRequest,
    ExecutionFields,
    parse_relation,
)

PAIR = AuditPair(0, 1, "given")


def of_options(**options):
    return AuditRequest.of_options({"target": "m:X", **options})


class TestSources:
    def test_options_and_tables_ask_what_python_asks(self):
        drawn = {"runs": 500, "confidence": 0.9, "seed": 3}
        python = AuditRequest(pair=PAIR, execution=Execution(**drawn))
        assert REPEATABLE.with_table("audit", {"pair": [0, 1], **drawn}) == python
        typed = of_options(pair=("0", "1"), **drawn)
        assert typed == AuditRequest("m:X", pair=PAIR, execution=Execution(**drawn))

    def test_every_option_is_a_field(self):
        known = {each.name for each in (*fields(AuditRequest), *fields(Execution))}
        assert audit_options().keys() - known == {"output"}

    def test_options_that_are_not_given_say_nothing(self):
        given = dict.fromkeys(audit_options())
        bare = AuditRequest.of_options({**given, "target": "m:X", "through_run": False})
        assert bare == of_options() == AuditRequest("m:X", seconds=SECONDS)

    def test_epsilon_and_delta_are_a_claim_of_their_own(self):
        for own in (None, Claim(2.0, 1e-3)):
            assert of_options(epsilon=1.0).tested(own) == Claim(1.0)
            assert of_options(epsilon=1.0, delta=1e-6).tested(own) == Claim(1.0, 1e-6)
            assert of_options(claim="mu = 1").tested(own) == Claim.of(mu=1)
        assert of_options(delta=1e-6).tested(Claim(2.0, 1e-3)) == Claim(2.0, 1e-6)
        own = Claim(2.0, 1e-3, "paper")
        assert of_options().tested(own) is own
        with pytest.raises(InputError, match="--epsilon is missing"):
            of_options().tested(None)

    def test_a_table_replaces_what_it_says_of_the_claim(self):
        table = REPEATABLE.with_table("audit", {"epsilon": 0.5})
        assert table.tested(Claim(2.0, 1e-3)) == Claim(0.5, 1e-3)
        assert REPEATABLE.with_table("audit", {"delta": 0}).tested(Claim(2.0, 1e-3)) == Claim(2.0)

    def test_a_training_may_take_any_time(self):
        assert of_options().execution.timeout == 60.0
        assert of_options(canaries=20).execution.timeout is None
        assert of_options(canaries=20, timeout=3.0).execution.timeout == 3.0

    def test_fewer_runs_are_made_where_none_are_asked_for(self):
        assert of_options(through_run=True).seconds == SECONDS
        assert of_options(through_run=True, runs=500).seconds is None

    def test_relations_by_kind_or_as_json(self):
        assert parse_relation(None) is None
        assert parse_relation("add-remove") == AddRemove()
        assert parse_relation('{"kind": "metric-ball", "radius": 3}') == MetricBall(3.0)
        assert of_options(relation="each").relation == "each"
        with pytest.raises(InputError, match="relation is 'each'"):
            of_options(relation="each", canaries=20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": "cat"}, "SUBJECT and --command: exactly one of them"),
        ({"target": None}, "SUBJECT and --command: exactly one of them"),
        ({"target": None, "command": "cat", "settings": ["x=1"]}, "leave them out with --command"),
        ({"target": None, "command": "cat", "through_run": True}, "leave them out with --command"),
        ({"target": None, "command": "cat", "canaries": 9}, "--command is given with --can"),
        ({"canaries": 9, "pair": ("0", "1")}, "--pair is given with --canaries"),
        ({"canaries": 9, "data": "f.csv"}, "--data is given with --canaries"),
        ({"canaries": 9, "runs": 9}, "--runs is given with --canaries"),
        ({"canaries": 9, "through_run": True}, "--through-run is given with --canaries"),
        ({"canaries": 9, "shadows": 0}, "--shadows and --targets need an --attack"),
        ({"canaries": 9, "attack": "one-run", "targets": 2}, "--shadows and --targets need"),
        ({"canaries": 9, "claim": "mu = 1"}, "--claim is μ = 1; an audit with canaries tests ε"),
        ({"attack": "one-run"}, "--attack is given without --canaries"),
        ({"shadows": 0}, "--shadows is given without --canaries"),
        ({"targets": 2}, "--targets is given without --canaries"),
        ({"claim": "mu = 1", "epsilon": 1.0}, "--claim is given with --epsilon or --delta"),
        ({"claim": "mu = 1", "delta": 0.0}, "--claim is given with --epsilon or --delta"),
        ({"pair": ("1", "1")}, "--pair gives the same data twice"),
        ({"pair": ("1", "2"), "through_run": True}, "--pair is given with --through-run"),
        ({"pair": ("1", "2"), "data": "f.csv"}, "--data is given with --pair"),
        ({"epsilon": -1.0}, "epsilon is -1"),
        ({"delta": 2.0}, "delta is 2"),
        ({"journal": "x"}, "journal is given without a seed"),
    ],
)
def test_options_that_have_no_meaning_together(options, message):
    with pytest.raises(InputError, match=message) as caught:
        of_options(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"target": "m:X", "exact": True},
            "exact, every_pair and code are for attacks in a project file",
        ),
        ({"target": "m:X", "every_pair": True}, "which name no target"),
        (
            {"target": "m:X", "code": "f:f", "pair": PAIR},
            "exact, every_pair and code are for attacks in",
        ),
        (
            {"target": print, "unit": "user"},
            "unit is given for a target that is an object; give it only for",
        ),
        (
            {"target": print, "settings": {"x": 1}},
            "settings is given for a target that is an object",
        ),
        ({"target": "m:X", "claim": 1.0}, "claim is 1.0; it must be a Claim"),
        ({"target": "m:X", "execution": {}}, "execution is {}; it must be a Execution"),
    ],
)
def test_fields_that_nothing_would_look_at(asked, message):
    with pytest.raises(InputError, match=message):
        AuditRequest(**asked)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"arguments": {"x": 1}}, "audit: arguments must be a table of parameters of the fun"),
        ({"code": "f:f", "pair": [0, 1], "arguments": 3}, "arguments must be a table"),
        ({"code": 3, "pair": [0, 1]}, "code is 3"),
        ({"through_run": True, "exact": True}, "through_run is given with exact, every_pair"),
        ({"through_run": True, "every_pair": True}, "through_run is given with exact, every_p"),
        ({"through_run": True, "pair": [0, 1]}, "audit: through_run is given with exact, every"),
        ({"through_run": True, "code": "f:f", "pair": [0, 1]}, "through_run is given with exact"),
        ({"exact": 1}, "exact is 1; it must be true or false"),
        ({"through_run": "yes"}, "through_run is 'yes'; it must be true or false"),
        ({"runs": 1}, "audit: runs is 1; it must be an integer of at least 2"),
        ({"canaries": 20}, "audit has an unknown key 'canaries'"),
        ({"target": "m:X"}, "audit has an unknown key 'target'"),
    ],
)
def test_keys_that_have_no_meaning_together(table, message):
    with pytest.raises(InputError, match=message) as caught:
        REPEATABLE.with_table("audit", table)
    assert "\n" not in str(caught.value)


def test_keywords_are_the_fields():
    assert [*ExecutionFields.__annotations__] == [field.name for field in fields(Execution)]
    assert get_type_hints(ExecutionFields) == get_type_hints(Execution)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"runs": 0}, "runs is 0; it must be an integer of at least 1"),
        ({"runs": 10.5}, "runs is 10.5"),
        ({"runs": 2 * 10**9}, r"runs is 2000000000; it must be at most 1000000000"),
        ({"confidence": 1}, "confidence is 1"),
        ({"seed": -1}, "seed is -1"),
        ({"workers": 0}, "workers is 0"),
        ({"dask": ""}, "dask is ''"),
        ({"timeout": 0}, "timeout is 0"),
        ({"journal": "trials.jsonl"}, "journal is given without a seed"),
    ],
)
def test_what_is_wrong_is_named(wrong, message):
    with pytest.raises(InputError, match=message):
        Execution(**wrong)
    with pytest.raises(InputError, match=message):
        Execution().updated(wrong)


def test_keywords_replace_fields():
    execution = Execution(runs=500, seed=3)
    assert execution.updated({"seed": 4, "workers": 2}) == Execution(500, seed=4, workers=2)
    assert execution.updated({}) == execution
    with pytest.raises(TypeError, match="runz"):
        execution.updated({"runz": 3})


def test_fields_without_a_use_are_refused():
    execution = Execution(seed=3)
    assert execution.only("seed", "confidence") is execution
    with pytest.raises(InputError, match="runs is 70; this audit takes seed, confidence, but not"):
        Execution(runs=70).only("seed", "confidence")


def test_a_fresh_seed_is_drawn_where_there_is_none():
    assert Execution(seed=5).known_seed() == 5
    assert Execution().known_seed() != Execution().known_seed()


def test_who_is_told_is_no_part_of_what_is_run():
    assert Execution(progress=print) == Execution()
