"""A declared release as a subject: certified, run and checked as any other, and never rehearsed.

Release files become subjects here. What an author's code would do with data is done by the tables
room: ``load`` computes whole numbers, ``run`` releases them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import plain
from dpaudit.base.validate import shown
from dpaudit.certificate import Claim
from dpaudit.plan import Plan
from dpaudit.project.subject import RunResult, Subject
from dpaudit.tables.measures import Measured
from dpaudit.tables.release import Release, Result
from dpaudit.tables.release_file import read_release
from dpaudit.tables.synthetic import made_up

if TYPE_CHECKING:
    from dpaudit.ledger import Ledger

SYNTHETIC = "synthetic "
"""How the name of data begins that are so many made-up rows."""
_MOST_ROWS = 10_000_000


@dataclass(frozen=True)
class ReleaseResult(RunResult):
    """What a release shows, with a table for each query.

    Attributes:
        results: of each query.
    """

    results: tuple[Result, ...] = field(default=(), kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """The record of a run, with the tables."""
        return super().to_dict() | {"results": [plain(each.to_dict()) for each in self.results]}


@dataclass(frozen=True)
class DeclaredRelease(Subject):
    """A release file.

    Attributes:
        release: what it declares.
        cluster: address of a cluster that works off the rows; they are worked off here without it.
        seeded: whether a seed decides which rows of a unit count, as of an experiment; else a fresh
            key does, which is never written.
    """

    sees_rows: ClassVar[bool] = False
    release: Release
    cluster: str | None = None
    seeded: bool = False

    @classmethod
    def read(cls, content: Mapping[str, Any], folder: Path) -> DeclaredRelease:
        """The subject of the tables of a file; paths in it are seen from its folder.

        Raises:
            InputError: naming the first field that is wrong.
        """
        return cls(read_release(content, folder))

    @property
    def default_data(self) -> str:  # type: ignore[override]
        """The source that the file names."""
        return self.release.source.name

    def plan(self) -> Plan:
        """Every query, with the least noise for the claim."""
        return self.release.plan()

    def claim(self) -> Claim | None:
        """What the file states."""
        return self.release.claim

    def load(self, source: str, rng: np.random.Generator) -> Measured:
        """The whole numbers of all queries.

        Args:
            source: that of the file, or ``synthetic N`` for as many rows that are made up.
            rng: of made-up rows.

        Raises:
            InputError: if the table cannot be read as declared.
        """
        if source == self.default_data:
            return self.release.load(rng if self.seeded else None, self.cluster)
        made = re.fullmatch(SYNTHETIC + r"(\d{1,9})", source)
        if made is None:
            raise InputError(f"data is {shown(source)}; a release reads its own source.")
        rows = int(made[1])
        if not 1 <= rows <= _MOST_ROWS:
            raise InputError(f"synthetic is {rows}; it must be from 1 to {_MOST_ROWS} rows.")
        with tempfile.TemporaryDirectory(prefix="dpaudit-") as folder:
            table = made_up(self.release.layout, rows, rng, Path(folder))
            return replace(self.release, source=table).load(rng)

    def run(self, data: Measured, ledger: Ledger, rng: np.random.Generator) -> ReleaseResult:
        """Release every query."""
        results = self.release.run(data, ledger)
        owner = RunResult(self.release.for_owner(data))
        return ReleaseResult({"queries": len(results)}, owner=owner, results=results)
