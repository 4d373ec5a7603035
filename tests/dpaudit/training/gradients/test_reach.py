"""A loss that reaches the data of all units is refused; what it needs else is its own."""

import random
from functools import partial
from itertools import count

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from dpaudit.training.gradients.reach import held_data, kept

BOTH = torch.arange(24.0).reshape(8, 3)
ROWS = BOTH[:4]
ARRAY = ROWS.numpy()
OTHER = torch.ones(4, 3)


def by_global(parameters, example):
    return (parameters["w"] * (example - ROWS.mean(0))).sum()


def by_array(parameters, example):
    return float(ARRAY.mean()) * parameters["w"].sum()


def helped(parameters, example):
    return by_global(parameters, example)


def by_default(parameters, example, *, rows=ROWS):
    return rows.sum()


def closed_over(rows):
    def loss(parameters, example):
        def inner():
            return rows.mean()

        return parameters["w"].sum() * inner()

    return loss


def takes(rows, parameters, example):
    return rows.sum()


class Holder:
    def __init__(self, rows):
        self.rows, self.other = rows, OTHER

    def loss(self, parameters, example):
        return self.rows.mean() + parameters["w"].sum()

    def honest(self, parameters, example):
        return self.other.mean() + parameters["w"].sum()

    def __call__(self, parameters, example):
        return self.rows.mean()


class Table:
    rows = ROWS
    other = OTHER


def by_attribute(held, *, honest=False):
    def loss(parameters, example):
        return held.rows.mean()

    def other(parameters, example):
        return held.other.mean()

    return other if honest else loss


def with_buffer(rows):
    model = torch.nn.Linear(3, 1)
    model.register_buffer("kept", rows)
    return model


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (by_global, "ROWS"),
        (by_array, "ARRAY"),
        (helped, "ROWS"),
        (by_default, "rows"),
        (closed_over(ROWS), "rows"),
        (closed_over(ROWS[1:]), "rows"),  # a view of them
        (closed_over(ROWS.clone()), "rows"),  # a copy
        (closed_over([OTHER, {"x": ROWS}]), "rows"),
        (closed_over(TensorDataset(ROWS)), "rows"),
        (partial(takes, ROWS), "argument 1"),
        (partial(by_default, rows=ROWS), "rows"),
        (Holder(ROWS).loss, "self.rows"),
        (Holder(ROWS), "self.rows"),
        (by_attribute(Table), "held.rows"),
        (by_attribute(Holder(ROWS)), "held.rows"),
        (closed_over(with_buffer(ROWS)), "rows.kept"),
        (closed_over({"net": with_buffer(ROWS)}), "rows.kept"),
        (closed_over(ARRAY[::-1]), "rows"),  # which torch cannot take
        (closed_over(ARRAY[::-1, ::2]), "rows"),
    ],
)
def test_data_are_found(loss, name):
    assert held_data(loss, [torch.zeros(2), ROWS]) == name


@pytest.mark.parametrize(
    "loss",
    [
        closed_over(OTHER),
        closed_over(BOTH[4:]),  # other rows of one file
        closed_over(ROWS * 2),  # of what was made of them nobody can tell
        closed_over(np.array(["a"], dtype=object)),
        partial(takes, OTHER),
        Holder(ROWS).honest,
        by_attribute(Table, honest=True),
        closed_over(with_buffer(OTHER)),
        closed_over(ARRAY.astype(">f4")),
        closed_over(ROWS.to_sparse()),
        closed_over(torch.nested.nested_tensor([OTHER[0]], layout=torch.jagged)),
        torch.nn.functional.mse_loss,
        print,
    ],
)
def test_nothing_else_is(loss):
    assert held_data(loss, [ROWS]) is None


class Counter:
    calls = 0
    queue = [0]  # noqa: RUF012  # shared, as by mistake


def counts(parameters, example):
    Counter.calls += 1


def keeps(parameters, example):
    Counter.queue.append(example)


def replaces(held):
    def loss(parameters, example):
        held["mean"] = held["mean"] * 0.9

    return loss


def writes(held):
    def loss(parameters, example):
        held.mul_(0.9)

    return loss


def draws(generator):
    def loss(parameters, example):
        if isinstance(generator, count):
            next(generator)
        elif isinstance(generator, torch.Generator):
            torch.rand(1, generator=generator)
        else:
            generator.random()

    return loss


def draws_of_python(parameters, example):
    return random.random()


def draws_of_numpy(parameters, example):
    return np.random.rand()  # noqa: NPY002


def hooked(layer):
    """A model one of whose layers has a hook that counts."""
    seen = []
    layer.register_forward_hook(lambda *_: seen.append(1))
    return layer


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (counts, "Counter.calls"),
        (keeps, "Counter.queue"),
        (replaces({"mean": torch.ones(2)}), "held"),
        (writes(torch.ones(2)), "held"),
        (draws(torch.Generator()), "generator"),
        (draws(np.random.default_rng(0)), "generator"),
        (draws(np.random.RandomState(0)), "generator"),
        (draws(random.Random(0)), "generator"),
        (draws(count()), "generator"),
        (draws_of_python, "random"),
        (draws_of_numpy, "numpy.random"),
    ],
)
def test_what_a_call_changes_is_told(loss, name):
    before = kept(loss)
    assert before == kept(loss)
    loss({}, torch.ones(1))
    assert name in {one[0] for one, other in zip(before, kept(loss), strict=True) if one != other}


def test_what_a_hook_changes_is_told():
    model = hooked(torch.nn.Identity())
    before = kept(print, [model])
    assert before == kept(print, [model])
    model(torch.ones(1))
    assert before != kept(print, [model])


def test_a_tensor_that_takes_the_place_of_another_is_told_wherever_it_lies():
    held = {"mean": torch.ones(2)}
    loss, before = replaces(held), kept(replaces(held))
    for _ in range(20):  # whose memory, and number, may be that of one before
        loss({}, None)
        assert before != kept(loss)
