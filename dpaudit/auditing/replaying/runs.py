"""One run of an algorithm, as far as it went, and what is seen of it beside its releases."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import os
import random
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from unittest import mock

import numpy as np

from dpaudit.auditing.replaying.recording import DivergedError, RecordingNoise, Runnable, Step
from dpaudit.base.errors import PlanMismatchError
from dpaudit.ledger import Ledger

TEXT = "its text"
"""What a record is beside its values."""
_DOOR = Ledger.__module__.rpartition(".")[0]


class Ended(Enum):
    """An end of a run."""

    FINISHED = "finished"
    DIVERGED = "diverged"
    """At a release that the first run did not make."""
    REFUSED = "refused"
    """At a release that the plan does not declare."""
    RAISED = "raised"


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        steps: what it released.
        shown: what is published of its result; plain values where it can be made plain.
        printed: what it wrote to stdout and stderr.
        randomness: the state in which it left its generator.
        ended: how it ended.
        error: what it raised, if it did.
        refused: how often it asked for what the plan does not admit.
        scores: what every run of a selection returned, whichever was the best.
    """

    steps: tuple[Step, ...]
    shown: Any
    printed: str
    randomness: Any
    ended: Ended
    error: BaseException | None = None
    refused: int = 0
    scores: Sequence[tuple[str, float, object]] = ()

    @property
    def finished(self) -> bool:
        """Whether it came to its end."""
        return self.ended is Ended.FINISHED

    @property
    def at_the_door(self) -> bool:
        """Whether the ledger itself raised, over a value that reached it."""
        trace = None if self.error is None else self.error.__traceback__
        while trace is not None:
            if str(trace.tb_frame.f_globals.get("__name__", "")).startswith(_DOOR):
                return True
            trace = trace.tb_next
        return False

    def common(self, first: Run) -> tuple[Step, ...]:
        """The steps before the divergence."""
        whole = len(self.steps)
        if whole and (
            whole > len(first.steps) or not self.steps[-1].follows(first.steps[whole - 1])
        ):
            return self.steps[:-1]
        return self.steps


def ran(algorithm: Runnable, data: Any, noise: RecordingNoise, rng: np.random.Generator) -> Run:
    """Run an algorithm through a ledger of its plan, whose noise keeps what passes.

    It is given data of its own, which it may change.
    """
    own = own_copy(data)
    ledger = Ledger(algorithm.plan(), noise=noise)
    result, ended = None, Ended.FINISHED
    error: BaseException | None = None
    printed = io.StringIO()
    with _heard(printed), _same_entropy(rng):
        try:
            result = algorithm.run(own, ledger, rng)
        except DivergedError:
            ended = Ended.DIVERGED
        except PlanMismatchError as refused:
            ended, error = Ended.REFUSED, refused
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - whatever it raises is an output
            ended, error = Ended.RAISED, raised
    state = rng.bit_generator.state
    facts = (_published(result), printed.getvalue(), state, ended, error, ledger.refused)
    return Run(tuple(noise.steps), *facts, noise.scores)


@contextlib.contextmanager
def _same_entropy(rng: np.random.Generator) -> Iterator[None]:
    """Let identifiers, as of ``uuid4``, be the same in a replay; of this thread alone."""
    own, real = threading.get_ident(), os.urandom
    draw = random.Random(repr(rng.bit_generator.state)).randbytes
    running = True

    def drawn(size: int) -> bytes:
        return draw(size) if running and threading.get_ident() == own else real(size)

    with mock.patch.object(os, "urandom", drawn):
        try:
            yield
        finally:
            running = False  # whoever has kept this function draws secret bytes again


def own_copy(data: Any) -> Any:
    """Data of one run's own; what cannot be copied is handed over as it is."""
    try:
        return copy.deepcopy(data)
    except Exception:  # noqa: BLE001 - whatever foreign data raise
        return data


@contextlib.contextmanager
def _heard(printed: io.StringIO) -> Iterator[None]:
    """Keep what is printed, logged and warned of, instead of showing it."""

    def handle(_: logging.Logger, record: logging.LogRecord) -> None:
        printed.write(f"{record.levelname} {record.getMessage()}\n")

    def warned(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if category is UserWarning:  # those of numpy and of Python follow from no choice of words
            printed.write(f"{message}\n")

    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        mock.patch.object(sys, "__stdout__", printed),
        mock.patch.object(sys, "__stderr__", printed),
        mock.patch.object(logging.Logger, "handle", handle),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("always", UserWarning)
        with mock.patch.object(warnings, "showwarning", warned):
            yield


def _published(result: Any) -> Any:
    """Return what others see of a result: not what is kept for its owner.

    Of a record, the text too: equal values of other types, or in another order, can be told apart.
    """
    if not hasattr(result, "to_dict"):
        return result
    record = result.to_dict()
    try:
        return {**record, TEXT: json.dumps(record)}
    except (TypeError, ValueError):
        return record


def shown(one: Any, two: Any, where: str = "") -> str:
    """Tell where two results differ, as a path of names; empty if nowhere."""
    if equal(one, two):
        return ""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        if one.keys() != two.keys():
            return f"{where}the names"
        name = next(name for name in one if not equal(one[name], two[name]))
        return shown(one[name], two[name], f"{where}{name!s:.40}, ") or str(name)
    return where.removesuffix(", ") or "the result"


def equal(one: Any, two: Any) -> bool:
    """Equality of nested results; arrays entry by entry, NaN equal to NaN."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(equal(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(equal, one, two))
    try:
        return bool(np.array_equal(one, two, equal_nan=True))
    except TypeError:
        return bool(one == two)
