"""Boxes and lists of points: their units, their constraints, and where a search ends."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.own import BoxSpace, PointSpace
from private_bo.own.server import as_named

BOX = BoxSpace((-2.0, 10.0), (3.0, 40.0))


def peak(X: np.ndarray) -> np.ndarray:
    """Largest at (1.234, 17.0), where it is 0."""
    return -np.square((X - [1.234, 17.0]) / [1.0, 5.0]).sum(axis=1)


def test_a_box_is_searched_between_its_candidates():
    found = BOX.climb(peak, peak(BOX.candidates))
    assert found == pytest.approx([1.234, 17.0], abs=1e-3)
    assert peak(BOX.candidates).max() < -1e-4


def test_a_search_ends_where_the_constraint_allows():
    allowed = BoxSpace(BOX.lower, BOX.upper, allowed=lambda x: x[0] <= 1.0)
    found = allowed.climb(peak, peak(allowed.candidates))
    assert found[0] <= 1.0
    assert peak(found[None])[0] > -0.3  # the best allowed is −0.055
    rare = BoxSpace(BOX.lower, BOX.upper, allowed=lambda x: x[0] > 2.9 and x[1] > 39)
    assert len(rare.candidates)


def test_more_dimensions():
    box = BoxSpace((0.0,) * 7, (2.0,) * 7)
    found = box.climb(lambda X: -np.square(X - 0.3).sum(axis=1), np.zeros(len(box.candidates)))
    assert found == pytest.approx([0.3] * 7, abs=1e-3)
    assert box.landmarks.shape == (256, 7)


def test_units_of_the_box():
    assert BOX.unit(np.array([[3.0, 25.0]])) == pytest.approx(np.array([[1.0, 0.5]]))
    assert PointSpace([[1.0, 7.0], [3.0, 7.0]]).unit(np.array([[2.0, 7.0]])).tolist() == [[0.5, 0]]


def test_points_of_a_file(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("name,dose,hours\na,1,2\nb,3,4\n")
    assert PointSpace.from_csv(str(path), ["hours", "dose"]).points.tolist() == [[2, 1], [4, 3]]
    for columns in (["dosis"], ["name"]):
        with pytest.raises(InputError, match=r"columns is .* must have a header"):
            PointSpace.from_csv(str(path), columns)
    path.write_text("dose\n1\n2\nx\n")
    with pytest.raises(InputError, match="row 3 lacks one"):
        PointSpace.from_csv(str(path), ["dose"])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BoxSpace((0.0, 2.0), (1.0, 1.0)), "lower is 2 and upper 1 in coordinate 1"),
        (lambda: BoxSpace((0.0,), (1.0, 1.0)), "lower has 1 coordinates and upper 2"),
        (lambda: BoxSpace((-1e308,), (1e308,)), "their distance finite"),
        (lambda: PointSpace([[-1e308], [1e308]]), "points lie too far apart"),
        (lambda: BoxSpace((0.0,), (1.0,), allowed=lambda x: x > 0).candidates, "gave a ndarray"),
        (lambda: PointSpace([[1.0, 2.0]], allowed=lambda x: x > 0), "gave a ndarray"),
        (lambda: PointSpace([[1.0]], allowed=lambda x: "no"), "it must give True or False"),
        (lambda: BoxSpace((), ()), "must be"),
        (lambda: BoxSpace((float("nan"),), (1.0,)), "lower has a value that is NaN"),
        (lambda: BoxSpace((0.0,), (1.0,), allowed=3), "allowed is 3; it must be a function"),
        (lambda: BoxSpace((0.0,), (1.0,), allowed=lambda x: False).candidates, "permits none"),
        (lambda: PointSpace([]), "points has shape"),
        (lambda: PointSpace([[np.inf]]), "points has a value that is NaN"),
        (lambda: PointSpace([[1.0]], allowed=lambda x: False), "allowed permits none"),
        (lambda: BOX.unit(np.zeros((1, 3))), "dimension 3; they must be of 2"),
    ],
)
def test_wrong_spaces_are_refused_in_one_sentence(make, words):
    with pytest.raises(InputError, match=words) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_a_function_is_known_by_its_source_not_by_its_address():
    def one(x):
        return x

    assert repr(as_named(f=one)) == repr(as_named(f=one))
    assert "0x" not in repr(as_named(f=one))
    assert "one" in repr(as_named(f=one))
    assert repr(as_named(f=abs)) == "abs, without source"
