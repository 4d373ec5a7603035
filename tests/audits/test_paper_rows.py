"""What the papers state and what comes out: rows, records, and spot runs."""

from __future__ import annotations

import inspect
import json
import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from shutil import copy

import numpy as np
import pytest

from audits.paper_rows import __main__ as command
from audits.paper_rows import recording
from audits.paper_rows.experiments import Experiment, experiments
from audits.paper_rows.measured import (
    Measured,
    Number,
    Verdict,
    agreeing,
    exponent,
    judged,
    not_worse,
)
from audits.paper_rows.measures import code, federated, joint, local, outsourced
from audits.paper_rows.page import Page, headlines, number_text, value_text
from audits.paper_rows.pictures import Line, drawn, pictures_of
from audits.paper_rows.recording import FOLDER, Cell, Recording, Spot, record, spot_checks, table_of
from audits.paper_rows.rows import (
    PAPERS,
    TESTS,
    Outcome,
    Row,
    changes,
    measure,
    measure_all,
    measuring,
    rows_of,
    table_in,
)
from dpaudit.base.errors import InputError

# -- verdicts are what the numbers say, in both directions -----------------------------------------


def cell(level: float, spread: float = 0.01) -> Cell:
    """Ten trials around a level."""
    around = level * (1 + spread * np.sin(np.arange(10.0)))
    return Cell.of([value * np.linspace(0.1, 1.0, 50) for value in around])


def records(**levels: float):
    """A record of cells at these levels."""
    return lambda name: Recording(name, {label: cell(level) for label, level in levels.items()})


def test_agreement_is_within_two_errors_of_each() -> None:
    error = 0.1
    edge = 2 * math.sqrt(2) * error
    assert Number("x", 1.0, error, 10, 1.0 + 0.99 * edge).agrees()
    assert not Number("x", 1.0, error, 10, 1.0 + 1.01 * edge).agrees()
    assert Number("x", 1.0).agrees()
    assert Number("x", 1.01, paper=1.0).agrees(relative=0.02)
    found = agreeing([Number("x", 1.0, paper=1.0), Number("y", 1.0, paper=2.0)], "So.")
    assert found.verdict is Verdict.NOT_REPRODUCED
    assert found.because == "1 of 2 printed numbers came out. So."


def test_judged_and_not_worse() -> None:
    assert judged(True, [], "").verdict is Verdict.REPRODUCED
    assert judged(False, [], "", no=Verdict.REFUTED).verdict is Verdict.REFUTED
    assert not_worse((2.0, 1.0))
    assert not not_worse((2.1, 1.0))


def test_exponent_of_a_power_law() -> None:
    curve = np.arange(1.0, 1001) ** 0.75
    value, error, trials = exponent(Cell.of([curve, 3 * curve]))
    assert value == pytest.approx(0.75, abs=2e-3)
    assert error == pytest.approx(0.0, abs=1e-12)
    assert trials == 2


def test_the_error_of_an_exponent_is_that_of_the_ratio() -> None:
    rng, rounds = np.random.default_rng(0), np.arange(1.0, 401)
    runs = [[rounds ** rng.normal(0.5, 0.1) for _ in range(20)] for _ in range(300)]
    found = [exponent(Cell.of(curves))[:2] for curves in runs]
    spread = np.std([value for value, _ in found])
    assert np.mean([error for _, error in found]) == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize(("apart", "verdict"), [(0.01, "reproduced"), (1.0, "not reproduced")])
def test_an_exponent_of_a_wide_interval_decides_nothing(apart: float, verdict: str) -> None:
    rounds = np.arange(1.0, 401)
    powers = 0.4 + apart * np.linspace(-0.5, 0.5, 20)
    wide = Cell.of([rounds**power for power in powers])
    names = ("x", "theorem's width, tight noise, α = 1", "non-private", "uniform play")
    known = Recording("joint-figures", dict.fromkeys(names, wide))
    assert joint.growth(lambda _: known, "x", 0.5).verdict == verdict


def test_a_panel_of_a_wide_interval_is_no_evidence_of_competing() -> None:
    rng = np.random.default_rng(0)
    names = ("LDP-ATA-GP-UCB", "LDP-TGP-UCB", "LDP-MoMA-GP-UCB", "uniform play")
    cells = {
        f"a: {name}": Cell.of([np.full(9, max(0.0, each)) for each in rng.normal(level, 60.0, 30)])
        for name, level in zip(names, (100.0, 120.0, 105.0, 600.0), strict=True)
    }
    found = local.panel(lambda name: Recording(name, cells), "a")
    assert not_worse((found.numbers[-1].ours, found.numbers[-1].error))
    assert found.verdict is Verdict.NOT_REPRODUCED


def test_what_decides_is_among_the_numbers() -> None:
    order = ["TS", "FTS", "FTS-DE, P = 4"]
    known = records(**dict(zip(order, (3.0, 2.0, 1.0), strict=True)))
    shown = [number.what for number in federated.trend(known, "synthetic", order).numbers]
    assert shown[3:] == [
        "FTS less TS, mean of all rounds",
        "FTS-DE, P = 4 less FTS, mean of all rounds",
        "FTS-DE, P = 4 less TS, mean of all rounds",
    ]
    found = federated.beats(known, "digits", order[1:])
    assert [number.ours for number in found.numbers[3:5]] == [
        pytest.approx(found.numbers[place].ours - found.numbers[0].ours) for place in (1, 2)
    ]
    assert found.verdict is Verdict.REPRODUCED


def test_what_falls_at_the_end_alone_does_not_beat() -> None:
    slow = Cell.of([level * np.r_[np.full(40, 3.0), 0.1] for level in (1.0, 1.01, 0.99)])
    even = Cell.of([level * np.full(41, 1.0) for level in (1.0, 1.01, 0.99)])
    known = Recording("federated-digits", {"TS": even, "z = 1": slow})
    found = federated.beats(lambda _: known, "digits", ["z = 1"])
    assert found.verdict is Verdict.NOT_REPRODUCED
    assert "at the end 1 are" in found.because


def test_a_figure_that_is_not_at_hand_is_not_reproduced() -> None:
    (row,) = rows_of(["K26"])
    found = measure(row).measured
    assert found.verdict is Verdict.NOT_POSSIBLE
    assert found.numbers


@pytest.mark.parametrize(
    ("moma", "verdict"),
    [(90.0, "reproduced"), (99.0, "reproduced"), (150.0, "not reproduced")],
)
def test_a_panel_is_judged_by_paired_differences(moma: float, verdict: str) -> None:
    levels = {"a: LDP-ATA-GP-UCB": 100.0, "a: LDP-TGP-UCB": 120.0, "a: LDP-MoMA-GP-UCB": moma}
    found = local.panel(records(**levels, **{"a: uniform play": 600.0}), "a")
    assert found.verdict == verdict


def test_where_nothing_is_learnt_nothing_is_reproduced() -> None:
    names = ("LDP-ATA-GP-UCB", "LDP-TGP-UCB", "LDP-MoMA-GP-UCB", "uniform play")
    found = local.panel(records(**{f"a: {name}": 100.0 for name in names}), "a")
    assert found.verdict is Verdict.NOT_REPRODUCED
    assert "nothing is learnt" in found.because


@pytest.mark.parametrize(
    ("levels", "verdict"), [((3, 2, 1), "reproduced"), ((3, 1, 2), "not reproduced")]
)
def test_an_order_is_judged_step_by_step(levels, verdict: str) -> None:
    order = ["TS", "FTS", "FTS-DE, P = 4"]
    known = records(**dict(zip(order, map(float, levels), strict=True)))
    assert federated.less_regret(known, "synthetic", order).verdict == verdict
    assert federated.trend(known, "synthetic", order).verdict == verdict


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "reproduced"), (1.5, "not reproduced")])
def test_a_table_is_judged_cell_by_cell(scale: float, verdict: str) -> None:
    printed = outsourced.TABLES["grid"][1.1]
    levels = {f"ε = e^1.1, r = {r}": scale * value for r, value in printed}
    found = outsourced.table(records(**levels, **{"rows in the clear": 0.01}), "grid", 1.1)
    assert found.verdict == verdict


def test_lemmas_have_the_verdicts_of_their_costs() -> None:
    known = records()
    assert joint.lemma_2(known, printed=False).verdict is Verdict.REFUTED
    assert joint.lemma_2(known, printed=True).verdict is Verdict.REPRODUCED
    assert joint.lemma_5(known, [10.0]).verdict is Verdict.REFUTED
    assert joint.lemma_5(known, [0.1, 1.0]).verdict is Verdict.REPRODUCED


def test_beyond_the_range_the_loss_is_laplaces() -> None:
    found = local.unbounded_inputs(records())
    # δ(ε) of Laplace noise at distance 3ε by quadrature of the positive part.
    x = np.linspace(-60.0, 60.0, 400_001)
    p, q = (np.exp(-np.abs(x - shift)) / 2 for shift in (0.0, 3.0))
    expected = float(np.maximum(p - math.e * q, 0.0).sum() * (x[1] - x[0]))
    assert found.numbers[0].ours == pytest.approx(expected, abs=1e-4)
    assert found.verdict is Verdict.REFUTED


def test_another_measure_is_one_sentence() -> None:
    for name in ("local.nothing", "nowhere.panel", "local"):
        with pytest.raises(InputError, match=r"it must be module\.function"):
            measuring(name)


# -- every row has what measures it, and says what its numbers say ---------------------------------


ROOT = Path(__file__).parents[2]
ROWS = {row.id: row for row in rows_of()}
RECORDED = (
    "Z6", "Z13", "Z14", "Z17", "K8", "K11", "K12", "K16", "K26", "D3", "D11", "D12",
    "D18", "D21", "F8", "F9", "F11", "F13", "F17", "F19", "F20", "F21", "F23", "F26",
)  # fmt: skip
"""Rows that rest on records alone, which are read at once."""


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_has_what_measures_it_or_a_reason(row) -> None:
    assert bool(row.measure) != bool(row.impossible)
    assert row.place
    assert row.claim.endswith(".")
    if row.measure:
        inspect.signature(measuring(row.measure)).bind(None, **row.arguments)


def test_ids_count_the_rows_of_a_paper() -> None:
    letters = [list(group) for _, group in groupby(ROWS, key=lambda name: name[0])]
    assert [len(PAPERS[place].rows) for place in range(4)] == [len(each) for each in letters]
    for names in letters:
        assert names == [f"{names[0][0]}{number}" for number in range(1, len(names) + 1)]


def test_tests_and_pictures_that_rows_name_are_there() -> None:
    for row in ROWS.values():
        for node in row.arguments["nodes"] if row.measure == TESTS else ():
            file, _, name = node.partition("::")
            text = (ROOT / "tests" / "private_bo" / file).read_text(encoding="utf-8")
            assert f"def {name}(" in text or not name
    assert {name for paper in PAPERS for name in paper.pictures} <= set(experiments())


def test_the_results_have_every_row_and_at_most_nine_are_not_possible() -> None:
    found = table_in(FOLDER).found()
    assert set(found) == set(ROWS)
    verdicts = [Verdict(row["verdict"]) for row in found.values()]
    assert sum(verdict.decided for verdict in verdicts) >= 65
    assert verdicts.count(Verdict.NOT_POSSIBLE) <= 9


@pytest.mark.parametrize("name", RECORDED)
def test_a_verdict_follows_from_the_record(name: str) -> None:
    assert json.loads(json.dumps(measure(ROWS[name]).record)) == table_in(FOLDER).found()[name]


def test_every_experiment_has_its_record_of_as_many_trials_as_it_says() -> None:
    for experiment in experiments().values():
        table = table_of(experiment)
        assert list(table.load()) == list(experiment.cells)
        assert not table.missing()
        assert all(len(each["final"]) == experiment.trials for each in table.found().values())
        assert set(experiment.spot) <= set(experiment.cells)


def test_without_a_record_a_row_is_not_run(tmp_path: Path) -> None:
    outcome = measure(ROWS["Z14"], tmp_path)
    assert outcome.measured.verdict is Verdict.NOT_RUN
    assert not outcome.measured.numbers


def test_without_its_data_a_row_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    row = next(row for row in ROWS.values() if row.arguments == {"data": "loans"})
    outcome = measure(row)
    assert outcome.measured.verdict is Verdict.NOT_RUN
    assert "DPAUDIT_DATA" in outcome.measured.because


def test_rows_come_in_their_order_with_tests_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = rows_of(["K6", "Z2", "F25"])
    words = {f"tests/private_bo/{node}": {"test": "PASSED"} for node in asked[1].arguments["nodes"]}
    monkeypatch.setattr(code, "_known", words)
    outcomes = measure_all(asked)
    assert [outcome.row.id for outcome in outcomes] == ["Z2", "K6", "F25"]
    assert outcomes[1].measured.verdict is Verdict.REPRODUCED


@pytest.mark.parametrize("word", ["FAILED", "SKIPPED", "ERROR", None])
def test_one_test_that_does_not_pass_decides(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    words = {"a": "PASSED"} | ({"b": word} if word else {})
    known = {"tests/private_bo/x": words, "tests/private_bo/y": {"c": "PASSED"} if word else {}}
    monkeypatch.setattr(code, "_known", known)
    found = code.tests(None, ["x", "y"], future=False)
    assert found.verdict is Verdict.NOT_REPRODUCED
    assert found.numbers[1].ours == 1


def test_another_row_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"^row is 'Q1'; it must be one of Z1, .*\.$"):
        rows_of(["Q1"])


# -- records of trials, and spot checks of them ----------------------------------------------------


CHEAP = {
    "local-sub-weibull": "at (ln t)^θ, θ = 1",
    "outsourced-branin": "ε = e^1.1, r = 10",
    "joint-figures": "non-private",
    "federated-synthetic": "S = 11",
}
"""One cell for each paper, in which no choice hangs on a last bit."""


def noise(cells, trial):
    """Curves that grow by the trial's own step."""
    steps = {"a": 1.0, "b": 2.0}
    return {cell: (trial + 1) * steps[cell] * np.arange(1.0, 101) for cell in cells}


SMALL = Experiment("small", "A small one", ("a", "b"), noise, 4, ("a", "b"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recording:
    """The small experiment, recorded."""
    monkeypatch.setattr(recording, "experiments", lambda: {"small": SMALL})
    record(SMALL, tmp_path)
    found = Recording.read("small", tmp_path)
    assert found is not None
    return found


def test_a_cell_has_the_textbook_mean_and_error(small: Recording) -> None:
    cell = small.cell("b")
    assert cell.final.tolist() == [200.0, 400.0, 600.0, 800.0]
    mean, error = cell.regret
    assert mean == 500.0
    assert error == pytest.approx(np.std(cell.final, ddof=1) / 2)
    assert cell.average.tolist() == pytest.approx([101.0, 202.0, 303.0, 404.0])
    assert (cell.rounds[0], cell.rounds[-1], cell.trials) == (1.0, 100.0, 4)
    assert cell.mean[-1] == 500.0


def test_differences_are_paired(small: Recording) -> None:
    mean, error = small.less("b", "a")
    assert mean == 250.0
    assert error == pytest.approx(np.std([100, 200, 300, 400], ddof=1) / 2)


def test_a_record_is_read_as_it_was_written(small: Recording, tmp_path: Path) -> None:
    for label, cell in small.cells.items():
        runs = [noise((label,), trial)[label] for trial in range(4)]
        assert cell.final.tolist() == Cell.of(runs).final.tolist()
        assert Cell.recorded(cell.record).mean.tolist() == cell.mean.tolist()
    assert Recording.read("small", tmp_path / "elsewhere") is None
    read = small
    with pytest.raises(InputError, match="has no cell 'c'"):
        read.cell("c")


def test_a_spot_check_finds_another_number(small: Recording) -> None:
    made = small
    assert all(spot.agrees for spot in spot_checks({"small": made}))
    a = made.cells["a"]
    far = replace(a, final=a.final + np.array([2 * a.regret[1], 0, 0, 0]))
    spots = {
        spot.cell: spot
        for spot in spot_checks({"small": Recording("small", {**made.cells, "a": far})})
    }
    assert not spots["a"].agrees
    assert spots["b"].agrees


def test_what_cannot_be_run_is_said(small: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(cells, trial):
        raise InputError("file is missing; set DPAUDIT_DATA to the folder that has it.")

    made = small
    monkeypatch.setattr(recording, "experiments", lambda: {"small": replace(SMALL, run=missing)})
    assert [spot.found for spot in spot_checks({"small": made})] == [None, None]


@pytest.mark.parametrize(("name", "label"), CHEAP.items())
def test_one_recorded_trial_of_each_paper_comes_out_again(name: str, label: str) -> None:
    known = Recording.read(name)
    assert known is not None
    found = experiments()[name].run((label,), 1)[label][-1]
    assert found == pytest.approx(known.cell(label).final[1], rel=1e-4, abs=1e-7)


def test_a_chaotic_cell_is_another_draw_of_the_same_law() -> None:
    known, label = Recording.read("joint-figures"), "paper noise, α = 10, β = 0.1"
    assert known is not None
    assert label in experiments()["joint-figures"].chaotic
    found = experiments()["joint-figures"].run((label,), 1)[label][-1]
    mean, error = known.cell(label).regret
    assert abs(found - mean) < 7 * error * 21**0.5  # Student's t of 19, once in a million


def test_a_spot_of_a_chaotic_cell_has_room_for_one_more_trial(
    small: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = small
    loose = {"small": replace(SMALL, chaotic=("a",))}
    monkeypatch.setattr(recording, "experiments", lambda: loose)
    a, b = spot_checks({"small": made})
    assert (a.recorded, b.recorded) == (250.0, 200.0)
    assert a.agrees
    assert a.allowed > 5 * made.cell("a").regret[1] > 5 * b.allowed / 3


# -- the page, its pictures, and what it is compared with ------------------------------------------


HOSTILE = Measured((Number("<b>x</b>|", 1.5, 0.25, 4, 2.0),), Verdict.REFUTED, "a | <script> `b`")


@pytest.fixture(scope="module")
def page() -> Page:
    outcomes = {row.id: Outcome(row, HOSTILE) for row in rows_of()}
    record = Recording.read("outsourced-branin")
    assert record is not None
    return Page(outcomes, {record.name: record}, (Spot("e", "c", 1.0, 1.0, 0.1),))


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (470446.0, 34538.0, "470 000 ± 35 000"),
        (0.0381554, 0.0142826, "0.038 ± 0.014"),
        (-1.5, 0.25, "−1.50 ± 0.25"),
        (1030.88, 0.0, "1031"),
        (2.65e-6, 0.0, "2.65e-06"),
    ],
)
def test_numbers_have_the_digits_of_their_error(value: float, error: float, text: str) -> None:
    assert value_text(value, error) == text


def test_a_number_says_runs_and_what_is_printed() -> None:
    text = number_text(Number("regret", 1.5, 0.25, 4, 2.0))
    assert text == "regret: 1.50 ± 0.25 (4 runs); paper: 2"


def test_every_row_is_on_both_pages(page: Page) -> None:
    text, shown = page.render(".md"), page.render(".html")
    for row in rows_of():
        assert f"**{row.id}**" in text
        assert f'id="{row.id}"' in shown
        assert row.command in text


def test_text_of_rows_means_nothing_to_a_page(page: Page) -> None:
    assert "<script>" not in page.render(".md")
    assert "<script>" not in page.render(".html")
    assert "<b>x" not in page.render(".html")


def test_the_html_is_whole_and_loads_nothing(page: Page) -> None:
    opened: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            assert tag not in ("script", "img", "link", "iframe")
            assert not any(name in ("src", "onclick") for name, _ in attrs)
            if tag in ("table", "svg", "ul", "small"):
                opened.append(tag)

        def handle_endtag(self, tag):
            if tag in ("table", "svg", "ul", "small"):
                assert opened.pop() == tag

    Reader().feed(page.render(".html"))
    assert opened == []


def test_headlines_count_verdicts_and_spots(page: Page) -> None:
    first, second = headlines(page)
    assert f"{len(rows_of())} rows" in first
    assert f"{len(rows_of())} refuted" in first
    assert second.startswith("Spot checks: 1 of 1")


@pytest.mark.parametrize("name", experiments())
def test_pictures_are_whole_and_show_what_was_recorded(name: str) -> None:
    record = Recording.read(name)
    assert record is not None
    found = list(pictures_of({name: record}, name))
    assert found
    for picture in found:
        root = ElementTree.fromstring(picture)
        lines = root.findall("{http://www.w3.org/2000/svg}polyline")
        assert len(lines) >= 2
        assert "nan" not in picture
    assert list(pictures_of({}, name)) == []


def test_a_line_is_drawn_to_scale() -> None:
    line = Line("x", np.array([1.0, 2.0]), np.array([0.0, 10.0]))
    root = ElementTree.fromstring(drawn("t", [line], "round", "regret"))
    (polyline,) = root.findall("{http://www.w3.org/2000/svg}polyline")
    first, last = (tuple(map(float, pair.split(","))) for pair in polyline.get("points").split())
    assert first == (52.0, 176.0)
    assert last == (332.0, 22.0)


def outcome(name: str, ours: float, verdict: Verdict = Verdict.REFUTED) -> Outcome:
    row = Row(name, "place", "claim.", "joint.lemma_2")
    return Outcome(row, Measured((Number("x", ours),), verdict, ""))


def test_what_changes_is_named(tmp_path) -> None:
    assert list(changes([outcome("A", 1.0)], tmp_path)) == []
    table_in(tmp_path).write({name: outcome(name, 1.0).record for name in "AB"})
    now = [outcome("A", 1.0), outcome("B", 1.1)]
    assert list(changes(now, tmp_path)) == ["B: x was 1, is 1.1."]
    now = [outcome("A", 1.0, Verdict.REPRODUCED)]
    assert list(changes(now, tmp_path)) == ["A: was refuted, is reproduced."]


def test_the_page_on_disk_is_light_and_of_these_results() -> None:
    text = FOLDER.with_suffix(".html").read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000
    assert all(f'id="{name}"' in text for name in table_in(FOLDER).found())


# -- the command, on small experiments and cheap rows ----------------------------------------------


NAME, CELL = "local-sub-weibull", "at (ln t)^θ, θ = 1"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """One experiment of one checked cell, two rows, and a folder of its own."""
    from dataclasses import replace

    one = {NAME: replace(experiments()[NAME], spot=(CELL,))}
    monkeypatch.setattr(command, "experiments", lambda: one)
    monkeypatch.setattr(recording, "experiments", lambda: one)
    monkeypatch.setattr(command, "rows_of", lambda names=(): rows_of(["Z2", "Z13"]))
    folder = tmp_path / "papers"
    folder.mkdir()
    copy(FOLDER / f"{NAME}.json", folder)
    return folder


def run(folder, *options: str) -> int:
    return command.main(["--folder", str(folder), "--workers", "1", *options])


def test_the_page_is_written_where_all_agrees(folder, capsys) -> None:
    assert run(folder) == 0
    assert "2 rows, 2 decided" in capsys.readouterr().out
    assert "Z13" in folder.with_suffix(".md").read_text(encoding="utf-8")
    assert "<svg" in folder.with_suffix(".html").read_text(encoding="utf-8")
    first = (folder / "rows.json").read_bytes()
    assert run(folder) == 0
    assert (folder / "rows.json").read_bytes() == first


def test_a_record_that_disagrees_fails_and_names_the_row(folder, capsys) -> None:
    path = folder / f"{NAME}.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record[CELL]["final"][0] *= 2
    path.write_text(json.dumps(record), encoding="utf-8")
    assert run(folder) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"Z13: record {NAME}, cell {CELL}: trial 1 was ")
    assert not folder.with_suffix(".md").exists()


def test_rows_are_printed_alone(capsys) -> None:
    assert command.main(["--only", "Z2", "--workers", "1"]) == 0
    assert capsys.readouterr().out.startswith("Z2  Section 4.5: ")


def test_wrong_names_are_one_sentence(capsys) -> None:
    assert command.main(["--only", "Q9"]) == 3
    assert command.main(["--record", "nothing", "--folder", str(FOLDER)]) == 3
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith("row is 'Q9'")
    assert "nothing" in said[1]
