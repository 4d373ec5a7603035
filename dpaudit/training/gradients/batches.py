"""Who takes part in each step of a training, as its plan declares.

What is sampled the ledger draws, once for each release. Batches that are the same in every pass, or
disjoint within one, follow from a public seed, the label of the epoch, and the number of units,
which is public then; those of users from seed, label and the user's name alone. What such a batch
is called names seed and number, so that the journal holds whoever goes on to one order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.ledger import Ledger
from dpaudit.ledger.units import DistinctNames
from dpaudit.mechanisms import Gaussian
from dpaudit.mechanisms.continual.release import Continual, ContinualGaussian
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    Invocation,
    PoissonSampling,
    TruncatedPoissonSampling,
)
from dpaudit.training.gradients.examples import Places

_DRAWN = PoissonSampling, TruncatedPoissonSampling, FixedSizeSampling


class Batch(NamedTuple):
    """The units of one step.

    Attributes:
        invocation: that the step is a release of.
        places: of the units among all names; private where they are sampled.
        name: what the release is charged to; None where it is charged to every unit.
    """

    invocation: Invocation
    places: Places
    name: str | None = None


def batches(
    ledger: Ledger,
    declared: Sequence[Invocation],
    names: DistinctNames,
    seed: int,
    *,
    by_user: bool = False,
) -> Iterator[Batch]:
    """Yield the batch of each step that is declared and not charged yet.

    Args:
        ledger: draws samples.
        declared: the phases or epochs of a label, in their order.
        names: of all units.
        seed: of the order of batches that are not sampled; public.
        by_user: whether units are users, whose place among the names follows from all rows.

    Raises:
        InputError: if a stream was begun already, whose noise nobody has any more, or an epoch in
            another order.
        PlanMismatchError: if the ledger's account admits no sample.
    """
    charged = Counter(entry.invocation.at for entry in ledger)
    split = _split_by_name if by_user else _split
    order = f" (order of seed {seed}, {len(names)} {'users by name' if by_user else 'units'})"
    _require_order(ledger, declared, order)
    for each in declared:
        if isinstance(law := each.mechanism, Continual):
            if charged[each.at]:
                raise InputError(
                    f"{each.describe()} has already begun, and no journal keeps its noise; a "
                    "training run with correlated noise has to start again."
                )
            turns = split(names, law.min_separation, [seed])  # the same in every pass
            for step in range(law.factorization.steps):
                turn = step % law.min_separation
                yield Batch(each, turns[turn], f"batch {turn + 1}")
        elif each.sampling is not None:
            for _ in range(charged[each.at], each.releases):
                yield Batch(each, np.array(ledger.sample(names, at=each.at), dtype=np.int64))
        elif each.releases == each.count:
            for _ in range(charged[each.at], each.releases):
                yield Batch(each, np.arange(len(names)))
        else:
            # Of the label: an epoch has one order, whichever others are trained with it.
            own = hashlib.blake2b(each.at.encode(), digest_size=8).digest()
            disjoint = split(names, each.releases, [seed, int.from_bytes(own)])
            for step in range(charged[each.at], each.releases):
                yield Batch(each, disjoint[step], f"batch {step + 1}{order}")


def _require_order(ledger: Ledger, declared: Sequence[Invocation], order: str) -> None:
    """Refuse to go on in another order: a unit might be in two batches of one epoch.

    Raises:
        InputError: if the ledger has batches of another.
    """
    labels = {each.at for each in declared}
    for entry in ledger:
        if entry.invocation.at in labels and not (entry.unit or order).endswith(order):
            raise InputError(
                f"the training began with {entry.unit!r:.80} and would go on with batches "
                f"of{order}; a unit may be in one batch of an epoch, so keep the seed, the units "
                "and the version of dpaudit, or begin a new training with a new journal."
            )


def steps_of(each: Invocation) -> int:
    """How many steps a training makes of an invocation."""
    law = each.mechanism
    return law.factorization.steps if isinstance(law, Continual) else each.releases


def expected_units(each: Invocation, units: int) -> float | None:
    """A public number of units that a step has; None where how many there are is protected."""
    if isinstance(each.sampling, FixedSizeSampling):
        return float(each.sampling.size)
    if isinstance(each.relation, AddRemove):
        return None
    if isinstance(each.mechanism, Continual):
        return units / each.mechanism.min_separation
    if each.sampling is None and each.releases > each.count:
        return units / each.releases
    return units * each.inclusion


def require_drawable(each: Invocation) -> None:
    """Refuse what is no sum of clipped gradients, or is of units that nobody draws here.

    Raises:
        UnsupportedError: if it is.
    """
    law, sampling = each.mechanism, each.sampling
    if type(law) not in (Gaussian, ContinualGaussian) or getattr(law, "symmetric", False):
        raise UnsupportedError(
            f"{each.describe()} is not a normal noise on a vector; declare gaussian, or "
            "continual-gaussian, for gradients that are clipped in L2."
        )
    if each.contribution is not None:
        raise UnsupportedError(
            f"{each.describe()} declares a contribution, which only the ledger's own sum "
            "bounds; declare a sensitivity instead, as Plan.dp_sgd does."
        )
    if sampling is not None and (not isinstance(sampling, _DRAWN) or isinstance(law, Continual)):
        raise UnsupportedError(
            f"{each.describe()} is declared with {sampling.kind} sampling, which a training cannot "
            "draw; declare poisson, truncated-poisson or fixed-size for independent noise."
        )
    if isinstance(sampling, PoissonSampling) and sampling.rows:
        raise UnsupportedError(
            f"{each.describe()} samples each row of a user separately; sample users, or rows."
        )
    fixed = isinstance(law, Continual) or (sampling is None and each.releases > each.count)
    if fixed and isinstance(each.relation, AddRemove):
        raise UnsupportedError(
            f"{each.describe()} hides who is in the data, but a missing {each.unit} moves "
            "others to other batches; declare zero-out or replace-one."
        )
    if isinstance(law, Continual):
        _require_turns(each, law)
    elif each.releases > each.count > 1:
        raise UnsupportedError(
            f"{each.describe()} has a unit in {each.count} of {each.releases} releases; declare "
            "each epoch by itself, as Plan.dp_sgd does."
        )


def _require_turns(each: Invocation, law: Continual) -> None:
    """Refuse a stream in which batches that take turns are none of what is declared."""
    turns = -(-law.factorization.steps // law.min_separation)
    if turns > law.participations:
        raise UnsupportedError(
            f"{each.describe()} declares {law.participations} participations {law.min_separation} "
            f"steps apart; with batches that take turns for {law.factorization.steps} steps, "
            f"a unit has {turns}."
        )


def _split(names: DistinctNames, parts: int, seed: list[int]) -> list[Places]:
    """As many batches of a public order, alike in size to one unit."""
    return np.array_split(np.random.default_rng(seed).permutation(len(names)), parts)


def _split_by_name(names: DistinctNames, parts: int, seed: list[int]) -> list[Places]:
    """As many batches, that of each user by its name: of one that is replaced nobody else moves.

    By their order, a user whose first row comes later would move all between to other places.
    """
    digests = (hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8) for name in names)
    own = np.array([int.from_bytes(each.digest(), "big") % parts for each in digests])
    return [np.flatnonzero(own == part) for part in range(parts)]
