"""A load that scales by the data, or codes what occurs, is found; one of row by row is not."""

from dataclasses import dataclass

import numpy as np
import pytest
from effort import examples
from examples import Answers

from dpaudit.rehearsal.loading import loading_findings


def last_first(names, ages):
    """Totals by name, each where it was last seen."""
    totals = {}
    for name, age in zip(names, ages, strict=True):
        totals[name] = totals.pop(name, 0.0) + float(age)
    return totals


@dataclass(frozen=True)
class Loads(Answers):
    """Rows of a CSV file, made into what ``how`` says."""

    how: str = "rows"

    def load(self, source, rng):
        with open(source) as file:  # noqa: PTH123
            table = [line.split(",") for line in file.read().split()[1:]]
        ages = np.array([float(age) for _, age in table])
        names = [name for name, _ in table]
        match self.how:
            case "scaled":
                return ages / ages.max()
            case "standardised":
                return (ages - ages.mean()) / ages.std()
            case "coded":
                kinds = sorted(set(names))
                return [kinds.index(name) for name in names]
            case "shuffled":
                return rng.permutation(ages)
            case "drawn":
                return rng.choice(ages, 9, replace=False) + rng.normal()
            case "by user":
                return [
                    float(ages[[n == name for n in names]].sum()) for name in sorted(set(names))
                ]
            case "totals":
                return last_first(names, ages)
            case "scaled by a constant":
                return np.clip(ages / 100, 0, 1)
        return {"name": names, "age": ages}


@pytest.fixture
def source(tmp_path):
    ages = np.random.default_rng(0).integers(18, 90, 20)
    lines = [f"user{'abcdefghij'[row // 2]},{age}" for row, age in enumerate(ages)]
    lines[3] = "aaron,95"
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["name,age", *lines, ""]))
    return str(path)


@pytest.mark.parametrize("how", ["scaled", "standardised", "coded"])
def test_what_goes_into_every_row_is_found(source, how):
    subject = Loads(how=how)
    loaded = subject.load(source, np.random.default_rng([0, 0]))
    (finding,), loads = loading_findings(subject, source, loaded, 0)
    assert loads >= 1
    assert finding.rule == "load-mixes-rows"
    assert "95" not in finding.message


@pytest.mark.parametrize("how", ["rows", "shuffled", "drawn", "by user", "scaled by a constant"])
@pytest.mark.parametrize("seed", range(examples(1, 3)))
def test_what_is_made_row_by_row_is_silent(source, how, seed):
    subject = Loads(how=how)
    loaded = subject.load(source, np.random.default_rng([seed, 0]))
    assert loading_findings(subject, source, loaded, seed)[0] == []


def test_totals_of_units_are_silent_wherever_a_unit_lies(tmp_path):
    path = tmp_path / "people.csv"
    lines = [f"user{name},{age}" for age, name in enumerate("abcdefghijklmnopqrsta", start=20)]
    path.write_text("\n".join(["name,age", *lines, ""]))  # the last line moves the first user
    subject = Loads(how="totals")
    loaded = subject.load(str(path), np.random.default_rng([0, 0]))
    findings, loads = loading_findings(subject, str(path), loaded, 0)
    assert (findings, loads > 0) == ([], True)


@pytest.mark.parametrize("name", ["people.csv", "none.csv", "folder", "\0"])
def test_what_is_no_file_of_lines_says_nothing(tmp_path, name):
    (tmp_path / "people.csv").write_bytes(b"\xff\xfe\n,,\n\n")
    assert loading_findings(Loads(), str(tmp_path / name), np.arange(20.0), 0)[0] == []
