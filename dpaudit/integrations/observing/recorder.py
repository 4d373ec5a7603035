"""Noise of libraries, seen where it is drawn: nothing of the user's code is changed.

A ledger observes every draw::

    with Ledger(plan) as ledger, through(ledger, "diffprivlib"):
        ...  # any code that uses the library

What draws is patched on entry, and restored on exit whatever happens.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, Protocol
from unittest import mock

from dpaudit import tables
from dpaudit.errors import InputError
from dpaudit.extras import needed
from dpaudit.finding_table import FindingTable
from dpaudit.integrations.observing.calls import Call, Charge, Draw, Labels, Reading, place
from dpaudit.integrations.observing.notes import Notes
from dpaudit.ledger import Ledger
from dpaudit.plan import Relation

_found = FindingTable(__name__)
_HOMES = {name: f"dpaudit.integrations.{name}" for name in ("diffprivlib", "numpy", "opendp")}
KNOWN = tuple(_HOMES)
"""Libraries that have an adapter."""


@dataclass(frozen=True)
class Patch:
    """One attribute of a library that is replaced while it is observed.

    Attributes:
        owner: module or class.
        name: of the attribute.
        made: what replaces it, given what was there.
    """

    owner: Any
    name: str
    made: Callable[[Any], Any]


class Adapter(Protocol):
    """What is known of a library: where it draws noise, and what that noise is in a plan."""

    library: str
    """As it is named when it is installed."""
    versions: tuple[str, ...]
    """Beginnings of the versions that were read."""
    packages: tuple[str, ...]
    """Top-level packages that stand between the user's code and a draw."""

    def patches(self, recorder: Recorder) -> Iterable[Patch]:
        """Everything that is replaced, so that draws and charges go through the recorder."""


def adapter(library: str) -> Adapter:
    """The adapter of a library.

    Raises:
        InputError: if there is none of that name.
        UnsupportedError: if the library is not installed.
    """
    home = _HOMES[tables.chosen(_HOMES, library=library)]
    found: Adapter = needed("", home, what=f"observing {library}").ADAPTER
    return found


class Recorder:
    """Where the draws of a library go: into a ledger, or into notes.

    Args:
        own: the adapter.
        relation: which data sets are neighbours; it says what a library's map is asked.
        notes: where calls are noted.
        ledger: that observes every draw, if there is one.
        labels: of the places of this run.
    """

    def __init__(
        self, own: Adapter, relation: Relation, notes: Notes, ledger: Ledger | None, labels: Labels
    ) -> None:
        self.relation = relation
        self._own, self._notes, self._ledger, self._labels = own, notes, ledger, labels
        version = metadata.version(own.library)
        self.sampler = f"{own.library} {version}"
        if not version.startswith(own.versions):
            known = " or ".join(f"{each}x" for each in own.versions)
            unread = _found("unknown-version", sampler=self.sampler, known=known)
            notes.findings.append(unread)
            warnings.warn(unread.message, UserWarning, stacklevel=4)

    def release(self, reading: Reading, draw: Callable[[], Any]) -> Any:
        """Let the library draw, seen by notes and ledger; a draw within a draw is part of it.

        Raises:
            PlanMismatchError: if the plan of the ledger does not declare it.
        """
        if getattr(_inside, "draws", False):
            return draw()
        at, line = self._labels.of(self._own.packages, reading.primitive)
        self._notes.calls.append(Call(reading, self._own.library, at, line))
        if self._ledger is None:
            return alone(draw)
        at, reading = _declared(self._ledger, at, reading)
        mechanism = reading.mechanism
        made = Draw(reading, self.sampler, self._own.packages, lambda: alone(draw))
        self._ledger.observe(mechanism, made, at=at)
        return made.result

    def charged(self, epsilon: float = 0.0, delta: float = 0.0, rho: float = 0.0) -> None:
        """The library says what the calls since its last charge have cost."""
        before = sum(each.calls for each in self._notes.charges)
        calls = len(self._notes.calls) - before
        self._notes.charges.append(Charge(self._own.library, epsilon, delta, rho, calls))

    def totalled(self, epsilon: float, delta: float) -> None:
        """The library's own sum of its charges, by its own rule."""
        self._notes.budgets[self._own.library] = (epsilon, delta)

    def loose(self, primitive: str, draws: int) -> None:
        """Noise was drawn that has met no value yet."""
        self._notes.loose[primitive] = self._notes.loose.get(primitive, 0) + draws
        if primitive not in self._notes.lines:
            self._notes.lines[primitive] = place(self._own.packages)

    def met(self, primitive: str, draws: int) -> None:
        """Noise was added to a value."""
        self._notes.loose[primitive] -= draws

    def warned(self, warning: str) -> None:
        """The library itself warns that something leaks."""
        line = place(self._own.packages)
        found = _found("library-warns", line, library=self.sampler, warning=warning, line=line)
        if found not in self._notes.findings:
            self._notes.findings.append(found)


_inside = threading.local()
_observed: set[str] = set()
"""Libraries that are patched now, in this process."""


def reading_now() -> bool:
    """Whether a draw of some library is running in this thread, or an adapter reads one."""
    return bool(getattr(_inside, "draws", False))


def alone(draw: Callable[[], Any]) -> Any:
    """Run code of a library whose draws are no draws of their own."""
    _inside.draws = True
    try:
        return draw()
    finally:
        _inside.draws = False


def _declared(ledger: Ledger, at: str, reading: Reading) -> tuple[str, Reading]:
    """The label under which the plan declares a draw, and the draw as it is declared.

    One place in the code may have several invocations: "mean", "mean (2)" and so on.
    """
    near = [
        each
        for each in ledger.plan.invocations
        if each.at == at or (each.at.startswith(f"{at} (") and each.at.endswith(")"))
    ]
    for mechanism in (reading.mechanism, reading.declared):
        for each in near:
            if each.mechanism == mechanism:
                return each.at, replace(reading, mechanism=mechanism)
    return at, reading


@contextmanager
def _patched(
    libraries: Iterable[str], relation: Relation, notes: Notes, ledger: Ledger | None
) -> Iterator[Notes]:
    names = tuple(dict.fromkeys(libraries))
    twice = _observed & set(names)
    if twice:
        raise InputError(f"{min(twice)} is observed already; leave one block before the next.")
    labels = Labels()
    with ExitStack() as stack:
        for name in names:
            own = adapter(name)
            for patch in own.patches(Recorder(own, relation, notes, ledger, labels)):
                made = patch.made(getattr(patch.owner, patch.name))
                stack.enter_context(mock.patch.object(patch.owner, patch.name, made))
        _observed.update(names)
        stack.callback(_observed.difference_update, names)
        yield notes


def noting(relation: Relation, *libraries: str) -> Any:
    """Note every draw of libraries while code runs, and change none.

    Args:
        relation: which data sets are neighbours.
        *libraries: that are observed.

    Returns:
        A context manager that gives :class:`Notes`.

    Raises:
        InputError: on entry, if a library has no adapter, or is observed already.
        UnsupportedError: on entry, if it is not installed.
    """
    return _patched(libraries, relation, Notes(), None)


def through(ledger: Ledger, *libraries: str) -> Any:
    """Let every draw of libraries go through a ledger while code runs.

    A draw that the plan does not declare is refused before it is drawn. A rehearsal replays such
    draws as it does the ledger's own.

    Args:
        ledger: of the declared plan; its labels are those that ``dpaudit observe`` writes.
        *libraries: that are observed.

    Returns:
        A context manager that gives :class:`Notes`.

    Raises:
        InputError: on entry, if there is no ledger, or a library has no adapter or is observed.
        UnsupportedError: on entry, if it is not installed.
    """
    if not isinstance(ledger, Ledger):
        raise InputError(f"ledger is {ledger!r:.60}; it must be a Ledger.")
    return _patched(libraries, ledger.plan.relation, Notes(), ledger)
