"""One call from an objective to a recommendation with its certificate, for each trust model.

``study`` makes the study of a trust model from the objective and the budget, and ``optimise`` runs
it and certifies what it did. A caller who wants more than the one call works with the study itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from html import escape
from numbers import Integral
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.numbers import plain, up
from dpaudit.certificate import Certificate, SubjectRecord, certify, with_witness
from dpaudit.ledger import FloatNoise, Ledger, with_ledger
from dpaudit.project import RunResult
from private_bo.gp.types import single_threaded
from private_bo.own.agent import OUTSIDE
from private_bo.own.answers import JointStudy, LocalStudy
from private_bo.own.federated import FederatedStudy
from private_bo.own.local_joint import LocalJointStudy
from private_bo.own.outsourced import OutsourcedStudy
from private_bo.own.server import Space
from private_bo.own.shuffle import FAILED, ShuffleStudy
from private_bo.own.studies import NUMBERED, OwnStudy, as_records

_STUDIES: dict[str, type[OwnStudy]] = {
    "local": LocalStudy,
    "shuffle": ShuffleStudy,
    "joint": JointStudy,
    "local-joint": LocalJointStudy,
    "federated": FederatedStudy,
    "outsourced": OutsourcedStudy,
}


@dataclass(frozen=True, repr=False)
class OptimisationResult:
    """What a study found, and the evidence of what it cost.

    Attributes:
        point: the recommended point, (d,); under outsourced trust the number of a row.
        users: how many took part, which is public.
        result: everything that others see: the releases, and the points that they are about; its
            ``owner`` is for the owner of the data alone, and is not in its ``repr``.
        ledger: of the run, closed.
        certificate: of the plan, with its (ε, δ) and the record of the run. It speaks of the code
            once that is rehearsed: ``dpaudit certify FILE.py:STUDY --rehearse``.
    """

    point: Any
    users: int
    result: RunResult
    ledger: Ledger
    certificate: Certificate

    def __repr__(self) -> str:
        """The recommendation, whose data it rests on, and what the certificate states and found."""
        made = self.certificate
        units = f"{self.users} {made.plan.unit}{'s' * (self.users != 1)}"
        rules = ", ".join(dict.fromkeys(each.rule for each in made.findings))
        found = f" (findings: {rules})" if rules else ""
        proved, told = made.guarantee, f"{made.verdict}: {made.subject.name}"
        bound = "nothing" if proved is None else f"ε ≤ {up(proved.epsilon)}"
        at = "" if proved is None else f" at δ = {plain(proved.delta)}"
        return f"best point {self.point}, from {units}; {told}: {bound} is proved{at}{found}"

    def _repr_html_(self) -> str:
        """For notebooks: the same, above the table of the certificate."""
        return f"<p>{escape(repr(self))}</p>\n{self.certificate._repr_html_()}"


def study(
    objective: Callable[..., Any] | None,
    space: Space,
    *,
    users: int,
    epsilon: float,
    trust: str = "local",
    **settings: Any,
) -> OwnStudy:
    """A subject for ``dpaudit certify``, ``run`` and ``audit``; its parties ask and tell.

    Args:
        objective: what a user answers, called with a point (d,) and the user's record.
        space: where may be asked, public.
        users: how many there are.
        epsilon: of one of them.
        trust: ``local``, ``shuffle``, ``joint``, ``local-joint``, ``federated`` or
            ``outsourced``.
        **settings: further fields of the study of that trust.

    Raises:
        InputError: if an argument is out of its range, or there is no such setting.

    >>> from private_bo.own.server import PointSpace
    >>> study(None, PointSpace([[0.0], [1.0]]), users=9, epsilon=1.0, trust="joint").plan().unit
    PrivacyUnit(name='user')
    """
    kind = _STUDIES.get(trust) if isinstance(trust, str) else None
    if kind is None:
        known = ", ".join(_STUDIES)
        raise InputError(f"trust is {validate.shown(trust)}; it must be one of {known}.")
    fields = kind.__dataclass_fields__
    if unknown := sorted(settings.keys() - fields.keys()):
        raise InputError(
            f"{trust} trust has no setting {unknown[0]!r}; it has {', '.join(fields)}."
        )
    given: dict[str, Any] = {"space": space, "objective": objective, "users": users}
    return kind(**given, epsilon=epsilon, **settings)


def optimise(
    objective: Callable[..., Any],
    space: Space,
    *,
    users: int | Sequence[Any],
    epsilon: float,
    trust: str = "local",
    seed: int | None = None,
    float_noise: bool = False,
    **settings: Any,
) -> OptimisationResult:
    """Search for the point that an unknown objective likes best; data leave by the ledger alone.

    Args:
        objective: as for :func:`study`; nobody needs to know the truth.
        space: where may be asked.
        users: a record of each user, or how many there are: they are then called 0, 1, …; under
            outsourced trust the private rows.
        epsilon: of one user.
        trust: as for :func:`study`.
        seed: makes an experiment that can be repeated, noise and all, and that warns if answers
            are outside of their range, or count as its middle; None for a deployment, whose noise
            comes from exact samplers (extra ``secure``).
        float_noise: whether a deployment's noise is drawn in floating point instead.
        **settings: as for :func:`study`.

    Raises:
        InputError: if an argument is wrong, or an answer is not a finite number.
        UnsupportedError: without a seed, if the extra ``secure`` is missing.
    """
    people = None if isinstance(users, Integral) else as_records(users=users)
    count = int(users) if isinstance(users, Integral) else len(people or ())
    made = study(objective, space, users=count, epsilon=epsilon, trust=trust, **settings)
    if seed is not None:
        validate.integer_at_least(0, seed=seed)
    algorithm, noise = np.random.SeedSequence(seed).spawn(2)
    rng = np.random.default_rng(algorithm)
    drawn = None if seed is None else np.random.default_rng(noise)
    ledger = Ledger(made.plan(), rng=drawn, noise=FloatNoise() if float_noise else None)
    outside: list[None] = []
    token = OUTSIDE.set(None if seed is None else outside)
    try:
        with closing(ledger), single_threaded():
            result = made.run(made.load(NUMBERED, rng) if people is None else people, ledger, rng)
    finally:
        OUTSIDE.reset(token)
    if outside:
        warnings.warn(
            f"{len(outside)} answers were outside of {made.answers} and counted as its ends; give "
            "their range, such as answers=(low, high).",
            stacklevel=2,
        )
    failed = 0 if seed is None else result.for_owner.summary.get(FAILED, 0)
    if failed:
        warnings.warn(
            f"the objective failed for {failed} of {count} answers, which counted as the middle of "
            "the range; call it on a record of your own to see why.",
            stacklevel=2,
        )
    claim = made.claim()
    certificate = certify(
        made.plan(), subject=SubjectRecord(f"{trust} study"), claim=claim, delta=claim.delta,
        findings=made.findings(), not_covered=made.not_covered(),
    )  # fmt: skip
    certificate = with_ledger(with_witness(certificate), ledger, {"summary": result.summary}, seed)
    found = result.summary["recommended"]
    point = np.array(found) if isinstance(found, list) else found
    return OptimisationResult(point, count, result, ledger, certificate)
