"""Whatever a command prints with --json follows the schema that it names, of docs/answers.json."""

import json
import shlex
import warnings
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from jsonschema import Draft202012Validator

from dpaudit.certificate.schema import validate_certificate
from dpaudit.cli.main import _outcome, app
from tests.dpaudit.cli.test_command import walked

DOCS = Path(__file__).parents[3] / "docs"
SCHEMA = json.loads((DOCS / "answers.json").read_text())
KINDS = {each["$ref"].rpartition("/")[2] for each in SCHEMA["anyOf"]}
CALLS = """
list
list gaussian
list --relations
explain
explain float-noise
certify plan.toml -o certificate.json
certify survey.py:Survey --set users=20 --rehearse
calibrate laplace --claim 'epsilon = 1'
calibrate gaussian --claim 'advantage = 0.1' --set count=3
run survey.py:Survey --set users=20 --seed 1 -o run
audit my_code.py:poll --pair '[1, 0]' '[1, 1]' --epsilon 1 --runs 500
audit survey.py:Survey --set users=20 --runs 500 --seed 1
observe drawn.py:count --data data.json --library numpy
report certificate.json -o report.html
verify certificate.json --second-opinion
checker checker.py
verify run/ledger.jsonl
keygen key.pem --no-password
sign certificate.json --key key.pem -o signed.dsse.json
verify signed.dsse.json --key key.pub.pem
init project
check .
book init
book dataset visits --unit row --relation add-remove
book budget total --dataset visits --limit 'epsilon = 3, delta = 1e-5'
book budget approved --dataset visits --limit 'rho = 9' --approval
book reserve plan.toml --dataset visits --by ann
book approve R4 --by bob
book reserve plan.toml --dataset visits --by ann
book approve R6 --by ann
book deny R6 --by ann --why unused
book close R4 --abandon unused
book status
book status --dataset visits --plan plan.toml
book history
book export -o book.json
book verify
book recheck run
book report -o book.html
book publish visits
book people each --dataset visits --limit 'rho = 0.1' --key people.key
book charge plan.toml --of each --people people.txt --key people.key -o fit.txt
book token ann
book token ann --revoke
book token
book clock TODAY
"""
PLAN = """
[plan]
unit = "row"
relation = "add-remove"
trust = "central"
[claim]
epsilon = 1
[[invocation]]
mechanism = "laplace"
scale = 4
sensitivity = 1
group = "round 1"
"""
DRAWN = """
def count(data, rng):
    import numpy as np
    return len(data) + np.random.default_rng().laplace(0.0, 1.0)
"""
PROJECT = '[audit]\nruns = 500\n[[subject]]\nname = "a"\ntarget = "plan.toml"\n[[budget]]\n' \
    'name = "all"\nsubjects = ["a"]\nepsilon = 2\ndelta = 1e-6\n'  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The answer of each call, one after the other in one folder."""
    folder = tmp_path_factory.mktemp("answers")
    for name in ("survey.py", "my_code.py"):
        (folder / name).write_text((DOCS / "examples" / name).read_text())
    given = {"plan.toml": PLAN, "drawn.py": DRAWN, "dpaudit.toml": PROJECT}
    for name, text in {**given, "data.json": "[1, 2]", "people.txt": "ann\nbob\n"}.items():
        (folder / name).write_text(text)
    return folder


def validator(kind):
    return Draft202012Validator(SCHEMA["$defs"][kind] | {"$defs": SCHEMA["$defs"]})


def test_every_answer_follows_its_schema(told, monkeypatch, capsys):
    monkeypatch.chdir(told)
    monkeypatch.setenv("DPAUDIT_BOOK", "book.db")
    seen, called = set(), set()
    today = datetime.now(UTC).date().isoformat()
    for line in CALLS.strip().replace("TODAY", today).splitlines():
        words = shlex.split(line)
        with warnings.catch_warnings():
            code = _outcome([*words, "--json"])
        out, err = capsys.readouterr()
        assert code in (0, 1, 2), (line, err)
        answer = json.loads(out)
        kind, _, _ = answer["schema"].removeprefix("dpaudit-").rpartition("/")
        if kind == "certificate":
            assert all(Path(each).exists() for each in answer.pop("files", ()))
            validate_certificate(answer)
        else:
            assert [*validator(kind).iter_errors(answer)] == [], line
            assert words[0] in SCHEMA["$defs"][kind]["title"]
        seen.add(kind)
        called.add(tuple(words[: 1 + (words[0] == "book")]))
    assert seen == KINDS | {"certificate"}
    last = {w for w, c in walked(typer.main.get_command(app)) if not hasattr(c, "commands")}
    assert last - called == {("replay",), ("book", "serve"), ("demo",)}  # demo answers as run


def test_schemas_are_schemas_and_refuse():
    Draft202012Validator.check_schema(SCHEMA)
    for kind in KINDS:
        assert not validator(kind).is_valid({"schema": f"dpaudit-{kind}/1"})
