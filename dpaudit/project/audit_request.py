"""What an audit is asked, in one record, whoever asks; and how its runs are drawn.

The options of ``dpaudit audit``, a table ``[[subject.audit]]`` of a project file, an assertion of
the pytest plugin and a call in Python all become an :class:`AuditRequest`, which
:mod:`dpaudit.workflow.attacking` answers. What has no meaning together is refused here, before any
code is loaded, in the words of whoever can ask for it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias, TypedDict

from dpaudit.base import files, toml_tables, validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import (
    Checked,
    Name,
    Natural,
    NonNegative,
    OpenProbability,
    Positive,
    Probability,
    at_least,
)
from dpaudit.base.validate import shown
from dpaudit.certificate import Claim
from dpaudit.plan import Relation
from dpaudit.project.subject import AuditPair
from dpaudit.project.targets import parse_arguments, parse_claim, parse_settings

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the runs done so far and all runs that are planned."""

Notice: TypeAlias = Callable[[str], None]
"""Called with a sentence about what will be done."""

Reader: TypeAlias = Callable[[Any], Any]
"""Makes the value of a field of words, or of what stands in a file."""

MOST_RUNS = 10**9
"""Runs on each side; beyond it an audit would end neither in time nor in memory."""


def _runs(**field: Any) -> int:
    number = validate.integer_at_least(1, **field)
    if number > MOST_RUNS:
        raise InputError(f"runs is {shown(number)}; it must be at most {MOST_RUNS}.")
    return number


def typed(option: str, parse: Reader | None = None) -> dict[str, Any]:
    """Metadata of a field that an option gives: its name with what it takes, and its parser."""
    return {"option": option, "parse": parse}


def written(read: Reader | None = None) -> dict[str, Any]:
    """Metadata of a field that a table of a project file gives, and what reads it."""
    return {"read": read}


def asked(option: str, parse: Reader | None = None, read: Reader | None = None) -> dict[str, Any]:
    """Metadata of a field that both an option and a table give."""
    return {**typed(option, parse), **written(read)}


def keys(kind: Any) -> tuple[str, ...]:
    """List the fields of a dataclass that a table of a project file may have."""
    return tuple(each.name for each in fields(kind) if "read" in each.metadata)


def values(kind: Any, given: Mapping[str, Any], way: str) -> dict[str, Any]:
    """Make values of fields, by their names, of what is typed (``parse``) or written (``read``)."""
    makers = {each.name: each.metadata.get(way) for each in fields(kind)}
    return {
        name: value if (make := makers.get(name)) is None else make(value)
        for name, value in given.items()
    }


@dataclass(frozen=True)
class Execution(Checked):
    """The number of runs of an audit, their error rate and randomness, and where they are drawn.

    The result follows from ``runs``, ``confidence`` and ``seed``; nothing else changes it.

    >>> Execution(runs=2_000, seed=1).updated({"workers": 4})
    Execution(runs=2000, confidence=0.95, seed=1, workers=4, dask=None, timeout=60.0, memory=None,
    own_randomness=False, journal=None)

    Attributes:
        runs: runs on each side; by default, through the real run, as many as take two minutes.
        confidence: confidence of the lower bound and of the verdict, in (0, 1).
        seed: seed of all randomness; by default, a fresh one is drawn and recorded.
        workers: worker processes of this machine; 1 for none.
        dask: address of a dask scheduler to run on instead (extra ``cluster``).
        timeout: seconds that one run may take. If given, it limits the whole audit through the real
            run; a training by canaries has no limit unless it is given.
        memory: MB that the code may take in addition to what is in use when it starts (on Linux);
            by default, no limit.
        own_randomness: the code draws randomness from elsewhere than the given generator, so its
            runs differ each time, and no audit of it can be replayed.
        journal: file of finished runs, from which a killed audit continues; it needs a seed.
        progress: is told the runs done and the runs planned.

    Raises:
        InputError: if a field is out of range, or there is a journal and no seed.
    """

    runs: Annotated[int, _runs] = field(default=10_000, metadata=asked("--runs N"))
    confidence: OpenProbability = field(default=0.95, metadata=asked("--confidence NUMBER"))
    seed: Natural | None = field(default=None, metadata=asked("--seed N"))
    workers: Annotated[int, at_least(1, 4096)] = field(default=1, metadata=asked("--workers N"))
    dask: Name | None = field(default=None, metadata=typed("--dask ADDRESS"))
    timeout: Positive | None = field(default=60.0, metadata=asked("--timeout SECONDS"))
    memory: Positive | None = field(default=None, metadata=asked("--memory MB"))
    own_randomness: bool = field(default=False, metadata=asked("--own-randomness"))
    journal: Path | str | None = field(default=None, metadata=typed("--journal FILE"))
    progress: Progress | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.journal is not None and self.seed is None:
            raise InputError(
                "journal is given without a seed; an audit continues only with the same seed."
            )

    def updated(self, given: ExecutionFields) -> Execution:
        """The same with some fields replaced.

        Raises:
            InputError: if a field is out of range.
        """
        return replace(self, **given)

    def only(self, *used: str) -> Execution:
        """The same, for an audit that has no use for other fields than these.

        Raises:
            InputError: if another field has another value than its default.
        """
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in (*used, "progress") and value != each.default:
                raise InputError(
                    f"{each.name} is {shown(value)}; this audit takes {', '.join(used)}, but "
                    f"not {each.name}, so leave it out."
                )
        return self

    def known_seed(self) -> int:
        """The seed, or a fresh one of 48 bits at each call."""
        return secrets.randbits(48) if self.seed is None else self.seed


class ExecutionFields(TypedDict, total=False):
    """The fields of :class:`Execution` as keywords, for calls such as ``audit(f, runs=2_000)``."""

    runs: int
    confidence: float
    seed: int | None
    workers: int
    dask: str | None
    timeout: float | None
    memory: float | None
    own_randomness: bool
    journal: Path | str | None
    progress: Progress | None


DEFAULTS = Execution()


EACH = "each"
"""In place of a relation: every number may move by 1, as answers to queries do."""
ONE_RUN = "one-run"
"""The attack on memberships that trains once."""
SECONDS = 120.0
"""What draws of a subject's real run take, about, where their number is not chosen."""


_MEANINGLESS = "{option} is given {where} --canaries, where it has no meaning; leave it out."
_WITH, _WITHOUT = (_MEANINGLESS.replace("{where}", each) for each in ("with", "without"))
_ARGUMENTS = "arguments must be a table of parameters of the function in code."
_THROUGH = "through_run is given with exact, every_pair, pair or code; it finds its own pair."
_COMMAND = "--set and --through-run are for subjects; leave them out with --command."
_MODELS = "--shadows and --targets need an --attack that trains further models."
_OWN_PAIR = "--pair is given with --through-run, which finds its own pair; leave it out."
_LIKELIHOOD = "score is given with {name}, which has the exact likelihood ratio; leave it out."
_FIELDS = "fields are given with {name}, which reads only releases; leave them out."
_STATED = "--claim is given with --epsilon or --delta; keep one of them."
_OF_FILE = (
    "exact, every_pair and code are for attacks in a project file, which name no target; leave "
    "them out."
)
_OBJECT = (
    "{name} is given for a target that is an object; give it only for a target named by a text."
)
_OF_NAMES = ("settings", "command", "data", "plan", "unit", "relation", "canaries")
_REFUSED: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...] = (
    ("arguments", (), ("target", "code"), _ARGUMENTS),
    ("code", (), ("pair",), "code is given without a pair; add pair = [x, x']."),
    ("through_run", ("exact", "every_pair", "code"), (), _THROUGH),
    ("through_run", ("pair",), ("target",), _THROUGH),
    ("exact", ("code",), (), "exact and code are both given; code is attacked by runs only."),
    ("every_pair", ("pair",), (), "every_pair and pair are both given; keep one of them."),
    ("target", ("exact", "every_pair", "code"), (), _OF_FILE),
    ("claim", ("epsilon", "delta"), (), _STATED),
    ("object", _OF_NAMES, (), _OBJECT),
    ("canaries", ("command", "pair", "data", "through_run", "score", "fields"), (), _WITH),
    *((name, (), ("canaries",), _WITHOUT) for name in ("attack", "shadows", "targets")),
    *((name, (), ("models",), _MODELS) for name in ("shadows", "targets")),
    ("through_run", ("pair",), (), _OWN_PAIR),
    ("command", ("settings", "through_run"), (), _COMMAND),
    ("data", ("pair",), (), "--data is given with --pair; keep one of them."),
    ("score", ("through_run", "exact"), (), _LIKELIHOOD),
    ("fields", ("through_run", "exact"), (), _FIELDS),
)
"""A field, those that have no meaning beside it, those without which it has none, and what is said
of it: in the words of whoever can ask for it, a project file (which gives no target) or the command
line. The first that applies is told."""


def parse_relation(text: str | None, beside: tuple[str, ...] = ()) -> Any:
    """A relation by its kind, or JSON, or a word that may stand in its place; None of None.

    >>> str(parse_relation("add-remove")), parse_relation('{"kind": "metric-ball", "radius": 2}')
    ('add-remove', MetricBall(radius=2.0))

    Args:
        text: as it is typed.
        beside: words that may stand in place of a kind.

    Raises:
        InputError: if there is no such relation.
    """
    if text is None or text in beside:
        return text
    given = files.parse_json(text, what="--relation") if text.startswith("{") else text
    with toml_tables.with_example(
        '--relation add-remove, or \'{"kind": "metric-ball", "radius": 2}\''
    ):
        if beside and given is text:
            toml_tables.chosen((*Relation.kinds(), *beside), relation=text)
        return Relation.parse(given)


def _typed_pair(texts: tuple[str, str]) -> AuditPair:
    """Two neighbours of the command line, each as JSON."""
    try:
        x, x_prime = (
            files.parse_json(text, what=f"--pair {name}")
            for text, name in zip(texts, ("x", "x'"), strict=True)
        )
    except InputError as error:
        example = "--pair '[1, 0]' '[1, 1]', or of texts --pair '\"a\"' '\"b\"'"
        raise InputError(f"{str(error).removesuffix('.')}; for example: {example}.") from None
    if json.dumps(x, sort_keys=True) == json.dumps(x_prime, sort_keys=True):
        raise InputError("--pair gives the same data twice; give two neighbouring data sets.")
    return AuditPair(x, x_prime, "given")


def _read_pair(value: object) -> AuditPair:
    """Two neighbours of a project file, whose dates are no JSON."""
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(f"pair is {shown(value)}; it must be an array of two data sets.")
    try:
        files.canonical_json(value)
    except (TypeError, ValueError):
        raise InputError(
            f"pair is {shown(value)}; it may hold finite numbers, texts, booleans and arrays."
        ) from None
    x, x_prime = value
    return AuditPair(x, x_prime, "given")


TIME = "time"
FIELD_KINDS = ("random", "seed", TIME)
"""What a field may be that differs in nearly every run; a time is left out of the audit."""


def read_fields(value: object) -> dict[str, str]:
    """Kinds of fields by their names.

    Raises:
        InputError: if it is no such table.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"fields is {shown(value)}; it must be a table of names and kinds.")
    for kind in value.values():
        toml_tables.chosen(FIELD_KINDS, fields=kind)
    return {**value}


def parse_fields(texts: Sequence[str]) -> dict[str, str]:
    """``FIELD=KIND`` texts; a field may hold ``=``.

    Raises:
        InputError: if one has no ``=``, or another kind.
    """
    parts = [text.rpartition("=") for text in texts]
    if wrong := [kind for name, _, kind in parts if not name]:
        raise InputError(f"--field is {shown(wrong[0])}; it must be FIELD=KIND.")
    return read_fields({name: kind for name, _, kind in parts})


def _score(name: object) -> tuple[str]:
    """The name of a score as it is typed or written."""
    return (validate.text(score=name),)


@dataclass(frozen=True)
class AuditRequest(Checked):
    """A request: what is attacked, what is tested of it, on which neighbours, by how many runs.

    >>> AuditRequest("survey:Survey", pair=AuditPair([1], []), through_run=True)
    Traceback (most recent call last):
        ...
    dpaudit.base.errors.InputError: --pair is given with --through-run, which finds its own pair;
    leave it out.

    Attributes:
        target: a subject; or a function f(data, rng), f(data, rng, size) for batches, or f(data)
            with its own randomness; or train(mask, rng) for canaries; or Class.method, of an
            instance with the defaults and the given settings.
        settings: public fields of the subject, or of the class of the method.
        command: a program to attack instead: data as JSON on stdin, the answer as JSON on stdout.
        pair: the neighbours; by default, the best of the subject's own pairs. For a function, a
            pilot chooses the best of neighbours of the data, or of lists of numbers.
        data: a file (.json, .csv, .npy, .parquet); a function is attacked on its neighbours.
        every_pair: attack each of the subject's own pairs.
        exact: enumerate the outputs of the declared mechanism instead of drawing runs.
        through_run: attack the releases of the subject's real run, on a neighbour of its data.
        code: ``FILE.py:function`` to attack instead of the subject's own releases.
        arguments: values of further parameters of the function, by name.
        fields: the kinds of fields that differ in nearly every run, by name: random, seed or time.
        epsilon: the ε under test; by default, that of the claim.
        delta: the δ under test; by default, that of the claim, or 0 if ε is given.
        claim: what is tested, as in a plan file: 'epsilon = 1, delta = 1e-5', 'advantage = 0.1',
            'tpr = 0.1, fpr = 0.01', 'success = 0.6, prior = 0.5', 'mu = 1', 'rho = 0.5',
            'curve = [[0.5, 1e-3], [1, 1e-6]]'; by default, the subject's own claim.
        plan: a plan file; a function is tested against its whole curve instead of a claim.
        unit: who is protected by a function.
        relation: which data sets are neighbours for a function; ``each``: every number of a list
            may move by 1.
        canaries: number of canaries. The function is train(mask, rng): it trains with the canaries
            of the mask, and returns a score for each; the attack infers memberships.
        attack: the attack on memberships: one-run (default), loss-threshold, lira-online,
            lira-offline, rmia or rmia-offline.
        shadows: number of shadow models that the attack trains; by default 32.
        targets: number of models that it attacks; by default 1.
        score: a further score, a function from one output to a number; the pilot compares it with
            the scores of the audit.
        stop_early: stop at the refutation.
        seconds: about how long the draws of a real run may take; fewer are made then.
        limit: seconds within which an audit of a real run ends.
        notice: is told how long that will take, before it starts.
        execution: how many runs are drawn, and how.

    Raises:
        InputError: if a field is out of range, or two have no meaning together.
    """

    target: Any = None
    settings: Mapping[str, Any] = field(
        default_factory=dict, metadata=typed("--set KEY=VALUE", parse_settings)
    )
    command: bool = field(default=False, metadata=typed("--command 'PROGRAM ARGS'"))
    pair: AuditPair | None = field(
        default=None, metadata=asked("--pair JSON JSON", _typed_pair, _read_pair)
    )
    data: str | None = field(default=None, metadata=typed("--data FILE"))
    every_pair: bool = field(default=False, metadata=written())
    exact: bool = field(default=False, metadata=written())
    through_run: bool = field(default=False, metadata=asked("--through-run"))
    code: Name | None = field(default=None, metadata=written())
    arguments: Mapping[str, Any] = field(
        default_factory=dict, metadata=asked("--arg NAME=JSON", parse_arguments)
    )
    fields: Mapping[str, str] = field(
        default_factory=dict, metadata=asked("--field FIELD=KIND", parse_fields, read_fields)
    )
    epsilon: NonNegative | None = field(default=None, metadata=asked("--epsilon NUMBER"))
    delta: Probability | None = field(default=None, metadata=asked("--delta NUMBER"))
    claim: Claim | None = field(
        default=None, metadata=typed("--claim 'KEY = VALUE, …'", parse_claim)
    )
    plan: str | None = field(default=None, metadata=typed("--plan FILE"))
    unit: str | None = field(default=None, metadata=typed("--unit NOUN"))
    relation: Relation | str | None = field(
        default=None, metadata=typed("--relation KIND", partial(parse_relation, beside=(EACH,)))
    )
    canaries: int | None = field(default=None, metadata=typed("--canaries N"))
    attack: str | None = field(default=None, metadata=typed("--attack KIND"))
    shadows: int | None = field(default=None, metadata=typed("--shadows N"))
    targets: int | None = field(default=None, metadata=typed("--targets N"))
    score: tuple[Any, ...] = field(
        default=(), metadata=asked("--score FILE.py:function", _score, _score)
    )
    stop_early: bool = False
    seconds: float | None = None
    limit: float | None = None
    notice: Notice | None = field(default=None, compare=False, repr=False)
    execution: Execution = DEFAULTS

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.arguments, Mapping):
            raise InputError(_ARGUMENTS)
        given = {name for name, value in vars(self).items() if _is_given(value)}
        given |= set() if self.attack in (None, ONE_RUN) else {"models"}
        given |= set() if isinstance(self.target, str | None) else {"object"}
        for name, beside, lacking, sentence in _REFUSED:
            wrong = next((each for each in beside or (name,) if each in given), None)
            if name in given and wrong is not None and given.isdisjoint(lacking):
                option = f"--{wrong.replace('_', '-')}"
                raise InputError(sentence.format(name=wrong, option=option))
        if self.canaries is not None and self.claim is not None and self.claim.risk is not None:
            raise InputError(
                f"--claim is {self.claim}; an audit with canaries tests ε and δ, or the curve "
                "of a --plan."
            )

    @property
    def stated(self) -> Claim | None:
        """What is to be tested whatever the target claims; of ε alone, with δ = 0."""
        return self.claim if self.epsilon is None else Claim(self.epsilon, self.delta or 0.0)

    def tested(self, own: Claim | None) -> Claim:
        """Return what is tested of an algorithm with a claim of its own.

        Numbers of a project file replace those of the claim one by one.

        Raises:
            InputError: if nothing is claimed.
        """
        if self.stated is not None and (self.target is not None or own is None):
            return self.stated
        if own is None:
            raise InputError("--epsilon is missing, and the subject states no claim; give one.")
        if self.epsilon is None and self.delta is None:
            return own
        epsilon = own.epsilon if self.epsilon is None else self.epsilon
        return Claim(epsilon, own.delta if self.delta is None else self.delta)

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> Self:
        """The request of a command line.

        Args:
            options: by the names of fields, or of those of an execution, as they are typed. What
                was not given is None or False.

        Raises:
            InputError: if an option cannot be read, or two have no meaning together.
        """
        given = {name: each for name, each in options.items() if _is_given(each)}
        if ("target" in given) == ("command" in given):
            raise InputError("SUBJECT and --command: exactly one of them must be given.")
        if "command" in given:
            given |= {"target": given["command"], "command": True}
        drawn = {key: given.pop(key) for key in ExecutionFields.__annotations__ if key in given}
        training = "canaries" in given
        if training and "runs" in drawn:
            raise InputError(_WITH.format(option="--runs"))
        if training:
            parse_relation(given.get("relation"))  # a word in place of one says nothing of members
            drawn.setdefault("timeout", None)
        elif "runs" not in drawn:
            given["seconds"] = SECONDS
        if "through_run" in given:
            given["limit"] = drawn.get("timeout")
        return cls(**values(cls, given, "parse"), execution=Execution(**drawn))

    def with_table(self, place: str, value: object, known: Collection[str] | None = None) -> Self:
        """The same with what a table of a project file says.

        Args:
            place: of the table, for sentences.
            value: what stands there.
            known: the keys that it may have; all where not given.

        Raises:
            InputError: if it is no such table, or says what has no meaning.
        """
        given = toml_tables.table(place, value, known or (*keys(Execution), *keys(type(self))))
        with toml_tables.within(place):
            drawn = {key: given.pop(key) for key in keys(Execution) if key in given}
            execution = replace(self.execution, **drawn)
            validate.integer_at_least(2, runs=execution.runs)
            return replace(self, execution=execution, **values(type(self), given, "read"))


def _is_given(value: object) -> bool:
    empty = isinstance(value, Mapping | tuple) and not value
    return not (value is None or value is False or empty)


REPEATABLE = AuditRequest(execution=Execution(confidence=0.99, seed=0))
"""Where a project file says nothing else: reports then differ only where something changed."""
