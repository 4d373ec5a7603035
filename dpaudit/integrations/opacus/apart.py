"""What a training may do beside its ledger: other steps, and randomness that is used again."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import torch

from dpaudit.errors import PlanMismatchError


class Randomness:
    """States of a generator, none of which may come twice.

    Attributes:
        repeated: whether one did: what was drawn from it then was drawn before.
    """

    def __init__(self) -> None:
        self.repeated = False
        self._seen: set[int] = set()

    def look(self, generator: Any) -> None:
        """Note the state that is about to be drawn from; None is torch's own generator."""
        source = torch.default_generator if generator is None else generator
        try:
            state = hash(source.get_state().numpy().tobytes())
        except (AttributeError, RuntimeError, TypeError):  # a secure one has no state to show
            return
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


class Writes:
    """Who writes to the parameters: the steps of attached optimizers, each after its noise.

    Args:
        optimizer: of opacus; the one that it wraps steps only after noise was added.
        ledger: of the training, whose optimizers may share parameters.

    Attributes:
        elsewhere: whether something else wrote to them between two steps.
    """

    def __init__(self, optimizer: Any, ledger: Any) -> None:
        self.elsewhere = False
        self._optimizer, self._ledger = optimizer, id(ledger)
        self._armed = self._stepped = False
        optimizer.original_optimizer.register_step_pre_hook(self._before)
        optimizer.original_optimizer.register_step_post_hook(self._after)

    def look(self) -> None:
        """Compare the parameters with what the last attached step left."""
        self.elsewhere |= self._stepped and any(
            p._dpaudit_left != (p._version, self._ledger) for p in self._optimizer.params
        )

    def admit(self) -> None:
        """Noise was added: one step may follow."""
        self._armed = True

    def _before(self, *_: Any) -> None:
        if not self._armed:
            raise PlanMismatchError(
                "the optimizer that opacus wraps was asked for a step without noise; call step of "
                "the one that make_private returned."
            )

    def _after(self, *_: Any) -> None:
        self._armed, self._stepped = False, True
        for p in self._optimizer.params:
            p._dpaudit_left = p._version, self._ledger
