"""Noise of libraries, seen where it is drawn: nothing of the user's code is changed.

A ledger observes every draw::

    with Ledger(plan) as ledger, through(ledger, "diffprivlib"):
        ...  # any code that uses the library

What draws is patched on entry, and restored on exit whatever happens.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial, wraps
from importlib import import_module, metadata
from typing import Any, Protocol
from unittest import mock

from dpaudit.base import toml_tables
from dpaudit.base.errors import InputError, PlanMismatchError, UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.ledger import Ledger
from dpaudit.observing.calls import Call, Charge, Draw, Labels, Reading, place
from dpaudit.observing.notes import KNOWN, Notes
from dpaudit.plan import Relation, ReplaceOne

_found = FindingTable(__name__)
_inside = threading.local()
"""Whether a draw of some library runs in this thread."""
_REFUSED = ("noise-shown", "noise-shared", "generator-in-hand")
"""What is found of a run whose results must not be published."""


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
    """The knowledge of a library: where it draws noise, and what that noise is in a plan."""

    library: str
    """As it is named when it is installed."""
    versions: tuple[str, ...]
    """Beginnings of the versions that were read."""
    packages: tuple[str, ...]
    """Top-level packages that stand between the user's code and a draw."""

    def patches(self, recorder: Recorder) -> Iterable[Patch]:
        """Return everything that is replaced, so that draws and charges go through the recorder."""


@dataclass(frozen=True)
class _Use:
    """The place where draws go while a block runs."""

    relation: Relation
    notes: Notes
    ledger: Ledger | None
    labels: Labels
    parts: Counter[str] = field(default_factory=Counter)
    memory: dict[Any, Any] = field(default_factory=dict)

    def part(self, at: str) -> str | None:
        """Name whose value the next draw at a label is: of disjoint data a part's own."""
        assert self.ledger is not None
        declared = next((i for i in self.ledger.plan.invocations if i.at == at), None)
        if declared is None or declared.count == declared.releases:
            return None
        self.parts[at] += 1
        return f"part {self.parts[at]}"


class Recorder:
    """The recorder of a patched library's draws, one and the same whatever block runs.

    Code that has imported a patched function by its name keeps it; outside of blocks such a
    function does what it always did.

    Args:
        own: the adapter.
    """

    def __init__(self, own: Adapter) -> None:
        self._own = own
        self._version = metadata.version(own.library)
        self._use: _Use | None = None

    @property
    def active(self) -> bool:
        """Whether a block runs."""
        return self._use is not None

    @property
    def quiet(self) -> bool:
        """Whether nothing is recorded now: outside of blocks, and within a draw."""
        return self._use is None or getattr(_inside, "draws", False)

    @property
    def relation(self) -> Relation:
        """Which data sets are neighbours; it says what a library's map is asked."""
        return self._used.notes.relation or self._used.relation

    def state_relation(self, relation: Relation) -> None:
        """Take it that these are neighbours, where nobody has said it before the first draw."""
        notes = self._used.notes
        if notes.open and not notes.calls:
            notes.relation, notes.open = relation, False

    def state_nan(self, allowed: bool, where: str) -> None:
        """Take it that numbers of the data may be NaN, or that none is, as the code states."""
        self._used.notes.nan.setdefault(allowed, where)

    @property
    def memory(self) -> dict[Any, Any]:
        """What an adapter keeps while a block runs."""
        return self._used.memory

    def once(self, of: Callable[[Any, Any], Any], own: Any, about: Any) -> Any:
        """Return a public fact of some object, asked once while a block runs."""
        key = of, id(own), about
        if key not in self.memory:
            self.memory[key] = own, of(own, about)  # as long as it is held, its id is its own
        return self.memory[key][1]

    @property
    def _used(self) -> _Use:
        assert self._use is not None
        return self._use

    @contextmanager
    def within(self, use: _Use) -> Iterator[None]:
        """Record, and restore the library at the end."""
        if self._use is not None:
            name = self._own.library
            raise InputError(f"{name} is observed already; leave one block before the next.")
        if not self._version.startswith(self._own.versions):
            known = " or ".join(f"{each}x" for each in self._own.versions)
            unread = _found("unknown-version", sampler=self._sampler, known=known)
            use.notes.findings.append(unread)
            warnings.warn(unread.message, UserWarning, stacklevel=6)
        with ExitStack() as stack:
            for patch in self._own.patches(self):
                made = patch.made(getattr(patch.owner, patch.name))
                stack.enter_context(mock.patch.object(patch.owner, patch.name, made))
            self._use = use
            try:
                yield
            finally:
                self._use = None

    @property
    def _sampler(self) -> str:
        return f"{self._own.library} {self._version}"

    def release(self, reading: Reading, draw: Callable[[], Any]) -> Any:
        """Let the library draw, seen by notes and ledger; a draw within a draw is part of it.

        Raises:
            PlanMismatchError: if the plan of the ledger does not declare it.
        """
        if self.quiet:
            return draw()
        use = self._used
        at, line = use.labels.of(self._own.packages, reading.primitive)
        call = Call(reading, self._own.library, at, line)
        use.notes.calls.append(call)
        if use.ledger is None:
            call.result = self.alone(draw)
            return call.result
        at, reading = _declared(use.ledger, at, reading)
        unit = use.part(at)
        drawn = Draw(reading, self._sampler, self._own.packages, lambda: self.alone(draw))
        use.ledger.observe(reading.mechanism, drawn, unit=unit, at=at)
        call.result = drawn.result
        return drawn.result

    def replacing(
        self, call: Callable[..., Any], *, within_draws: bool = False
    ) -> Callable[[Any], Any]:
        """Make what replaces a function; where nothing is recorded, it does what it always did.

        Args:
            call: is given the function that was there, and what that was given.
            within_draws: whether it is wanted while the library draws, too.
        """

        def made(original: Any) -> Any:
            @wraps(original)
            def replaced(*given: Any, **options: Any) -> Any:
                if self.quiet and not (within_draws and self.active):
                    return original(*given, **options)
                return call(original, *given, **options)

            return replaced

        return made

    def reading(self, read: Callable[..., Reading | None]) -> Callable[[Any], Any]:
        """Make what replaces a function that draws: each call is a release.

        Args:
            read: says of a call's arguments what it draws; None where it is no draw.
        """

        def call(original: Any, *given: Any, **options: Any) -> Any:
            draw, own = partial(original, *given, **options), read(*given, **options)
            return draw() if own is None else self.release(own, draw)

        return self.replacing(call)

    def alone(self, draw: Callable[[], Any]) -> Any:
        """Run code of the library whose draws are no draws of their own."""
        _inside.draws = True
        try:
            return draw()
        finally:
            _inside.draws = False

    def charge(self, epsilon: float, delta: float = 0.0, rho: float = 0.0) -> None:
        """Return the library says what the calls since its last charge have cost."""
        if self._use is not None:
            notes = self._use.notes
            last = notes.charges[-1].end if notes.charges else 0
            charge = Charge(self._own.library, epsilon, delta, rho, last, len(notes.calls))
            notes.charges.append(charge)

    def total_by(self, total: Callable[[], tuple[float, float]]) -> None:
        """Tell how the library itself sums its charges, where it has a rule of its own."""
        self._used.notes.totals[self._own.library] = total

    def tell(self, rule: str, at: str = "", **facts: Any) -> None:
        """Return a reader must know something of the library."""
        if self._use is not None:
            self._use.notes.findings.append(_found(rule, at, **facts))

    def note_loose(self, primitive: str, draws: int) -> None:
        """Note that noise was drawn that has met no value yet."""
        notes = self._used.notes
        notes.loose[primitive] = notes.loose.get(primitive, 0) + draws
        if primitive not in notes.lines:
            notes.lines[primitive] = place(self._own.packages)

    def note_met(self, primitive: str, draws: int) -> None:
        """Note that noise was added to a value."""
        if self._use is not None:
            self._use.notes.loose[primitive] -= draws

    def note_draw(self, generator: Hashable, primitive: str) -> None:
        """Note from which generator noise of a primitive comes."""
        if self._use is not None:
            self._use.notes.drew.setdefault(generator, primitive)
            self._known(generator)

    def note_handling(self, generator: Hashable, how: str) -> None:
        """Return the code does something by which it may know what a generator draws."""
        if not self.quiet:
            self._used.notes.handled.setdefault(generator, (how, place(self._own.packages)))
            self._known(generator)

    def note_heritage(self, generator: Hashable, parent: Hashable) -> None:
        """Return a generator was made from another one: who has that in hand has this."""
        if not self.quiet and parent in self._used.notes.handled:
            self._used.notes.handled[generator] = self._used.notes.handled[parent]

    def _known(self, generator: Hashable) -> None:
        notes = self._used.notes
        if generator in notes.drew and generator in notes.handled:
            how, line = notes.handled[generator]
            primitive = notes.drew.pop(generator)
            rule = "generator-seeded" if "seed" in how else "generator-in-hand"
            self.tell(rule, line, how=how, line=line, primitive=primitive)

    def note_warning(self, warning: str) -> None:
        """Return the library itself warns that something leaks."""
        if self._use is not None:
            line = place(self._own.packages)
            self.tell("library-warns", line, library=self._sampler, warning=warning, line=line)


@cache
def _known(library: str) -> Recorder:
    """Return the recorder of a library."""
    home = f"dpaudit.observing.adapters.{toml_tables.chosen(KNOWN, library=library)}"
    try:
        own: Adapter = import_module(home).ADAPTER
    except ImportError as error:
        raise UnsupportedError(
            f"{library} cannot be observed, because it cannot be imported here: {error!s:.200}."
        ) from None
    return Recorder(own)


def _declared(ledger: Ledger, at: str, reading: Reading) -> tuple[str, Reading]:
    """Return the label under which the plan declares a draw, and the draw as it is declared.

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
                known = reading.sensitivity if mechanism == reading.declared else None
                if known is not None and each.sensitivity < known * (1 - 1e-9):
                    raise PlanMismatchError(
                        f"{each.describe()} is declared with a sensitivity of "
                        f"{each.sensitivity:g}; the library states {known:g}, so write that."
                    )
                return each.at, replace(reading, mechanism=mechanism)
    return at, reading


@contextmanager
def _observed(libraries: Iterable[str], use: _Use) -> Iterator[Notes]:
    with ExitStack() as stack:
        for name in dict.fromkeys(libraries):
            stack.enter_context(_known(name).within(use))
        yield use.notes


def noting(relation: Relation | None, *libraries: str) -> AbstractContextManager[Notes]:
    """Note every draw of libraries while code runs, and change none.

    Args:
        relation: which data sets are neighbours; where not given, what a library states, or else
            replace-one.
        *libraries: that are observed.

    Returns:
        A context manager that gives :class:`Notes`.

    Raises:
        InputError: on entry, if a library has no adapter, or is observed already.
        UnsupportedError: on entry, if it is not installed.
    """
    notes = Notes(open=relation is None)
    return _observed(libraries, _Use(relation or ReplaceOne(), notes, None, Labels()))


def through(ledger: Ledger, *libraries: str) -> AbstractContextManager[Notes]:
    """Let every draw of libraries go through a ledger while code runs.

    A draw that the plan does not declare is refused before it is drawn. A rehearsal replays such
    draws as it does the ledger's own.

    Args:
        ledger: of the declared plan; its labels are those that ``dpaudit observe`` writes.
        *libraries: that are observed.

    Returns:
        A context manager that gives :class:`Notes`.

    Raises:
        InputError: if there is no ledger; on entry, if a library has no adapter or is observed.
        UnsupportedError: on entry, if it is not installed.
        PlanMismatchError: at the end, if noise was shown or shared, or if the code read, copied or
            set the state of its generator, so that what was computed must not be published.
    """
    if not isinstance(ledger, Ledger):
        raise InputError(f"ledger is {ledger!r:.60}; it must be a Ledger.")
    return _kept(following(ledger, *libraries))


@contextmanager
def _kept(following: AbstractContextManager[Notes]) -> Iterator[Notes]:
    with following as notes:
        yield notes
    wrong = next((each for each in notes.findings if each.rule in _REFUSED), None)
    if wrong is not None:
        raise PlanMismatchError(f"{wrong.message} {wrong.remedy}")


def following(ledger: Ledger, *libraries: str) -> AbstractContextManager[Notes]:
    """Return the same where what is found is left to whoever reads the notes."""
    return _observed(libraries, _Use(ledger.plan.relation, Notes(), ledger, Labels()))
