"""A release as it is typed: what it says of other releases, of its premises, and of wrong files."""

import csv
from pathlib import Path

import pytest

from dpaudit.certificate import load_certificate
from dpaudit.reporting.wording.tables import all_findings

pytest.importorskip("duckdb")
pytest.importorskip("opendp")
RELEASE = """
[data]
source = "visits.csv"
unit = "patient"
columns.ward = { type = "text", values = ["A1", "B1"] }
columns.stay = { type = "number", range = [0, 30], step = 0.1 }
[privacy]
relation = "add-remove"
claim = { epsilon = 1.0, delta = 1e-6 }
rows_per_unit = 1
[[query]]
name = "stay"
mean = "stay"
by = "ward"
"""
ADDS = "adds to that of every other release of the same data"


@pytest.fixture
def typed(call):
    """Run a command beside a release file; returns (exit code, stdout, stderr), each on a line."""
    with Path("visits.csv").open("w", newline="") as file:
        rows = [(f"p{n}", ("A1", "B1", "b1")[n % 3], n % 40 - 1) for n in range(300)]
        csv.writer(file).writerows([("patient", "ward", "stay"), *rows])
    Path("visits.toml").write_text(RELEASE)

    def answer(*words):
        code, out, err = call(*words)
        return code, " ".join(out.split()), " ".join(err.split())

    return answer


def test_a_release_says_that_its_loss_adds_up_and_a_second_one_is_charged_anew(typed):
    code, out, _ = typed("release", "visits.toml", "-o", "out")
    assert (code, out.count(ADDS), out.count("--book keeps the sum")) == (0, 1, 1)
    _warned_as_reported(out, load_certificate("out/certificate.json"))
    code, _, err = typed("release", "visits.toml", "-o", "out")
    assert code == 3
    assert "exists already; give another folder with -o. A new release is charged too" in err
    code, _, err = typed("release", "visits.toml", "--synthetic", 9, "-o", "out")
    assert (code, "charged" in err) == (3, False)
    code, out, _ = typed("release", "visits.toml", "--synthetic", 9, "-o", "try")
    assert (code, ADDS in out) == (0, False)


def _warned_as_reported(out, certificate):
    """The terminal prints every warning of the report, with what has to be decided."""
    found = all_findings(certificate)
    assert [each.rule for each in found] == ["only-assumed"] * 3
    for each in found:
        assert f"warning {each.rule}: {each.message} {each.remedy}" in out
    assert "Have the owner of the data confirm that each patient has one name" in out


def test_a_release_that_a_book_is_charged_for_says_nothing_of_a_sum(typed):
    assert typed("book", "init")[0] == 0
    about = ("--unit", "patient", "--relation", "add-remove")
    assert typed("book", "dataset", "visits", *about)[0] == 0
    limit = "epsilon = 2, delta = 1e-5"
    assert typed("book", "budget", "all", "--dataset", "visits", "--limit", limit)[0] == 0
    book = ("--book", "book.db", "--dataset", "visits", "--purpose", "a test")
    code, out, err = typed("release", "visits.toml", *book, "-o", "out")
    assert (code, ADDS in out) == (0, False), err


def test_noise_says_in_what_it_is_counted(typed):
    code, out, _ = typed("release", "visits.toml", "--plan")
    assert code == 0
    assert "in steps of 0.1); discrete-laplace (scale" in out
    assert "off for 100 rows" in out


def test_a_release_file_is_called_so(typed):
    code, _, err = typed("check", "visits.toml")
    assert code == 3
    # The beginning of a long path is cut.
    assert "visits.toml' is a release file; run it with dpaudit release." in err
    Path("visits.toml").write_text("[data\n")
    code, _, err = typed("release", "visits.toml", "--plan")
    assert (code, "release file 'visits.toml' is not TOML" in err) == (3, True)
