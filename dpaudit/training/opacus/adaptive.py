"""Adaptive clipping, with the number of unclipped gradients in the same noisy release.

Andrew, Thakkar, McMahan & Ramaswamy 2021, Algorithm 1: a step releases the sum of gradients clipped
to C, at noise multiplier z_Δ, and Σ (b − ½) over the batch, b = 1 where a gradient was not clipped,
with noise σ_b. A unit moves the sum by at most C and the count by ½. Measured in their noise, times
z with 1/z² = 1/z_Δ² + 1/(2σ_b)² (Theorem 1), both together move by at most 1: the step is one
Gaussian mechanism of noise multiplier z.

opacus 1.6 divides the count, not centred, by the size of the batch, which add-remove protects. Here
the centred count is divided by the expected batch size, and C moves by that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from opacus.optimizers import DPOptimizer

from dpaudit.base.errors import PlanMismatchError
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
        """What the clip norm follows, beside what was released."""
        held = self._optimizer
        rule = (held.target_unclipped_quantile, held.clipbound_learning_rate, held.min_clipbound)
        return (*map(float, rule), float(held.max_clipbound), float(held.unclipped_num_std))

    def _clipped(self) -> None:
        """Clip one physical batch; of an empty one, which opacus cannot count, nothing is."""
        optimizer = self._optimizer
        left = optimizer.update_max_grad_norm, float(optimizer.max_grad_norm), *self._settings()
        if left != (self._update, self._norm, *self._rule):
            raise PlanMismatchError(
                "the clip norm, or the rule that it follows, was changed between two steps; leave "
                "both to what is released."
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
        """The centred count as the optimizer holds it: private, until it drew its noise."""
        optimizer = self._optimizer
        return float(optimizer.unclipped_num) - float(optimizer.sample_size) / 2

    def value(self) -> NDArray[Any]:
        """Sum and centred count, each over the scale of its noise, times z; private."""
        return self._together(super().value(), self._counted())

    def released(self) -> NDArray[Any]:
        """Both with noise, measured likewise."""
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
