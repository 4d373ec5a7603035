"""Sums that ghost clipping left in the gradients: by the two passes of the loss alone."""

from __future__ import annotations

from typing import Any

from dpaudit.errors import PlanMismatchError


class GhostSums:
    """Watches the two passes of one model's loss, of which the second sums clipped gradients.

    The model is asked for its clipping coefficients between the passes, and told to look again
    after the second, so that these two moments bound what the second pass adds. A gradient that
    anything else made, or touched, is refused before it is summed.

    Args:
        module: that ``make_private`` returned, model or hooks.
        optimizer: of opacus, that clips in the loss.

    Attributes:
        units: of the last loss.
        norm: that its gradients were clipped to.
    """

    def __init__(self, module: Any, optimizer: Any) -> None:
        self._module, self._optimizer = module, optimizer
        self._coefficients, self._enable = module.get_clipping_coef, module.enable_hooks
        self.units, self.norm = 0, 0.0
        self._seen: list[Any] = []  # norms of the last loss, by parameter
        self._between = False
        self._left: list[tuple[int, int]] = []  # the gradients after the second pass
        module.get_clipping_coef = self._begin
        module.enable_hooks = self._end

    def _begin(self) -> Any:
        """The coefficients of the second pass, which starts from gradients that are empty."""
        found = self._coefficients()
        norms = [p._norm_sample for p in self._module.trainable_parameters]
        if any(old is new for old, new in zip(self._seen, norms, strict=False)):
            raise PlanMismatchError(
                "a parameter took no part in the loss and holds the norms of an earlier batch, "
                "which would clip this one; use every trained parameter in every loss."
            )
        empty = all(p.grad is None or not p.grad.any() for p in self._optimizer.params)
        self._seen, self._between = norms, empty
        self.units, self.norm = len(found), float(self._module.max_grad_norm)
        return found

    def _end(self) -> None:
        self._enable()
        self._left = self._gradients() if self._between else []
        self._between = False

    def _gradients(self) -> list[tuple[int, int]]:
        """Which tensors the gradients are, and how often each was written."""
        return [
            (0, 0) if p.grad is None else (id(p.grad), p.grad._version)
            for p in self._optimizer.params
        ]

    def take(self) -> None:
        """Require that the gradients are those of the second pass, once.

        Raises:
            PlanMismatchError: if they are not.
        """
        left, self._left = self._left, []
        watched = self._module.get_clipping_coef == self._begin
        if not (watched and left and left == self._gradients()):
            raise PlanMismatchError(
                "the gradients are not those that ghost clipping summed; call backward of one "
                "loss of the criterion that make_private returned, and leave the gradients alone."
            )
