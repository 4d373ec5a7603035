"""Every command: its help, its options, and what it prints for machines."""

import json
import re
import shlex
import warnings
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from jsonschema import Draft202012Validator
from rich.text import Text

from dpaudit.base.finding_table import known_findings
from dpaudit.certificate.certificate import validate_certificate
from dpaudit.cli.main import _outcome, app
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import Relation, Sampling
from dpaudit.project.describing import described
from dpaudit.project.targets import own_packages

# What a newcomer reads: the help of every command

MARKUP = re.compile(r":\w+:`|``|`~|`[A-Z]\w+`")
"""Roles and literals of reST, which are for the site."""


def walked(command, words=()):
    yield words, command
    for name, each in getattr(command, "commands", {}).items():
        yield from walked(each, (*words, name))


COMMANDS = dict(walked(typer.main.get_command(app)))


def texts(command):
    yield command.help or ""
    yield from (each.help for each in command.params if getattr(each, "help", None))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_is_shown_as_it_is_written(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    command = COMMANDS[words]
    assert _outcome([*words, "--help"]) == 0
    out = capsys.readouterr().out
    assert not MARKUP.search(out)
    shown = re.sub(r"[│\s]+", " ", out)
    for text in texts(command):
        assert Text.from_markup(text).plain == text  # no bracket is taken for a style
        assert [word for word in text.split() if word not in shown] == []  # nor cut off


def test_a_pair_of_one_data_set_is_refused_in_a_sentence(capsys):
    assert _outcome(["audit", "code.py:f", "--pair", "[70]", "--epsilon", "1"]) == 3
    assert "after '[70]' there is '--epsilon'; give both data sets" in capsys.readouterr().err


def test_all_that_is_told_of_names_and_findings_is_plain(capsys):
    kinds = {**Mechanism.kinds(), **Relation.kinds(), **Sampling.kinds()}
    told = [described(name).to_dict() for name in kinds]
    told += [each.to_dict() for each in known_findings(*own_packages())]
    assert [text for text in map(str, told) if MARKUP.search(text)] == []
    assert _outcome(["list"]) == 0
    assert not MARKUP.search(capsys.readouterr().out)


def test_every_command_that_has_an_answer_gives_it_as_json_too():
    last = {w: c for w, c in COMMANDS.items() if not hasattr(c, "commands")}
    without = {w for w, c in last.items() if "--json" not in {o for p in c.params for o in p.opts}}
    assert without == {("replay",), ("book", "serve")}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("certfy",), "there is no command certfy; did you mean 'certify'?"),
        (("certify", "--acountant", "x"), "no option --acountant; did you mean '--accountant'?"),
        (("book", "statsu"), "there is no command statsu; did you mean 'status'?"),
        (("book", "status", "--datset=x"), "no option --datset; did you mean '--dataset'?"),
        (("list", "Gausian"), "name is 'Gausian'; did you mean 'gaussian'?"),
        (("keygen", "--zzz"), "there is no option --zzz; it must be one of --json, --no-password"),
        (("verify", "--zzz"), " (see dpaudit verify --help)\n"),
        (("list", "a", "b", "c"), "'b c' is more than the command takes; write dpaudit list [OPTI"),
        (("audit", "a", "b"), "'b' is more than the command takes; write dpaudit audit [OPTIONS]"),
        (("verify",), "Missing argument 'FILE'; write dpaudit verify [OPTIONS] FILE (see dpaudit "),
        (("report", "c.json"), "Missing option '-o' / '--output' (see dpaudit report --help)\n"),
        (("release", "--seed"), "'--seed' requires an argument; write it after the option.\n"),
        (("calibrate", "laplace", "--accuracy", "x"), "'--accuracy': 'x' is not a number (see "),
        (("init", "a", "--counts", "--library"), "dpaudit: --counts and --library are both given"),
    ],
)
def test_a_wrong_word_is_answered_with_what_would_be_right(words, said, capsys):
    assert _outcome([*words]) == 3
    assert said in capsys.readouterr().err


def test_a_group_of_commands_alone_prints_its_help_and_no_error(capsys):
    assert _outcome(["book"]) == 0
    told = capsys.readouterr()
    assert "Usage: dpaudit book" in told.out
    assert told.err == ""


# Whatever a command prints with --json follows the schema that it names, of docs/answers.json

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
release visits.toml --plan
release visits.toml --synthetic 50 -o released
audit my_code.py:poll --pair '[1, 0]' '[1, 1]' --epsilon 1 --runs 500
audit survey.py:Survey --set users=20 --runs 500 --seed 1
observe drawn.py:count --data data.json --library numpy
report certificate.json -o report.html
card certificate.json --utility accuracy=0.85,0.91
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
book close R4 --withdraw unused
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
RELEASE = """
[data]
source = "visits.csv"
unit = "patient_id"
columns.ward = { type = "text", values = ["A1", "B1"] }
[privacy]
relation = "add-remove"
claim = { epsilon = 1 }
rows_per_unit = 1
[[query]]
count = true
by = "ward"
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
    given = {"plan.toml": PLAN, "visits.toml": RELEASE, "drawn.py": DRAWN, "dpaudit.toml": PROJECT}
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
