import os

import pytest

from dpaudit.base import files
from dpaudit.base.errors import InputError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "key 'a' twice"),
        ("[NaN]", "number NaN"),
        ("[1e999]", "too large"),
        ("[-Infinity]", "number -Infinity"),
        ("[1", "not JSON"),
        ("[" * 200_000, "nested too deeply"),
        ("1" * 5000, "too many digits"),
        ('["\\ud800"]', "half of a surrogate pair"),
    ],
)
def test_bad_json_is_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        files.parse_json(text, what="pair")


def test_special_files_are_refused_and_a_byte_order_mark_is_not(tmp_path):
    with pytest.raises(InputError, match="no regular file"):
        files.read_text("/dev/zero", what="file")
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf[1]")
    assert files.load_json(path, what="file") == [1]


def test_canonical_json_does_not_depend_on_order():
    assert files.digest({"a": 1, "b": [2]}) == files.digest({"b": [2], "a": 1})
    with pytest.raises(ValueError, match="JSON"):
        files.canonical_json(float("nan"))


def test_write_is_whole_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    files.write(path, "first")

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match="No space left"):
        files.write(path, "second")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_write_to_a_missing_folder(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        files.write(tmp_path / "no" / "file", "x")


def test_nothing_is_written_over_a_device_or_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    for path in (pipe, link, "/dev/null", "/dev/stdout"):
        with pytest.raises(InputError, match="is no regular file"):
            files.write(path, "x")
    assert pipe.is_fifo()
    assert link.is_symlink()
    with pytest.raises(InputError, match="is a folder"):
        files.write(tmp_path, "x")
    for path in ("nul\0byte", "x" * 5000):
        with pytest.raises(InputError, match="cannot be written") as caught:
            files.write(path, "x")
        assert len(str(caught.value)) < 200


def test_a_file_that_is_not_there_is_answered_with_the_nearest(tmp_path):
    (tmp_path / "plan.toml").touch()
    with pytest.raises(
        InputError, match=r"pan\.toml' does not exist; did you mean '.*/plan\.toml'"
    ):
        files.read_text(tmp_path / "pan.toml", what="plan file")
    with pytest.raises(InputError, match="does not exist; check the path"):
        files.read_text(tmp_path / "none" / "plan.toml", what="plan file")
