"""Buffered linear Toeplitz matrices: the square root's error with a handful of buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Positive
from dpaudit.mechanisms.continual.fitting import fitted_rates
from dpaudit.mechanisms.continual.series import geometric, series_weights
from dpaudit.mechanisms.continual.toeplitz import Toeplitz
from dpaudit.mechanisms.pairs import Floats

_MOST_BUFFERS = 16


@dataclass(frozen=True)
class BufferedToeplitz(Toeplitz):
    """C and B = A C⁻¹ are rational in the shift, so that d buffers sample B z exactly.

    Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024, "Efficient and near-optimal noise
    generation for streaming differential privacy". With θ_j = 1/(1 + p_j) and λ_i = 1/(1 + q_i),

        C(x) = ∏_{i<d} (1 − λ_i x) / ∏_{j≤d} (1 − θ_j x),     B(x) = 1/((1 − x) C(x)).

    Both are then sums of geometric series: C of the d rates p, B of the rates 0 and q and one
    coefficient for the fresh noise. Because the rates interlace, 0 < p₁ < q₁ < p₂ < … < p_d, all
    weights are positive, and the columns of B and C are non-negative and decreasing: the
    sensitivity is exact (see :class:`~dpaudit.mechanisms.continual.toeplitz.Toeplitz`).

    Rates are fields, not results of a fit: a certificate states them.

    Attributes:
        steps: length T of the stream.
        pole_rates: the d rates p; the series of C decay by 1/(1 + p) a step.
        zero_rates: the d − 1 rates q; the buffers of B decay by 1/(1 + q) a step.
    """

    kind: ClassVar[str] = "buffered-toeplitz"
    pole_rates: tuple[Positive, ...]
    zero_rates: tuple[Positive, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        poles, zeros = self.pole_rates, self.zero_rates
        if not 1 <= len(poles) <= _MOST_BUFFERS or len(zeros) != len(poles) - 1:
            raise InputError(
                f"pole_rates has {len(poles)} numbers and zero_rates {len(zeros)}; the first takes "
                f"1 to {_MOST_BUFFERS} and the second one fewer."
            )
        merged = [*(rate for pair in zip(poles, zeros, strict=False) for rate in pair), poles[-1]]
        if any(low >= high for low, high in pairwise(merged)):
            raise InputError(
                f"pole_rates and zero_rates are {merged} in turns; they must interlace, so that "
                "this list increases."
            )

    @classmethod
    def fitted(
        cls, steps: int, buffers: int = 5, participations: int = 1, min_separation: int = 1
    ) -> BufferedToeplitz:
        """The rates of the least largest error at a given privacy cost.

        Starts from Zolotarev's rational approximation of 1/√(1 − x), in closed form, and descends
        on the product of sensitivity and largest error. Results are cached.

        Args:
            steps: length T of the stream.
            buffers: number d of buffers, 1 to 16.
            participations: of one participant, at most.
            min_separation: of two participations, at least.

        Raises:
            InputError: if an argument is invalid.

        >>> fitted = BufferedToeplitz.fitted(1024, buffers=4)
        >>> round(fitted.max_error(fitted.sensitivity()), 3)
        3.274
        """
        steps = validate.integer_at_least(1, steps=steps)
        buffers = validate.integer_at_least(1, buffers=buffers)
        if buffers > _MOST_BUFFERS:
            raise InputError(f"buffers is {buffers}; it must be at most {_MOST_BUFFERS}.")
        gap = validate.integer_at_least(1, min_separation=min_separation)
        count = validate.integer_at_least(1, participations=participations)
        count = min(count, 1 + (steps - 1) // gap)
        poles, zeros = fitted_rates(steps, buffers, count, gap)
        return cls(steps, poles, zeros)

    @cached_property
    def weights(self) -> tuple[Floats, Floats, float]:
        """Of the series of C and of B, and B's weight of the fresh noise."""
        return series_weights(np.array(self.pole_rates), np.array(self.zero_rates))

    def encoder_column(self) -> Floats:
        """Sums of geometric series, one for each pole."""
        return geometric(self.weights[0], np.array(self.pole_rates), self.steps)

    def decoder_column(self) -> Floats:
        """Sums of geometric series, one for each buffer, and the fresh noise's own weight."""
        column = geometric(self.weights[1], np.array([0.0, *self.zero_rates]), self.steps)
        column[0] += self.weights[2]
        return column
