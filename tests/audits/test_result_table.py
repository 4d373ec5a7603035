"""Tables of results: whole at any time, of their own cells, the same however they were made."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from audits.result_table import Environment, ResultTable, answer, in_order, render
from dpaudit.base.errors import InputError

CELLS = {name: number for number, name in enumerate("abcdef")}


def squared(cell, known):
    """The square of a number, and how often it was measured; 3 cannot be measured."""
    if cell == 3:
        raise InputError("three is too many.")
    return {"square": cell**2, "times": known.get("times", 0) + 1}


def table(path, cells=CELLS):
    return ResultTable(path, cells, lambda cell: {"number": cell})


# -- records ---------------------------------------------------------------------------------------


def test_a_record_is_one_line_that_repeats_what_was_asked(tmp_path):
    told = []
    made = table(tmp_path / "some.json")
    made.measure(squared, ["c", "a"], told=lambda name, record: told.append(name))
    assert told == ["c", "a"]
    assert (tmp_path / "some.json").read_text(encoding="utf-8") == (
        '{\n"a": {"number": 0, "square": 0, "times": 1},\n'
        '"c": {"number": 2, "square": 4, "times": 1}\n}\n'
    )
    assert list(made.found()) == ["a", "c"]
    assert made.missing() == ["b", "d", "e", "f"]


def test_what_stopped_a_cell_is_kept_and_the_rest_stands(tmp_path):
    made = table(tmp_path / "some.json")
    found = made.measure(squared)
    assert found["d"] == {"number": 3, "error": "three is too many."}
    assert found["e"]["square"] == 16
    assert made.missing() == ["d"]


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_number_that_json_has_not_stops_its_cell_alone(number, tmp_path):
    made = table(tmp_path / "some.json")
    made.measure(lambda cell, known: {"found": number if cell == 1 else cell}, ["a", "b", "c"])
    found = made.found()
    assert (found["a"]["found"], found["c"]["found"]) == (0, 2)
    assert found["b"]["error"] == "what was found holds a number that is not finite."


def test_an_error_that_is_a_number_stopped_nothing(tmp_path):
    made = table(tmp_path / "some.json", {"a": 0})
    made.measure(lambda cell, known: {"error": [0.5]})
    assert made.missing() == []


def test_a_record_of_another_cell_is_refused_and_never_gone_on_with(tmp_path):
    path = tmp_path / "some.json"
    table(path).measure(squared)
    other = table(path, CELLS | {"b": 7})
    with pytest.raises(InputError, match="results of 'b' are of another cell"):
        other.found()
    assert other.missing() == ["b", "d"]
    assert other.measure(squared, ["b", "c"]) == {
        "b": {"number": 7, "square": 49, "times": 1},
        "c": {"number": 2, "square": 4, "times": 2},
    }
    assert list(other.found()) == list(CELLS)


def test_records_of_no_cell_stay_behind_the_others(tmp_path):
    made = table(tmp_path / "some.json")
    made.keep("former", {"square": 1})
    made.measure(squared, ["a"])
    assert list(made.load()) == ["a", "former"]
    assert list(made.found()) == ["a"]


@pytest.mark.parametrize("content", ["[1]", '{"a": 1}', "{"])
def test_a_file_without_a_table_is_refused(content, tmp_path):
    path = tmp_path / "some.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError):
        table(path).measure(squared, ["a"])
    assert path.read_text(encoding="utf-8") == content


def test_without_a_file_nothing_is_kept():
    made = table(None)
    assert made.measure(squared, ["c"])["c"]["square"] == 4
    assert made.load() == {}


# -- processes -------------------------------------------------------------------------------------


def slow_first(cell, known):
    time.sleep(0.5 if cell == 0 else 0.0)
    return {"square": cell**2}


@pytest.mark.processes
def test_any_number_of_workers_makes_the_same_file(tmp_path):
    contents = []
    for workers in (1, 2, 3):
        path = tmp_path / f"{workers}.json"
        told: list[str] = []
        table(path).measure(slow_first, workers=workers, told=lambda n, r, t=told: t.append(n))
        assert told == list(CELLS)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] == contents[2]


def test_no_workers_are_refused():
    with pytest.raises(InputError, match="workers is 0"):
        list(in_order(abs, [1], 0))


KILLED = """
import sys, time
from pathlib import Path
from audits.result_table import ResultTable

def measure(cell, known):
    time.sleep(60 if cell == 3 and sys.argv[2] == "hang" else 0)
    return {"square": cell**2, "run": sys.argv[2]}

cells = {name: number for number, name in enumerate("abcdef")}
table = ResultTable(Path(sys.argv[1]), cells, lambda cell: {"number": cell})
table.measure(measure, table.missing())
"""


def test_it_goes_on_after_a_kill(tmp_path, pytestconfig):
    """What was measured is not measured again, and the file is whole at any time."""
    path, script = tmp_path / "some.json", tmp_path / "script.py"
    script.write_text(KILLED, encoding="utf-8")
    root = pytestconfig.rootpath
    own = {"PYTHONPATH": f"{root}:{root / 'algorithms'}", "PATH": ""}
    command = [sys.executable, str(script), str(path)]
    process = subprocess.Popen([*command, "hang"], env=own)
    try:
        end = time.monotonic() + 120
        while time.monotonic() < end and len(table(path).load()) < 3:
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert list(table(path).found()) == ["a", "b", "c"]
    subprocess.run([*command, "again"], env=own, check=True)
    found = table(path).found()
    assert [each["square"] for each in found.values()] == [0, 1, 4, 9, 16, 25]
    assert [each["run"] for each in found.values()] == ["hang"] * 3 + ["again"] * 3


# -- tools of others -------------------------------------------------------------------------------


def test_a_command_that_prints_no_json_is_an_error_with_its_last_line():
    with pytest.raises(InputError, match="printed no answer: boom"):
        answer(["sh", "-c", "echo boom >&2"])
    with pytest.raises(InputError, match="printed no answer: exit status 7"):
        answer(["sh", "-c", "exit 7"])
    with pytest.raises(InputError, match=r"more than 0\.01 s"):
        answer(["sleep", "5"], longest=0.01)


def test_an_environment_is_made_once_and_again_for_other_packages(tmp_path, monkeypatch):
    ran: list[list[str]] = []

    def run(command, **_):
        ran.append(command[2:])
        return subprocess.CompletedProcess(command, 1 if "bad==1" in command else 0)

    monkeypatch.setattr(
        "audits.result_table.venv.create", lambda home, **_: home.mkdir(exist_ok=True)
    )
    monkeypatch.setattr("audits.result_table.subprocess.run", run)
    home = tmp_path / "own"
    one = Environment(home, ("a==1", "b==2"), bare=("a",), project=True)
    for _ in range(2):
        assert one.python() == home / "bin/python"
    pip = ["pip", "install", "-q"]
    assert ran == [[*pip, "--no-deps", "a==1"], [*pip, "-e", ".", "b==2"]]
    assert Environment(home, ("c==3",)).python() == home / "bin/python"
    assert ran[2:] == [[*pip, "c==3"]]
    with pytest.raises(InputError, match="install -q bad==1 failed; its output says why"):
        Environment(home, ("bad==1",)).python()
    assert json.loads((home / "made.json").read_text()) == ["c==3"]


def test_no_environment_is_this_interpreter():
    assert Environment().python() == Path(sys.executable)


# -- pages -----------------------------------------------------------------------------------------


def test_markdown_is_shown_as_given_and_foreign_text_escaped(tmp_path):
    page = tmp_path / "page.md.j2"
    page.write_text("{{ text }} {{ text | escaped }} {{ 2 | twice }}", encoding="utf-8")

    def _twice(number):
        return f"{2 * number}"

    assert render(page, _twice, text="*a*") == r"*a* \*a\* 4"


def test_html_is_escaped_and_a_missing_value_is_an_error(tmp_path):
    page = tmp_path / "page.html.j2"
    page.write_text("<p>{{ text }}</p>", encoding="utf-8")
    assert render(page, text="<b>") == "<p>&lt;b&gt;</p>"
    for name in ("page.html.j2", "page.md.j2"):
        (tmp_path / name).write_text("{{ text }}", encoding="utf-8")
        with pytest.raises(UndefinedError):
            render(tmp_path / name)
