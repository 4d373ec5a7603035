"""Copies of tensors, to see later whether they are still the same."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from io import BytesIO
from operator import attrgetter
from typing import Any

import torch

_kind = attrgetter("dtype", "device", "shape")
_NONE = torch.empty(0)


class Kept:
    """Copies of tensors, or of None, in one piece of memory that few calls copy and compare.

    Attributes:
        holds: whether there are any that count.
        views: the copies, in the order of the tensors.
    """

    def __init__(self) -> None:
        self.holds = False
        self.views: list[Any] = []
        self._kinds: list[Any] = []

    def keep(self, tensors: Sequence[Any], over: float = 1.0) -> None:
        """Copy the tensors, divided by a number as torch divides them."""
        held = [_NONE if each is None else each.data for each in tensors]
        if list(map(_kind, held)) != self._kinds:
            self._kinds = list(map(_kind, held))
            self._own, self.views = _memory(held)
            self._now, self._parts = _memory(held)
        torch._foreach_copy_(self.views, held)
        for _, flat in self._own if over != 1 else ():
            flat.div_(over)
        self.holds = True

    def still(self, tensors: Sequence[Any]) -> bool:
        """Whether these are the tensors held, NaN being itself."""
        held = [_NONE if each is None else each.data for each in tensors]
        if not self.holds or list(map(_kind, held)) != self._kinds:
            return False
        torch._foreach_copy_(self._parts, held)
        return all(map(_alike, self._own, self._now))

    def finite(self) -> bool:
        """Whether no value that is held is infinite or NaN."""
        # Where their sum is finite, all of them are; that is the faster question.
        return all(math.isfinite(each.sum()) or each.isfinite().all() for _, each in self._own)


def _memory(tensors: list[Any]) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """Memory of each kind, as its bytes and as a tensor, and the parts for some tensors."""
    places: dict[Any, list[int]] = {}
    for place, each in enumerate(tensors):
        places.setdefault((each.dtype, each.device), []).append(place)
    memory, parts = [], dict[int, Any]()
    for (dtype, device), own in places.items():
        sizes = [tensors[place].numel() for place in own]
        raw: Any = bytearray(max(1, sum(sizes)) * dtype.itemsize)
        flat = torch.frombuffer(raw, dtype=dtype)
        if device.type != "cpu":
            raw, flat = object(), flat.to(device)  # bytes that nobody sees
        memory.append((raw, flat))
        parts |= zip(own, flat[: sum(sizes)].split(sizes), strict=True)
    return memory, [parts[place].view(each.shape) for place, each in enumerate(tensors)]


def _alike(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    x, y = one[1], other[1]
    alike = one[0] == other[0] or torch.equal(x, y)  # bytes are compared eight times faster
    return alike or bool(((x == y) | (x.isnan() & y.isnan())).all())


def bytes_of(tensor: Any) -> bytes:
    """The values of a tensor; of a kind that numpy does not know, as larger floats."""
    known = tensor.float() if tensor.dtype is torch.bfloat16 else tensor
    return bytes(known.numpy(force=True).tobytes())


def content(value: Any) -> Any:
    """What a value and the tensors in it hold, to compare; of what none can tell nothing equal."""
    into = BytesIO()
    pickler = pickle.Pickler(into)
    pickler.dispatch_table = {torch.Tensor: lambda each: (bytes, (bytes_of(each),))}
    try:
        pickler.dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        return object()
    return into.getvalue()
