"""A release as it is typed: what it says of other releases, of its premises, and of wrong files."""

import csv
from pathlib import Path

import pytest

from dpaudit.certificate import load_certificate

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
    """Run a command beside a release file."""
    with Path("visits.csv").open("w", newline="") as file:
        rows = [(f"p{n}", ("A1", "B1", "b1")[n % 3], n % 40 - 1) for n in range(300)]
        csv.writer(file).writerows([("patient", "ward", "stay"), *rows])
    Path("visits.toml").write_text(RELEASE)
    return call


def test_a_release_says_that_its_loss_adds_up_and_a_second_one_is_charged_anew(typed):
    done = typed("release", "visits.toml", "-o", "out")
    told = done.text.count(ADDS), done.text.count("--book keeps the sum")
    assert (done.code, *told) == (0, 1, 1)
    done.says(0, *_warned_as_reported(load_certificate("out/certificate.json")))
    typed("release", "visits.toml", "-o", "out").refuses(
        "exists already; give another folder with -o. A new release is charged too"
    )
    again = typed("release", "visits.toml", "--synthetic", 9, "-o", "out")
    assert (again.code, "charged" in again.err) == (3, False)
    tried = typed("release", "visits.toml", "--synthetic", 9, "-o", "try")
    assert (tried.code, ADDS in tried.text) == (0, False)


def test_the_published_numbers_are_the_last_that_is_printed(typed):
    """Premises are counted, and the command that lists them is told and does."""
    planned = typed("release", "visits.toml", "--plan")
    planned.says(0, "dpaudit certify visits.toml lists them.")
    assert planned.text.index("verdict") < planned.text.index("error (95 %)")
    done = typed("release", "visits.toml", "-o", "out")
    done.says(0, "premises of the proof: 1 not applicable", "dpaudit verify out/certificate.json")
    assert done.text.index("wrote") < done.text.index("released from to")
    assert "standing assumption" not in done.text + planned.text
    for command in ("certify visits.toml", "verify out/certificate.json"):
        typed(*command.split()).says(0, "enforced values within the sensitivity")


@pytest.mark.parametrize("claim", ["epsilon = 0", "epsilon = 0.0, delta = 1e-6"])
def test_a_claim_that_makes_noise_of_every_answer_is_refused(typed, claim):
    Path("visits.toml").write_text(RELEASE.replace("epsilon = 1.0, delta = 1e-6", claim))
    for command in (["release", "--plan"], ["certify"]):
        typed(command[0], "visits.toml", *command[1:]).refuses(
            "claim has epsilon = 0, with which all answers are noise; claim an ε above 0"
        )


def test_the_same_is_granted_to_whoever_says_it_by_an_advantage(typed):
    Path("visits.toml").write_text(
        RELEASE.replace("epsilon = 1.0, delta = 1e-6", "advantage = 0.1")
    )
    typed("release", "visits.toml", "--plan").says(0, "certified")


def _warned_as_reported(certificate):
    """Every warning of the report, with what has to be decided."""
    found = certificate.all_findings
    assert [each.rule for each in found] == ["only-assumed"] * 3
    yield from (f"warning {each.rule}: {each.message} {each.remedy}" for each in found)
    yield "Have the owner of the data confirm that each patient has one name"


def test_a_release_that_a_book_is_charged_for_says_nothing_of_a_sum(typed):
    assert typed("book", "init")[0] == 0
    about = ("--unit", "patient", "--relation", "add-remove")
    assert typed("book", "dataset", "visits", *about)[0] == 0
    limit = "epsilon = 2, delta = 1e-5"
    assert typed("book", "budget", "all", "--dataset", "visits", "--limit", limit)[0] == 0
    book = ("--book", "book.db", "--dataset", "visits", "--purpose", "a test")
    done = typed("release", "visits.toml", *book, "-o", "out")
    assert (done.code, ADDS in done.text) == (0, False), done


def test_noise_says_in_what_it_is_counted(typed):
    typed("release", "visits.toml", "--plan").says(
        0, "in steps of 0.1); discrete-laplace (scale", "off for 100 rows"
    )


def test_a_release_file_is_called_so(typed):
    typed("check", "visits.toml").refuses(  # the beginning of a long path is cut
        "visits.toml' is a release file; run it with dpaudit release."
    )
    Path("visits.toml").write_text("[data\n")
    typed("release", "visits.toml", "--plan").refuses("release file 'visits.toml' is not TOML")
