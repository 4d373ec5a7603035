"""The premises of a proof, how each may be known to hold, and what one of them rests on.

That code follows its declaration is *enforced* where the ledger lets nothing else through, *tested*
where the real run was put to the test on neighbouring data, and else *assumed*. What a proof takes
from outside of this package stands here too; a class counts as own by where it is defined.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any

from dpaudit.accounting import Accountant, Guarantee
from dpaudit.accounting.accountant import FILTER
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Kinded, Natural, Record
from dpaudit.base.provenance import is_exact, is_own
from dpaudit.base.validate import shown
from dpaudit.certificate.claim import Finding, Severity
from dpaudit.certificate.records import ReleaseRecord, SealRecord
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import Plan, TrustModel


class Scope(StrEnum):
    """What a certificate speaks of."""

    PLAN = "plan"
    CODE = "plan and code"
    SEALED = "sealed"
    """Plan and code, which held handles alone in a process that has no way to the rows."""
    RELEASE = "release"
    """Declared queries over a table, of which no code of an author has seen a row."""

    def keeps(self, wanted: Scope) -> bool:
        """Tell whether a certificate of this scope will do where that one is wanted."""
        more = {Scope.SEALED: Scope.CODE, Scope.RELEASE: Scope.SEALED}
        return wanted in (self, more.get(self))


class Standing(StrEnum):
    """How a premise is known to hold, from best to worst."""

    NOT_APPLICABLE = "not applicable"
    ENFORCED = "enforced"
    """By construction: the ledger lets nothing else through."""
    TESTED = "tested"
    """On the code that runs, with stated data; it may fail on other data."""
    NOT_EXERCISED = "not exercised"
    """It was looked for, and nothing that was tried could have shown it: no better than assumed."""
    ASSUMED = "assumed"
    """By nobody but the author."""
    VIOLATED = "violated"
    """A test has found that it does not hold."""

    @property
    def rank(self) -> int:
        """Larger is worse; what was not exercised ranks with what is assumed."""
        same = Standing.ASSUMED if self is Standing.NOT_EXERCISED else self
        return list(Standing).index(same)


class Premise(StrEnum):
    """An assumption that the proof of every plan rests on."""

    SENSITIVITY = "values within the sensitivity"
    OWN_VALUES = "each value from its own unit's data alone"
    TOUCHES = "touches of one unit as declared"
    UNITS = "units and groups as named"
    PERSONS = "a unit's name is a person"
    CONTROL_FLOW = "control flow from public facts and releases"
    RESULTS = "results from releases"
    NOISE = "noise of the declared law, fresh and secret"
    SAMPLING = "sampling as declared and secret"
    ONE_DOOR = "no other way out than the ledger"
    LAWS = "each mechanism costs what it states"
    PUBLIC_FACTS = "plan and public facts without these data"


THIRD = frozenset({Premise.PERSONS, Premise.LAWS, Premise.PUBLIC_FACTS})
"""What certificates of the first two schemas do not list."""

SEEDED = {
    Premise.NOISE: "The noise of this run follows from its stated seed, so it is an experiment.",
    Premise.SAMPLING: "The samples of this run follow from its stated seed.",
}
"""Why these are assumed of a run with a seed, for which a run without one is the remedy."""


@dataclass(frozen=True)
class Assumption(Record):
    """One premise of a proof.

    Attributes:
        premise: what is assumed.
        standing: how it is known to hold, with all that it rests on.
        alone: how it would be known if all that it rests on held.
        rests_on: premises without which it says nothing.
        evidence: why it stands ``alone`` as it does, in one sentence.
    """

    premise: Premise
    standing: Standing
    alone: Standing
    rests_on: tuple[Premise, ...]
    evidence: str

    @property
    def reason(self) -> str:
        """Why it stands as it does: the evidence, and what else it rests on."""
        if not self.rests_on:
            return self.evidence
        below = " and ".join(f"“{each}”" for each in self.rests_on)
        limit = ", and stands no better" if self.standing is not self.alone else ""
        return f"{self.evidence} It rests on {below}{limit}."


Known = dict[Premise, tuple[Standing, str]]
"""How each premise stands alone, and why."""


def limited(
    known: Known, rests_on: Mapping[Premise, tuple[Premise, ...]]
) -> tuple[Assumption, ...]:
    """Every premise, none with a better standing than those that it rests on.

    Args:
        known: how each of them stands alone, and why.
        rests_on: what a premise rests on. What is not applicable limits nothing.
    """

    def standing(premise: Premise) -> Standing:
        own = known[premise][0]
        return max((own, *map(standing, below(premise))), key=lambda each: each.rank)

    def below(premise: Premise) -> tuple[Premise, ...]:
        own = known[premise][0]
        return () if own is Standing.NOT_APPLICABLE else rests_on.get(premise, ())

    return tuple(
        Assumption(each, standing(each), known[each][0], below(each), known[each][1])
        for each in Premise
    )


_OWN = __name__.partition(".")[0] + "."


@dataclass(frozen=True)
class ForeignLaw(Record):
    """A mechanism of others, or a part of an invocation that decides what a mechanism costs.

    Attributes:
        kind: as it is written in a plan.
        defined_in: module of its class.
        labels: of the invocations that it is in.
    """

    kind: str
    defined_in: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Foreign(Record):
    """All that a proof takes from others.

    Attributes:
        mechanisms: these, and samplings, relations and factorisations.
        accountants: by name.
    """

    mechanisms: tuple[ForeignLaw, ...] = ()
    accountants: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.mechanisms or self.accountants)

    @property
    def names(self) -> tuple[str, ...]:
        """Every kind and accountant, once."""
        return tuple(dict.fromkeys((*(each.kind for each in self.mechanisms), *self.accountants)))

    def __str__(self) -> str:
        laws = [f"{shown(each.kind)} of {shown(each.defined_in)}" for each in self.mechanisms]
        return ", ".join((*laws, *(f"the accountant {shown(each)}" for each in self.accountants)))


def foreign_of(plan: Plan, proved: Guarantee | None) -> Foreign:
    """List what the proof of a plan takes from outside of this package."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for invocation in plan.invocations:
        for part in _parts(invocation):
            if not is_defined_here(type(part)):
                key = part.kind or type(part).__name__, type(part).__module__
                found.setdefault(key, {})[invocation.at] = None
    laws = tuple(ForeignLaw(*key, tuple(labels)) for key, labels in found.items())
    names = () if proved is None else (str(proved.accountant),)
    return Foreign(laws, tuple(each for each in names if not _is_own_accountant(each)))


def _is_own_accountant(name: str) -> bool:
    try:
        return is_defined_here(Accountant.named(name))
    except InputError:  # a file may name one that is not installed
        return name == FILTER


def is_defined_here(kind: type) -> bool:
    """Tell whether a module of this package defines a class.

    >>> is_defined_here(Foreign), is_defined_here(type("Foreign", (Foreign,), {}))
    (True, False)
    """
    module = kind.__module__
    own = module.startswith(_OWN) and getattr(sys.modules.get(module), kind.__name__, None)
    return own is kind


def stated_kinds(plan: Plan) -> tuple[str, ...]:
    """Mechanisms whose law its author states and nothing derives: black boxes, by kind."""
    boxes = (each.mechanism for each in plan.invocations)
    return tuple(dict.fromkeys(each.kind for each in boxes if each.is_black_box))


def taken_at_word(plan: Plan, proved: Guarantee | None) -> tuple[str, ...]:
    """List kinds and accountants whose word a proof takes: those of others, and black boxes."""
    return tuple(dict.fromkeys((*foreign_of(plan, proved).names, *stated_kinds(plan))))


def laws_standing(plan: Plan, proved: Guarantee | None) -> tuple[Standing, str]:
    """Judge how it is known that each mechanism costs what it states, and why.

    Args:
        plan: what is proved.
        proved: by whom.
    """
    foreign, boxes = foreign_of(plan, proved), stated_kinds(plan)
    if not foreign and not boxes:
        return Standing.ENFORCED, "The law of every mechanism is derived in this package."
    taken = [f"what {', '.join(map(shown, boxes))} costs"] if boxes else []
    taken += [str(foreign)] if foreign else []
    return Standing.ASSUMED, f"The proof takes its author's word for {' and for '.join(taken)}."


def _parts(value: object) -> Iterator[Kinded]:
    """Everything of a kind in a dataclass, at any depth."""
    if isinstance(value, Kinded):
        yield value
    if is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _parts(getattr(value, each.name))
    elif isinstance(value, tuple):
        for one in value:
            yield from _parts(one)


ENOUGH_DRAWS = 100
"""With fewer, a test of the noise says little: 100 of one law show half its scale."""

BY_LABEL = (
    Premise.SENSITIVITY,
    Premise.OWN_VALUES,
    Premise.TOUCHES,
    Premise.UNITS,
    Premise.CONTROL_FLOW,
)
"""Of these a rehearsal counts for each label how many neighbours exercised them."""

VIOLATED_BY = {
    "sensitivity-understated": Premise.SENSITIVITY,
    "not-a-number": Premise.SENSITIVITY,
    "parts-of-others": Premise.OWN_VALUES,
    "load-mixes-rows": Premise.OWN_VALUES,
    "load-keeps": Premise.OWN_VALUES,
    "keeps-state": Premise.OWN_VALUES,
    "plan-follows-data": Premise.PUBLIC_FACTS,
    "touched-too-often": Premise.TOUCHES,
    "groups-overlap": Premise.UNITS,
    "private-control-flow": Premise.CONTROL_FLOW,
    "private-parameters": Premise.CONTROL_FLOW,
    "refused-after-release": Premise.CONTROL_FLOW,
    "raises-on-neighbour": Premise.CONTROL_FLOW,
    "private-use-of-randomness": Premise.CONTROL_FLOW,
    "plan-not-followed": Premise.CONTROL_FLOW,
    "result-not-from-releases": Premise.RESULTS,
    "losers-leave": Premise.RESULTS,
    "prints-private-data": Premise.RESULTS,
    "reads-beside-load": Premise.RESULTS,
    "sampled-too-often": Premise.SAMPLING,
    "hidden-randomness": Premise.RESULTS,
    "not-the-declared-noise": Premise.NOISE,
    "noise-reused": Premise.NOISE,
    "second-ledger": Premise.ONE_DOOR,
    "release-beside-the-ledger": Premise.ONE_DOOR,
    "beside-the-ledger": Premise.ONE_DOOR,
}
"""Rules of findings of a rehearsal, of older versions too, by what they say does not hold."""


@dataclass(frozen=True)
class Rehearsal(Record):
    """The real run on data and on neighbours of them, with the same releases; nothing is published.

    Attributes:
        data: name of the data; empty where there were none.
        seed: of noise, algorithm and choice of neighbours: it repeats the rehearsal.
        releases: that one run made.
        neighbours: how each neighbour was made, without any of its values.
        elsewhere: the same of data further away, on which only control flow and results count.
        refused: neighbours that the code refused before anything was released.
        draws: how many draws of noise were tested for the declared law.
        loads: how often a file was loaded without one line, to see what load makes of the others.
        shared: column that may say whose a row is, where each was taken as one unit's.
        samples: in how many samples of the ledger's units could have been that were followed.
        external: other libraries that drew noise.
        reason: why nothing was rehearsed; empty where it was.
        exercised: by premise and label, how many neighbours could have shown that it does not hold;
            of noise that others draw, how many draws were tested. Empty in records of older
            schemas.
        public: how often import and plan ran while the data file was out of reach.
    """

    data: str = ""
    seed: Natural = 0
    releases: Natural = 0
    neighbours: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    draws: Natural = 0
    samples: Natural = 0
    external: tuple[str, ...] = ()
    loads: Natural = 0
    shared: str = ""
    reason: str = ""
    exercised: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    public: Natural = 0

    @property
    def done(self) -> bool:
        """Whether the code was put to the test."""
        return not self.reason and bool(self.neighbours)


def scope_of(
    rehearsal: Rehearsal | None,
    release: ReleaseRecord | None = None,
    seal: SealRecord | None = None,
) -> Scope:
    """Tell whether a certificate speaks of the plan alone, of the code too, or of a release."""
    if release is not None:
        return Scope.RELEASE
    if seal is not None:
        return Scope.SEALED
    return Scope.CODE if rehearsal is not None and rehearsal.done else Scope.PLAN


def assumptions_of(
    plan: Plan,
    *,
    code: bool,
    rehearsal: Rehearsal | None,
    findings: Iterable[Finding],
    run: Mapping[str, Any] | None = None,
    proved: Guarantee | None = None,
    release: ReleaseRecord | None = None,
    seal: SealRecord | None = None,
    counted: bool = True,
) -> tuple[Assumption, ...]:
    """Every assumption behind the proof of a plan, and how it is known to hold.

    Args:
        plan: what was proved.
        code: whether there is any code; a plan file has none.
        rehearsal: what was tested of the code.
        findings: of the rehearsal, among others.
        run: the certificate's record of a run, which says how noise was drawn.
        proved: what is proved of it, and by whom.
        release: the declared queries over a table, where the plan is theirs.
        seal: how the code was kept from the data, where its run was sealed.
        counted: whether the rehearsal says what was exercised, as the newest schema does.
    """
    laws = laws_standing(plan, proved)
    if release is not None:
        return limited(_released(plan, run) | {Premise.LAWS: laws}, {})
    if not code:
        why = "No code is recorded with this plan; whether any code follows it is not known."
        absent: Known = dict.fromkeys(Premise, (Standing.NOT_APPLICABLE, why))
        return limited(absent | {Premise.LAWS: laws}, {})
    wrong: dict[Premise, str] = {}
    findings = tuple(findings)
    for finding in findings:
        premise = VIOLATED_BY.get(finding.rule)
        if premise is not None and finding.severity is not Severity.NOTE:
            wrong.setdefault(premise, f"See the finding {finding.rule!r}.")
    violated: Known = {premise: (Standing.VIOLATED, why) for premise, why in wrong.items()}
    if seal is not None:
        return limited(_sealed(plan, run, seal) | {Premise.LAWS: laws} | violated, {})
    known: Known = (
        dict.fromkeys(Premise, (Standing.ASSUMED, _untested(rehearsal)))
        | _tested(rehearsal)
        | (_unexercised(plan, rehearsal) if counted else {})
        | _enforced(plan, run, rehearsal)
        | _taken(plan, rehearsal)
        | _moved(wrong)
        | _refused(findings)
        | _beside(findings)
        | {Premise.LAWS: laws, Premise.PERSONS: (Standing.ASSUMED, _name(plan))}
        | violated
    )
    return limited(known, _rests_on(plan, known, run))


def _released(plan: Plan, run: Mapping[str, Any] | None) -> Known:
    """What holds of declared queries over a table, whose rows no code of an author has seen."""
    by = "Only declared queries see the rows; no code of an author does."
    public = (
        "The author says that schema, bounds and queries were written without these data, and that "
        "joined tables are public."
    )
    return _of_table(plan, run, by, public)


def _sealed(plan: Plan, run: Mapping[str, Any] | None, seal: SealRecord) -> Known:
    """What holds of code that asked about rows, in a process that has no way to them."""
    by = "The code ran in a process that holds handles and has no way to the rows."
    told = f"{by} The ledger of another process released all that the code learnt about them."
    public = (
        "The author says that code, schema and bounds were written without these data, and that "
        "joined tables and the files that the code may read are public."
    )
    known = _of_table(plan, run, told, public)
    if seal.functions:
        own = f"A process with only the rows of one {plan.unit}, and no clock, makes each value."
        known[Premise.OWN_VALUES] = (Standing.ENFORCED, own)
    if known[Premise.SAMPLING][0] is Standing.ENFORCED:
        why = f"{by} The ledger of another process drew each sample; the code holds a handle of it."
        known[Premise.SAMPLING] = (Standing.ENFORCED, why)
        if (run or {}).get("ledger", {}).get("seeded"):
            known[Premise.SAMPLING] = (Standing.ASSUMED, SEEDED[Premise.SAMPLING])
    return known


def _of_table(plan: Plan, run: Mapping[str, Any] | None, by: str, public: str) -> Known:
    """What holds where operations of this package alone see the rows of a table.

    What is assumed is what rows, names and public facts were before. No premise rests on it in
    another way than on the table itself: no code makes rows, or gives them to another unit.

    Args:
        plan: what was proved.
        run: the record of a run.
        by: what keeps all else from the rows.
        public: what is said to be public.
    """
    noise = "The ledger draws all noise itself, after it has charged the release."
    own = f"Each value is computed from the rows of one {plan.unit} and from public facts."
    bounds = "Rows and groups of each unit are bounded in the query, and whole numbers are added."
    named = f"The owner of the data says that each row holds data of its own {plan.unit} alone."
    known: Known = dict.fromkeys(Premise, (Standing.ENFORCED, by))
    known[Premise.NOISE] = (Standing.ENFORCED if run is None else Standing.ASSUMED, noise)
    return (
        known
        | _enforced(plan, run, None)
        | {
            Premise.SENSITIVITY: (Standing.ENFORCED, bounds),
            Premise.OWN_VALUES: (Standing.ENFORCED, own),
            Premise.UNITS: (Standing.ASSUMED, named),
            Premise.PERSONS: (Standing.ASSUMED, _name(plan)),
            Premise.PUBLIC_FACTS: (Standing.ASSUMED, public),
        }
    )


def _rests_on(plan: Plan, known: Known, run: Any) -> dict[Premise, tuple[Premise, ...]]:
    """List what premises rest on where the code that runs holds the rows of several units.

    The ledger bounds what it is given under a name: rows that code made of everybody's, or gave to
    another name, it cannot tell. A clip on the unit's own device bounds any value.
    """
    units: tuple[Premise, ...] = (Premise.UNITS,)
    found = {Premise.TOUCHES: units, Premise.SAMPLING: units}
    bounded = any(each.contribution is not None for each in plan.invocations)
    if (bounded or _clipped_at(run)) and known[Premise.SENSITIVITY][0] is Standing.ENFORCED:
        found[Premise.SENSITIVITY] = (Premise.OWN_VALUES, Premise.UNITS)
    return found


def _name(plan: Plan) -> str:
    return f"The author says that each {plan.unit} has one name, and that no two share one."


def _unexercised(plan: Plan, rehearsal: Rehearsal | None) -> Known:
    """Find what no neighbour could have shown at some release, whatever the code does there.

    What is not recorded was not exercised. Which labels other libraries draw for, a record alone
    says.
    """
    known: Known = {}
    if rehearsal is None or not rehearsal.done:
        return known
    every = dict.fromkeys((each.at for each in plan.invocations), 0)
    foreign = {each.at: 0 for each in plan.invocations if not is_own(each.mechanism)}
    wanted = dict.fromkeys(BY_LABEL, every) | {Premise.NOISE: foreign}
    if rehearsal.external and Premise.NOISE not in rehearsal.exercised:
        wanted[Premise.NOISE] = every
    tested = [
        each for each, (standing, _) in _tested(rehearsal).items() if standing is Standing.TESTED
    ]
    for premise in tested:
        counts = {**wanted.get(premise, {}), **rehearsal.exercised.get(premise, {})}
        drawn = premise is Premise.NOISE
        least = ENOUGH_DRAWS if drawn else 1
        idle = [repr(label) for label, number in counts.items() if number < least]
        if idle:
            more = f" and {len(idle) - 3} more" if len(idle) > 3 else ""
            tried = f"None of the neighbours ({len(rehearsal.neighbours)}) exercised it"
            tried = f"Fewer than {least} draws were tested" if drawn else tried
            why = f"{tried} at {', '.join(idle[:3])}{more}{'' if drawn else '; other data may'}."
            known[premise] = (Standing.NOT_EXERCISED, why)
    return known


def _enforced(plan: Plan, run: Mapping[str, Any] | None, rehearsal: Rehearsal | None) -> Known:
    """Find what the ledger makes true, or what the plan makes meaningless."""
    known: Known = {
        Premise.TOUCHES: (
            Standing.ENFORCED,
            "The ledger counts every release of each named unit, and of all units where none is "
            "named.",
        ),
    }
    if not any(each.sampling for each in plan.invocations):
        known[Premise.SAMPLING] = (Standing.NOT_APPLICABLE, "The plan samples nobody.")
    clipped = _clipped_at(run)
    if all(
        each.contribution is not None  # or the value is one unit's alone
        or (each.trust is TrustModel.LOCAL and clips(each.mechanism))
        or each.at in clipped
        for each in plan.invocations
    ):
        by = "The training clips" if clipped else "The door bounds"
        why = f"{by} what each unit contributes before it is added up."
        known[Premise.SENSITIVITY] = (Standing.ENFORCED, why)
    if clipped and all(each.at in clipped for each in plan.invocations if each.sampling):
        told = "The ledger drew each sample, and the code learnt nothing about it."
        known.setdefault(Premise.SAMPLING, (Standing.ENFORCED, told))
    ledger = {} if run is None else run.get("ledger", {})
    if ledger.get("seeded"):
        known[Premise.NOISE] = (Standing.ASSUMED, SEEDED[Premise.NOISE])
    elif all(is_own(each.mechanism) for each in plan.invocations) and _own_noise(ledger, rehearsal):
        why = "The ledger draws all noise itself, after it has charged the release."
        known[Premise.NOISE] = (Standing.ENFORCED, why)
    return known


def _clipped_at(run: Mapping[str, Any] | None) -> set[str]:
    """Labels at which a training of this package sampled, clipped and added up."""
    return set((run or {}).get("training", {}).get("labels", ()))


def _taken(plan: Plan, rehearsal: Rehearsal | None) -> Known:
    """What is known of rows alone, where a unit may have several."""
    if rehearsal is None or not rehearsal.shared:
        return {}
    why = (
        f"Each row was taken as one {plan.unit}, though values of {rehearsal.shared!r} repeat. If "
        f"they say whose row it is, call that column {str(plan.unit)!r}, in rows with named "
        "fields, or define neighbours."
    )
    return dict.fromkeys((Premise.UNITS, Premise.TOUCHES), (Standing.ASSUMED, why))


def _moved(wrong: Mapping[Premise, str]) -> Known:
    """Where one unit moved more than declared, that may be what others' data were made into."""
    seen = [each for each in (Premise.SENSITIVITY, Premise.TOUCHES) if each in wrong]
    if not seen:
        return {}
    why = (
        "One unit moved a value by more than declared, perhaps because it changes what others "
        f"contribute. {wrong[seen[0]]}"
    )
    return {Premise.OWN_VALUES: (Standing.ASSUMED, why)}


def _refused(findings: Iterable[Finding]) -> Known:
    """A run that fails on values reveals that somebody has them, unless nobody can."""
    if all(each.rule != "refuses-values" for each in findings):
        return {}
    why = "It is assumed that nobody has values that the run refuses: see 'refuses-values'."
    return {Premise.CONTROL_FLOW: (Standing.ASSUMED, why)}


def _beside(findings: Iterable[Finding]) -> Known:
    """What an older version saw beside the ledger, and moved with no neighbour."""
    for each in findings:
        if each.severity is Severity.NOTE and VIOLATED_BY.get(each.rule) is Premise.ONE_DOOR:
            why = f"It is assumed that what {each.rule!r} reports reveals nothing about anybody."
            return {Premise.ONE_DOOR: (Standing.ASSUMED, why)}
    return {}


def clips(mechanism: Mechanism) -> bool:
    """Tell whether a mechanism clips the value before it adds noise."""
    return any(getattr(mechanism, name, None) is not None for name in ("clip", "clip_norm"))


def _own_noise(ledger: Mapping[str, Any], rehearsal: Rehearsal | None) -> bool:
    """Tell whether a run, or a rehearsal, is known in which no other library drew noise."""
    samplers = ledger.get("samplers")
    if ledger.get("external"):
        return False
    if samplers is not None:  # what older records do not say of noise from outside, its name may
        return all(name.startswith("numpy") or is_exact(name) for name in samplers)
    return rehearsal is not None and rehearsal.done and not rehearsal.external


def _tested(rehearsal: Rehearsal | None) -> Known:
    """Report what a rehearsal without a finding says."""
    if rehearsal is None or not rehearsal.done:
        return {}
    size = len(rehearsal.neighbours)
    neighbours = "1 neighbour" if size == 1 else f"{size} neighbours"
    releases = "1 release" if rehearsal.releases == 1 else f"{rehearsal.releases} releases"
    on = f"on {neighbours} of {rehearsal.data!r}, seed {rehearsal.seed}"
    anywhere = on
    if rehearsal.elsewhere:
        anywhere += f", and on {len(rehearsal.elsewhere)} data sets further away"
    known: Known = {
        Premise.SENSITIVITY: (
            Standing.TESTED,
            f"The values of {releases} lay no further apart than declared {on}.",
        ),
        Premise.OWN_VALUES: _own_values(rehearsal, on),
        Premise.UNITS: (Standing.TESTED, f"No unit moved releases of two groups {on}."),
        Premise.CONTROL_FLOW: (
            Standing.TESTED,
            f"After equal releases, the same releases followed in the same order {anywhere}.",
        ),
        Premise.RESULTS: (
            Standing.TESTED,
            f"With equal releases the published result was the same {anywhere}.",
        ),
        Premise.ONE_DOOR: (
            Standing.TESTED,
            "In no run was a file opened for writing, or a process or a connection started.",
        ),
    }
    known[Premise.SAMPLING] = (
        Standing.ASSUMED,
        "A rehearsal sees how often units take part. Where the run draws samples itself, without "
        "ledger.sample, it is not tested whether the draws are independent and secret.",
    )
    if rehearsal.samples:
        known[Premise.SAMPLING] = (
            Standing.TESTED,
            f"Units were in no more of {rehearsal.samples} samples of the ledger than declared, at "
            "an error rate of 1e-6. With other samples, the published result was the same.",
        )
    if rehearsal.public:
        known[Premise.PUBLIC_FACTS] = (
            Standing.TESTED,
            f"Import and plan ran {rehearsal.public} times without the data file, and the plan was "
            "the same.",
        )
    if rehearsal.draws >= ENOUGH_DRAWS:
        known[Premise.NOISE] = (
            Standing.TESTED,
            f"{rehearsal.draws} draws were tested for the declared laws, at an error rate of 1e-6.",
        )
    return known


def _own_values(rehearsal: Rehearsal, on: str) -> tuple[Standing, str]:
    """What a bound, a scale or a choice made of all the data would break, in load or in run."""
    run = f"In run, no release showed that one unit changes what others contribute, {on}."
    if not rehearsal.loads:
        return Standing.ASSUMED, f"{run} How load makes each row was not tested."
    why = (
        f"Each of {rehearsal.loads} times, load made the same rows from most other lines when one "
        "line of the file was left out."
    )
    return Standing.TESTED, f"{run} {why}"


def _untested(rehearsal: Rehearsal | None) -> str:
    if rehearsal is None:
        return "The code was not rehearsed."
    return rehearsal.reason or "The rehearsal does not test it."
