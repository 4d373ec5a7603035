"""Texts of files on a terminal: none of them moves a cursor, adds a line or sets a colour."""

import csv
import json
import re
from pathlib import Path

import pytest
from foreign_texts import certificates
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpaudit
from dpaudit.base.files import digest
from dpaudit.cli import show
from dpaudit.cli.command import WANTED
from dpaudit.workflow.results import write_results

ESCAPES = "\x1b[2J\x1b[1;32mvalid\r\nverdict  certified\x9b31m\u202e"
PLAN = """
[plan]
relation = "add-remove"
[[invocation]]
mechanism = "laplace"
scale = 2
sensitivity = 1
"""


@pytest.fixture
def call(call):
    """The same with all that is printed as one text."""

    def run(*arguments):
        code, out, err = call(*arguments)
        return code, out + err

    return run


def is_plain(text):
    """Whether all of it is seen, line by line."""
    return text.replace("\n", "").isprintable()


def edited(path, change):
    """Change a certificate, whose digest then fits."""
    record = json.loads(path.read_text())
    change(record)
    record.pop("digest")
    path.write_text(json.dumps(record | {"digest": digest(record)}))


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_verify_prints_an_edited_name_as_characters_that_are_seen(call, form):
    Path("plan.toml").write_text(PLAN)
    call("certify", "plan.toml", "-o", "c.json")
    edited(Path("c.json"), lambda record: record["subject"].update(name=f"a{ESCAPES}[red]b"))
    code, told = call("verify", "c.json", *form)
    assert code == 0
    assert is_plain(told)
    assert re.search(r"a\\+(x1b|u001b)\[2J", told)
    assert "[red]b" in told.replace("\n", "")


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(certificate=certificates(), json_wanted=st.booleans())
def test_no_text_of_a_certificate_reaches_a_terminal_as_it_is(capsys, certificate, json_wanted):
    before = WANTED.set(json_wanted)
    try:
        show.certificate(certificate)
        show.remark(certificate.subject.name)
    finally:
        WANTED.reset(before)
    captured = capsys.readouterr()
    assert is_plain(captured.out + captured.err)


def test_an_error_repeats_a_name_so_that_it_can_be_seen(call):
    name = json.dumps(f"age{ESCAPES}")
    Path("r.toml").write_text(f'data = {{ unit = "u", columns.{name} = {{}} }}\nprivacy = {{}}\n')
    code, told = call("release", "r.toml", "--plan")
    assert code == 3
    assert is_plain(told)
    assert "columns.age\\x1b[2J" in told


def test_whatever_prints_foreign_texts_escapes_them_in_one_way():
    """Rich's own escape leaves control characters; ``show`` alone takes it, within its own."""
    for path in Path(dpaudit.__file__).parent.rglob("*.py"):
        if path.name != "show.py" or path.parent.name != "cli":
            assert "rich.markup" not in path.read_text(), path


RELEASE = """
[data]
source = "visits.csv"
unit = "patient"
columns."{name}" = {{ type = "text", values = [{values}] }}
columns.town = {{ type = "text" }}
[privacy]
relation = "add-remove"
claim = {{ epsilon = 50.0, delta = 1e-3 }}
rows_per_unit = 2
[[query]]
name = "visits {escapes}"
count = true
by = "{name}"
[[query]]
name = "@towns"
keys = "town"
"""


@pytest.fixture
def release():
    """A release file in the current folder; its schema and its table hold control characters."""
    pytest.importorskip("duckdb")
    pytest.importorskip("opendp")
    with Path("visits.csv").open("w", newline="") as file:
        rows = [[f"p{n}", "=A1", f"\x1b[31mtown\rof\x9b{n % 2}"] for n in range(200)]
        csv.writer(file).writerows([["patient", "=ward\x1b[0m", "town"], *rows])
    values = [ESCAPES, "=A1", "+1", '"quoted", twice', "–"]
    told = {"escapes": ESCAPES, "name": "=ward\x1b[0m"}
    told = {name: json.dumps(text)[1:-1] for name, text in told.items()}
    Path("r.toml").write_text(RELEASE.format(values=json.dumps(values)[1:-1], **told))
    return "r.toml"


def test_a_release_prints_neither_keys_nor_names_as_they_are(call, release):
    for words in (("--plan",), ("-o", "out"), ("-o", "more", "--synthetic", 50, "--json")):
        code, told = call("release", release, *words)
        assert code == 0
        assert is_plain(told)
        assert "ward" in told
    assert is_plain(call("verify", "out/certificate.json")[1])


def test_results_for_a_spreadsheet_hold_neither_formulas_nor_control_characters(call, release):
    call("release", release, "-o", "out")
    text = Path("out/results.csv").read_bytes().decode()
    assert is_plain(text)
    rows = list(csv.reader(text.splitlines()))
    assert {len(row) for row in rows} == {len(rows[0])}
    cells = {cell for row in rows for cell in row}
    assert {"'=A1", "'+1", '"quoted", twice', "–", "'=ward\\x1b[0m", "'@towns"} <= cells
    assert {"\\x1b[31mtown\\rof\\x9b0", "\\x1b[31mtown\\rof\\x9b1"} <= cells
    told = {row["cell"][0] for row in json.loads(Path("out/results.json").read_text())[0]["rows"]}
    assert ESCAPES in told  # programs are given what the schema says


@pytest.mark.parametrize("text", ["=1+1", " =1", "\t@SUM(A1)", "＝1", "-1 per cent", "\r=1"])
def test_a_text_that_a_spreadsheet_would_compute_stays_a_text(tmp_path, text):
    row = {"cell": [text], "value": text}
    results = [{"query": text, "kind": "top", "columns": [text], "rows": [row]}]
    made, *_ = write_results(results, tmp_path, made_up=False)
    head, line = csv.reader(made.read_text().splitlines())
    for cell in (head[1], line[0], line[1], line[3]):
        assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "\t", "\r"))
        assert cell.isprintable()
