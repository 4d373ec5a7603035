"""A release whose privacy is only claimed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import UnsupportedError
from dpaudit.base.fields import Name, NonNegative, Probability
from dpaudit.base.validate import shown
from dpaudit.mechanisms.base import Mechanism, Norm, checked_sensitivity
from dpaudit.mechanisms.pairs import DominatingPair, costless_pair

Sampler = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]
Check = Callable[[NDArray[Any]], object]


@dataclass(frozen=True)
class Opaque(Mechanism):
    """A randomised release with a stated (ε, δ) and no accountant proof.

    Attributes:
        label: what it is, for people.
        epsilon: the ε that its author states for one use.
        delta: the δ that its author states for one use.
        sampler: draws one release of a value; not serialised, so that a plan stays data. Without
            it the mechanism can be declared but not run.
        check: raises InputError for a value that must not be released, so that a ledger refuses it
            before it charges anything; not serialised either.
    """

    kind: ClassVar[str] = "opaque"
    norm: ClassVar[Norm] = Norm.CHANGE
    is_black_box: ClassVar[bool] = True
    label: Name
    epsilon: NonNegative
    delta: Probability = 0.0
    sampler: Sampler | None = field(default=None, compare=False, repr=False)
    check: Check | None = field(default=None, compare=False, repr=False)

    def pair(self, sensitivity: float) -> DominatingPair:
        """None but for equal data, which cost nothing whatever the mechanism.

        Raises:
            UnsupportedError: always for neighbours that differ.
        """
        if checked_sensitivity(sensitivity) == 0:
            return costless_pair()
        raise UnsupportedError(
            f"opaque mechanism {shown(self.label)} states a claim without a proof; no accountant "
            "can certify it."
        )

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Finite numbers that pass the check.

        Raises:
            InputError: if they do not.
        """
        array = super().prepare(value)
        if self.check is not None:
            self.check(array)
        return array


@dataclass(frozen=True)
class StatedNoise(Opaque):
    """Noise of another library, of which no theorem here speaks: what it states is taken down.

    Values are compared with the sensitivity that the library noised them for; the rest is as for
    any opaque mechanism.
    """

    kind: ClassVar[str] = "stated-noise"
    norm: ClassVar[Norm] = Norm.L1
