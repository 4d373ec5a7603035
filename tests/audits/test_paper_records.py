"""Records of trials, spot checks of them, and the page that rests on them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from shutil import copy

import numpy as np
import pytest

from audits.paper_rows import __main__ as command
from audits.paper_rows import recording
from audits.paper_rows.measurement import Number
from audits.paper_rows.page import Page, headlines, number_text, value_text
from audits.paper_rows.pictures import Line, drawn, pictures_of
from audits.paper_rows.recording import (
    FOLDER,
    Cell,
    Experiment,
    Recording,
    Spot,
    experiments,
    record,
    spot_checks,
)
from audits.paper_rows.rows import changes, rows_of, table_in
from audits.paper_rows.trials.federated import SETTINGS, Task
from dpaudit.base.errors import InputError
from private_bo.federated import DPFTSDE, Sensitivity

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
    with pytest.raises(InputError, match="has no cell 'c'"):
        small.cell("c")


def test_a_spot_check_finds_another_number(small: Recording) -> None:
    assert all(spot.agrees for spot in spot_checks({"small": small}))
    a = small.cells["a"]
    far = replace(a, final=a.final + np.array([2 * a.regret[1], 0, 0, 0]))
    spots = {
        spot.cell: spot
        for spot in spot_checks({"small": Recording("small", {**small.cells, "a": far})})
    }
    assert not spots["a"].agrees
    assert spots["b"].agrees


def test_what_cannot_be_run_is_said(small: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(cells, trial):
        raise InputError("file is missing; set DPAUDIT_DATA to the folder that has it.")

    monkeypatch.setattr(recording, "experiments", lambda: {"small": replace(SMALL, run=missing)})
    assert [spot.found for spot in spot_checks({"small": small})] == [None, None]


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
    loose = {"small": replace(SMALL, chaotic=("a",))}
    monkeypatch.setattr(recording, "experiments", lambda: loose)
    a, b = spot_checks({"small": small})
    assert (a.recorded, b.recorded) == (250.0, 200.0)
    assert a.agrees
    assert a.allowed > 5 * small.cell("a").regret[1] > 5 * b.allowed / 3


# -- the page, its pictures, and what it is compared with ------------------------------------------


HOSTILE = {
    "verdict": "refuted",
    "because": "a | <script> `b`",
    "numbers": [vars(Number("<b>x</b>|", 1.5, 0.25, 4, 2.0))],
    "records": [],
}


@pytest.fixture(scope="module")
def page() -> Page:
    outcomes = {row.id: row.asked | HOSTILE | {"command": row.command} for row in rows_of()}
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
    text = number_text(vars(Number("regret", 1.5, 0.25, 4, 2.0)))
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


def outcome(name: str, ours: float, verdict: str = "refuted"):
    """What came out for a row of the papers, of one number."""
    return {
        name: rows_of([name])[0].asked | {"verdict": verdict, "numbers": [vars(Number("x", ours))]}
    }


def test_what_changes_is_named(tmp_path) -> None:
    assert list(changes(outcome("Z1", 1.0), tmp_path)) == []
    table_in(tmp_path).write(outcome("Z1", 1.0) | outcome("Z2", 1.0))
    now = outcome("Z1", 1.0) | outcome("Z2", 1.1)
    assert list(changes(now, tmp_path)) == ["Z2: x was 1, is 1.1."]
    now = outcome("Z1", 1.0, "reproduced")
    assert list(changes(now, tmp_path)) == ["Z1: was refuted, is reproduced."]
    assert list(changes(outcome("Z1", 1.0, "not run"), tmp_path)) == []


@pytest.mark.parametrize("ending", [".md", ".html"])
def test_the_page_on_disk_is_what_the_results_render_to(ending: str) -> None:
    shown = FOLDER.with_suffix(ending).read_text(encoding="utf-8")
    records = {name: Recording.read(name) for name in experiments()}
    made = Page(table_in(FOLDER).found(), records, ()).render(ending)
    lines = [line for line in shown.splitlines() if line and "Spot checks: " not in line]
    assert lines == list(filter(None, made.splitlines()))
    assert len(shown.encode()) < 2_000_000


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


ROOT = Path(__file__).parents[2]
ROOM = ROOT / "algorithms" / "private_bo"
SHARES = {
    "without privacy (heavy tails)": ("d", "e", "f"),
    "ε = 1": ("A", "B", "c"),
    "ε = 0.5": ("", "b", "C"),
}
"""Rows of the page on local privacy, and the panels of their cells."""


def test_the_page_on_local_privacy_states_the_best_of_three_in_each_panel() -> None:
    panels = Recording.read("local-panels")
    assert panels is not None
    page = (ROOM / "local" / "README.md").read_text(encoding="utf-8")
    for name, letters in SHARES.items():
        cells = ["–"] * len(letters)
        for place, letter in enumerate(letters):
            own = {
                each: cell.regret[0]
                for each, cell in panels.cells.items()
                if letter and each.startswith(f"{letter}: ") and "theorem" not in each
            }
            if own:
                uniform = own.pop(f"{letter}: uniform play")
                cells[place] = f"{100 * min(own.values()) / uniform:.0f} %"
        assert f"| {name} | {' | '.join(cells)} |" in page


def test_the_page_on_federations_states_what_was_recorded_on_landmines() -> None:
    landmines = Recording.read("federated-landmines")
    assert landmines is not None
    found = (landmines.cell(each).regret for each in ("TS", "FTS-DE, P = 4", "z = 1", "z = 4"))
    cells = (f"{mean:.4f} ± {error:.4f}".replace("0.", ".") for mean, error in found)
    page = (ROOM / "federated" / "README.md").read_text(encoding="utf-8")
    assert f"| {' | '.join(cells)} |" in page


NOISES = {"noise of Section 6.1": "paper", "least noise for the claim, the default": "tight"}


def test_the_page_on_joint_privacy_states_what_was_recorded() -> None:
    record = Recording.read("joint-figures")
    assert record is not None
    page = (ROOM / "joint" / "README.md").read_text(encoding="utf-8")
    for name, noise in NOISES.items():
        cells = [
            "{:.0f} ± {:.0f}".format(*record.cell(f"{noise} noise, α = {alpha}, β = 0.1").regret)
            for alpha in ("0.1", "0.5", "1", "10")
        ]
        assert f"| {name} | {' | '.join(cells)} |" in page


PRIVATE = SETTINGS[Task.LANDMINES].private
RUNS: dict[str, tuple[str, DPFTSDE | None]] = {
    "TS": ("each agent alone (TS)", None),
    "z = 1": ("DP-FTS-DE, q = 0.35, z = 1", PRIVATE),
    "z = 4": ("DP-FTS-DE, q = 0.35, z = 4", replace(PRIVATE, noise_multiplier=4.0)),
    "q = 0.1": ("DP-FTS-DE, q = 0.1, z = 1", replace(PRIVATE, rate=0.1)),
    "DP-FTS, P = 1": ("DP-FTS, q = 0.35, z = 1", replace(PRIVATE, regions=1)),
    "FTS-DE, P = 4": ("FTS-DE, without privacy", None),
}
"""Cells of the record on landmines: rows of the page on utility, and what is certified of them."""


def test_the_page_on_utility_states_what_was_recorded_on_landmines() -> None:
    landmines = Recording.read("federated-landmines")
    assert landmines is not None
    page = (ROOT / "docs" / "local-utility.md").read_text(encoding="utf-8")
    for name, (run, algorithm) in RUNS.items():
        cell = landmines.cell(name)
        less = landmines.less(name, "TS", average=True)
        shown = [
            f"{mean:.4f} ± {error:.4f}".replace("-", "−")
            for mean, error in (cell.all_rounds, cell.regret, less)
        ]
        epsilon = "–" if algorithm is None else f"{algorithm.certified(Sensitivity.JOINT):.2f}"
        less_ts = "–" if name == "TS" else shown[2]
        assert f"| {run} | {epsilon} | {shown[0]} | {shown[1]} | {less_ts} |\n" in page
