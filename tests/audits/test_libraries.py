"""The table of libraries: rows as printed, what was found, how it is judged, and the page."""

from __future__ import annotations

import ast
import math
from collections import Counter
from pathlib import Path

import pytest

from audits.libraries import accountants
from audits.libraries.__main__ import RESULTS, main, measure, table_of
from audits.libraries.accountants import SETTINGS, SUBJECTS
from audits.libraries.page import judge_rows, page, verdict, write_notes
from audits.libraries.rows import ROWS, Attack, Published, Row, unique
from audits.libraries.verdicts import Fault, RowVerdict, Standing
from dpaudit.base.errors import InputError

ROOT = Path(__file__).parents[2]
BY_NAME = {row.name: row for row in ROWS}
GIVEN = ("a row", "numpy", "laplace", "sum", "numpy/simple.py:total")
REFUTED = {"verdict": "refuted", "epsilon_lower": 2.349, "runs": 500}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)


# -- rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_names_a_function_with_a_docstring(row):
    file, _, name = row.target.partition(":")
    parts = {
        each.name: each
        for each in ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        if isinstance(each, ast.FunctionDef)
    }
    assert ast.get_docstring(parts[name])
    assert row.library
    assert row.offers
    assert row.kind


def test_pipelines_import_nothing_of_this_project():
    for file in (ROOT / "audits/libraries/pipelines").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert "dpaudit" not in text, file
        assert "audits" not in text, file


def test_the_command_is_what_a_reader_types():
    row = Row(*GIVEN, attack=Attack([1], [2], 500), claim="epsilon = 1, delta = 1e-5")
    first, second = row.replay
    assert first == (
        "dpaudit observe audits/libraries/pipelines/numpy/simple.py:total "
        "--data audits/libraries/data/people.csv --relation replace-one "
        "--claim 'epsilon = 1, delta = 1e-5' --seed 0 --rehearse"
    )
    assert "--pair '[1]' '[2]' --claim 'epsilon = 1, delta = 1e-5'" in second


@pytest.mark.parametrize(
    "wrong",
    [
        {"stated": "rumour"},
        {"relation": "swap"},
        {"plan": "missing.toml"},
        {"data": ""},
        {"data": "missing.csv"},
    ],
)
def test_a_wrong_row_is_refused(wrong):
    with pytest.raises(InputError, match="a row"):
        Row(*GIVEN, **wrong)


def test_no_two_rows_have_one_name():
    assert not [name for name, times in Counter(row.name for row in ROWS).items() if times > 1]
    with pytest.raises(InputError, match="two rows"):
        unique([Row(*GIVEN), Row(*GIVEN)])


# -- measuring -------------------------------------------------------------------------------------


def test_a_right_row_is_certified():
    found = BY_NAME["home-made: running counts"].measured()
    judged = RowVerdict(BY_NAME["home-made: running counts"], found)
    assert judged.standing is Standing.CERTIFIED
    assert (judged.false, judged.error, judged.over) == (False, "", "as claimed")
    assert found["version"]


def test_a_wrong_row_is_refuted_and_shown():
    row = BY_NAME["home-made: twenty thresholds for one"]
    judged = RowVerdict(row, row.measured())
    assert judged.standing is Standing.REFUTED
    assert "neighbours move a value further than its sensitivity" in judged.evidence
    assert float(judged.attacked["epsilon_lower"]) > 1


def test_what_cannot_run_is_said_and_the_rest_stands(tmp_path, monkeypatch, capsys):
    row = BY_NAME["home-made: sum"]
    monkeypatch.setattr("audits.libraries.rows.answer", _raised)
    monkeypatch.setattr("audits.result_table.answer", _raised)
    table = table_of(tmp_path / "found.json")
    table.keep("another", {"seconds": 1.0})
    measure(table, [row.name], workers=1)
    assert table.load()[row.name]["error"] == "it is not there."
    assert "another" in table.load()
    assert row.name in table.missing()
    assert "not run: it is not there." in capsys.readouterr().err


def _raised(*_):
    raise InputError("it is not there.")


# -- verdicts --------------------------------------------------------------------------------------


MISSED = {"verdict": "not-refuted", "epsilon_lower": 0.1, "runs": 500}


def seen(verdict="unproven", *findings, **more):
    found = [[severity, rule, ""] for severity, rule in findings]
    return {"verdict": verdict, "findings": found, "epsilon": 1.0, "usual": 1.0, **more}


def judge(found, **fields):
    return RowVerdict(Row(*GIVEN, **fields), {"version": "1", "seconds": 1.0, **found})


FURTHER = ("error", "sensitivity-understated")
BRANCH = ("error", "private-control-flow")
WARNED = ("error", "library-warns")


@pytest.mark.parametrize(
    ("found", "fields", "standing", "fault"),
    [
        ({"observe": seen("certified")}, {}, "certified", "NONE"),
        ({"observe": seen("unproven")}, {}, "unproven", "NONE"),
        ({"observe": seen("certified"), "audit": REFUTED}, {}, "refuted", "CONTRADICTS"),
        ({"audit": MISSED}, {}, "unproven", "NONE"),
        ({"observe": seen("unproven", FURTHER)}, {}, "unproven", "CONTRADICTS"),
        ({"observe": seen("unproven", BRANCH)}, {}, "unproven", "CHECK"),
        ({"observe": seen("unproven", BRANCH)}, {"harmless": "why"}, "unproven", "NONE"),
        ({"observe": seen("unproven", FURTHER, WARNED)}, {}, "unproven", "WARNED"),
        ({"observe": seen(), "audit": REFUTED}, {"documented": "so"}, "refuted", "DOCUMENTED"),
        ({"observe": seen(), "audit": REFUTED}, {"stated": "open"}, "refuted", "OPEN"),
        ({"observe": seen(), "audit": REFUTED}, {"stated": "home-made"}, "refuted", "OWN"),
        ({"observe": seen("unproven", ("error", "charged-less"))}, {}, "unproven", "NONE"),
        ({"error": "no such thing"}, {}, "unproven", "NONE"),
    ],
)
def test_verdict_and_fault(found, fields, standing, fault):
    made = judge(found, **fields)
    assert made.standing is Standing(standing)
    assert made.fault is Fault[fault]


def test_harmless_does_not_excuse_an_attack():
    made = judge({"observe": seen("unproven", BRANCH), "audit": REFUTED}, harmless="why")
    assert made.accused
    assert made.fault is Fault.CONTRADICTS


def test_a_right_row_that_is_accused_is_a_false_alarm():
    assert judge({"audit": REFUTED}, right=True).false
    assert judge({"observe": seen("unproven", BRANCH)}, right=True).false
    assert not judge({"audit": MISSED}, right=True).false
    assert not judge({"audit": REFUTED}).false


def test_only_what_a_library_states_and_nobody_has_published_has_a_note():
    told = Published("something", "somebody")
    assert judge({"audit": REFUTED}).unpublished
    for fields in ({"published": told}, {"stated": "home-made"}, {"documented": "so"}):
        assert not judge({"audit": REFUTED}, **fields).unpublished
    assert not judge({"observe": seen("unproven", FURTHER)}).unpublished


def test_evidence_rounds_down_and_says_what_an_attack_missed():
    assert "ε ≥ 2.34 (95 %, 500 runs a side)" in judge({"audit": REFUTED}).evidence
    assert "nothing found in 500 runs" in judge({"audit": MISSED}).evidence
    endless = {**REFUTED, "epsilon_lower": "inf"}
    assert "ε ≥ ∞" in judge({"audit": endless}).evidence


@pytest.mark.parametrize(
    ("found", "claim", "cost", "over"),
    [
        (seen(epsilon=1.5), "epsilon = 1", "1.5 (1 at δ = 1e-5)", "over by 50 %"),
        (seen(word=1.2, usual=1.2), "epsilon = 1", "1.2", "over by 20 %"),
        (seen(), "epsilon = 1", "1", "as claimed"),
        (seen(usual=0.4), "epsilon = 1, delta = 1e-5", "1 (0.4 at δ = 1e-5)", "60 % wasted"),
        (seen(epsilon=None, usual=None), "epsilon = 1", "no bound", "–"),
        (seen(), "rho = 0.5", "1", "–"),
    ],
)
def test_cost_beside_the_claim(found, claim, cost, over):
    made = judge({"observe": found}, claim=claim, attack=Attack(0, 1))
    assert (made.cost, made.over) == (cost, over)


# -- the page --------------------------------------------------------------------------------------


RIGHT, WRONG = BY_NAME["diffprivlib: mean"], BY_NAME["diffprivlib: inertia of k-means"]
PUBLISHED = BY_NAME["diffprivlib: mean with a missing number"]


def results(**found):
    """A table of three rows."""
    fine = {"verdict": "certified", "findings": [], "epsilon": 1.0, "usual": 1.0, "word": 1.0}
    table = {
        RIGHT.name: {"observe": fine, "version": "0.6.6", "seconds": 2.0},
        WRONG.name: {"audit": REFUTED, "version": "0.6.6", "seconds": 8.0},
        PUBLISHED.name: {"audit": REFUTED, "version": "0.6.6", "seconds": 4.0},
    }
    for name, own in table.items():
        own["commands"] = BY_NAME[name].commands()
    return table | found


def test_the_page_is_what_the_results_render_to():
    table = table_of(ROOT / RESULTS)
    shown = (ROOT / RESULTS).with_suffix(".md").read_text(encoding="utf-8")
    assert page(judge_rows(table.found()), table.load()) == shown


def test_no_right_pipeline_is_accused_and_enough_is_found_again():
    found = judge_rows(table_of(ROOT / RESULTS).found())
    assert not [each.row.name for each in found if each.false or each.error]
    assert len([each for each in found if each.row.published and each.accused]) >= 9
    assert len(found) >= 60
    assert sum(each.row.queries > 1 for each in found) >= 20


def test_a_page_of_three_rows():
    shown = page(judge_rows(results()), results())
    assert "**Right pipelines accused: 0 of 1.**" in shown
    assert "1 of 1 rows show\nthe published violation, each within 4.0 s" in shown
    assert "- diffprivlib 0.6.6, KMeans: row *diffprivlib: inertia of k-means* below." in shown
    assert f"# {WRONG.name}\ndpaudit audit audits/libraries/pipelines/diffprivlib/" in shown


def test_results_of_other_commands_are_refused(tmp_path):
    table = table_of(tmp_path / "some.json")
    table.keep(RIGHT.name, results()[RIGHT.name] | {"commands": [["observe", "something else"]]})
    with pytest.raises(InputError, match="measure it anew"):
        table.found()
    assert RIGHT.name in table.missing()


def test_accountants_below_the_truth_stand_out():
    first, subject = SETTINGS[0], SUBJECTS[0]
    cells = {first.name: {"epsilon": 0.9, "seconds": 0.1}}
    table = results() | {
        accountants.TRUTH: {first.name: [1.0, 1.1]},
        subject.key: {"version": "1", "cells": cells},
    }
    shown = page(judge_rows(table), table)
    assert "**0.9, below by 10 %**" in shown
    assert "1 below" in shown


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (None, "no answer"),
        (0.99, "below by 1 %"),
        (1.0, "inside"),
        (1.05, "inside"),
        (1.1005, "inside"),
        (2.2, "above by 100 %"),
    ],
)
def test_verdict_of_an_accountant(epsilon, words):
    assert verdict(epsilon, (1.0, 1.1)) == words


def test_the_truth_of_whole_batches_is_the_closed_form():
    from scipy.stats import norm

    setting = next(each for each in SETTINGS if each.rate == 1)
    low, high = accountants.truth(setting)
    mu = setting.steps**0.5 / setting.noise

    def delta(epsilon):  # of a Gaussian mechanism (Balle and Wang 2018, Theorem 8)
        far = norm.logcdf(-mu / 2 - epsilon / mu)
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + far))

    assert delta(high * 1.0001) < setting.delta < delta(low * 0.9999)


def test_notes_are_of_what_nobody_has_published(tmp_path):
    written = write_notes(judge_rows(results()), tmp_path)
    assert [file.name for file in written] == ["diffprivlib-inertia-of-k-means.md"]
    text = written[0].read_text(encoding="utf-8")
    for part in ("**What.**", "**Where.**", "dpaudit audit ", "**How to mend.** Do not keep"):
        assert part in text
    assert "Not published" in text


def test_render_alone_measures_nothing_and_says_what_is_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("audits.libraries.page.NOTES", tmp_path / "notes")
    file = tmp_path / "some.json"
    table = table_of(file)
    for name, found in results().items():
        table.keep(name, found)
    assert main(["--render", "--results", str(file)]) == 0
    assert "Right pipelines accused: 0 of 1" in file.with_suffix(".md").read_text("utf-8")
    accused = results()[RIGHT.name] | {"observe": {"verdict": "refuted", "findings": []}}
    table.keep(RIGHT.name, accused)
    assert main(["--render", "--results", str(file)]) == 1
    table.keep(RIGHT.name, results()[RIGHT.name] | {"error": "it did not run"})
    assert main(["--render", "--results", str(file)]) == 2
    assert main(["--library", "no-such", "--results", str(file)]) == 3
    assert "no row has --library 'no-such'" in capsys.readouterr().err
