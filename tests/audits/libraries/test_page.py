"""The page from recorded results, and the notes."""

import math
from pathlib import Path

import pytest

from audits.libraries import accountants, notes
from audits.libraries.__main__ import RESULTS, main
from audits.libraries.accountants import PREFIX, SETTINGS, SUBJECTS
from audits.libraries.measuring import kept, load
from audits.libraries.page import judged, render
from audits.libraries.rows import all_rows
from dpaudit.base.errors import InputError

ROOT = Path(__file__).parents[3]
ROWS = all_rows()
BY_NAME = {row.name: row for row in ROWS}
RIGHT, WRONG = BY_NAME["diffprivlib: mean"], BY_NAME["diffprivlib: inertia of k-means"]
PUBLISHED = BY_NAME["diffprivlib: mean with a missing number"]
REFUTED = {"verdict": "refuted", "epsilon_lower": 2.349, "runs": 500}


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
    page = (ROOT / RESULTS).with_suffix(".md").read_text(encoding="utf-8")
    assert render(ROWS, load(ROOT / RESULTS)) == page


def test_no_right_pipeline_is_accused_and_enough_is_found_again():
    found = judged(ROWS, load(ROOT / RESULTS))
    assert not [each.row.name for each in found if each.false or each.error]
    assert len([each for each in found if each.row.published and each.accused]) >= 9
    assert len(found) >= 60
    assert sum(each.row.queries > 1 for each in found) >= 20


def test_a_page_of_three_rows():
    page = render(ROWS, results())
    assert "**Right pipelines accused: 0 of 1.**" in page
    assert "1 of 1 rows show\nwhat was published, each within 4.0 s" in page
    assert "- diffprivlib 0.6.6, KMeans: row *diffprivlib: inertia of k-means* below." in page
    assert f"# {WRONG.name}\ndpaudit audit audits/libraries/pipelines/diffprivlib/" in page


def test_results_of_other_commands_are_refused():
    table = results()
    table[RIGHT.name]["commands"] = [["observe", "something else"]]
    with pytest.raises(InputError, match="measure it anew"):
        render(ROWS, table)


def test_accountants_below_the_truth_stand_out():
    first, subject = SETTINGS[0], SUBJECTS[0]
    cells = {first.name: {"epsilon": 0.9, "seconds": 0.1}}
    table = results() | {
        f"{PREFIX}truth": {first.name: [1.0, 1.1]},
        subject.key: {"version": "1", "cells": cells},
    }
    page = render(ROWS, table)
    assert "**0.9, below by 10 %**" in page
    assert "1 below" in page


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
    assert accountants.verdict(epsilon, (1.0, 1.1)) == words


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
    written = notes.write(judged(ROWS, results()), tmp_path)
    assert [file.name for file in written] == ["diffprivlib-inertia-of-k-means.md"]
    text = written[0].read_text(encoding="utf-8")
    for part in ("**What.**", "**Where.**", "dpaudit audit ", "**How to mend.** Do not keep"):
        assert part in text
    assert "Not published" in text


def test_render_alone_measures_nothing_and_says_what_is_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("audits.libraries.notes.PLACE", tmp_path / "notes")
    file = tmp_path / "some.json"
    for name, found in results().items():
        kept(file, name, found)
    assert main(["--render", "--results", str(file)]) == 0
    assert "Right pipelines accused: 0 of 1" in file.with_suffix(".md").read_text("utf-8")
    accused = results()[RIGHT.name] | {"observe": {"verdict": "refuted", "findings": []}}
    kept(file, RIGHT.name, accused)
    assert main(["--render", "--results", str(file)]) == 1
    kept(file, RIGHT.name, results()[RIGHT.name] | {"error": "it did not run"})
    assert main(["--render", "--results", str(file)]) == 2
    assert main(["--library", "no-such", "--results", str(file)]) == 3
    assert "no row has --library 'no-such'" in capsys.readouterr().err
