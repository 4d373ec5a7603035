"""What a training may do beside its ledger: other steps, and randomness that is used again."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import torch

from dpaudit.errors import PlanMismatchError

_LEFT = "_dpaudit_left"
"""Where a tensor holds a copy of what a step left, and whose step."""


class Randomness:
    """States of generators, of which none may be drawn from twice.

    Attributes:
        repeated: whether one was: what was drawn from it then was drawn before.
    """

    def __init__(self) -> None:
        self.repeated = False
        self._seen: set[int] = set()

    @staticmethod
    def state(generator: Any) -> int | None:
        """The state of a generator, or of torch's own; None of a secure one, which shows none."""
        source = torch.default_generator if generator is None else generator
        try:
            return hash(source.get_state().numpy().tobytes())
        except (AttributeError, RuntimeError, TypeError):
            return None

    def drawn(self, state: int | None) -> None:
        """Note that something was drawn from a state."""
        if state is not None:
            self.repeated |= state in self._seen
            self._seen.add(state)


class Inputs:
    """The batches that a model saw, by a digest that never leaves the process.

    Args:
        module: that ``make_private`` returned, model or hooks.

    Attributes:
        last: of the batch seen last; None where it cannot be told from its like.
    """

    def __init__(self, module: Any) -> None:
        self.last: int | None = None
        self._rows = torch.empty(0)
        model = module if isinstance(module, torch.nn.Module) else module._module
        model.register_forward_pre_hook(self._look, with_kwargs=True)

    def _look(self, model: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not (model.training and torch.is_grad_enabled()):
            return
        held = [each for each in (*args, *named.values()) if isinstance(each, torch.Tensor)]
        if not held or held[0].ndim == 0 or len(held[0]) < 2:
            self.last = None
            return
        plain = [each.detach().cpu().contiguous() for each in held]
        self.last = hash(tuple(each.view(-1).view(torch.uint8).numpy().tobytes() for each in plain))
        self._rows = plain[0]

    def chance(self) -> float:
        """Of drawing the last batch again, where rows are as common in the data as in this batch.

        Small batches, and those of few different rows, come again in honest trainings.
        """
        alike = Counter(row.numpy().tobytes() for row in self._rows)
        rows = len(self._rows)
        return math.prod((count / rows) ** count for count in alike.values())


class Kept:
    """Copies of tensors, to see later whether they are still the same.

    Attributes:
        holds: whether there are any.
    """

    def __init__(self) -> None:
        self.holds = False
        self._copies: list[Any] = []

    def keep(self, tensors: list[Any], over: float = 1.0) -> None:
        """Copy the tensors, divided by a number as torch divides them."""
        past = self._copies if len(self._copies) == len(tensors) else [None] * len(tensors)
        self._copies = [_copy(*each, over) for each in zip(tensors, past, strict=True)]
        self.holds = True

    def forget(self) -> None:
        """Hold none."""
        self.holds = False

    def still(self, tensors: list[Any]) -> bool:
        """Whether these are the tensors held, NaN being itself."""
        alike = self.holds and len(tensors) == len(self._copies)
        return alike and all(map(_alike, self._copies, tensors))


def _copy(tensor: Any, into: Any = None, over: float = 1.0) -> Any:
    """A copy, in the memory of an earlier one where that can be."""
    if tensor is None:
        return None
    if into is None or not _same_kind(tensor, into):
        into = torch.empty_like(tensor, requires_grad=False)
    held = tensor.detach()
    return into.copy_(held) if over == 1 else torch.div(held, over, out=into)


def _same_kind(one: Any, other: Any) -> bool:
    return bool(
        one.dtype is other.dtype and one.shape == other.shape and one.device == other.device
    )


def _alike(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    if not _same_kind(one, other):
        return False
    return torch.equal(one, other) or bool(((one == other) | (one.isnan() & other.isnan())).all())


def finite(tensor: Any) -> bool:
    """Whether no value is infinite or NaN."""
    # Where their sum is finite, all of them are; that is the faster question.
    return math.isfinite(tensor.sum()) or bool(tensor.isfinite().all())


class Writes:
    """Who writes to a model: the steps of attached optimizers, each after its noise.

    Args:
        optimizer: of opacus; the one that it wraps steps only after noise was added, and by it.
        ledger: of the training, whose optimizers may share a model.
        module: the model, where it is known; its other parameters and its buffers stay as they are.

    Attributes:
        elsewhere: whether something else wrote to it between two steps.
    """

    def __init__(self, optimizer: Any, ledger: Any, module: Any) -> None:
        self.elsewhere = False
        self._optimizer, self._module, self._ledger = optimizer, module, id(ledger)
        self._wrapped = optimizer.original_optimizer
        self._begun = False
        self._watched: list[Any] = []
        self._noisy = Kept()  # gradients that a step may take
        self._wrapped.register_step_pre_hook(self._before)
        self._wrapped.register_step_post_hook(self._after)
        if hasattr(optimizer, "reduce_gradients"):  # sums over processes, after the noise
            self._reduce, optimizer.reduce_gradients = optimizer.reduce_gradients, self._reduced

    def _tensors(self) -> list[Any]:
        found = {id(p): p for p in self._optimizer.params}
        if self._module is not None:
            model = getattr(self._module, "_module", self._module)
            found |= {id(each): each for each in (*model.parameters(), *model.buffers())}
        return list(found.values())

    def look(self) -> None:
        """Compare the model with what the last attached step left."""
        self._watched = self._watched or self._tensors()
        for each in self._watched:
            left, ledger = getattr(each, _LEFT, (None, 0))
            if self._begun and left is not None:
                self.elsewhere |= ledger != self._ledger or not _alike(left, each)
            elif ledger != self._ledger:
                self._leave(each)
        # Noise that no step took was used for something else.
        self.elsewhere |= self._noisy.holds
        self.elsewhere |= self._optimizer.original_optimizer is not self._wrapped
        self._begun = True

    def admit(self) -> None:
        """Noise was added: one step may follow, by these gradients over the batch size."""
        optimizer = self._optimizer
        mean = str(optimizer.loss_reduction) == "mean"
        size = optimizer.expected_batch_size * optimizer.accumulated_iterations if mean else 1.0
        self._noisy.keep([p.grad for p in optimizer.params], over=size)

    def _reduced(self) -> None:
        self._require_noisy()
        self._reduce()
        self._noisy.keep([p.grad for p in self._optimizer.params])

    def _before(self, *_: Any) -> None:
        self._require_noisy()

    def _require_noisy(self) -> None:
        if not self._noisy.holds:
            raise PlanMismatchError(
                "the optimizer that opacus wraps was asked for a step without noise; call step of "
                "the one that make_private returned."
            )
        if not self._noisy.still([p.grad for p in self._optimizer.params]):
            raise PlanMismatchError(
                "the gradients were changed after their noise was added; leave them alone, and "
                "the step that make_private's optimizer takes."
            )

    def _after(self, *_: Any) -> None:
        self._noisy.forget()
        for p in self._optimizer.params:
            self._leave(p)

    def _leave(self, tensor: Any) -> None:
        """Note what a step left, where others that share the tensor find it."""
        left, _ = getattr(tensor, _LEFT, (None, 0))
        setattr(tensor, _LEFT, (_copy(tensor, left), self._ledger))
