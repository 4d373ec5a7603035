"""What a loss reaches beside its arguments: variables that it closes over, globals, attributes.

In one process nothing keeps a loss from the data; this finds the usual ways in which it comes to
them by mistake: a variable that holds them, and one that keeps something from call to call. What
was computed from the data before, it cannot tell.
"""

from __future__ import annotations

import dis
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_flatten
from torch.utils.data import TensorDataset

_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_DEPTH = 3
"""Functions that call functions are followed so far."""
_DRAWING: dict[type, Callable[[Any], Any]] = {
    torch.Generator: lambda own: own.get_state().tolist(),
    np.random.Generator: lambda own: own.bit_generator.state,
    np.random.RandomState: lambda own: own.get_state(),
    random.Random: random.Random.getstate,
    itertools.count: repr,
}
"""What gives something else at each call, and how it tells its state."""
_LONGEST = 10_000
"""Of a longer container its length alone is compared."""


def held_data(loss: Any, leaves: Sequence[Any]) -> str | None:
    """The name by which a loss reaches the data; None where none is found.

    Args:
        loss: a function, or whatever is called.
        leaves: the tensors of the data.

    >>> rows = torch.ones(3)
    >>> held_data(lambda parameters, example: rows.mean() - example, [rows])
    'rows'
    """
    for name, value in reached(loss):
        for part in parts_of(value):
            if any(_same(part, leaf) for leaf in leaves):
                return name
            for inner, each in _buffers(part):
                if any(_same(each, leaf) for leaf in leaves):
                    return f"{name}.{inner}"
    return None


def kept(loss: Any, models: Sequence[Any] = ()) -> list[tuple[str, Any]]:
    """What a loss and the layers of its models hold now, by name, to compare it after a call.

    With the generators that everybody reaches: what they draw, a chunk shares.

    >>> calls = []
    >>> before = kept(lambda parameters, example: calls.append(1))
    >>> calls.append(1)
    >>> before == kept(lambda parameters, example: calls.append(1))
    False
    """
    held = list(reached(loss))
    for layer in models:
        kind = type(layer).__name__
        own = [each for each in _attributes(layer) if not each[0].startswith("_")]
        held += [(f"{kind}.{name}", value) for name, value in own]
        for hook in (*layer._forward_pre_hooks.values(), *layer._forward_hooks.values()):
            held += reached(hook)
    of_numpy = np.random.get_state()  # noqa: NPY002  # which a loss may draw from
    shared = [("numpy.random", repr(of_numpy)), ("random", repr(random.getstate()))]
    return [(name, _state(value)) for name, value in held] + shared


class _Itself:
    """One object as it was written to so far; it stays alive, so that no other has its number."""

    def __init__(self, value: Any) -> None:
        self.value, self.version = value, getattr(value, "_version", None)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, _Itself) and self.value is other.value
        return same and self.version == other.version  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


def _state(value: Any, depth: int = 2) -> Any:
    """What a value holds that a call can change."""
    if isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    for kind, state in _DRAWING.items():
        if isinstance(value, kind):
            return repr(state(value))
    if not depth or not isinstance(value, Mapping | list | tuple | Set | deque):
        return _Itself(value)
    parts = [*value.keys(), *value.values()] if isinstance(value, Mapping) else list(value)
    return [len(parts), *(_state(each, depth - 1) for each in parts if len(parts) <= _LONGEST)]


def parts_of(value: Any) -> list[Any]:
    """What a tree of containers holds: tensors, arrays, models."""
    tensors = value.tensors if isinstance(value, TensorDataset) else value
    try:
        return list(tree_flatten(tensors)[0])
    except Exception:  # noqa: BLE001  # of a class whose parts nobody can list
        return []


def _buffers(value: Any) -> list[tuple[str, Any]]:
    """The tensors that a model holds beside its parameters."""
    return list(value.named_buffers()) if isinstance(value, nn.Module) else []


def _same(value: Any, leaf: Any) -> bool:
    """Whether a tensor or an array has the memory of another, or all that it holds."""
    if isinstance(value, np.ndarray):
        if leaf.device.type != "cpu" or not value.size or not leaf.numel():
            return False
        return _share(_bytes_of(value), _span(leaf)) or _alike(value, leaf)
    if not isinstance(value, torch.Tensor) or value.is_nested or not value.numel():
        return False
    if value.layout is not torch.strided or not leaf.numel() or value.device != leaf.device:
        return False
    return _share(_span(value), _span(leaf)) or _equal(value, leaf)


def _alike(array: Any, leaf: Any) -> bool:
    """Whether an array, in whatever order its bytes lie, holds what a tensor does."""
    if array.shape != tuple(leaf.shape):
        return False
    try:
        return _equal(torch.from_numpy(np.require(array, requirements=["C", "W"])), leaf)
    except (TypeError, ValueError):  # of objects, texts, or another order of bytes
        return False


def _equal(one: Any, other: Any) -> bool:
    return bool(one.shape == other.shape and torch.equal(one, other))


def _share(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _bytes_of(array: Any) -> tuple[int, int]:
    """From the first to behind the last byte of an array, whose steps may be negative."""
    start = int(array.__array_interface__["data"][0])
    moves = [(size - 1) * step for size, step in zip(array.shape, array.strides, strict=True)]
    ahead = sum(move for move in moves if move > 0)
    return start + sum(move for move in moves if move < 0), start + ahead + array.itemsize


def _span(tensor: Any) -> tuple[int, int]:
    """From the first to behind the last byte of a tensor."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    entries = 1 + sum((size - 1) * stride for size, stride in steps)
    start = int(tensor.data_ptr())
    return start, start + entries * tensor.element_size()


def reached(call: Any, depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """Names and values that a call reads beside its arguments, also by functions that it calls."""
    if isinstance(call, partial):
        yield from ((f"argument {n + 1}", each) for n, each in enumerate(call.args))
        yield from call.keywords.items()
        call = call.func
    owner = call.__self__ if isinstance(call, MethodType) else None
    function = getattr(call, "__func__", call)
    if not isinstance(function, FunctionType):
        own = next((vars(kind)["__call__"] for kind in type(call).__mro__ if _calls(kind)), None)
        if own is None:
            return
        owner, function = call, own
    names = _names(function.__code__)
    held = {name: function.__globals__[name] for name in names[0] & function.__globals__.keys()}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    held |= {name: cell.cell_contents for name, cell in cells if _is_full(cell)}
    held |= {f"default {n + 1}": each for n, each in enumerate(function.__defaults__ or ())}
    held |= function.__kwdefaults__ or {}
    held |= {f"self.{name}": each for name, each in _attributes(owner) if name in names[1]}
    yield from held.items()
    for name, value in held.items():  # such as table.rows, of an object or a module of Python
        inner = [(own, each) for own, each in _attributes(value) if own in names[1]]
        yield from ((f"{name}.{own}", each) for own, each in inner)
    if depth:
        for each in held.values():
            if isinstance(each, FunctionType | MethodType | partial):
                yield from reached(each, depth - 1)


def _calls(kind: type) -> bool:
    return isinstance(vars(kind).get("__call__"), FunctionType)


def _is_full(cell: Any) -> bool:
    try:
        return bool(cell.cell_contents is not None)
    except ValueError:  # a variable without a value yet
        return False


def _attributes(owner: Any) -> list[tuple[str, Any]]:
    return list(vars(owner).items()) if hasattr(owner, "__dict__") else []


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """The globals and the attributes that a code asks for, with that of functions within it."""
    asked: tuple[set[str], set[str]] = (set(), set())
    for each in dis.get_instructions(code):
        if each.opname in _GLOBAL:
            asked[0].add(str(each.argval))
        elif each.opname in _ATTRIBUTE:
            asked[1].add(str(each.argval))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            further = _names(inner)
            asked[0].update(further[0])
            asked[1].update(further[1])
    return asked
