"""The page beside other auditors: needs none of them."""

import contextlib
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from audits.catalogue.measuring import Rate
from audits.peers.__main__ import RESULTS, main
from audits.peers.cells import (
    FAILED,
    HERE,
    ROWS,
    TOOLS,
    Cell,
    Row,
    ToolEndedError,
    audit_cell,
    measure,
    needs_audit,
    own,
    read,
    round_down,
    table_of,
)
from audits.peers.page import PeerResults, page
from dpaudit.base.errors import InputError

ROOT = Path(__file__).parents[2]
RIGHT = next(row for row in ROWS if row.entry.right)
BY_NAME = {tool.name: tool for tool in TOOLS}


def test_the_page_is_what_the_results_render_to():
    shown = (ROOT / RESULTS).with_suffix(".md").read_text(encoding="utf-8")
    table = table_of(ROOT / RESULTS)
    assert page(table.found(), table.load()[FAILED]) == shown


def test_render_alone_measures_nothing(tmp_path):
    results = tmp_path / "some.json"
    cell = {"bounds": [1.5, 2.5, "infinity"], "refuted": 3, "seconds": [2.0, 2.0, 2.0]}
    ours = {"bounds": [1.0, 1.0], "refuted": 0, "seconds": [8.0, 8.0]}
    table = {
        each.name: each.asked | found
        for each, found in (
            (Cell(BY_NAME["PrivacyGuard"], ROWS[0], 1_000), cell),
            (Cell(TOOLS[0], ROWS[0], 1_000), ours),
        )
    }
    results.write_text(json.dumps(table), encoding="utf-8")
    assert main(["--render", "--results", str(results)]) == 0
    assert "| PrivacyGuard | 3/3 | 2.5 | ×0.25 |" in results.with_suffix(".md").read_text("utf-8")
    assert json.loads(results.read_text("utf-8")) == table


def test_a_tool_that_cannot_be_run_is_said_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out/peers").mkdir(parents=True)
    table = table_of(tmp_path / "some.json")
    measure(table, runs=(1_000,), only="StatDP")
    assert "StatDP: out/peers/statdp/source is missing" in page({}, table.load()[FAILED])


def test_a_tool_that_ends_by_itself_leaves_its_cells_to_be_measured(tmp_path, monkeypatch):
    @contextlib.contextmanager
    def gone(tool):
        yield lambda row, runs, seed: _gone(tool)

    monkeypatch.setattr("audits.peers.cells.auditor", gone)
    table = table_of(tmp_path / "some.json")
    measure(table, runs=(1_000,), only="StatDP")
    assert list(table.load()) == [FAILED]
    assert "StatDP ended" in page({}, table.load()[FAILED])


def test_audits_of_another_version_are_refused_and_not_gone_on_with(tmp_path):
    cell, table = Cell(BY_NAME["StatDP"], ROWS[0], 1_000), table_of(tmp_path / "some.json")
    table.keep(cell.name, cell.asked | {"version": "0", "bounds": [], "seconds": [9.0] * 3})
    with pytest.raises(InputError, match="another cell"):
        table.found()
    assert needs_audit(table.known(cell.name), cell.row)


def test_cells_that_are_out_of_date_are_measured_anew_and_no_others(tmp_path, monkeypatch):
    @contextlib.contextmanager
    def quick(tool):
        yield lambda row, runs, seed: {"bound": 1.0, "rejected": False, "seconds": 4.0}

    monkeypatch.setattr("audits.peers.cells.auditor", quick)
    tool, results = BY_NAME["dpaudit, score learned"], tmp_path / "some.json"
    old = {"bounds": [0.5], "refuted": 0, "seconds": [9.0] * 3}
    cells = [Cell(tool, row, runs) for row in tool.taken for runs in (1_000, 10_000)]
    table_of(results).write({each.name: each.asked | old for each in cells})
    given = "--only", "learned", "--runs", "1000", "--results", str(results)
    assert main(["--anew", "1000 entries", *given]) == 0
    table = table_of(results).load()
    fresh = [each for each in cells if table[each.name]["bounds"] == [1.0] * 3]
    assert [(each.row.label, each.runs) for each in fresh] == [
        ("Gaussian, 1000 entries with the noise of one", 1_000)
    ]
    assert main(["--anew", "nowhere", *given]) == 3
    assert table_of(results).load() == table


def _gone(tool):
    raise ToolEndedError(f"{tool.name} ended by itself.")


def test_a_cell_goes_on_where_it_ended():
    def audit(row, runs, seed):
        return {"bound": f"{runs + seed}.00009", "rejected": seed > 1, "seconds": 1.23456}

    cell = Cell(TOOLS[0], ROWS[0], 1_000)
    whole = audit_cell(audit, cell, {})
    assert whole["bounds"] == [1_000.0 + seed for seed in range(7)]  # 6 take less than 8 seconds
    assert (whole["refuted"], whole["seconds"][0]) == (5, 1.23)
    part = {"bounds": [1_000.0, 1_001.0], "refuted": 0, "seconds": [1.23, 1.23]}
    assert audit_cell(audit, cell, part) == whole
    assert not needs_audit(whole, ROWS[0])
    assert audit_cell(lambda row, runs, seed: {"error": "no"}, cell, {}) == {"error": "no"}
    assert not needs_audit({"error": "no"}, ROWS[0])
    assert needs_audit({"seconds": [99.0, 99.0]}, ROWS[0])


def test_bounds_and_alarms_are_counted_against_the_truth():
    right, tool = RIGHT, BY_NAME["PrivacyGuard"]
    found = {"bounds": [0.9, 1.1, 1.2], "refuted": 2, "seconds": [1.0] * 3}
    measured = PeerResults({Cell(tool, right, 1_000).name: found})
    assert measured.rate(tool, [right]) == Rate(2, 3)
    assert measured.above(tool) == Rate(2, 3)
    assert measured.holds(TOOLS[0])
    assert not measured.holds(tool)  # 2 of 3 are more than 5 %, with confidence
    assert "2 of 3 (9.4–99.2 %)" in page(measured.table, {})


def test_dpaudit_on_one_row():
    row = ROWS[0]
    answers = [own(TOOLS[0], row, 2_000, seed) for seed in range(3)]
    assert row.truth == 2.0  # Lap(1/2), sensitivity 1
    assert all(answer["rejected"] and 1.4 < answer["bound"] <= 2.05 for answer in answers)
    for tool in TOOLS[:3]:  # what is recorded comes out again
        recorded = table_of(ROOT / RESULTS).known(Cell(tool, row, 1_000).name)
        assert round_down(own(tool, row, 1_000, 0)["bound"]) == recorded["bounds"][0]


def _laplace_cdf(values, scale):
    return np.where(values < 0, np.exp(values / scale) / 2, 1 - np.exp(-values / scale) / 2)


def _patterns(length, cutoff):
    for answers in itertools.product((0, 1), repeat=length):
        total = np.cumsum(answers)
        if cutoff is None or total[-1] < cutoff or (total[-1] == cutoff and answers[-1]):
            yield answers
        elif total[-1] == cutoff:
            yield answers[: int(np.argmax(total == cutoff)) + 1]


@pytest.mark.parametrize(
    ("label", "threshold", "query", "cutoff"),
    [("Lee and Clifton", 4.0, 4 / 3, 5), ("Chen", 2.0, 2.0, None), ("Lyu", 2.0, 8.0, 2)],
)
def test_true_loss_of_sparse_vectors_by_integration(label, threshold, query, cutoff):
    row = next(row for row in ROWS if label in row.label)
    rho = np.linspace(-120, 120, 24_001)
    weight = np.exp(-np.abs(rho) / threshold)
    sides = []
    for data in (row.entry.x, row.entry.x_prime):
        below = {value: _laplace_cdf(rho - value, query) for value in set(data)}
        sides.append((data, below))
    losses, seen = [], set()
    for answers in _patterns(len(row.entry.x), cutoff):
        pairs = zip(row.entry.x, row.entry.x_prime, answers, strict=False)
        kinds = tuple(sorted(pairs))
        if kinds in seen:
            continue
        seen.add(kinds)
        chances = [
            np.sum(
                weight
                * np.prod(
                    [
                        b if not a else 1 - b
                        for a, b in zip(answers, map(below.get, data), strict=False)
                    ],
                    axis=0,
                )
            )
            for data, below in sides
        ]
        losses.append(abs(math.log(chances[0] / chances[1])))
    assert row.truth == pytest.approx(max(losses), abs=2e-4)


def test_outputs_are_the_same_for_all_and_larger_under_x(tmp_path):
    for row in ROWS:
        files = [tmp_path / f"{number}.npz" for number in range(2)]
        for file in files:
            row.draw(2_000, 1, file)
        one, other = (dict(np.load(file)) for file in files)
        assert all(np.array_equal(one[name], other[name]) for name in one)
        assert one["x"].shape == one["x_prime"].shape
        assert one["score_x"].mean() >= one["score_x_prime"].mean() - 0.05


@pytest.mark.parametrize(("runs", "seed"), [(99, 0), (1_000, -1)])
def test_wrong_numbers_are_refused(runs, seed, tmp_path):
    with pytest.raises(InputError, match="runs >= 100 and seed >= 0"):
        ROWS[0].draw(runs, seed, tmp_path / "no.npz")


def test_wrong_rows_and_tools_are_refused():
    with pytest.raises(InputError, match="no sampled entry"):
        Row("classic Gaussian calibration at ε = 10", "exact").entry  # noqa: B018
    table = {"name": "a", "version": "1", "settings": "", "knows": "score"}
    with pytest.raises(InputError, match="rows = 'some'"):
        read([{**table, "rows": "some"}])
    with pytest.raises(InputError, match="no file in adapters"):
        read([{**table, "adapter": "nobody"}])
    with pytest.raises(InputError, match="wrong or missing key"):
        read([{**table, "colour": "red"}])
    with pytest.raises(InputError, match="one name"):
        read([table, table])


def test_wrong_results_are_one_sentence(tmp_path, capsys):
    results = tmp_path / "wrong.json"
    results.write_text("[1]", encoding="utf-8")
    assert main(["--render", "--results", str(results)]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_a_cell_without_findings_is_refused():
    with pytest.raises(InputError, match="measure it anew"):
        page({Cell(TOOLS[0], ROWS[0], 1_000).name: {"bounds": [1.0]}}, {})


ADAPTER = """
def audit(task):
    if task["epsilon"] > 1:
        task["tape"].draw(0, 501)
    print("chatter")
    return len(task["tape"].draw(0, 500)), True
"""


def test_a_worker_answers_and_its_tape_ends(tmp_path):
    adapter, tape = tmp_path / "adapter.py", tmp_path / "tape.npz"
    adapter.write_text(ADAPTER, encoding="utf-8")
    ROWS[0].draw(1_000, 0, tape)
    task = {"file": str(tape), "seed": 0, "epsilon": 1.0}
    lines = "\n".join(json.dumps({**task, "epsilon": epsilon}) for epsilon in (1.0, 2.0))
    command = [sys.executable, HERE / "worker.py", adapter, tmp_path]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    first, second = map(json.loads, done.stdout.splitlines())
    assert (float(first["bound"]), first["rejected"]) == (500.0, True)
    assert "more than 1000 runs" in second["error"]
    assert "chatter" in done.stderr
