"""A loss is tried on made-up units before it meets those of the data.

All that is done with units of the data is done with these: a table may have none, and what fails
for those of others alone would tell that it has some. What fails here tells of no example, and so
the error may say what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NoReturn

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from dpaudit.base.errors import DpAuditError, InputError, UnsupportedError
from dpaudit.project.foreign import foreign
from dpaudit.training.gradients.draws import drawn_by, secret_seed
from dpaudit.training.gradients.examples import Examples
from dpaudit.training.gradients.graphs import Graph
from dpaudit.training.gradients.reach import kept, parts_of, reached

Loss = Callable[[Mapping[str, Any], Any], Any]

NO_NUMBER = "the loss of one example"
"""How the sentence on a loss that is no number begins."""
_UNMAPPED = (nn.GRU, nn.RNN, nn.LSTMCell, nn.GRUCell, nn.RNNCell)
_HOW = (
    "take layers that torch.func.vmap maps (linear, convolution, embedding, LSTM of 32 bits, "
    "attention, layer and group norm), and no branch on values"
)
_TRIED = "the loss, of an example of zeros,"
_CALLS, _ROUNDED = 3, 1e-2
"""Calls that are compared, and how far rounding may move a gradient, for its length."""


class LossTrial:
    """What is wrong with a loss, found without the data.

    Args:
        loss: of parameters, by name, and one example.
        examples: of the units; no more is read of them than their form.
        models: that it calls, beside those that it reaches.
        gradient: of the first of a chunk of units, of parameters and the chunk.
        detached: the parameters for one call.
    """

    def __init__(
        self,
        loss: Loss,
        examples: Examples,
        models: Sequence[nn.Module],
        gradient: Loss,
        detached: Callable[[], dict[str, Any]],
    ) -> None:
        self._loss, self._examples = loss, examples
        self._gradient, self._detached = gradient, detached
        first = next(iter(detached().values()))
        self._device, self._dtype = first.device, first.dtype
        held = (part for _, value in reached(loss) for part in parts_of(value))
        known = [*(each for each in held if isinstance(each, nn.Module)), *models]
        self._modules = list(dict.fromkeys(each for model in known for each in model.modules()))

    def run(self, made: Any) -> None:
        """Try the loss on a chunk of made-up units.

        Raises:
            InputError: if the loss of one example is no number, or uses no parameter.
            UnsupportedError: if it cannot be mapped, keeps something, or seeds torch.
        """
        before, seed = [_tensors(each) for each in self._modules], secret_seed()
        try:
            with foreign(_TRIED, public=True), drawn_by(seed, self._device):
                found = self._gradient(self._detached(), made)
                seeded = torch.initial_seed() != seed
        except DpAuditError as error:
            self._explain(error, made)
        for module, old in zip(self._modules, before, strict=True):
            _require_same(module, old)
        if not (found.any() or isinstance(self._loss, Graph) or self._uses_parameters(made)):
            raise InputError(
                "the loss uses none of the parameters that it is given; call a model by "
                "torch.func.functional_call(model, parameters, inputs)."
            )
        if seeded:
            raise UnsupportedError(
                "the loss seeds torch, so that one unit that joins moves what is drawn for all "
                "others; leave that out."
            )
        if not isinstance(self._loss, Graph):
            self._require_nothing_kept(made)
            self._require_alone(made)

    def _explain(self, error: DpAuditError, made: Any) -> NoReturn:
        """Raise an error of a trial anew, with what is likely to be wrong."""
        if isinstance(error, InputError) and NO_NUMBER in str(error):
            raise InputError(str(error)) from None
        for each in self._modules:
            name = type(each).__name__
            running = isinstance(each, nn.modules.batchnorm._BatchNorm)
            if isinstance(each, _UNMAPPED) or (running and each.training):
                raise UnsupportedError(
                    f"the loss uses a {name}, which cannot be mapped over examples; {_HOW}."
                ) from None
        self._require_called(made)
        if ".item()" in str(error):  # of vmap, which says in many words what else it may be
            place = " ".join(re.findall(r" at \S+:\d+(?=:)", str(error))[:1])
            raise UnsupportedError(
                f"the loss calls .item(){place}, or branches on a value, which cannot be mapped "
                "over examples; leave it a tensor, and choose by torch.where."
            ) from None
        raise UnsupportedError(f"{str(error).removesuffix('.')}; {_HOW}.") from None

    def _require_called(self, made: Any) -> None:
        """Refuse a loss that takes other types, or that fails without ``vmap`` too."""
        leaves, form = tree_flatten(made)  # of users with weights, which are last
        for n, kind in product(range(len(self._examples.leaves)), (self._dtype, torch.int64)):
            own = leaves[n].dtype
            other = tree_unflatten([*leaves[:n], leaves[n].to(kind), *leaves[n + 1 :]], form)
            if own != kind and self._error_of(self._gradient, other) is None:
                raise InputError(
                    f"{self._examples.called[n]} is of {own}, which the loss cannot take; convert "
                    f"it, such as by .to({kind}), or of an array by "
                    f".astype('{str(kind).removeprefix('torch.')}')."
                )
        one = self._one(made)
        if (error := self._error_of(self._loss, one)) is not None:
            shapes = tree_map(lambda each: f"{tuple(each.shape)} of {each.dtype}", one)
            raise InputError(
                f"{str(error).removesuffix('.')}; it is called as loss(parameters, example), and "
                f"one example has the shapes {str(shapes).replace(chr(39), ''):.200}."
            )

    def _one(self, made: Any) -> Any:
        """The first of made-up examples."""
        by_user = self._examples.by_user
        tree = made[0] if by_user else made
        return tree_map(lambda each: each[0, 0] if by_user else each[0], tree)

    def _uses_parameters(self, made: Any) -> bool:
        """Tell whether the loss of one example depends on a parameter, if only by a factor 0."""
        own = {name: each.requires_grad_() for name, each in self._detached().items()}
        with foreign(_TRIED, public=True), drawn_by(secret_seed(), self._device):
            with torch.enable_grad():
                found = self._loss(own, self._one(made))
            if not found.requires_grad:
                return False
            found = torch.autograd.grad(found, [*own.values()], allow_unused=True)
        return any(each is not None for each in found)

    def _error_of(self, call: Loss, example: Any) -> DpAuditError | None:
        """What a call with made-up examples raises, if anything."""
        try:
            with foreign("the loss", public=True), drawn_by(secret_seed(), self._device):
                call(self._detached(), example)
        except DpAuditError as error:
            return error
        return None

    def _require_nothing_kept(self, made: Any) -> None:
        """Refuse a loss that another call changes; what a first one made, such as a mask, stays."""
        before = kept(self._loss, self._modules)
        self._called(secret_seed(), made)
        now = kept(self._loss, self._modules)
        for (name, old), (_, new) in zip(before, now, strict=False):
            if old != new:
                raise UnsupportedError(
                    f"the loss changes {name!r:.60}, which would keep something of the examples, "
                    "or of how many there are, for the next call; leave that out."
                )

    def _require_alone(self, made: Any) -> None:
        """Refuse a loss of which an example's gradient is another one at another call.

        Whatever it follows from beside the example, others in the chunk or how many calls there
        were, a unit that joins would move the gradients of all after it.
        """
        draws, seed = torch.Generator().manual_seed(0), secret_seed()
        drawn = [self._drawn(made, draws) for _ in range(_CALLS)]
        beside = [  # copies, as a loss may write to its example
            tree_map(lambda one, other: torch.cat([one[:1], other[1:]]), drawn[0], each)
            for each in drawn
        ]
        gradients = [self._called(seed, each) for each in beside]
        apart = max(float(np.linalg.norm(each - gradients[0])) for each in gradients)
        if apart > _ROUNDED * max(float(np.linalg.norm(each)) for each in gradients):
            raise UnsupportedError(
                "the loss of one example gives another gradient when it is called again with other "
                "examples beside it; leave out counters, clocks, files, random numbers that are "
                "not torch's, and operators that mix the examples of a chunk."
            )

    def _drawn(self, made: Any, draws: torch.Generator) -> Any:
        """Made-up units whose floats are between 0 and 1; as zeros, most move no parameter."""

        def drawn(each: Any) -> Any:
            if not each.is_floating_point():
                return each
            return torch.rand(each.shape, generator=draws).to(each.device, each.dtype)

        if self._examples.by_user:
            return tree_map(drawn, made[0]), made[1]
        return tree_map(drawn, made)

    def _called(self, seed: int, made: Any) -> Any:
        """What the gradients of made-up units give, with torch's numbers drawn by a seed."""
        with foreign("the loss, of made-up examples,", public=True), drawn_by(seed, self._device):
            return self._gradient(self._detached(), made)


def _tensors(module: nn.Module) -> dict[str, tuple[Any, int]]:
    """The tensors that a module holds beside its parameters, and how often each was written to."""
    held = {**vars(module), **module._buffers}
    tensors = {name: each for name, each in held.items() if isinstance(each, torch.Tensor)}
    return {name: (each, each._version) for name, each in tensors.items()}


def _require_same(module: nn.Module, before: dict[str, tuple[Any, int]]) -> None:
    """Refuse a module that keeps something of what it was called with."""
    for name, (tensor, version) in _tensors(module).items():
        if name not in before or before[name][0] is not tensor or before[name][1] != version:
            raise UnsupportedError(
                f"the loss writes to {name!r:.60} of a {type(module).__name__}, which would "
                "keep something of the examples outside the gradients; leave that out."
            )
