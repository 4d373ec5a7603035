"""Shipped certificates and what the code makes today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from audits.papers.__main__ import main
from audits.papers.comparing import TOLERANCE, compare, differences
from audits.papers.generating import REPORTS

CHEAP = ("ldp-moma-gp-ucb-epsilon-0.5", "curator")
"""One claim that holds and one that is refuted, attacked in a few seconds."""


def record(name: str = CHEAP[1]) -> dict:
    return json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8"))


def lines(old: dict, new: dict) -> list[str]:
    return [str(each) for each in differences(old, new)]


@pytest.mark.unabridged
def test_cheap_reports_are_what_the_code_makes():
    assert dict(compare(CHEAP)) == {f"{name}.json": () for name in CHEAP}


class TestDifferences:
    def test_a_record_is_the_same_as_itself(self):
        assert differences(record(), record()) == ()

    def test_what_changes_with_every_release_or_edit_is_not_compared(self):
        new = record()
        new |= {"digest": "0" * 64, "versions": {"numpy": "99"}}
        new["subject"] |= {"code_hash": "0" * 64, "location": new["subject"]["location"] + "1"}
        assert differences(record(), new) == ()

    @pytest.mark.parametrize(("factor", "same"), [(0.5, True), (2.0, False)])
    def test_floats_differ_beyond_the_tolerance(self, factor, same):
        new = record()
        new["audits"][0]["epsilon_lower"] *= 1 + factor * TOLERANCE
        (*paths,) = (each.path for each in differences(record(), new))
        assert paths == ([] if same else ["audits[0].epsilon_lower"])

    def test_every_other_difference_is_one_line(self):
        old, new = record(), record()
        new["verdict"] = "certified"
        new["audits"][0]["runs"] += 1
        new["audits"][0]["details"]["counts"]["hits"] = (
            12626.0  # a float is no whole number's match
        )
        new["subject"]["location"] = "private_bo/elsewhere.py:1"
        del new["findings"][-1], new["claim"]["source"]
        new["assumed"] = True
        found = lines(old, new)
        assert sorted(line.partition(":")[0] for line in found) == [
            "assumed",
            "audits[0].runs",
            "claim.source",
            f"findings[{len(new['findings'])}]",
            "subject.location",
            "verdict",
        ]
        assert 'verdict: "refuted" -> "certified"' in found
        assert "assumed: absent -> true" in found
        assert all("\n" not in line and len(line) < 300 for line in found)

    @pytest.mark.parametrize(
        ("old", "new", "same"),
        [
            (1e-14, 3e-14, False),  # a small number alone may be a p-value
            ([488.0, 1e-14], [488.0, -3e-14], True),  # a coordinate of a point
            ([488.0, 1e-14], [488.0, 1e-5], False),
            ([[488.0], [1e-14]], [[488.0], [3e-14]], False),
            ({"rounding": 1e-14}, {"rounding": 3e-14}, True),
            ({"rounding": 1e-14}, {"rounding": 1e-8}, False),
            (
                {"residuals_on_x": {"x": {"least": 1e-13}}},
                {"residuals_on_x": {"x": {"least": 0.0}}},
                True,
            ),
            (1, 1.0, True),
            (10**15, 10**15 + 1, False),
            (True, 1, False),
            (0.0, -0.0, True),
            ("infinity", "infinity", True),
            (1.0, "infinity", False),
            (None, 0.0, False),
        ],
    )
    def test_what_counts_as_the_same(self, old, new, same):
        assert (differences({"a": old}, {"a": new}) == ()) is same


@pytest.mark.parametrize(
    ("axis", "factor", "same"), [(0, 0.5, True), (0, 2.0, False), (1, 0.5, False)]
)
def test_a_curve_is_compared_within_the_error_bound_of_its_accountant(axis, factor, same):
    old, new = record("dp-fts-de"), record("dp-fts-de")
    new["guarantee"]["curve"][5][axis] += factor * old["guarantee"]["error_bound"]
    assert (differences(old, new) == ()) is same


@pytest.mark.parametrize(("factor", "same"), [(1 + 5e-4, True), (1.01, False)])
def test_a_checked_epsilon_is_compared_as_near_as_its_witness_was_found(factor, same):
    old, new = record("dp-fts-de"), record("dp-fts-de")
    new |= {"witness": None, "checked": {**old["checked"], "rules": []}}
    new["checked"]["epsilon"] *= factor
    assert (differences(old, new) == ()) is same


@pytest.mark.parametrize(("count", "same"), [(5, True), (0, False)])
def test_of_neighbours_that_moved_a_release_is_compared_whether_there_were_any(count, same):
    old, new = record("dp-fts"), record("dp-fts")
    counts = new["rehearsal"]["exercised"]["values within the sensitivity"]
    label = next(iter(counts))
    assert counts[label] not in (0, count)
    counts[label] = count
    assert (differences(old, new) == ()) is same


PROJECT = """
[project]
formats = ["md"]
[[subject]]
name = "ldp-tgp-ucb"
target = "private_bo.local:LDPTGPUCB"
set = { epsilon = 1.0, steps = 20 }
audit = []
"""


class TestCommand:
    @pytest.fixture
    def arguments(self, tmp_path: Path) -> list[str]:
        (tmp_path / "dpaudit.toml").write_text(PROJECT)
        (tmp_path / "out").mkdir()
        return ["--project", str(tmp_path / "dpaudit.toml"), "--folder", str(tmp_path / "out")]

    def test_the_same_again_and_then_an_edit(self, arguments, tmp_path, capsys):
        assert main(arguments) == 0
        before = sorted((path.name, path.read_bytes()) for path in (tmp_path / "out").iterdir())
        capsys.readouterr()
        assert main([*arguments, "--compare"]) == 0
        assert capsys.readouterr().out == "ldp-tgp-ucb.json: same\n"
        after = sorted((path.name, path.read_bytes()) for path in (tmp_path / "out").iterdir())
        assert after == before
        path = tmp_path / "out" / "ldp-tgp-ucb.json"
        path.write_text(path.read_text().replace('"count": 1,', '"count": 2,'))
        (tmp_path / "out" / "former.json").write_text("{}")
        assert main([*arguments, "--compare"]) == 1
        assert capsys.readouterr().out == (
            "ldp-tgp-ucb.json: plan.invocations[0].count: 2 -> 1\n"
            "former.json: file: a certificate -> absent\n"
        )

    def test_what_is_not_shipped(self, arguments, capsys):
        assert main([*arguments, "--compare", "ldp-tgp-ucb"]) == 1
        assert capsys.readouterr().out == "ldp-tgp-ucb.json: file: absent -> a certificate\n"

    def test_an_unknown_name_is_one_sentence(self, arguments, capsys):
        assert main([*arguments, "--compare", "ldp-tgp-uc"]) == 3
        assert capsys.readouterr().err == "subject is 'ldp-tgp-uc'; did you mean 'ldp-tgp-ucb'?\n"
