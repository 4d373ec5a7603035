"""The plan of DP-SGD: noisy sums of clipped gradients (Abadi et al. 2016, Algorithm 1).

One step releases the sum, over a batch, of gradients clipped to L2 norm C, with Gaussian noise of
standard deviation zC. What that costs depends on how batches are drawn, so the plan says it:

* ``POISSON``: every unit enters every batch independently with probability q. Removing a unit, or
  setting its gradient to zero, moves the sum of a batch it is in by at most C, and replacing it by
  2C; the accountants amplify by q.
* ``DISJOINT``: every epoch splits the units into batches that do not overlap, in an order that has
  nothing to do with the data. Given the earlier releases and the order, one step an epoch depends
  on the unit and all others are the same for both neighbours, so an epoch costs one Gaussian
  release, however many steps it has, and epochs compose. No amplification. The neighbours must
  have the same batches: under zero-out they do (distance C), under replace-one too (2C). Under
  add-remove they do not: a missing unit moves others to other batches, and may change the number
  of steps.
* ``SUBSETS``: every step draws a fresh subset of fixed size; amplified under replace-one (2C),
  which an absent or zeroed unit (C) counts as, since another takes its place.
* ``TRUNCATED``: as ``POISSON``, but of more than ``batch_size`` units a uniform subset. A unit then
  takes another's place in full batches only; how many units there are is public.
* ``ARBITRARY``: nothing is known but that no unit is twice in one batch. Every step costs a
  Gaussian release; as for ``DISJOINT`` under zero-out and replace-one only.

Dividing by a public expected batch size is post-processing of the sum. Dividing by a number that
depends on a private data size is not, and is no part of this plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.validate import shown
from dpaudit.mechanisms import Gaussian
from dpaudit.plan.invocation import Invocation
from dpaudit.plan.relations import AddRemove, PrivacyUnit, Relation, ReplaceOne, TrustModel, ZeroOut
from dpaudit.plan.sampling import (
    FixedSizeSampling,
    PoissonSampling,
    Sampling,
    TruncatedPoissonSampling,
)

Schedule = float | Sequence[float]


class Batching(StrEnum):
    """How the units of a step are drawn."""

    POISSON = "poisson"
    """Every unit independently with the sample rate."""
    DISJOINT = "disjoint"
    """Every unit in at most one batch of an epoch, shuffled or not."""
    SUBSETS = "subsets"
    """A fresh uniform subset of fixed size in every step."""
    TRUNCATED = "truncated"
    """As Poisson, and cut at a size: of more units a uniform subset."""
    ARBITRARY = "arbitrary"
    """Any batch without repetitions."""


_RELATIONS: dict[Batching, tuple[type[Relation], ...]] = {
    Batching.POISSON: (AddRemove, ZeroOut, ReplaceOne),
    Batching.DISJOINT: (ZeroOut, ReplaceOne),
    Batching.TRUNCATED: (ZeroOut, ReplaceOne),
    Batching.SUBSETS: (ReplaceOne, ZeroOut, AddRemove),
    Batching.ARBITRARY: (ZeroOut, ReplaceOne),
}
"""Relations under which the costs above are proved; the first one is meant where none is named."""


@dataclass(frozen=True)
class _Sizes:
    """Public facts of the batches, as far as they are given."""

    sample_rate: float | None
    batch_size: int | None
    dataset_size: int | None
    steps: int | Sequence[int] | None
    epochs: int | None

    def __post_init__(self) -> None:
        if (self.batch_size is None) != (self.dataset_size is None):
            raise InputError(
                f"batch_size is {self.batch_size} and dataset_size is {self.dataset_size}; "
                "give both or none."
            )
        if self.batch_size is not None and self.dataset_size is not None:
            size = validate.integer_at_least(1, batch_size=self.batch_size)
            if validate.integer_at_least(1, dataset_size=self.dataset_size) < size:
                raise InputError(
                    f"batch_size is {size}; it must be at most dataset_size, {self.dataset_size}."
                )
        if self.epochs is not None:
            validate.integer_at_least(1, epochs=self.epochs)

    @property
    def batches(self) -> int | None:
        """Batches of one pass over all units, the last one perhaps smaller."""
        if self.batch_size is None or self.dataset_size is None:
            return None
        return math.ceil(self.dataset_size / self.batch_size)

    @property
    def rate(self) -> float:
        """The rate of Poisson sampling: as given, or one over the number of batches."""
        if self.sample_rate is not None and self.batches is not None:
            raise InputError("sample_rate and batch_size are both given; give one of them.")
        if self.sample_rate is not None:
            return validate.fraction(sample_rate=self.sample_rate)
        if self.batches is None:
            raise InputError(
                "sample_rate is missing; give it, or batch_size with a public dataset_size."
            )
        return 1 / self.batches

    def steps_of(self, phases: int, per_epoch: int | None) -> list[int]:
        """Steps of each phase of a schedule."""
        if isinstance(self.steps, Sequence):
            if self.epochs is not None:
                raise InputError("steps is a sequence and epochs is given; give one of them.")
            given = [validate.integer_at_least(1, steps=each) for each in self.steps]
            if phases not in (1, len(given)):
                raise InputError(
                    f"steps has {len(given)} phases, and the noise or clip norm has {phases}; "
                    "give as many of each."
                )
            return given
        if self.steps is not None and self.epochs is None:
            if phases > 1:
                raise InputError(
                    f"steps is {self.steps} for a schedule of {phases} phases; give steps for each."
                )
            return [validate.integer_at_least(1, steps=self.steps)]
        epochs = self.epochs
        if epochs is None:
            raise InputError("steps is missing; give the number of steps or of epochs.")
        if phases not in (1, epochs):
            raise InputError(
                f"epochs is {epochs} for a schedule of {phases} phases; give as many of each."
            )
        each = self._per_epoch(epochs, per_epoch)
        return [each] * epochs if phases > 1 else [each * epochs]

    def _per_epoch(self, epochs: int, per_epoch: int | None) -> int:
        if self.steps is not None:
            whole = validate.integer_at_least(1, steps=self.steps)
            if whole % epochs:
                raise InputError(
                    f"steps is {whole}; with {epochs} epochs it must be a multiple of them."
                )
            return whole // epochs
        if per_epoch is None:
            raise InputError(
                "steps is missing; with epochs it follows from sample_rate, or from batch_size and "
                "a public dataset_size."
            )
        return per_epoch


def dp_sgd_invocations(
    *,
    noise_multiplier: Schedule,
    max_grad_norm: Schedule = 1.0,
    sample_rate: float | None = None,
    batch_size: int | None = None,
    dataset_size: int | None = None,
    steps: int | Sequence[int] | None = None,
    epochs: int | None = None,
    batching: Batching | str = Batching.POISSON,
    relation: Relation | None = None,
    unit: PrivacyUnit | str = "example",
    at: str = "gradient",
) -> tuple[Invocation, ...]:
    """Declare a DP-SGD training.

    Args:
        noise_multiplier: z, noise in units of the clip norm; a sequence for a schedule, one value
            a phase.
        max_grad_norm: C, the norm that one unit's gradient is clipped to; a sequence likewise.
        sample_rate: q of Poisson sampling.
        batch_size: in place of the rate, with ``dataset_size``: the rate is then
            1/⌈dataset_size/batch_size⌉, as opacus has it. Of truncated batches, beside the rate,
            the largest size.
        dataset_size: how many units there are, if that is public.
        steps: noisy steps in all; of each phase for a schedule.
        epochs: in place of the steps, or with them for disjoint batches. An epoch of Poisson
            sampling has ⌊1/q⌋ steps, as in opacus; one of disjoint batches
            ⌈dataset_size/batch_size⌉. A schedule then has one phase an epoch.
        batching: how batches are drawn.
        relation: which data sets are neighbours; add-remove for Poisson sampling, replace-one for
            subsets, zero-out for the others where it is left out.
        unit: who contributes one gradient to a batch.
        at: label of the invocations.

    Returns:
        One invocation for each phase, or for each epoch of disjoint batches.

    Raises:
        InputError: if a value is wrong, missing or contradicts another.
        UnsupportedError: if nothing is proved for that batching under that relation.

    >>> (steps,) = dp_sgd_invocations(noise_multiplier=1.0, sample_rate=0.01, epochs=3)
    >>> steps.count, steps.sensitivity
    (300, 1.0)
    """
    batching = Batching(validate.member(Batching, batching=batching))
    sizes = _Sizes(sample_rate, batch_size, dataset_size, steps, epochs)
    relation = _proved_relation(batching, relation)
    protected = unit if isinstance(unit, PrivacyUnit) else PrivacyUnit(unit)
    noise, norms = (
        _schedule(noise_multiplier=noise_multiplier),
        _schedule(max_grad_norm=max_grad_norm),
    )
    phases = max(len(noise), len(norms))
    if min(len(noise), len(norms)) not in (1, phases):
        raise InputError(
            f"noise_multiplier has {len(noise)} phases and max_grad_norm {len(norms)}; give as "
            "many of each, or one."
        )
    parts: list[tuple[int, int, Sampling | None]]
    if batching is Batching.DISJOINT:
        parts = _disjoint(sizes, phases)
    else:
        sampling, per_epoch = _sampling(batching, sizes)
        counts = sizes.steps_of(phases, per_epoch)
        parts = [(count, count, sampling) for count in counts]
    noise, norms = (each * len(parts) if len(each) == 1 else each for each in (noise, norms))
    word = "epoch" if batching is Batching.DISJOINT else "phase"
    return tuple(
        Invocation(
            Gaussian(z * norm),
            relation.contribution_factor * norm,
            protected,
            relation,
            TrustModel.CENTRAL,
            count,
            total,
            sampling=_with_contribution(sampling, relation, norm),
            at=at if len(parts) == 1 else f"{at}, {word} {number}",
        )
        for number, (z, norm, (count, total, sampling)) in enumerate(
            zip(noise, norms, parts, strict=True), start=1
        )
    )


def _with_contribution(
    sampling: Sampling | None, relation: Relation, norm: float
) -> Sampling | None:
    """The scheme, which says by how much a gradient that is not drawn is missed."""
    if isinstance(sampling, PoissonSampling | TruncatedPoissonSampling) and relation.replaces:
        return replace(sampling, contribution=norm)
    return sampling


def _disjoint(sizes: _Sizes, phases: int) -> list[tuple[int, int, Sampling | None]]:
    """One invocation an epoch: a unit is touched once, by one of the epoch's steps."""
    if sizes.epochs is None:
        raise InputError("epochs is missing; disjoint batches are counted by epoch.")
    if sizes.sample_rate is not None:
        raise InputError("sample_rate is given; disjoint batches have none, so leave it out.")
    counts = sizes.steps_of(phases, sizes.batches)
    totals = counts if phases > 1 else [counts[0] // sizes.epochs] * sizes.epochs
    return [(1, total, None) for total in totals]


def _sampling(batching: Batching, sizes: _Sizes) -> tuple[Sampling | None, int | None]:
    """The scheme and the steps of an epoch."""
    if batching is Batching.POISSON:
        return PoissonSampling(sizes.rate), int(1 / sizes.rate)
    if batching is Batching.TRUNCATED:
        if sizes.batch_size is None or sizes.dataset_size is None or sizes.sample_rate is None:
            raise InputError(
                "sample_rate, batch_size or dataset_size is missing; truncated batches need a "
                "rate, the largest size, and a public number of units."
            )
        rate = validate.fraction(sample_rate=sizes.sample_rate)
        cut = TruncatedPoissonSampling(rate, sizes.batch_size, sizes.dataset_size)
        return cut, int(1 / rate)
    if sizes.sample_rate is not None:
        raise InputError(f"sample_rate is given; {batching} batches have none, so leave it out.")
    if batching is Batching.ARBITRARY:
        return None, sizes.batches
    if sizes.batch_size is None or sizes.dataset_size is None:
        raise InputError("batch_size is missing; subsets need it and a public dataset_size.")
    return FixedSizeSampling(sizes.batch_size, sizes.dataset_size), sizes.batches


def _proved_relation(batching: Batching, relation: Relation | None) -> Relation:
    proved = _RELATIONS[batching]
    if relation is None:
        return proved[0]()
    if not isinstance(relation, Relation):
        raise InputError(f"relation is {shown(relation)}; it must be a Relation, as AddRemove().")
    if isinstance(relation, proved):
        return relation
    names = " or ".join(each.kind for each in proved)
    raise UnsupportedError(
        f"relation is {relation} for {batching} batches; their cost is proved under {names}."
    )


def _schedule(**field: Schedule) -> list[float]:
    ((name, value),) = field.items()
    values = list(value) if isinstance(value, Sequence) else [value]
    if not values:
        raise InputError(f"{name} is an empty sequence; it must have one value for each phase.")
    return [validate.positive(**{name: each}) for each in values]
