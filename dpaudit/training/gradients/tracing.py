"""The graph of a loss: what it calls of torch, written down while it runs on an example of zeros.

It runs where nothing private is. Whatever it reads beside parameters and example, buffers or frozen
layers, becomes a constant of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.training.gradients.graphs import OPERATORS, TYPES, Graph, bytes_of, unlisted

_NAMES = {each: name for name, each in TYPES.items()}
_MEANINGLESS = {"device", "layout", "pin_memory", "memory_format", "non_blocking"}
"""Options that say where values lie, and not which they are."""


class _Writer(TorchDispatchMode):  # type: ignore[misc]
    """Writes down each call of torch.

    Args:
        given: parameters and parts of the example.
    """

    def __init__(self, given: Sequence[Any]) -> None:
        super().__init__()
        self.nodes: list[list[Any]] = []
        self.constants: list[Any] = []
        self._known: dict[int, dict[str, Any]] = {
            id(each): {"value": n} for n, each in enumerate(given)
        }
        self._given = len(given)
        self._kept: list[Any] = list(given)  # so that no other tensor gets one of their numbers

    def __torch_dispatch__(
        self, called: Any, types: Any, given: Any = (), options: Any = None
    ) -> Any:
        options = options or {}
        name: str = called.__name__
        if name not in OPERATORS:
            with self:  # what is made of others is written down as these
                found = called.decompose(*given, **options)
            if found is not NotImplemented:
                return found
        found = called(*given, **options)
        written = {k: self._written(v) for k, v in options.items() if k not in _MEANINGLESS}
        base, _, kind = name.partition(".")
        if base.endswith("_") and not base.startswith("_"):  # in place: the tensor is a new value
            name = f"{base[:-1]}.{kind}"
        if name not in OPERATORS:
            raise UnsupportedError(unlisted(f"aten.{called.__name__}"))
        self.nodes.append([name, [self._written(each) for each in given], written])
        self._note(found)
        return found

    def _note(self, found: Any) -> None:
        """Remember what was computed, by its place among the calls."""
        place = self._given + len(self.nodes) - 1
        several = found if isinstance(found, tuple | list) else [found]
        for part, each in enumerate(several):
            self._known[id(each)] = {"value": place} | ({"part": part} if several is found else {})
            self._kept.append(each)

    def _written(self, argument: Any) -> Any:
        if isinstance(argument, torch.Tensor):
            return self.reference(argument)
        if isinstance(argument, torch.dtype):
            if argument not in _NAMES:
                raise UnsupportedError(f"the loss makes {argument}; take {', '.join(TYPES)}.")
            return {"type": _NAMES[argument]}
        if isinstance(argument, list | tuple):
            return [self._written(each) for each in argument]
        if isinstance(argument, float) and not math.isfinite(argument):
            return {"float": str(argument)}
        if argument is None or isinstance(argument, bool | int | float | str):
            return argument
        raise UnsupportedError(f"the loss takes a {type(argument).__name__:.60} as an argument.")

    def reference(self, tensor: Any) -> dict[str, Any]:
        """By which a graph names a tensor."""
        if id(tensor) not in self._known:
            self._known[id(tensor)] = {"constant": len(self.constants)}
            self.constants.append(tensor)
            self._kept.append(tensor)
        return self._known[id(tensor)]


def traced(
    loss: Callable[[Mapping[str, Any], Any], Any],
    parameters: Mapping[str, Any],
    example: Sequence[Any],
    tree: Callable[[list[Any]], Any],
) -> dict[str, Any]:
    """Return the graph of a loss, as :meth:`Graph.read` reads it.

    Args:
        loss: of parameters by name and one example.
        parameters: tensors by name.
        example: parts of an example of zeros.
        tree: puts the parts of an example together.

    Raises:
        UnsupportedError: if it calls what no sealed run computes, or does not what its graph does.
        InputError: if it returns no number.
    """
    values = {name: each.detach().clone() for name, each in parameters.items()}
    parts = list(example)
    fast, own = torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.set_flags(False)
    torch.backends.mha.set_fastpath_enabled(False)  # so that layers are made of simple calls
    try:
        plain = sdpa_kernel(SDPBackend.MATH)
        with torch.inference_mode(), plain, _Writer([*values.values(), *parts]) as writer:
            found = loss(values, tree(parts))
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        torch.backends.mkldnn.set_flags(own[0])
    if not isinstance(found, torch.Tensor):
        raise InputError(
            f"the loss of one example is a {type(found).__name__:.60}; it must be a tensor."
        )
    result = writer.reference(found)
    constants = [bytes_of(each) for each in writer.constants]
    record = {"constants": constants, "nodes": writer.nodes, "result": result}
    _require_same(record, loss, values, parts, tree)
    return record


def _require_same(
    record: dict[str, Any], loss: Any, values: dict[str, Any], parts: list[Any], tree: Any
) -> None:
    """Refuse a graph that does another thing elsewhere: of a loss that branches on values."""
    graph, _ = Graph.read(record, values, parts)
    draws = torch.Generator().manual_seed(1)
    for _ in range(2):
        moved = {
            k: v + 0.1 * torch.randn(v.shape, generator=draws, dtype=v.dtype)
            for k, v in values.items()
        }
        other = [_made_up(each, draws) for each in parts]
        with torch.no_grad():
            one, two = graph(moved, other), loss(moved, tree(other))
        if not torch.allclose(one, two, rtol=1e-3, atol=1e-4, equal_nan=True):
            raise UnsupportedError(
                "the loss computes something other than its recorded torch calls: it branches "
                "on values, draws random numbers, or writes to a tensor that it also reads "
                "under another name; leave that out."
            )


def _made_up(part: Any, draws: torch.Generator) -> Any:
    if part.is_floating_point():
        return torch.rand(part.shape, generator=draws, dtype=part.dtype)
    return torch.randint(0, 2, part.shape, generator=draws)
