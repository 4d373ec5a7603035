"""Sums of clipped gradients of units, each made of its own examples alone.

``torch.func.vmap`` hands the loss one example, so that no loss that reads its arguments alone can
mix two. Chunks have one size: what is missing repeats the chunk's first unit, times 0, so that the
kernels, and with them the rounding, are the same for a chunk of one unit and a full one. In chunks
of one unit, a graph, which can read nothing but its arguments, is differentiated without ``vmap``.

What a unit adds is decided by its own gradient g and the clip norm C: g min(1, C/‖g‖), and nothing
where g is not finite. Gradients are floats: the norm that is clipped to is smaller by
:data:`MARGIN`, which pays for the rounding of norms, factors and sums. Neither autocast nor a
coarse product of matrices rounds sums (:mod:`dpaudit.training.gradients.sums`). The last bits of a
gradient depend on its place in a chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.func import grad, vmap
from torch.utils._pytree import tree_map

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.project.foreign import foreign
from dpaudit.training.gradients.draws import drawn_by, secret_seed
from dpaudit.training.gradients.examples import Examples, Places
from dpaudit.training.gradients.graphs import Graph
from dpaudit.training.gradients.sums import ChunkSum
from dpaudit.training.gradients.trial import NO_NUMBER, Loss, LossTrial

Floats = NDArray[np.float64]

MARGIN = 2.0**-9
"""Part of the clip norm that pays for rounding.

A norm is taken over fewer than 8192 entries at once, so that it is off by at most
(8192 + d/4096) u/2 relatively, for d entries and u = 2^-24: by 9.8e-4 for 1e8. A sum of n
rows of length C is off by at most n² 2^-53 C, for a million by 1.2e-4 C, and by 2.5e-4 C for those
that 32 bits add, in each of two neighbours. In all that is 1.8e-3.
"""
_BLOCK = 4096
NORMS = (1e-12, 1e12)
"""Clip norms that 32-bit floats measure well."""
_LARGEST = 1e18
"""A small clip norm, divided by a longer gradient, is less than a 32-bit float holds well."""


class ClippedSums:
    """The gradients of a loss, clipped by unit and added up.

    Args:
        loss: of parameters, by name, and one example; a tensor with one number.
        parameters: tensors by name, which a training changes in place.
        examples: of the units.
        chunk: units that are mapped at once.
        model: whose parameters they are, for the sentences of errors.

    Attributes:
        size: of one gradient, over all parameters.

    Raises:
        InputError: if the parameters are no tensors of one kind, or the loss of one example is no
            number.
        UnsupportedError: if the loss cannot be mapped.
    """

    def __init__(
        self,
        loss: Loss,
        parameters: Mapping[str, Any],
        examples: Examples,
        chunk: int,
        model: nn.Module | None = None,
    ) -> None:
        first = _require_parameters(parameters)
        self.device, self.dtype = first.device, first.dtype
        self._parameters, self._examples, self.chunk = parameters, examples, chunk
        self._sizes = [each.numel() for each in parameters.values()]
        self.size = sum(self._sizes)
        self._sum = ChunkSum(chunk)
        one = partial(_of_user if examples.by_user else _of_row, loss)
        self._gradients = vmap(grad(one), in_dims=(None, 0), randomness="different")
        if isinstance(loss, Graph) and chunk == 1:
            self._gradients = partial(_of_one_unit, one)
        self._loss = loss
        with foreign(f"{chunk} units of zeros, as chunk says,", public=True):
            made = examples.zeros(chunk, self.device, self.dtype)
        models = [] if model is None else [model]
        LossTrial(loss, examples, models, self._of_made_up, self._detached).run(made)

    def _of_made_up(self, parameters: Mapping[str, Any], units: Any) -> Any:
        """The gradient of the first of made-up units, with which all is done as with others."""
        return self._clipped(parameters, units, 0, 1, NORMS[1])[0]

    def require_unchanged(self) -> None:
        """Refuse parameters that became others, such as those of a model that was halved.

        Raises:
            InputError: if they did.
        """
        own = [(each.numel(), each.dtype, each.device) for each in self._parameters.values()]
        if own != [(size, self.dtype, self.device) for size in self._sizes]:
            raise InputError(
                "parameters have other types, sizes or devices than at the start of the "
                "training; do not change them."
            )

    def _detached(self) -> dict[str, Any]:
        """The parameters for one chunk: copies, as a loss may write to what it is given."""
        own = {name: each.detach() for name, each in self._parameters.items()}
        if isinstance(self._loss, Graph):  # which writes to nothing
            return own
        return {name: each.clone() for name, each in own.items()}

    def split(self, total: Floats, divisor: float) -> dict[str, Any]:
        """The parts of a vector of :attr:`size` entries by parameter, of their shapes and type."""
        mean = torch.from_numpy(total).to(self.device, self.dtype) / divisor
        parts = mean.split_with_sizes(self._sizes)
        named = zip(self._parameters.items(), parts, strict=True)
        return {name: part.view_as(each) for (name, each), part in named}

    def total(
        self, places: Places, norm: float, *, counted: bool = True, seed: int | None = None
    ) -> tuple[Floats, int]:
        """Return the sum over units of their clipped gradients, and how many more were not clipped.

        A unit without examples adds to neither, as one that is absent.

        Args:
            places: of the units, in whatever order; of none the sum is 0.
            norm: C.
            counted: whether that number is wanted; else it is 0.
            seed: of what the loss draws; by the system where not given.

        Returns:
            A vector of :attr:`size` entries, parameter by parameter, and the number of units that
            were not clipped less that of those that were; both private.
        """
        total = np.zeros(self.size)
        balance, places = 0, self._examples.present(places)
        with drawn_by(secret_seed() if seed is None else seed, self.device):
            for start in range(0, len(places), self.chunk):
                here = places[start : start + self.chunk]
                padded = np.full(self.chunk, here[0])
                padded[: len(here)] = here
                try:
                    chunk = self._examples.chunk(padded, self.device, self.dtype)
                    added, own = self._clipped(self._detached(), chunk, start, len(here), norm)
                except Exception as error:
                    if self._counts_as_zero(error):
                        balance += counted
                        continue
                    with foreign("the loss"):  # its words may show an example
                        raise
                total += added
                if counted:
                    balance += 2 * int((own <= norm * (1 - MARGIN)).sum()) - len(here)
        return total, balance

    def _counts_as_zero(self, error: Exception) -> bool:
        """Tell whether an error of one unit follows from its rows alone, and tells nothing."""
        of_memory = isinstance(error, MemoryError) or "alloc" in str(error)
        alone = self.chunk == 1  # else it would take the units beside it along
        total = isinstance(self._loss, Graph) and self._loss.is_total
        return alone and total and not of_memory

    def _clipped(
        self, parameters: Mapping[str, Any], chunk: Any, start: int, real: int, norm: float
    ) -> tuple[Floats, Any]:
        """The sum over the first units of a chunk that begins at a place, and their norms."""
        made = self._gradients(parameters, chunk)
        rows = [made[name].reshape(self.chunk, -1) for name in parameters]
        if self.chunk == 1:  # in fewer calls
            rows = [torch.cat(rows, 1)]
        norms = _norms(rows)
        if not float(norms.max()) <= _LARGEST:  # or one of them is NaN
            rows, norms = _mended(rows)
        factors = (norm * (1 - MARGIN) / norms).clamp_(max=1.0)
        factors[real:] = 0.0
        return self._sum(factors, rows, start), norms[:real]


def _of_row(loss: Loss, parameters: Mapping[str, Any], row: Any) -> Any:
    return _number(loss(parameters, row))


def _of_user(loss: Loss, parameters: Mapping[str, Any], given: tuple[Any, Any]) -> Any:
    """The mean over a user's rows; what is only repeated weighs nothing."""

    def of_row(row: Any) -> Any:
        return _number(loss(parameters, row))

    rows, weights = given
    return (vmap(of_row, randomness="different")(rows) * weights).sum()


def _of_one_unit(loss: Loss, parameters: Mapping[str, Any], chunk: Any) -> dict[str, Any]:
    """The gradients of a chunk of one unit, without ``vmap``, which takes several times as long.

    Of a graph alone: code could keep what it was called with, and mix it with the next example.
    """
    own = {name: each.requires_grad_() for name, each in parameters.items()}
    with torch.enable_grad():
        found = loss(own, tree_map(lambda each: each[0], chunk))
    if not found.requires_grad:
        return {name: torch.zeros_like(each)[None] for name, each in own.items()}
    made = torch.autograd.grad(found, [*own.values()], allow_unused=True, materialize_grads=True)
    return {name: each[None] for name, each in zip(own, made, strict=True)}


def _number(loss: Any) -> Any:
    """Refuse what is no loss of one example."""
    if not isinstance(loss, torch.Tensor):
        raise InputError(f"{NO_NUMBER} is a {type(loss).__name__:.60}; it must be a tensor.")
    if loss.ndim or not loss.is_floating_point():
        raise InputError(
            f"{NO_NUMBER} is a tensor of shape {tuple(loss.shape)} and {loss.dtype}; it must be "
            "one number, of shape () and a float, so add up or average its terms."
        )
    return loss


def _require_parameters(parameters: Mapping[str, Any]) -> Any:
    """Return one of them; refuse what is no tensor, and what floats of 16 bits round too far."""
    first = next(iter(parameters.values()), None)
    if first is None:
        raise InputError("no parameter is trained; give at least one that is.")
    for name, each in parameters.items():
        if not isinstance(each, torch.Tensor):
            raise InputError(
                f"parameters has a {type(each).__name__:.60} at {name!r:.60}; it must be a tensor."
            )
        if each.dtype not in (torch.float32, torch.float64):
            raise UnsupportedError(
                f"parameters has {each.dtype} at {name!r:.60}, which rounds gradients by more than "
                "their noise covers; take torch.float32, and autocast within the loss."
            )
        if each.dtype is not first.dtype or each.device != first.device:
            raise UnsupportedError(
                f"parameters has tensors of several types or devices; give all of {first.dtype} on "
                f"{first.device}."
            )
    return first


def _norms(rows: list[Any]) -> Any:
    """The norm of each unit's gradient, shape (chunk,)."""
    parts = []
    for each in rows:
        whole = each.shape[1] // _BLOCK * _BLOCK
        if whole > _BLOCK:  # from two blocks on
            blocks = each[:, :whole].unflatten(1, (-1, _BLOCK))
            parts.append(torch.linalg.vector_norm(blocks, dim=2))
            each = each[:, whole:]
        parts.append(torch.linalg.vector_norm(each, dim=1)[:, None])
    return torch.linalg.vector_norm(torch.cat(parts, 1), dim=1)


def _mended(rows: list[Any]) -> tuple[list[Any], Any]:
    """Rows with a NaN or an infinity as zeros, and huge ones shorter, with their direction."""
    finite = torch.stack([torch.isfinite(each).all(1) for each in rows]).all(0)
    rows = [torch.where(finite[:, None], each, 0.0) for each in rows]
    norms = _norms(rows)
    huge = ~(norms <= _LARGEST)  # or their squares are beyond all floats
    largest = torch.stack([each.abs().amax(1) for each in rows if each.shape[1]]).amax(0)
    scale = torch.where(huge, largest, 1.0)[:, None] / NORMS[1]
    rows = [torch.where(huge[:, None], each / scale, each) for each in rows]
    return rows, _norms(rows)
