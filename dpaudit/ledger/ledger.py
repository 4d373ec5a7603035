"""The ledger: the one door through which private data leave, and the record of what did.

>>> from dpaudit import Invocation, Laplace, Plan, PrivacyUnit, ReplaceOne, TrustModel
>>> laplace = Laplace(scale=2.0, clip=(-1.0, 1.0))
>>> plan = Plan.of(Invocation(laplace, 2.0, PrivacyUnit("response"), ReplaceOne(),
...                           TrustModel.LOCAL, total=2, at="answer"))
>>> with Ledger(plan, rng=np.random.default_rng(0)) as ledger:
...     answers = [ledger.release(laplace, y, unit=user, at="answer")
...                for user, y in [("ann", 0.4), ("bob", -3.0)]]
>>> [len(ledger), ledger.spent().invocations[0].count]
[2, 1]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import files, validate
from dpaudit.base.chain import Durability, require_new
from dpaudit.base.errors import InputError, JournalError, PlanMismatchError
from dpaudit.base.provenance import is_exact, is_own
from dpaudit.certificate.filtering import FilterRecord
from dpaudit.ledger.account import Account
from dpaudit.ledger.anchor import Anchor
from dpaudit.ledger.bounding import Parts, drawn
from dpaudit.ledger.checks import (
    caller,
    require_continual,
    require_individual,
    require_open,
    require_sound,
    require_unbounded,
    shape_of,
    unshown,
)
from dpaudit.ledger.door import ReleaseGate
from dpaudit.ledger.entry import (
    BatchNoise,
    Budget,
    Entry,
    ExternalDraw,
    Key,
    NoiseBackend,
    SizedNoise,
    SummingNoise,
    begin,
)
from dpaudit.ledger.exact_noise import SecureNoise
from dpaudit.ledger.float_noise import FloatNoise
from dpaudit.ledger.individual import IndividualSums
from dpaudit.ledger.journal import Journal
from dpaudit.ledger.process_bound import Uncopied
from dpaudit.ledger.queries import BoundedQueries
from dpaudit.ledger.selection import (
    Run,
    ScoringNoise,
    Selected,
    best_of,
    prefix,
    require_selection,
    run_of,
)
from dpaudit.ledger.stream import Stream
from dpaudit.ledger.units import DistinctNames, name_of, names_of
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.base import Released
from dpaudit.mechanisms.continual.release import Continual, Stepwise
from dpaudit.plan import Invocation, Plan, PrivateSelection

_Drawn = TypeVar("_Drawn")


@cache
def _is_sized(kind: type) -> bool:
    """Whether a noise backend cannot draw for every size; to ask a protocol takes long."""
    return issubclass(kind, SizedNoise)


@cache
def _outside() -> FloatNoise:
    """Stands beside noise of other libraries, where it draws none; to make one takes long."""
    return FloatNoise()


class Ledger(Uncopied, BoundedQueries):
    """Charges every release, writes it down, and only then draws its noise.

    A release that the plan does not declare is refused before it is charged. Private values and
    noise are never stored, and no error shows them. Threads take turns; a forked or copied ledger
    is refused. If writing fails, nothing is drawn, then or later. At the end of a ``with`` block it
    is closed; a block that ends with an error leaves the journal open, as a killed process does, so
    that :meth:`resume` goes on with it.

    Attributes:
        plan: what the algorithm declared.
        closed: whether the code closed it.

    Args:
        plan: what the algorithm declared.
        rng: source of the noise in an experiment, the same as ``noise=FloatNoise(rng)``.
        journal: path of a JSON-lines file to append to; it must not exist yet.
        budget: a privacy filter that every release must pass.
        noise: what draws; without it and ``rng``, exact samplers (:class:`SecureNoise`, extra
            ``secure``). :class:`FloatNoise` draws floats from the system's entropy.
        durability: what a line of the journal survives before its noise is drawn.
        anchor: keeps the journal's head elsewhere, so that a dropped tail is found.

    Raises:
        InputError: if an argument is none of these, or excludes another.
        UnsupportedError: at the first draw, if what draws cannot draw a mechanism of the plan.
    """

    called: ClassVar[str] = "a ledger"

    def __init__(
        self,
        plan: Plan,
        *,
        rng: np.random.Generator | None = None,
        journal: Path | str | None = None,
        budget: Budget | None = None,
        noise: NoiseBackend | None = None,
        durability: Durability = Durability.PROCESS,
        anchor: Anchor | None = None,
    ) -> None:
        validate.instance(Plan, plan=plan)
        if rng is not None and noise is not None:
            raise InputError("rng and noise are both given; give one of them.")
        if journal is not None and not isinstance(journal, str | Path):
            raise InputError(f"journal is a {type(journal).__name__:.60}; it must be a path.")
        if anchor is not None and journal is None:
            raise InputError("anchor is given without a journal; give a journal too.")
        self.plan = plan
        self.noise = FloatNoise(rng) if rng is not None else noise
        self._door = ReleaseGate()
        self._account = Account(plan)
        self._entries: list[Entry] = []
        self._budget = budget
        self._filtered = FilterRecord.of(budget, {})
        self._drawable = self.closed = False
        self._was_seeded = False  # the noise of a run that this one goes on with
        self._journal: Journal | None = None
        durability = validate.member(Durability, durability=durability)
        if journal is not None:
            require_new(journal)  # before a budget is told, which may begin only once
        begin(plan, budget, anchor)
        if journal is not None:
            self._journal = Journal.create(
                journal,
                plan,
                durability=durability,
                anchor=anchor,
                identifier=plan.hash[:32] if self.seeded else None,  # an experiment is repeatable
                filtered=self._filtered,
            )

    def __init_subclass__(cls) -> None:
        raise TypeError("Ledger cannot be extended; give it another budget or noise instead.")

    @classmethod
    def resume(
        cls,
        journal: Path | str,
        *,
        plan: Plan | None = None,
        rng: np.random.Generator | None = None,
        budget: Budget | None = None,
        noise: NoiseBackend | None = None,
        durability: Durability = Durability.PROCESS,
        anchor: Anchor | None = None,
    ) -> Ledger:
        """Go on where a run was interrupted: the same plan, and what was charged stays charged.

        A seeded generator goes on with noise that depends on the journal too, so that the seed of
        the interrupted run draws none of its noise again.

        Args:
            journal: file of a ledger that was not closed; its plan is taken up, its chain goes on.
            plan: what the algorithm declares now; where given, it must be that of the journal.
            rng: as for a new ledger.
            budget: a fresh privacy filter like that of the interrupted ledger, which is taken where
                none is given; it is charged with what the journal holds, but not with what other
                ledgers that shared the earlier one released.
            noise: as for a new ledger.
            durability: as for a new ledger.
            anchor: as given to the interrupted ledger.

        Raises:
            TamperedError: if the chain is broken, or does not fit its anchor.
            InputError: if the journal is closed, is open elsewhere, is none, or began with another
                filter.
            PlanMismatchError: if the journal is of another plan, or holds more than its own admits.
            BudgetExceededError: if the journal holds more than the budget admits.
        """
        file, content = Journal.resume(journal, durability=durability, anchor=anchor)
        try:
            if plan is not None and validate.instance(Plan, plan=plan).hash != content.plan.hash:
                raise PlanMismatchError(
                    f"journal {files.shown(journal)} is of another plan than the one given; resume "
                    "it with its own plan, or begin a new journal for the changed one."
                )
            if budget is None and content.filtered is not None:
                budget = content.filtered.again(content.plan)
            if (filtered := FilterRecord.of(budget, {})) != content.filtered:
                raise InputError(
                    f"budget is no filter like that with which journal {files.shown(journal)} "
                    "began; leave budget out, and that of the journal is taken, if it has one."
                )
            ledger = cls(content.plan, rng=rng, noise=noise)
            ledger._account = content.account()
            begin(content.plan, budget, anchor)
            for past in content.releases:
                invocation = ledger._account.declared[past.at]
                if budget is not None:
                    budget.admit(replace(invocation, count=1, total=1))
                drawn_by = past.sampler, past.external
                ledger._entries.append(Entry(invocation, past.unit, past.source, *drawn_by))
            ledger._was_seeded = any(e.sampler.endswith(", seeded") for e in content.releases)
            file.mark_resumed()
        except BaseException:
            file.release()
            raise
        ledger._budget, ledger._filtered, ledger._journal = budget, filtered, file
        if isinstance(ledger.noise, FloatNoise) and ledger.noise.seeded:
            ledger.noise = ledger.noise.continued(file.fresh_seed([]))
        return ledger

    def release(
        self, mechanism: Mechanism, value: ArrayLike, *, unit: str | None = None, at: str = ""
    ) -> Released:
        """Release a private value through a declared mechanism.

        Args:
            mechanism: must equal the one declared at ``at``.
            value: the private value, before noise.
            unit: whom it belongs to; None where it depends on every unit of the invocation's group,
                or of all.
            at: label of the declared invocation; may be left out if the plan has only one.

        Returns:
            The noisy value: a number for a number, an array of the same shape for an array.

        Raises:
            PlanMismatchError: if the plan does not declare it, or not so often.
            BudgetExceededError: if the budget refuses it.
            InputError: if the value is invalid.
            ClosedLedgerError: if the ledger is closed, or belongs to another process.
            JournalError: if it cannot be written down; nothing is drawn, and the ledger is closed.
        """
        self._door.require_own_process()
        own = validate.private(value)  # before the door: conversion may run foreign code
        return self._pass_value(mechanism, unit, at, own, partial(require_open, unit=unit))

    def release_each(
        self,
        mechanism: Mechanism,
        values: Iterable[ArrayLike],
        *,
        units: Iterable[str],
        at: str = "",
    ) -> list[Released]:
        """Release one value of each of several units, as :meth:`release` would one by one.

        All are charged and written at once, before the first one is drawn: the journal is synced
        once, if it is synced.

        Args:
            mechanism: as for :meth:`release`.
            values: the private values.
            units: whom they belong to, in the same order.
            at: as for :meth:`release`.

        Raises:
            InputError: if there are more values than units, or one of them is invalid; nothing is
                released then. Else as :meth:`release`.
        """
        self._door.require_own_process()
        own = [validate.private(value) for value in values]
        names = names_of(units)
        if len(own) != len(names):
            raise InputError(
                f"values has {len(own)} entries and units {len(names)}; give equally many."
            )
        with self._door.lock, self._door:
            invocation = self._account.admissible(mechanism, at, Counter(names))
            for name, value in zip(names, own, strict=True):
                require_open(invocation, value, unit=name)
            self._require_sizes(invocation, *own)
            noise, source = self._drawing(), caller(())
            drawn_by = noise.sampler, not is_own(noise)
            entries = [Entry(invocation, name, source, *drawn_by) for name in names]
            self._charge(*entries)
            if entries and isinstance(noise, BatchNoise):
                return noise.release_each(entries, own)
            return [noise.release(*each) for each in zip(entries, own, strict=True)]

    def sample(self, units: Iterable[str], *, at: str = "") -> list[int]:
        """Draw who takes part in the next release at a label, from the source of the noise.

        Nothing of the sample is charged or written, and nothing of it may be published.

        Args:
            units: names of all units that are there, each once; under zero-out also of those that
                have no rows, as a unit that is zeroed stays one of the population. A name stays
                with its unit whichever others are there: of rows that may be missing, it is no row
                number. Where the sampling says rows, those of each row. Who samples often makes
                :class:`~dpaudit.ledger.units.DistinctNames` of them once.
            at: label of an invocation with sampling; may be left out if the plan has only one.

        Returns:
            The places in ``units`` of those who take part, in ascending order.

        Raises:
            PlanMismatchError: if no sampling is declared there, or the last sample waits still.
            InputError: if a name is used twice, or the units are not the declared population.
            ClosedLedgerError: if the ledger is closed, or belongs to another process.
        """
        self._door.require_own_process()
        names = DistinctNames.of(units)
        with self._door.lock, self._door:
            return self._drawing().sample(self._account.sampled(at, len(names)), names)

    def stand_as(self, other: Ledger) -> None:
        """Admit what another ledger of the same plan admits: for trials of its releases."""
        self._account.take_over(other._account)

    def _bounded(self, at: str) -> Invocation:
        """The declared invocation, if its parts are bounded."""
        self._door.require_own_process()
        at, invocation = self._account.found(at)
        if invocation is None or invocation.contribution is None:
            self._door.refused += 1
            where = "the label" if invocation is None else f"{at!r:.80}"
            raise PlanMismatchError(
                f"{where} is declared without a contribution; declare what one unit may add."
            )
        return invocation

    def _open_bounded(self, invocation: Invocation, shape: tuple[int, ...]) -> IndividualSums:
        def draw(noise: NoiseBackend, entry: Entry) -> IndividualSums:
            sums = noise.stream(entry, shape)
            return IndividualSums(self._door, self._account, entry.invocation, sums)

        mechanism, at = invocation.mechanism, invocation.at
        return self._pass(mechanism, None, at, draw, check=require_individual)

    def _release_keyed(self, invocation: Invocation, counts: Mapping[Key, int]) -> dict[Key, int]:
        own, at = invocation.mechanism, invocation.at
        return self._pass(own, None, at, partial(drawn, counts), check=lambda found: None)

    def _release_bounded(
        self, invocation: Invocation, total: NDArray[Any], parts: Parts | None = None
    ) -> Released:
        if isinstance(invocation.mechanism, Stepwise):
            raise PlanMismatchError(
                f"{invocation.describe()} has steps; open it with ledger.individual."
            )
        own, at = invocation.mechanism, invocation.at
        return self._pass_value(own, None, at, total, require_sound, parts)

    def _pass_value(
        self,
        mechanism: Mechanism,
        unit: str | None,
        at: str,
        value: NDArray[Any],
        check: Callable[[Invocation, NDArray[Any]], None],
        parts: Parts | None = None,
    ) -> Released:
        def draw(noise: NoiseBackend, entry: Entry) -> Released:
            if parts is not None and isinstance(noise, SummingNoise):
                return noise.release_sum(entry, value, parts())
            return noise.release(entry, value)

        def sound(invocation: Invocation) -> None:
            check(invocation, value)
            self._require_sizes(invocation, value)

        return self._pass(mechanism, unit, at, draw, check=sound)

    def _require_sizes(self, invocation: Invocation, *values: NDArray[Any]) -> None:
        """Refuse, before a charge, what cannot be drawn for values of such shapes."""
        noise = self._drawing()
        if _is_sized(type(noise)):
            for size in {value.size for value in values}:
                noise.require_size(invocation, size)  # type: ignore[attr-defined]

    def select(
        self,
        run: Run,
        candidates: Sequence[Any] = (None,),
        *,
        unit: str | None = None,
        at: str = "",
    ) -> Selected | None:
        """Run a secret number of times, and release the best run alone.

        Each run is given a candidate, drawn anew from all of them, and a ledger of the declared
        plan of one run. What it returns must follow from the releases of that ledger. All that it
        keeps or prints, and how often it was called, is as private as the data.

        Args:
            run: called with a candidate and a ledger; returns a score, of which the largest is the
                best, and an output.
            candidates: public values, such as hyperparameters.
            unit: as for :meth:`release`.
            at: label of an invocation of :class:`~dpaudit.plan.PrivateSelection`.

        Returns:
            Candidate, score and output of the best run; None where there was none, as a Poisson
            number of runs may be 0.

        Raises:
            PlanMismatchError: if the plan declares no selection there; else as :meth:`release`.
            Exception: what a run raised, where none came to a score.
        """

        def check(invocation: Invocation) -> None:
            self._drawing().require(require_selection(invocation, candidates).run)

        def draw(noise: NoiseBackend, entry: Entry) -> Selected | None:
            chosen = np.asarray(noise.release(entry, np.array(len(candidates)))).tolist()
            label, made = entry.invocation.at, self._account.charged(entry.invocation.at)
            runs = [
                (candidates[place], prefix(label, made, number))
                for number, place in enumerate(chosen, start=1)
            ]
            selection = require_selection(entry.invocation, candidates)
            once = partial(_run_once, run, selection, noise)
            return best_of([(candidate, partial(once, candidate, at)) for candidate, at in runs])

        at, invocation = self._account.found(at)
        mechanism = None if invocation is None else invocation.mechanism
        return self._pass(mechanism, unit, at, draw, check=check)  # type: ignore[arg-type]

    def stream(
        self, mechanism: Continual, shape: Sequence[int], *, unit: str | None = None, at: str = ""
    ) -> Stream:
        """Open a continual release, which is one invocation whatever the number of its steps.

        Args:
            mechanism: must equal the one declared at ``at``.
            shape: shape of one step; () for numbers.
            unit: who alone contributes at every step; None where many do, under other than local
                trust.
            at: label of the declared invocation; may be left out if the plan has only one.

        Returns:
            The running release; it refuses more steps than declared before any noise is drawn.

        Raises:
            PlanMismatchError: if the plan does not declare it, or not so often, or under local
                trust and no unit is named.
            BudgetExceededError: if the budget refuses it.
            ClosedLedgerError: if the ledger is closed, or belongs to another process.
        """
        wanted = shape_of(shape)

        def draw(noise: NoiseBackend, entry: Entry) -> Stream:
            sums = noise.stream(entry, wanted)
            return Stream(self._door, self._account, self._write_step, entry, sums)

        def check(invocation: Invocation) -> None:
            require_continual(invocation, unit)

        return self._pass(mechanism, unit, at, draw, check=check)

    def observe(
        self, mechanism: Mechanism, external: ExternalDraw, *, unit: str | None = None, at: str = ""
    ) -> None:
        """Let another library draw the noise of a declared release.

        The door is the same as for :meth:`release`: the release is charged and written first, and
        stays charged if drawing fails. The ledger cannot know what was drawn, so the entry names
        the sampler.

        Args:
            mechanism: must equal the one declared at ``at``.
            external: draws the noise.
            unit: as for :meth:`release`.
            at: label of the declared invocation; may be left out if the plan has only one.

        Raises:
            PlanMismatchError: if the plan does not declare it, or not so often.
            BudgetExceededError: if the budget refuses it.
            ClosedLedgerError: if the ledger is closed, or belongs to another process.
        """
        sampler = unshown(validate.text, sampler=external.sampler)
        if is_exact(sampler):
            raise InputError(
                "sampler is named like the ledger's own sampler; give the name of the library."
            )

        def draw(noise: NoiseBackend, entry: Entry) -> None:
            noise.observe(entry, external)

        between = getattr(external, "packages", ())
        self._pass(
            mechanism, unit, at, draw, check=require_unbounded, sampler=sampler, between=between
        )

    def _pass(
        self,
        mechanism: Mechanism,
        unit: str | None,
        at: str,
        draw: Callable[[NoiseBackend, Entry], _Drawn],
        *,
        check: Callable[[Invocation], None],
        sampler: str | None = None,
        between: Sequence[str] = (),
    ) -> _Drawn:
        """The one sequence: admissible, admitted, charged, written, drawn."""
        unit = None if unit is None else name_of(unit)
        with self._door.lock, self._door:
            invocation = self._account.admissible(mechanism, at, {unit: 1})
            check(invocation)
            noise = self._drawing() if sampler is None else (self.noise or _outside())
            outside = sampler is not None or not is_own(noise)
            entry = Entry(invocation, unit, caller(between), sampler or noise.sampler, outside)
            self._charge(entry)
            return draw(noise, entry)

    def _drawing(self) -> NoiseBackend:
        """What draws, if it can draw the plan."""
        if self.noise is None:
            self.noise = SecureNoise()
        if not self._drawable:
            self.noise.require(self.plan)
            self._drawable = True
        return self.noise

    def _charge(self, *entries: Entry) -> None:
        """Admit by the budget, write, and count.

        On a failure to write, or an interrupt before all is counted, nothing follows, ever.
        """
        if self._budget is not None:
            for entry in entries:
                self._budget.admit(replace(entry.invocation, count=1, total=1))
        self._door.unfinished = True
        if self._journal is not None:
            self._written(self._journal.append, *entries)
        for entry in entries:
            self._entries.append(entry)
            self._account.charge(entry.invocation, entry.unit)
        self._door.unfinished = False

    def _write_step(self, at: str, step: int, unit: str) -> None:
        """How a stream records a named contribution."""
        if self._journal is not None:
            self._written(self._journal.append_step, at, step, unit)

    def _written(self, write: Callable[..., None], *given: Any) -> None:
        """Write to the journal; if that fails, nothing is drawn any more."""
        try:
            write(*given)
        except JournalError as error:
            self._door.shut(f"the ledger is closed, because its journal was not written: {error}")
            raise

    @property
    def seeded(self) -> bool:
        """Whether any noise comes from a stated generator, so that it can be subtracted."""
        own = isinstance(self.noise, FloatNoise) and self.noise.seeded
        return own or self._was_seeded

    @property
    def budget(self) -> Budget | None:
        """The privacy filter that every release must pass, or None."""
        return self._budget

    @property
    def filtered(self) -> FilterRecord | None:
        """What the filter was like at the beginning, and what it admitted; None without one."""
        if self._filtered is None:
            return None
        admitted = Counter(entry.invocation.at for entry in self._entries)
        return replace(self._filtered, admitted=dict(admitted))

    @property
    def refused(self) -> int:
        """How many releases were asked for that the plan does not admit."""
        return self._door.refused

    @property
    def journal(self) -> Journal | None:
        """The journal, or None."""
        return self._journal

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return True  # though nothing was released yet

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries))

    def spent(self) -> Plan:
        """What really ran, as a plan: each unit's charges, equal units merged into one group.

        Raises:
            PlanMismatchError: if nothing ran yet.
        """
        return self._account.spent()

    def check(self) -> None:
        """Compare what ran with what was declared.

        Raises:
            PlanMismatchError: naming the first invocation that ran less often than declared. (One
                that is undeclared, different or too frequent is refused when it is asked for.)
        """
        self._account.check()

    def left(self) -> Iterator[str]:
        """What ran less often than declared, each in a sentence without its end."""
        return self._account.left()

    def close(self) -> None:
        """Take no more releases; the journal gets its closing line. Closing twice is harmless.

        Code that stops early, on what was released, closes within its ``with`` block: what ran
        less often than declared is then no error. The guarantee stays that of what is declared.

        Raises:
            ClosedLedgerError: if the ledger belongs to another process.
            JournalError: if the closing line cannot be written.
        """
        with self._door.lock:
            if self._door.is_shut:
                if self._journal is not None:
                    self._journal.release()  # as it is, for whoever resumes it
                return
            with self._door:
                self.closed = True
                self._door.shut("the ledger is closed; open a new one for further releases.")
                if self._journal is not None:
                    self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The code may have closed it itself, as it stops early on what was released.
        ended = self.closed or (error is None and not any(self.left()))
        if not ended and self._journal is not None:
            self._door.shut(
                "the ledger is closed, because its block ended with an error; resume from its "
                "journal, or open a new ledger."
            )
        self.close()
        if error is None and not ended:
            self.check()


def _run_once(
    run: Run, selection: PrivateSelection, noise: NoiseBackend, candidate: Any, within: str
) -> tuple[float, Any]:
    """One run of a selection, with a ledger of its own that nobody reads."""
    plan = run_of(selection, within)
    with Ledger(plan, noise=noise) as own:
        own._account = Account(plan, within=within)
        score, output = run(candidate, own)
    if isinstance(noise, ScoringNoise):
        score = noise.score(within, score, output)
    return score, output
