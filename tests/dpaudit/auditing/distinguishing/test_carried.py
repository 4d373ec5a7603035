"""What rides on objects beside what they show."""

import types
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from dpaudit.auditing.distinguishing.canonical import canonical


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
    assert canonical(RIDING[name](3.0), carried=True).unread == []


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
    for odd in (computed, lambda: 3.0, Holder, types.ModuleType("own"), torch.eye(2).to_sparse()):
        assert canonical([odd], carried=True).unread


@pytest.mark.parametrize(
    "plain",
    [
        *(1.0, "a", None, [1, 2.0], {"a": np.eye(2)}, np.eye(2).reshape(4), np.float64, Plain()),
        *(pd.DataFrame({"x": [1.0], "y": [2.0]})["x"], pd.DataFrame({"x": [1.0]}), {1.0}),
    ],
)
def test_plain_data_carry_nothing(plain):
    assert canonical(plain, carried=True).unread == []
    assert canonical(plain, carried=True).digest == canonical(plain).digest or plain == Plain()
