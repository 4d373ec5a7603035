"""How the runs of an audit are drawn: one object that every audit takes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypedDict

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Name, Natural, OpenProbability, Positive, at_least
from dpaudit.base.validate import shown

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the runs done so far and all runs that are planned."""

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
        runs: runs on each side; through the real run, where no number is given, what takes two
            minutes.
        confidence: confidence of the lower bound and of the verdict, in (0, 1).
        seed: seed of all randomness; a fresh one is drawn (and recorded) where there is none.
        workers: worker processes of this machine; 1 for none.
        dask: address of a dask scheduler to run on instead (extra ``cluster``).
        timeout: seconds that one run may take; a training by canaries any time, where no number is
            given.
        memory: MB that the code may take beyond what is in use when it starts (on Linux); any where
            no number is given.
        own_randomness: the code draws from elsewhere than the generator it is given, so that its
            runs differ each time, and no audit of it can be replayed.
        journal: file of finished runs, from which a killed audit goes on; it needs a seed.
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
                "journal is given without a seed; an audit goes on with the same seed only."
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
                    f"{each.name} is {shown(value)}; this audit takes {', '.join(used)} and no "
                    f"{each.name}, so leave it out."
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
