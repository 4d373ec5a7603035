"""Optional libraries, there and missing."""

import sys

import pytest

from dpaudit import UnsupportedError
from dpaudit.extras import needed


def test_a_library_that_is_there_is_handed_over():
    assert needed("learn", "json.decoder", what="a report").JSONDecoder


def test_a_missing_one_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(UnsupportedError) as caught:
        needed("learn", "sklearn.linear_model", what="a learned score")
    assert str(caught.value) == (
        "a learned score needs scikit-learn, which is not installed; install it with pip install "
        "'dpaudit[learn]'."
    )


def test_one_that_lacks_a_library_of_its_own_names_that_one(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import surely_not_installed.deeply\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnsupportedError, match="needs surely_not_installed, which"):
        needed("learn", "half_there", what="a learned score")
