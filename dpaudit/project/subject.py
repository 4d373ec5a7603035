"""Subject: an algorithm with a plan, which can be certified, run and audited.

Its data may be those of a file, which are read as its ending says.
"""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import files
from dpaudit.base.errors import InputError, PublicError, UnsupportedError
from dpaudit.base.fields import plain
from dpaudit.base.optional_import import optional_import
from dpaudit.certificate import Claim, Finding
from dpaudit.plan import Plan

if TYPE_CHECKING:
    from dpaudit.ledger import Ledger


@dataclass(frozen=True)
class AuditPair:
    """Two neighbouring data sets, as JSON values.

    Attributes:
        x: one of them.
        x_prime: the other.
        why: what makes this pair worth an attack.
    """

    x: Any
    x_prime: Any
    why: str = ""


@dataclass(frozen=True)
class Move:
    """A neighbour of some data.

    Attributes:
        data: the neighbour.
        recipe: how it was made, such as "row 3 removed"; never with a value.
        extreme: whether it holds values that the data do not hold, but that others could send. The
            code may refuse these, before anything is released.
        base: whose neighbour it is; None for the data that were given.
        hops: how many steps from neighbour to neighbour lead there, of which values, touches and
            groups may each differ by what is declared; ``math.inf`` for any number.
    """

    data: Any
    recipe: str
    extreme: bool = False
    base: Any = None
    hops: float = 1


@dataclass(frozen=True)
class RunResult:
    """What a run shows: to everybody, and to the owner of the data alone.

    Attributes:
        summary: named results, JSON values, that follow from releases and public facts.
        series: named curves over rounds, of which the same holds.
        owner: what the owner of the data alone may see, such as a regret against true means. It
            is published nowhere, and not shown.
    """

    summary: Mapping[str, Any]
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    owner: RunResult | None = field(default=None, repr=False)

    @property
    def for_owner(self) -> RunResult:
        """All that the owner of the data sees: what is published and what is not."""
        own = self.owner
        if own is None:
            return self
        return RunResult({**self.summary, **own.summary}, {**self.series, **own.series})

    def to_dict(self) -> dict[str, Any]:
        """A JSON record of what is published."""
        curves = {name: [float(y) for y in values] for name, values in self.series.items()}
        return {"summary": plain(self.summary), "series": curves}


class Subject(ABC):
    """Base of an algorithm: a frozen dataclass whose fields are its public configuration.

    Only :meth:`plan` must be written. Every field has a default, so that the algorithm can be
    certified with no more than a privacy parameter.
    """

    default_data: ClassVar[str] = "synthetic"
    """Name of the data that :meth:`load` gives where the user names none."""

    sees_rows: ClassVar[bool] = True
    """Whether its code holds rows, so that it is put to the test before it runs."""

    may_hold_nan: ClassVar[bool] = True
    """Whether a number of its data may be NaN, so that a rehearsal tries it."""

    @abstractmethod
    def plan(self) -> Plan:
        """Every invocation that the algorithm may make, from its fields alone."""

    def claim(self) -> Claim | None:
        """Return what its author states of it, if anything."""
        return None

    def findings(self) -> tuple[Finding, ...]:
        """Return what its author knows that a reader of the certificate must know."""
        return ()

    def not_covered(self) -> tuple[str, ...]:
        """Return what the claim leaves out, one sentence each."""
        return ()

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Neighbours that are likely to show a mistake, worst first."""
        return ()

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """``size`` independent transcripts of what an adversary sees on ``data``, shape (size, …).

        The default serves algorithms of one invocation: the release of its mechanism.

        Raises:
            UnsupportedError: if the plan has several invocations, or samples units.
        """
        invocations = self.plan().invocations
        if len(invocations) > 1:
            raise UnsupportedError(
                f"{type(self).__name__} has {len(invocations)} invocations but does not say "
                "how to audit them together; define audit_release."
            )
        if invocations[0].sampling is not None:
            raise UnsupportedError(
                f"{type(self).__name__} samples units but does not say how to audit this; "
                "define audit_release."
            )
        return invocations[0].mechanism.release_many(data, size, rng)

    def modelled(self) -> Iterable[tuple[Any, Any]]:
        """Data of :meth:`audit_release`, each with data of :meth:`run` that must release the same.

        A rehearsal compares the two. Without any, ``audit_release`` is a model that its author
        alone vouches for.
        """
        return ()

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """One row of :meth:`audit_release`, of all that a run released, in order.

        The default takes all numbers one after the other, or the only one as it is.
        """
        whole = [np.asarray(each) for each in releases]
        return whole[0] if len(whole) == 1 else np.concatenate([each.ravel() for each in whole])

    def neighbours(self, data: Any, rng: np.random.Generator) -> Iterable[Move] | None:
        """Neighbours of data under the relation of the plan, for a rehearsal of :meth:`run`.

        Args:
            data: what :meth:`load` returned; not to be changed.
            rng: chooses among many.

        Returns:
            Those worth a try, or None: they are then derived from the container that the data are.
        """
        return None

    def load(self, source: str, rng: np.random.Generator) -> Any:
        """The data of that name or path, for :meth:`run`.

        Raises:
            InputError: if there are none.
        """
        raise UnsupportedError(f"{type(self).__name__} has no data {source!r} to run on.")

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Run on private data, which leave only through the ledger.

        Args:
            data: what :meth:`load` returned.
            ledger: a ledger of :meth:`plan`.
            rng: source of the randomness that has no privacy role.
        """
        raise UnsupportedError(f"{type(self).__name__} cannot be run; define run.")


LARGEST = 10**9


def source_of(subject: Subject, data: str | None) -> str:
    """Return the name or path of the data that a subject loads: its default where none is given.

    Raises:
        InputError: if a path by its ending is no file: a subject whose ``load`` looks at no file
            would run on other data than its user named.
    """
    if data is None:
        return subject.default_data
    if Path(data).suffix.lower() in _READERS and not Path(data).exists():
        raise InputError(f"--data {data!r:.80} does not exist; give the path of a file.")
    return data


def read_data(path: str) -> Any:
    """JSON as it is, ``.npy`` as an array, Parquet as a frame of pandas, CSV as a list of rows.

    Rows are mappings by the words of the first line; where it has a number, lists.

    Raises:
        PublicError: if there is no such file, or it is a folder, empty or of another kind.
        InputError: if it cannot be read.
        UnsupportedError: if pandas is missing.
    """
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None and not Path(path).is_dir():
        raise PublicError(f"--data is {path!r:.80}; it must end with {', '.join(_READERS)}.")
    try:
        with files.opened(path, what="data") as file:
            empty = not file.read(1)
    except InputError as error:
        raise PublicError(str(error)) from None
    if empty:
        raise PublicError(f"data {files.shown(path)} cannot be read: the file is empty.")
    assert reader is not None
    try:
        return reader(path)
    except ImportError:
        raise UnsupportedError("a Parquet file needs pandas and pyarrow; install both.") from None
    except InputError:  # which names the file
        raise
    except (ValueError, OSError, EOFError, csv.Error) as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"data {files.shown(path)} cannot be read: {why:.200}.") from None


def _csv(path: str) -> Any:
    reader = csv.reader(files.read_text(path, what="data", limit=LARGEST).splitlines())
    lines = [(reader.line_num, [_cell(cell) for cell in row]) for row in reader if row]
    head, *rows = [row for _, row in lines] or [[]]
    for number, row in lines:
        if len(row) != len(head):
            raise ValueError(
                f"line {number} has {len(row)} cells, but the first line has {len(head)}"
            )
    if not all(isinstance(cell, str) for cell in head):
        return [head, *rows]
    return [dict(zip(head, row, strict=True)) for row in rows]


def _cell(text: str) -> Any:
    try:
        number = json.loads(text)
    except ValueError:
        return text
    return number if isinstance(number, int | float) else text


_READERS: dict[str, Callable[[str], Any]] = {
    ".json": lambda path: files.load_json(path, what="data", limit=LARGEST),
    ".csv": _csv,
    ".npy": lambda path: np.load(path, allow_pickle=False),
    ".parquet": lambda path: optional_import("", "pandas", what="a Parquet file").read_parquet(
        path
    ),
}
