"""Gaussian noise on many sums, in which every unit has a budget of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count
from dpaudit.mechanisms.continual.noise import require_stream
from dpaudit.mechanisms.continual.release import Stepwise
from dpaudit.mechanisms.gaussian import Gaussian


@dataclass(frozen=True)
class IndividualGaussian(Gaussian, Stepwise):
    """Noisy sums of parts chosen step by step, while a unit's parts together stay within a bound.

    Individual accounting (Feldman and Zrnic 2021, *Individual privacy accounting via a Rényi
    filter*): a unit is charged what its own parts cost, and adds nothing more when its budget is
    used up; the run goes on without it. In a plan it is *one* invocation. Its sensitivity is the
    root of the summed squares of the L2 distances by which one unit can move the steps.

    However the steps are chosen from what was released before, the whole is as private as one
    Gaussian release of that sensitivity: given the releases so far, a unit moves a step by a known
    vector, and the squares of their lengths never add up to more (Smith and Thakurta 2022, *Fully
    adaptive composition for Gaussian differential privacy*; Koskela, Tobaben and Honkela 2023,
    *Individual privacy accounting with Gaussian differential privacy*).

    The ledger bounds the parts, see :meth:`Ledger.individual <dpaudit.ledger.Ledger.individual>`,
    and nothing shows who is used up, which is private.

    Attributes:
        sigma: standard deviation of the noise of an entry of every step.
        steps: how many steps there may be; more of them cost nothing.

    >>> IndividualGaussian(sigma=4.0, steps=1000).pair(2.0).mu
    0.5
    """

    kind: ClassVar[str] = "individual-gaussian"
    adds_up: ClassVar[bool] = True
    clip_norm: None = field(default=None, init=False, repr=False, compare=False)
    steps: Count

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        sensitivity: float,
        clip_norm: float | None = None,
        steps: int = 1,
    ) -> IndividualGaussian:
        """The least σ for (ε, δ), whatever the number of steps; as for the base.

        Raises:
            InputError: as :meth:`Gaussian.calibrated <dpaudit.mechanisms.Gaussian.calibrated>`.
        """
        if clip_norm is not None:
            raise InputError("clip_norm is of one release; bound all parts by a contribution.")
        one = Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        return cls(one.sigma, steps)

    @property
    def touches(self) -> int:
        """Every step."""
        return self.steps

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A stream of 1 to T steps along the first axis."""
        array = super().prepare(value)
        require_stream(array, self.steps)
        return array
