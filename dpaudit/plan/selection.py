"""Private selection: the best of a secret number of runs of a plan, as one mechanism.

A search that keeps the best of many runs costs more than one run, and how many there were must stay
secret. The number of runs is drawn from a law that is public; what the whole costs follows from
that law and from what one run costs (:mod:`dpaudit.accounting.selection`). The ledger's ``select``
makes the runs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpaudit.base import validate
from dpaudit.base.by_class import by_class
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Kinded, Positive
from dpaudit.mechanisms import DominatingPair, Mechanism, Norm
from dpaudit.plan.plan import Plan


def _shape(**given: Any) -> float:
    """A number from −0.999 to 100: below, floats tell no more runs apart."""
    (value,) = given.values()
    shape = validate.finite(**given)
    if not -0.999 <= shape <= 100:
        raise InputError(f"{next(iter(given))} is {value}; it must be from -0.999 to 100.")
    return shape


def _gamma(**given: Any) -> float:
    """A number in (0, 1), away from both ends: beyond, floats have no mean of the runs."""
    (value,) = given.values()
    gamma = validate.finite(**given)
    if not 1e-12 <= gamma <= 1 - 1e-12:
        raise InputError(f"{next(iter(given))} is {value}; it must be from 1e-12 to 1 - 1e-12.")
    return gamma


@dataclass(frozen=True)
class Runs(Kinded, ABC):
    """The law of the number of runs of a private selection."""

    family: ClassVar[str] = "runs"
    tag: ClassVar[str] = "law"

    @property
    @abstractmethod
    def expected(self) -> float:
        """E[K], the mean number of runs."""


@dataclass(frozen=True)
class NegativeBinomialRuns(Runs):
    """One run or more: P[K = k] is proportional to (1 − γ)^k Π_{l<k} (l + η)/(l + 1).

    Papernot and Steinke 2022, Definition 1: the truncated negative binomial law. η = 1 is the
    geometric law of mean 1/γ (Liu and Talwar 2019), η = 0 the logarithmic one. A smaller η costs
    less, and makes many runs rarer for the same mean.

    Attributes:
        gamma: γ in (0, 1), smaller for more runs.
        shape: η, from −0.999 to 100.
    """

    kind: ClassVar[str] = "negative-binomial"
    gamma: Annotated[float, _gamma]
    shape: Annotated[float, _shape] = 1.0

    @property
    def expected(self) -> float:
        """E[K] = η(1 − γ)/γ(1 − γ^η), and (1 − γ)/(γ ln 1/γ) at η = 0."""
        gamma, shape = self.gamma, self.shape
        log = math.log1p(gamma - 1) if gamma > 0.5 else math.log(gamma)
        power = min(shape * log, 700.0)  # γ^−η, of which less makes the mean larger
        share = -1 / log if abs(power) < 1e-300 else -shape / math.expm1(power)
        return max(share * (1 - gamma) / gamma, 1.0)


@dataclass(frozen=True)
class PoissonRuns(Runs):
    """A Poisson number of runs, which may be 0: then nothing is selected.

    Attributes:
        mean: of the number of runs.
    """

    kind: ClassVar[str] = "poisson"
    mean: Positive

    @property
    def expected(self) -> float:
        """The mean."""
        return self.mean


@dataclass(frozen=True)
class PrivateSelection(Mechanism):
    """The best of a secret number of independent runs, by a score that each run releases.

    Of all runs the best one's output and score alone leave (Liu and Talwar 2019, *Private selection
    from private candidates*; Papernot and Steinke 2022, *Hyperparameter tuning with Rényi
    differential privacy*). Each run may draw a candidate, such as a learning rate, from a public
    list; what a run does with any of them costs at most its plan.

    >>> from dpaudit import AddRemove, Invocation, Laplace, PrivacyUnit, TrustModel
    >>> one = Invocation(Laplace(2.0), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    >>> search = PrivateSelection(Plan.of(one), NegativeBinomialRuns(gamma=0.1))
    >>> search.pair(1.0).pure_epsilon
    Fraction(3, 2)

    Attributes:
        run: what one run may release, its score included.
        runs: the law of the number of runs.
    """

    kind: ClassVar[str] = "private-selection"
    norm: ClassVar[Norm] = Norm.CHANGE
    run: Plan
    runs: Runs

    @by_class("dpaudit.accounting.selection")
    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair that follows from the guarantee of one run and the law of their number.

        Raises:
            InputError: if the sensitivity is neither 0 nor 1.
            UnsupportedError: if no accountant has a theorem for the run.
        """
        raise NotImplementedError

    @by_class("dpaudit.accounting.selection")
    def work(self, sensitivity: float) -> float:
        """That of the curve of one run."""
        raise NotImplementedError

    @by_class("dpaudit.accounting.selection")
    def for_group(self, size: int) -> Mechanism | None:
        """What is proved of runs that protect so many units; None where nothing covers a run."""
        raise NotImplementedError

    @property
    def is_tight(self) -> bool:
        """Not known to be."""
        return False

    @property
    def protects(self) -> tuple[Any, Any]:
        """The unit and the relation of one run."""
        return self.run.unit, self.run.relation
