"""A loss whose gradient of one example follows from something else is refused when it is tried."""

import contextvars
import itertools
import secrets
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import dropout

from dpaudit import UnsupportedError
from dpaudit.training.gradients.clipped import ClippedSums
from dpaudit.training.gradients.examples import Examples

SAID = r"^the loss of one example gives another gradient .* beside it; leave out counters"


def times(sign):
    """A loss that something beside the example turns round."""
    return lambda parameters, example: (parameters["w"] * example * sign()).sum()


def counted(held):
    held.n += 1
    return 1 if held.n % 2 else -1


def by_cycle():
    return times(itertools.cycle([1, -1]).__next__)


def by_generator():
    return times((each for each in itertools.cycle([1, -1])).__next__)


def by_object_in_objects():
    inner = SimpleNamespace(n=0)
    outer = SimpleNamespace(a=SimpleNamespace(b=inner))
    return times(lambda: counted(outer.a.b))


def by_array():
    held = np.ones(1)

    def sign():
        held[0] *= -1
        return float(held[0])

    return times(sign)


def by_context():
    held = contextvars.ContextVar("held", default=1)

    def sign():
        held.set(-held.get())
        return held.get()

    return times(sign)


def by_entropy():
    return times(lambda: torch.tensor([*secrets.token_bytes(8)]))


def by_fresh_generator():
    return times(lambda: torch.tensor(np.random.default_rng().normal(size=8)))


def by_other_examples():
    """An operator that takes the mean of a chunk from its examples, as a rule for ``vmap`` may."""

    class Centred(torch.autograd.Function):
        @staticmethod
        def forward(rows):
            return rows.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, gradient):
            return gradient

        @staticmethod
        def vmap(info, in_dims, rows):
            return rows - rows.mean(in_dims[0], keepdim=True), in_dims[0]

    return lambda parameters, example: (parameters["w"] * Centred.apply(example)).sum()


def sums(loss, chunk=4, **of_users):
    return ClippedSums(loss, {"w": torch.ones(8)}, Examples(torch.ones(5, 8), **of_users), chunk)


@pytest.mark.parametrize("users", [None, list("aabbc")])
@pytest.mark.parametrize(
    "wrong",
    [
        by_array,
        by_context,
        by_cycle,
        by_entropy,
        by_fresh_generator,
        by_generator,
        by_object_in_objects,
    ],
)
def test_what_is_not_of_the_example_alone_is_refused(wrong, users):
    of_users = {} if users is None else {"users": users, "most": 2}
    with pytest.raises(UnsupportedError, match=SAID):
        sums(wrong(), **of_users)


def test_what_is_of_other_examples_of_a_chunk_is_refused():
    with pytest.raises(UnsupportedError, match=SAID):
        sums(by_other_examples())


def written_to(parameters, example):
    example.mul_(2)
    return (parameters["w"] * example).sum()


def dropped(parameters, example):
    return dropout(parameters["w"] * example, 0.5).sum()


def of_first_call():
    """What a first call made stays."""
    held = {}
    return lambda parameters, example: (parameters["w"] * example).sum() * held.setdefault("s", 2)


def of_no_number(parameters, example):
    return (parameters["w"] * example / (example - example)).sum()


@pytest.mark.parametrize("chunk", [1, 4])
@pytest.mark.parametrize("loss", [written_to, dropped, of_first_call(), of_no_number])
def test_what_is_of_the_example_and_of_torch_is_not(loss, chunk):
    sums(loss, chunk).total(np.arange(5), 1.0)
