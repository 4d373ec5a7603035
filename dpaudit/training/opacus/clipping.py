"""Two ways to clip that say more than one sum: adaptive clipping, and ghost clipping.

Adaptive (Andrew, Thakkar, McMahan & Ramaswamy 2021, Algorithm 1): a step releases the sum of
gradients clipped to C, at noise multiplier z_Δ, and Σ (b − ½) over the batch, b = 1 where a
gradient was not clipped, with noise σ_b. A unit moves the sum by at most C and the count by ½.
Measured in their noise, times z with 1/z² = 1/z_Δ² + 1/(2σ_b)² (Theorem 1), both together move by
at most 1: the step is one Gaussian mechanism of noise multiplier z. opacus 1.6 divides the count,
not centred, by the size of the batch, which add-remove protects. Here the centred count is divided
by the expected batch size, and C moves by that.

Ghost: the loss clips, in two passes, and its sums lie in the gradients before any optimizer sees
them. They are taken if these two passes alone made them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from opacus.optimizers import DPOptimizer
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

from dpaudit.base.errors import PlanMismatchError
from dpaudit.training.opacus.side_effects import TensorCopies
from dpaudit.training.opacus.step import GradientNoise


class AdaptiveNoise(GradientNoise):
    """The noise of sum and count; the optimizer's update of C is replaced by one from these alone.

    Args:
        optimizer: of opacus, that clips adaptively.
        add_noise: its method.
    """

    def __init__(self, optimizer: Any, add_noise: Callable[[], None]) -> None:
        super().__init__(optimizer, add_noise)
        self._centred = 0.0  # with its noise
        self._counts: tuple[int, Any] = 0, 0  # units of the step so far, and those not clipped
        self._clip = optimizer.clip_and_accumulate
        optimizer.clip_and_accumulate = self._clipped
        optimizer.update_max_grad_norm = self._update
        self._norm = float(optimizer.max_grad_norm)
        self._rule = self._settings()

    def _settings(self) -> tuple[float, ...]:
        """Return what the clip norm follows, beside what was released."""
        held = self._optimizer
        rule = (held.target_unclipped_quantile, held.clipbound_learning_rate, held.min_clipbound)
        return (*map(float, rule), float(held.max_clipbound), float(held.unclipped_num_std))

    def _clipped(self) -> None:
        """Clip one physical batch; of an empty one, which opacus cannot count, nothing is."""
        optimizer = self._optimizer
        left = optimizer.update_max_grad_norm, float(optimizer.max_grad_norm), *self._settings()
        if left != (self._update, self._norm, *self._rule):
            raise PlanMismatchError(
                "the clip norm, or the rule that it follows, was changed between two steps; "
                "let only releases change them."
            )
        fresh = optimizer.params[0].summed_grad is None
        # opacus forgets the counts of the parts before the last one of a step.
        optimizer.sample_size, optimizer.unclipped_num = (0, 0) if fresh else self._counts
        if len(optimizer.grad_samples[0]):
            self._clip()
        else:
            DPOptimizer.clip_and_accumulate(optimizer)
        optimizer.unclipped_num = torch.as_tensor(optimizer.unclipped_num)
        self._counts = optimizer.sample_size, optimizer.unclipped_num

    def draw(self) -> None:
        """Let opacus add its noise to both."""
        super().draw()
        self._centred = self._counted()

    def _counted(self) -> float:
        """Return the centred count as the optimizer holds it: private, until it drew its noise."""
        optimizer = self._optimizer
        return float(optimizer.unclipped_num) - float(optimizer.sample_size) / 2

    def value(self) -> NDArray[Any]:
        """Sum and centred count, each over the scale of its noise, times z; private."""
        return self._together(super().value(), self._counted())

    def released(self) -> NDArray[Any]:
        """Return both with noise, measured likewise."""
        return self._together(super().released(), self._centred)

    def impose(self, released: ArrayLike) -> None:
        """Put both in place of what was just drawn."""
        values = np.asarray(released, dtype=np.float64)
        by_sum, by_count = self._units()
        super().impose(values[:-1] / by_sum)
        self._centred = float(values[-1] / by_count)

    def _units(self) -> tuple[float, float]:
        optimizer = self._optimizer
        share = optimizer.noise_multiplier / (2 * optimizer.unclipped_num_std)
        by_sum = math.sqrt(1 - share * share) / float(optimizer.max_grad_norm)
        return by_sum, 2 * share

    def _together(self, total: NDArray[Any], centred: float) -> NDArray[Any]:
        by_sum, by_count = self._units()
        return np.append(total * by_sum, centred * by_count)

    def _update(self) -> None:
        """Move the clip norm towards the quantile that is wanted, by released numbers alone."""
        optimizer = self._optimizer
        unclipped = 0.5 + self._centred / float(optimizer.expected_batch_size)
        beyond = unclipped - optimizer.target_unclipped_quantile
        moved = math.exp(-optimizer.clipbound_learning_rate * beyond)
        norm = float(optimizer.max_grad_norm) * moved
        optimizer.max_grad_norm = min(max(norm, optimizer.min_clipbound), optimizer.max_clipbound)
        self._norm = float(optimizer.max_grad_norm)


class GhostSums:
    """A watch on the two passes of one model's loss, of which the second sums clipped gradients.

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
        self._left = TensorCopies()  # the gradients after the second pass
        module.get_clipping_coef = self._begin
        module.enable_hooks = self._end
        # The class of this one object is replaced: Python looks for __call__ in the class alone,
        # and the user calls the criterion that make_private returned.
        kind = type(criterion)
        criterion.__class__ = type(kind.__name__, (kind,), {"__call__": _losses_of(kind, self)})
        self._announced = False

    def announce(self, loss: Any) -> None:
        """Return a loss is about to make its passes.

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
                        "the loss uses a trained parameter outside its layer, such as in a penalty "
                        "or a second use of its weights, and ghost clipping does not clip that; "
                        "clip by example (grad_sample_mode='hooks'), or leave that term out."
                    )
        if any(
            getattr(p, "_backward_hooks", None) or getattr(p, "_post_accumulate_grad_hooks", None)
            for p in self._optimizer.params
        ):
            raise PlanMismatchError("a gradient has a hook, which may change it; remove the hook.")
        self._announced = True

    def _begin(self) -> Any:
        """Give the coefficients of the second pass, which starts from gradients that are empty."""
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
        same = self._left.unchanged([p.grad for p in self._optimizer.params])
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
    """Count how often each leaf of the graph of a loss is used."""
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
