"""What rides on objects beside what they show."""

import enum
import re
import types
from collections import defaultdict, namedtuple
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from dpaudit.auditing.distinguishing.forms import canonical


class Lying(list):
    def __iter__(self):
        return iter(())


class Odd(float):
    def __float__(self):
        return 0.0


class Colour(enum.Enum):
    RED = 1


@dataclass
class Computing:
    value: float

    @property
    def other(self):
        return 3.0


@dataclass
class More:
    value: float

    def __post_init__(self):
        self.hidden = 3.0


Pair = namedtuple("Pair", "one two")


class Holder:
    secret = 0.0


@dataclass
class Plain:
    value: float = 0.0


def of_class(secret):
    Holder.secret = secret
    return Holder()


def of_frame(secret):
    frame = pd.DataFrame({"x": [1.0]})
    frame.attrs["secret"] = secret
    return frame


def of_series(secret):
    series = pd.Series([1.0])
    object.__setattr__(series, "secret", secret)
    return series


RIDING = {
    "a view": lambda secret: np.array([1.0, secret])[:1],
    "a view of a view": lambda secret: np.array([[1.0, secret, 2.0]])[:, :2][0, :1],
    "metadata": lambda secret: np.array([1.0], np.dtype("f8", metadata={"secret": secret})),
    "a class": of_class,
    "a table": of_frame,
    "a column": of_series,
}


def differ(make, **how):
    one, two = (canonical(make(secret), **how) for secret in (3.0, 4.0))
    return one.digest != two.digest


@pytest.mark.parametrize("name", RIDING)
def test_it_is_read_where_it_is_asked_for(name):
    assert differ(RIDING[name], carried=True)
    assert not differ(RIDING[name])
    assert len(canonical(RIDING[name](3.0), carried=True).unread) == (name == "a class")


TENSORS = ["storage", "grad", "attribute"]


@pytest.mark.parametrize("name", TENSORS)
def test_tensors(name):
    torch = pytest.importorskip("torch")

    def make(secret):
        shown = torch.tensor([1.0, secret])[:1] if name == "storage" else torch.tensor([1.0])
        if name == "grad":
            shown.grad = torch.tensor([secret])
        if name == "attribute":
            shown.secret = secret
        return shown

    assert differ(make, carried=True)


def test_what_no_test_can_read_is_told():
    torch = pytest.importorskip("torch")
    computed = torch.tensor([1.0], requires_grad=True) * 2
    odds = [computed, lambda: 3.0, Holder, types.ModuleType("own"), torch.eye(2).to_sparse()]
    odds += [defaultdict(lambda: 3.0), Lying([1.0]), Colour.RED, ValueError(3.0), Computing(1.0)]
    odds += [Odd(1.0), [1.0, Odd(1.0)], {Odd(1.0): 1.0}, {Odd(1.0)}]
    odds += [More(1.0), memoryview(b"abc")[1:], re.match("a", "ab"), type("Own", (), {})()]
    for odd in odds:
        assert canonical([odd], carried=True).unread


@pytest.mark.parametrize(
    "plain",
    [
        *(
            1.0,
            "a",
            None,
            [1, 2.0],
            {"a": np.eye(2)},
            np.eye(2).reshape(4),
            np.float64(1),
            Plain(),
            Pair(1, 2),
        ),
        *(pd.DataFrame({"x": [1.0], "y": [2.0]})["x"], pd.DataFrame({"x": [1.0]}), {1.0}),
    ],
)
def test_plain_data_carry_nothing(plain):
    assert canonical(plain, carried=True).unread == []
    own = isinstance(plain, Plain | Pair)  # whose classes are read too
    assert own or canonical(plain, carried=True).digest == canonical(plain).digest
