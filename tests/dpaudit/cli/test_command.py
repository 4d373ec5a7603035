"""What a newcomer reads: the help of every command."""

import re

import pytest
import typer
from rich.text import Text

from dpaudit.base.finding_table import known_findings
from dpaudit.cli.main import _outcome, app
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import Relation, Sampling
from dpaudit.project.describing import described

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


def test_all_that_is_told_of_names_and_findings_is_plain(capsys):
    kinds = {**Mechanism.kinds(), **Relation.kinds(), **Sampling.kinds()}
    told = [described(name).to_dict() for name in kinds]
    told += [each.to_dict() for each in known_findings()]
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
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest(words, said, capsys):
    assert _outcome([*words]) == 3
    assert said in capsys.readouterr().err
