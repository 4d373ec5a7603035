"""What a subject shows, and the neighbours that it names itself.

Data of files.
"""

from pathlib import Path

import numpy as np
import pytest
from examples import gaussian_invocation
from rehearsals import rules

from dpaudit import DpAuditError, Gaussian, InputError, Plan, RunResult, Subject, ZeroOut
from dpaudit.base.errors import PublicError
from dpaudit.project import Move
from dpaudit.project.subject import read_data, source_of

NOISE = Gaussian(2.0)


class Total(Subject):
    """A sum of parts in ±1, of which one may be zeroed; neighbours of two other data sets."""

    def plan(self):
        return Plan.of(
            gaussian_invocation(
                mechanism=NOISE, sensitivity=1.0, relation=ZeroOut(), count=5, at="sum"
            )
        )

    def load(self, source, rng):
        return np.zeros(3)

    def bounded(self, data):
        return np.clip(data, -1, 1)

    def neighbours(self, data, rng):
        yield Move(data, "nobody zeroed")
        for far in (1.0, -5.0, 5.0):
            yield Move(data, "row 0 zeroed", extreme=True, base=np.array([far, 0.0, 0.0]))

    def run(self, data, ledger, rng):
        noisy = [float(ledger.release(NOISE, self.bounded(data).sum())) for _ in range(5)]
        return RunResult({"sums": noisy}, owner=RunResult({"truth": float(data.sum())}))


def test_neighbours_of_other_data_are_compared_with_those():
    assert rules(Total()) == set()

    class Unbounded(Total):
        def bounded(self, data):
            return data

    assert rules(Unbounded()) == {"sensitivity-understated"}


def test_the_owner_sees_all_and_others_what_is_published():
    own = RunResult({"regret": 2.0}, {"regrets": [1.0, 2.0]})
    result = RunResult({"rounds": 2}, {"noisy": [0.5]}, owner=own)
    assert result.to_dict() == {"summary": {"rounds": 2}, "series": {"noisy": [0.5]}}
    assert result.for_owner.to_dict() == {
        "summary": {"rounds": 2, "regret": 2.0},
        "series": {"noisy": [0.5], "regrets": [1.0, 2.0]},
    }
    assert own.for_owner is own


def test_the_survey_of_the_page_is_rehearsed_without_a_finding():
    example = (Path(__file__).parents[3] / "docs" / "examples" / "survey.py").read_text("utf-8")
    names = {"__name__": "survey"}
    exec(compile(example, "survey.py", "exec"), names)
    assert rules(names["Survey"](users=100)) == set()


def written(path, content):
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    return str(path)


def test_each_ending_has_its_kind(tmp_path):
    assert read_data(written(tmp_path / "a.json", "[1, 2.5]")) == [1, 2.5]
    rows = read_data(written(tmp_path / "a.csv", "age,name\n30,x\n\n2.5,007\n1e2,1_0\n"))
    assert rows == [
        {"age": 30, "name": "x"},
        {"age": 2.5, "name": "007"},
        {"age": 100.0, "name": "1_0"},
    ]
    assert read_data(written(tmp_path / "b.CSV", "1,2\n3,x\n")) == [[1, 2], [3, "x"]]
    np.save(tmp_path / "a.npy", np.arange(3.0))
    assert read_data(str(tmp_path / "a.npy")).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "not JSON"),
        ("a.npy", "no array", "cannot be read"),
        ("a.npy", "", "cannot be read"),
        ("a.csv", "a,b\n\n1,2\n1\n", "line 4 has 1 cells, but the first line has 2."),
        ("a.csv", "a,b\n\udce9,2\n", "^data '.*a.csv' is not UTF-8 text; save it as UTF-8.$"),
        ("a.csv", "1,2\n1,2,3\n", "line 2 has 3 cells, but the first line has 2"),
        ("a.txt", "1", "must end with .json, .csv"),
        ("a.csv", "", "cannot be read: the file is empty"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message) as caught:
        read_data(written(tmp_path / name, content))
    assert "\n" not in str(caught.value)


def test_what_a_path_shows_is_public_and_what_a_file_holds_is_not(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    empty, none = written(tmp_path / "a.csv", ""), str(tmp_path / "b.csv")
    for path in (tmp_path, tmp_path / "folder.csv", empty, none, "numbred"):
        with pytest.raises(PublicError):
            read_data(str(path))
    with pytest.raises(InputError) as told:
        read_data(written(tmp_path / "a.json", '{"secret": 1, "secret": 2}'))
    assert type(told.value) is InputError


def test_a_parquet_file_without_what_reads_it(tmp_path):
    with pytest.raises(DpAuditError, match=r"pandas|cannot be read"):
        read_data(written(tmp_path / "a.parquet", "x"))


def test_a_file_that_is_named_and_is_not_there_is_refused(tmp_path, monkeypatch):
    """A subject that makes its data up would run on other data than its user named."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.csv").write_text("age\n1\n")
    subject = Total()
    assert source_of(subject, None) == "synthetic"
    assert source_of(subject, "there.csv") == "there.csv"
    assert source_of(subject, "synthetic 400") == "synthetic 400"
    with pytest.raises(InputError, match=r"--data 'nothere.csv' does not exist"):
        source_of(subject, "nothere.csv")
