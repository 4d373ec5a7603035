"""What a training may do beside its ledger: other steps, and randomness that is used again."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import torch

from dpaudit.errors import PlanMismatchError


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
        self.last: bytes | None = None
        model = module if isinstance(module, torch.nn.Module) else module._module
        model.register_forward_pre_hook(self._look, with_kwargs=True)

    def _look(self, model: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not (model.training and torch.is_grad_enabled()):
            return
        held = [each for each in (*args, *named.values()) if isinstance(each, torch.Tensor)]
        if not held or held[0].ndim == 0 or len(held[0]) < 2:
            self.last = None
            return
        digest = blake2b(digest_size=8)
        for each in held:
            plain = each.detach().cpu().contiguous()
            digest.update(plain.reshape(-1).view(torch.uint8).numpy())
        self.last = digest.digest()


class Kept:
    """Copies of tensors, to see later whether they are still the same."""

    def __init__(self, tensors: list[Any]) -> None:
        self._copies = [None if each is None else each.detach().clone() for each in tensors]

    def still(self, tensors: list[Any]) -> bool:
        """Whether the tensors have these values, NaN being itself."""
        return len(tensors) == len(self._copies) and all(map(_alike, self._copies, tensors))


def _alike(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    other = other.detach()
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one, other) or bool(((one == other) | (one.isnan() & other.isnan())).all())


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
        self._noisy: Kept | None = None  # gradients that a step may take
        self._wrapped.register_step_pre_hook(self._before)
        self._wrapped.register_step_post_hook(self._after)
        if hasattr(optimizer, "reduce_gradients"):  # sums over processes, after the noise
            self._reduce, optimizer.reduce_gradients = optimizer.reduce_gradients, self._reduced

    def _tensors(self) -> list[Any]:
        found = {id(p): p for p in self._optimizer.params}
        if self._module is not None:
            model = getattr(self._module, "_module", self._module)
            others = [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]
            found |= {id(each): each for each in others}
        return list(found.values())

    def look(self) -> None:
        """Compare the model with what the last attached step left."""
        self._watched = self._watched or self._tensors()
        for each in self._watched:
            left, ledger = getattr(each, "_dpaudit_left", (None, 0))
            if self._begun and left is not None:
                self.elsewhere |= ledger != self._ledger or not left.still([each])
            elif ledger != self._ledger:
                each._dpaudit_left = Kept([each]), self._ledger
        # Noise that no step took was used for something else.
        self.elsewhere |= self._noisy is not None
        self.elsewhere |= self._optimizer.original_optimizer is not self._wrapped
        self._begun = True

    def admit(self) -> None:
        """Noise was added: one step may follow, by these gradients over the batch size."""
        self._noisy = Kept([self._expected(p) for p in self._optimizer.params])

    def _expected(self, p: Any) -> Any:
        optimizer = self._optimizer
        if str(optimizer.loss_reduction) != "mean":
            return p.grad
        return p.grad / (optimizer.expected_batch_size * optimizer.accumulated_iterations)

    def _reduced(self) -> None:
        self._require_noisy()
        self._reduce()
        self._noisy = Kept([p.grad for p in self._optimizer.params])

    def _before(self, *_: Any) -> None:
        self._require_noisy()

    def _require_noisy(self) -> None:
        if self._noisy is None:
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
        self._noisy = None
        for p in self._optimizer.params:
            p._dpaudit_left = Kept([p]), self._ledger
