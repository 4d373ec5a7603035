"""Sums that ghost clipping left in the gradients: by the two passes of the loss alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

from dpaudit.base.errors import PlanMismatchError
from dpaudit.training.opacus.copies import Kept


class GhostSums:
    """Watches the two passes of one model's loss, of which the second sums clipped gradients.

    The model is asked for its clipping coefficients between the passes, and told to look again
    after the second, so that these two moments bound what the second pass adds. A gradient that
    anything else made, or touched, is refused before it is summed.

    Args:
        module: that ``make_private`` returned, model or hooks.
        optimizer: of opacus, that clips in the loss.
        criterion: that ``make_private`` returned; its losses alone are watched.

    Attributes:
        units: of the last loss.
        norm: that its gradients were clipped to.
    """

    def __init__(self, module: Any, optimizer: Any, criterion: Any) -> None:
        self._module, self._optimizer = module, optimizer
        self._coefficients, self._enable = module.get_clipping_coef, module.enable_hooks
        self.units, self.norm = 0, 0.0
        self._seen: list[Any] = []  # norms of the last loss, by parameter
        self._between = False
        self._left = Kept()  # the gradients after the second pass
        module.get_clipping_coef = self._begin
        module.enable_hooks = self._end
        kind = type(criterion)
        criterion.__class__ = type(kind.__name__, (kind,), {"__call__": _losses_of(kind, self)})
        self._announced = False

    def announce(self, loss: Any) -> None:
        """A loss is about to make its passes.

        Norms follow from what layers saw and passed on. A parameter that the loss meets in another
        way too, as in a penalty or a second use of a weight, adds what no norm tells of.

        Raises:
            PlanMismatchError: if there is such a parameter, or one whose gradients have a hook.
        """
        used = _uses(loss)
        known = {*self._module.GRAD_SAMPLERS, *self._module.NORM_SAMPLERS}
        model = getattr(self._module, "_module", self._module)
        for layer in model.modules():
            for p in layer.parameters(recurse=False):
                calls = getattr(p, "_forward_counter", 0)
                if p.requires_grad and type(layer) in known and used[id(p)] > calls:
                    raise PlanMismatchError(
                        "the loss meets a trained parameter outside its layer, as in a penalty or "
                        "a second use of its weights, which ghost clipping does not clip; clip by "
                        "example (grad_sample_mode='hooks'), or leave that term out."
                    )
        if any(
            getattr(p, "_backward_hooks", None) or getattr(p, "_post_accumulate_grad_hooks", None)
            for p in self._optimizer.params
        ):
            raise PlanMismatchError("a gradient has a hook, which may change it; remove the hook.")
        self._announced = True

    def _begin(self) -> Any:
        """The coefficients of the second pass, which starts from gradients that are empty."""
        found = self._coefficients()
        norms = [p._norm_sample for p in self._module.trainable_parameters]
        if any(old is new for old, new in zip(self._seen, norms, strict=False)):
            raise PlanMismatchError(
                "a parameter took no part in the loss and holds the norms of an earlier batch, "
                "which would clip this one; use every trained parameter in every loss."
            )
        empty = all(p.grad is None or not p.grad.count_nonzero() for p in self._optimizer.params)
        self._seen, self._between = norms, empty and self._announced
        self._announced = False
        self.units, self.norm = len(found), float(self._module.max_grad_norm)
        return found

    def _end(self) -> None:
        self._enable()
        self._left.holds = False
        if self._between:
            self._left.keep([p.grad for p in self._optimizer.params])
        self._between = False

    def take(self) -> None:
        """Require that the gradients are those of the second pass, once.

        Raises:
            PlanMismatchError: if they are not.
        """
        watched = self._module.get_clipping_coef == self._begin
        same = self._left.still([p.grad for p in self._optimizer.params])
        self._left.holds = False
        if not (watched and same):
            raise PlanMismatchError(
                "the gradients are not those that ghost clipping summed; call backward of one "
                "loss of the criterion that make_private returned, and leave the gradients alone."
            )


class _Loss(DPTensorFastGradientClipping):  # type: ignore[misc]
    """A loss that says when it makes its passes, as does whatever is computed of it."""

    sums: GhostSums

    def backward(self) -> None:
        self.sums.announce(self.loss_per_sample)
        super().backward()


def _losses_of(kind: Any, sums: GhostSums) -> Any:
    def call(self: Any, *given: Any, **named: Any) -> Any:
        return _watched(kind.__call__(self, *given, **named), sums)

    return call


def _watched(loss: Any, sums: GhostSums) -> Any:
    if type(loss) is DPTensorFastGradientClipping:
        loss.__class__, loss.sums = _Loss, sums
    return loss


def _computed(name: str) -> Any:
    def computed(self: _Loss, *given: Any) -> Any:
        return _watched(getattr(DPTensorFastGradientClipping, name)(self, *given), self.sums)

    return computed


for _name in ("truediv", "mul", "rmul", "add", "radd", "sub", "rsub", "neg"):
    setattr(_Loss, f"__{_name}__", _computed(f"__{_name}__"))


def _uses(loss: Any) -> Counter[int]:
    """How often each leaf of the graph of a loss is used."""
    used: Counter[int] = Counter()
    seen, waiting = set(), [loss.grad_fn] if loss.grad_fn is not None else []
    while waiting:
        for node, _ in waiting.pop().next_functions:
            if hasattr(node, "variable"):
                used[id(node.variable)] += 1
            elif node is not None and node not in seen:
                seen.add(node)
                waiting.append(node)
    return used
