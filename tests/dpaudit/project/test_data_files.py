"""Data of files."""

import numpy as np
import pytest

from dpaudit import DpAuditError, InputError
from dpaudit.project.subject import read_data


def written(path, content):
    path.write_text(content)
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
        ("a.csv", "a,b\n\n1,2\n1\n", "line 4 has 1 cells, and the first has 2"),
        ("a.csv", "1,2\n1,2,3\n", "line 2 has 3 cells, and the first has 2"),
        ("a.txt", "1", "must end with .json, .csv"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message) as caught:
        read_data(written(tmp_path / name, content))
    assert "\n" not in str(caught.value)


def test_a_parquet_file_without_what_reads_it(tmp_path):
    with pytest.raises(DpAuditError, match=r"pandas|cannot be read"):
        read_data(written(tmp_path / "a.parquet", "x"))
