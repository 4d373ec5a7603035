"""Code of others that fails after it has seen data.

Programs as functions.
"""

import csv
import json
import os
import shlex
import statistics
import subprocess
import time

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import InputError, Laplace, Ledger, Plan
from dpaudit.base.errors import (
    BudgetExceededError,
    DpAuditError,
    InconclusiveError,
    PlanMismatchError,
    PublicError,
)
from dpaudit.base.validate import positive
from dpaudit.cli.main import main
from dpaudit.project.foreign import DEBUG, Program, ProgramError, error_summary, foreign, place_of


def fail(error):
    raise error


class OwnError(InputError):
    __module__ = InputError.__module__


@pytest.mark.parametrize(
    "error",
    [
        ValueError("4711"),
        SystemExit("4711"),
        MemoryError("4711"),
        InputError("4711"),
        OwnError("4711"),
        DpAuditError("4711"),
    ],
)
def test_only_type_and_place_are_told(error):
    with pytest.raises(InputError) as raised, foreign("survey.run"):
        fail(error)
    sentence = str(raised.value)
    assert sentence.startswith(f"survey.run raised {type(error).__name__} at test_foreign.py:")
    assert "4711" not in sentence
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    "call",
    [
        lambda: [*csv.DictReader(4711)],
        lambda: json.loads("{4711"),
        lambda: np.linalg.inv(np.zeros((2, 2))),
        lambda: pytest.importorskip("pandas").DataFrame({"a": [1]})["4711"],
        lambda: max([3], key=lambda _: statistics.mean([])),
    ],
)
def test_the_place_is_the_users_and_none_of_a_library(call):
    line = call.__code__.co_firstlineno
    with pytest.raises(InputError) as raised, foreign("survey.run"):
        call()
    assert f" at test_foreign.py:{line} (" in str(raised.value)


def test_no_place_is_told_where_no_code_of_the_user_ran():
    with pytest.raises(InputError) as caught:
        positive(scale=-1)
    tried, within = caught.value.__traceback__, caught.value.__traceback__.tb_next
    assert place_of(caught.value) == f" at test_foreign.py:{tried.tb_lineno}"
    assert place_of(caught.value.with_traceback(within)) == ""


def test_ctrl_c_passes():
    with pytest.raises(KeyboardInterrupt), foreign("survey.run"):
        fail(KeyboardInterrupt())


@pytest.mark.parametrize("kind", [InconclusiveError, PlanMismatchError, BudgetExceededError])
def test_the_kind_of_an_error_stays(kind):
    """A class of the code's own becomes that of dpaudit which it extends."""
    for each in (kind, type("Theirs", (kind,), {})):
        with pytest.raises(kind) as raised, foreign("survey.run"):
            fail(each("4711"))
        assert type(raised.value) is kind
        assert "4711" not in str(raised.value)


def test_what_the_ledger_says_passes_and_what_validators_say_does_not():
    noise = Laplace(1.0)
    ledger = Ledger(
        Plan.of(gaussian_invocation(mechanism=noise, at="sum")), rng=np.random.default_rng(0)
    )
    with pytest.raises(PlanMismatchError) as raised, foreign("survey.run"):
        ledger.release(noise, 4711.0, at="4711")
    assert "label that is not declared; the plan declares 'sum' (at test_foreign.py:" in str(
        raised.value
    )
    for call in (lambda: positive(age=-4711), lambda: Laplace(-4711.0)):
        with pytest.raises(InputError) as raised, foreign("survey.run"):
            call()
        assert str(raised.value).startswith("survey.run raised InputError at test_foreign.py:")
        assert "4711" not in str(raised.value)


def test_public_facts_are_told_in_full():
    with pytest.raises(PublicError, match=r"^users is 20\.$"), foreign("survey.load"):
        fail(PublicError("users is 20"))

    class TheirError(PublicError):
        pass

    with pytest.raises(PublicError, match=r"raised TheirError at") as told, foreign("survey.load"):
        fail(TheirError("4711"))
    assert "4711" not in str(told.value)


def test_everything_is_shown_on_request(monkeypatch):
    assert error_summary(ValueError("4711")) == f"ValueError ({DEBUG}=1 shows the rest)."
    monkeypatch.setenv(DEBUG, "1")
    assert error_summary(ValueError("4711")) == "ValueError: 4711."
    with pytest.raises(ValueError, match="4711"), foreign("survey.run"):
        fail(ValueError("4711"))
    with pytest.raises(ValueError, match="4711") as caught:
        fail(ValueError("4711."))
    assert error_summary(caught.value).endswith(": 4711.")


def test_long_words_end_between_two():
    words = r"survey raised TypeError at .*: (many words )+(many )?… \("
    with pytest.raises(InputError, match=words), foreign("survey", public=True):
        fail(TypeError("many words " * 50))


def test_what_has_seen_no_data_may_tell_all():
    told = pytest.raises(InputError, match=r"survey raised TypeError at .*: no scale \(")
    with told, foreign("survey", public=True):
        fail(TypeError("no scale."))


NOISY = r"""
{ gsub(/[^0-9,]/, ""); n = split($0, a, ","); for (i = 1; i <= n; i++) s += a[i]
  u = (r + 0.5) / 4294967296 - 0.5
  printf "%.6f\n", s + scale * ((u < 0) ? log(1 + 2 * u) : -log(1 - 2 * u)) }
"""


@pytest.fixture
def laplace(tmp_path):
    """A program of sh and awk: the sum with Laplace noise."""
    (tmp_path / "noisy.awk").write_text(NOISY)
    (tmp_path / "noisy.sh").write_text(
        'awk -v scale="$1" -v r="$(od -An -N4 -tu4 /dev/urandom)" '
        f"-f {shlex.quote(str(tmp_path / 'noisy.awk'))}\n"
    )
    return f"sh {shlex.quote(str(tmp_path / 'noisy.sh'))}"


def attack(line, capsys, *options):
    words = ["audit", "--command", line, "--pair", "[1, 0]", "[1, 1]", "--epsilon", "1", *options]
    with pytest.raises(SystemExit) as caught:
        main(words)
    shown = capsys.readouterr()
    return caught.value.code, shown.out, shown.err


def test_data_go_in_and_answers_come_out_as_json_or_text():
    for data in (3, [1.5, None], {"é": ["x", True]}):
        assert Program.of("cat")(data) == data
    assert Program.of("echo two words")(0) == "two words"
    assert Program.of("printf '%s' '$HOME; a'")(0) == "$HOME; a"


def test_a_program_that_does_not_read_is_no_failure():
    assert Program.of("echo 1")(["x" * 10**6]) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [("sh -c 'exit 3'", []), ("sh -c 'echo 1 >&2; echo a b >&2; exit 3'", ["a b"])],
)
def test_a_failure_is_an_exception(line, said):
    """Its text is printed, so that it repeats nothing that the program made of data."""
    with pytest.raises(ProgramError, match=r"^exit status 3\.$") as failed:
        Program.of(line)(0)
    assert failed.value.said == said


@pytest.mark.parametrize("line", ["", "  ", "'open", "no-such-program-anywhere x", "/"])
def test_what_is_no_program(line):
    words = f"--command (is|begins with '{line[:10]}.*', which is no program on the PATH)"
    with pytest.raises(InputError, match=words) as caught:
        Program.of(line)
    assert "\n" not in str(caught.value)


def test_a_right_and_a_wrong_program(laplace, capsys):
    code, out, _ = attack(f"{laplace} 1", capsys, "--runs", "100", "--confidence", "0.9999")
    assert code == 0
    assert "cannot be replayed" in " ".join(out.split())
    options = ["--runs", "100", "--confidence", "0.9999", "--json"]
    code, out, _ = attack(f"{laplace} 0.2", capsys, *options)
    assert (code, json.loads(out)["verdict"]) == (1, "refuted")


def test_a_program_that_hangs_is_killed_and_decides_nothing(capsys):
    mark = f"9{os.getpid()}.25"  # of this process alone, whoever else sleeps
    started = time.monotonic()
    code, _, err = attack(f"sleep {mark}", capsys, "--timeout", "0.2", "--runs", "400")
    assert (code, time.monotonic() - started < 30) == (2, True)
    assert "took more than 0.2 s" in err
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert f"sleep {mark}" not in listed.stdout


def test_what_does_not_go_with_a_program_is_one_sentence(capsys):
    assert attack("cat", capsys, "--set", "x=1")[2].count("\n") == 1
    code, _, err = attack("cat", capsys, "--arg", "x=1", "--runs", "200")
    assert (code, "no parameter 'x'" in err) == (3, True)
    code, _, err = attack("sh -c 'exit 4'", capsys, "--runs", "200")
    assert (code, "exit status 4" in err) == (3, True)
