"""A study: a policy under a trust model. What all private optimisers are made of.

A *trust model* says who is protected and whom they trust: the mechanism that their data pass before
anybody else sees them, who a neighbour is, and what an attack looks at. A *policy* says what to ask
next and what releases mean; whatever it does is post-processing. An algorithm of a paper is a
policy of a trust model, and a :class:`Study` is both: the room of a paper has its trust model first
and its policies beside it, and so has :mod:`~private_bo.own` for problems of one's own. Private
data leave a study through its ledger alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked
from dpaudit.certificate import Claim, Finding, Severity
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import Invocation, Plan, PrivacyUnit, Relation, ReplaceOne, TrustModel
from dpaudit.project import RunResult, Subject

_Data = TypeVar("_Data")


class Study(Checked, Subject):
    """Base of all studies: frozen dataclasses whose fields are public configuration."""

    if TYPE_CHECKING:  # at run time the dataclass's own annotations, with their checks, count
        epsilon: Any

    trust: ClassVar[TrustModel]
    """Whom the units trust."""
    unit: ClassVar[PrivacyUnit] = PrivacyUnit("user")
    """Who is protected."""
    source: ClassVar[str] = "calibrated for it"
    """Where the claim is made."""
    problem: ClassVar[type[Any]]
    """What :meth:`load` returns and :meth:`run` takes."""

    @property
    def relation(self) -> Relation:
        """Who a neighbour is: by default with the data of one unit replaced."""
        return ReplaceOne()

    @abstractmethod
    def invocations(self) -> Iterable[Invocation]:
        """All that leaves the ledger, from the fields alone."""

    def invocation(self, mechanism: Mechanism, sensitivity: float, **more: Any) -> Invocation:
        """An invocation for this unit, relation and trust.

        Args:
            mechanism: what is invoked.
            sensitivity: how far one unit moves what it is given.
            more: further fields of an invocation.
        """
        about = {"unit": self.unit, "relation": self.relation, "trust": self.trust}
        return Invocation(mechanism, sensitivity, **{**about, **more})

    def plan(self) -> Plan:
        """Of all releases."""
        return Plan.of(*self.invocations())

    def claim(self) -> Claim:
        """(ε, δ) of one unit; δ is 0 where there is no such field."""
        return Claim(self.epsilon, getattr(self, "delta", 0.0), self.source)

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """The first release, as :meth:`audit_release` draws it."""
        return np.asarray(releases[0])

    # -- run -------------------------------------------------------------------------------------

    def check_data(self, data: Any) -> Any:
        """The data, if they are such a problem.

        Raises:
            InputError: if not; the sentence tells their class alone.
        """
        return validate.instance(self.problem, data=data)

    @abstractmethod
    def search(self, problem: Any, ledger: Ledger, rng: np.random.Generator) -> Any:
        """Let the policy ask until it is done; private data leave through the ledger alone.

        Args:
            problem: whose units are asked.
            ledger: a ledger of :meth:`plan`, which is charged by unit.
            rng: source of what has no privacy role.

        Returns:
            What :meth:`result` tells of.

        Raises:
            InputError: if an answer is none, or the units run out.
            PlanMismatchError: if a unit answers more often than is declared.
        """

    @abstractmethod
    def result(self, problem: Any, found: Any) -> RunResult:
        """What everybody may see of a search, and beside it what the owner of the data may."""

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Search on data that fit, and tell the result."""
        problem = self.check_data(data)
        return self.result(problem, self.search(problem, ledger, rng))


def off_theorem_finding(message: str, remedy: str) -> Finding:
    """A note that the regret theorem does not speak of these settings."""
    return Finding("off-theorem", Severity.NOTE, f"{message} Privacy is not affected.", remedy)


def load_named(
    source: str,
    makers: Mapping[str, Callable[[], _Data]],
    readers: Mapping[str, Callable[[str], _Data]] | None = None,
    *,
    files: str = "",
) -> _Data:
    """The data of that name, or of the file with that suffix.

    Args:
        source: what a user names.
        makers: data by name.
        readers: of a path, by its suffix.
        files: what a path may be, for the sentence.

    Raises:
        InputError: if there are none, or a file is missing or malformed.
    """
    if maker := makers.get(source):
        return maker()
    if reader := (readers or {}).get(Path(source).suffix):
        return reader(source)
    wanted = f"one of {', '.join(makers)}" if len(makers) > 1 else next(iter(makers))
    raise InputError(f"data is {source!r:.80}; it must be {wanted}{files}.")
