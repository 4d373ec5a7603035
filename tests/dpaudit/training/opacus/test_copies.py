"""Copies tell every change of a tensor, and nothing else."""

import math

import pytest
import torch

from dpaudit.training.opacus.side_effects import TensorCopies, content

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def kept(*tensors, over=1.0):
    copies = TensorCopies()
    copies.keep(tensors, over)
    return copies


def some(dtype=torch.float32):
    return [torch.tensor(values, dtype=dtype) for values in ([[1.0, 2.0], [3.0, 4.0]], [5.0], 6.0)]


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.uint8])
@pytest.mark.parametrize("at", range(3))
def test_the_least_change_of_any_entry_is_told(dtype, at):
    tensors = [*some(), *some(dtype)]
    copies = kept(*tensors)
    assert copies.unchanged(tensors)
    changed = tensors[3 + at].view(-1)
    more = torch.full_like(changed, torch.inf) if dtype.is_floating_point else changed + 1
    changed[-1] = torch.nextafter(changed, more)[-1] if dtype.is_floating_point else more[-1]
    assert not copies.unchanged(tensors)


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_are_compared_and_not_bits(dtype):
    tensors = [torch.tensor([0.0, math.nan], dtype=dtype), torch.tensor([1], dtype=torch.int64)]
    copies = kept(*tensors)
    assert copies.unchanged(tensors)
    assert copies.unchanged([torch.tensor([-0.0, -math.nan], dtype=dtype), tensors[1]])
    assert not copies.unchanged([torch.tensor([math.nan, math.nan], dtype=dtype), tensors[1]])


def test_order_shape_number_and_kind_are_told():
    one, other = torch.zeros(2, 3), torch.zeros(6)
    copies = kept(one, other)
    assert copies.unchanged([one, other])
    wrong = ([other, one], [one], [one, one], [one.double(), other], [one, None], [one, other[:5]])
    assert not any(copies.unchanged(each) for each in wrong)


def test_nothing_of_nothing_is_the_same():
    assert not TensorCopies().unchanged([])
    copies = kept(None, torch.empty(0))
    assert copies.unchanged([None, torch.empty(0)])
    assert not copies.unchanged([torch.zeros(1), torch.empty(0)])


def test_strides_do_not_matter():
    square = torch.arange(6.0).view(2, 3)
    copies = kept(square.t())
    assert copies.unchanged([square.t().contiguous()])
    assert copies.unchanged([square.t()])
    assert not copies.unchanged([square.view(3, 2)])


def test_a_copy_takes_other_shapes_and_is_none_of_the_graph():
    copies = kept(torch.zeros(3))
    weight = torch.nn.Parameter(torch.ones(4, 2))
    copies.keep([weight])
    assert copies.unchanged([weight])
    assert not copies.unchanged([torch.zeros(3)])
    assert not copies.views[0].requires_grad


@pytest.mark.parametrize("over", [1.0, 3.0, 7])
def test_a_copy_is_divided_as_torch_divides(over):
    tensors = [torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.ones(2)]
    copies = kept(*tensors, over=over)
    assert copies.unchanged([each / over for each in tensors])
    for each in tensors:
        each /= over
    assert copies.unchanged(tensors)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("value", "right"), [(1.0, True), (math.inf, False), (math.nan, False)])
def test_infinite_values_are_told(dtype, value, right):
    tensors = [*some(), torch.tensor([[1.0, value]], dtype=dtype)]
    assert kept(*tensors).finite() is right


def test_a_sum_beyond_all_floats_is_of_finite_values():
    assert kept(torch.full((4,), 3e38)).finite()


def test_content_is_that_of_tensors_and_of_what_they_stand_in():
    def held(last=2.0, dtype=torch.float32):
        return {"name": (torch.tensor([1.0, last], dtype=dtype), ["text", 3])}

    assert content(held()) == content(held())
    assert content(held()) != content(held(last=2.5))
    assert content(held(dtype=torch.bfloat16)) == content(held(dtype=torch.bfloat16))
    assert content({"name": 1}) != content({"name": 2})


def test_what_cannot_be_compared_is_equal_to_nothing():
    held = [lambda: 0]
    assert content(held) != content(held)
