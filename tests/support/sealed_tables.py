"""Small tables of sealed subjects: opened, asked, and what would be released before noise."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.auditing.replaying.recording import RecordingNoise, Step
from dpaudit.ledger import Ledger
from dpaudit.plan import Plan
from dpaudit.sealed.handles import Rows, SealedLedger, code_of
from dpaudit.sealed.operations import Operations
from dpaudit.sealed.per_unit import UnitFunctions
from dpaudit.sealed.sealable import require_sealable
from dpaudit.sealed.store import ReadTable, opened, tables_to_try
from dpaudit.sealed.sums import Side, trial_of
from dpaudit.sealed.workers import OwnFunctions

SECRET = bytes(range(32))
WARDS = ["A1", "Ünï", "b'x"]
COLUMNS: dict[str, dict[str, Any]] = {
    "ward": {"type": "text", "values": WARDS},
    "town": {"type": "text"},
    "age": {"type": "integer", "range": [-5, 110]},
    "cost": {"type": "number", "range": [-50, 3000], "step": 0.01},
    "huge": {"type": "integer", "range": [-(2**53), 2**53]},
    "sick": {"type": "boolean"},
}
CARRIERS = {
    name: (each["type"], Fraction(str(each.get("step", 1)))) for name, each in COLUMNS.items()
}
"""Type and step of each column, as :func:`brute_tables.row_hash` takes them."""
Texts = Mapping[str, str]
"""A row: the texts of its fields; those that are missing are empty."""


_FIELDS: dict[str, list[str]] = {
    "ward": [*WARDS, "unlisted", ""],
    "town": ["Ulm", "ulm ", "東京", "'", "nan", ""],
    "age": ["-5", "0", "17", "18", "65", "110", "111", "-1e300", "3.5", "nan", ""],
    "cost": ["-50", "0.01", "12.344", "3000", "1e400", "-inf", "NaN", "-7.126", ""],
    "huge": ["0", "9007199254740992", "-9007199254740991", "1e18", "-4", ""],
    "sick": ["true", "false", "maybe", ""],
}
UNITS = ["p1", "Ü 2", "o'brien", "p1 ", "", "6", "\N{ZERO WIDTH SPACE}"]


def random_row(rng: random.Random, unit: str) -> Texts:
    """A row of a unit."""
    return {"who": unit} | {name: rng.choice(texts) for name, texts in _FIELDS.items()}


def random_table(rng: random.Random, largest: int = 50) -> list[Texts]:
    """Rows of a few units, some with many, some twice, in any order."""
    rows: list[Texts] = []
    for unit in rng.sample(UNITS, rng.randint(1, len(UNITS))):
        size = rng.choice([0, 1, 1, 2, 5, largest])
        own: list[Texts] = []
        while len(own) < size:
            again = own and rng.random() < 0.3
            own.append(rng.choice(own) if again else random_row(rng, unit))
        rows += own
    rng.shuffle(rows)
    return rows


@dataclass
class Asked:
    """A table that is held, and the ledger that releases of it.

    Attributes:
        data: the handle of all rows.
        ledger: the author's.
        operations: of the custodian.
        noise: keeps what was about to be released.
    """

    data: Rows
    ledger: SealedLedger
    operations: Operations
    noise: Any

    @property
    def steps(self) -> list[Step]:
        """What was released, before noise too."""
        return self.noise.steps

    def answer(self, op: str, **request: Any) -> dict[str, Any]:
        """What is said to a request."""
        return self.operations.answer({"op": op} | request)


def write(path: Path, rows: Sequence[Texts], columns: Mapping[str, Any] = COLUMNS) -> None:
    """A CSV file of rows; ``who`` says whose they are."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, ["who", *columns], restval="")
        lines.writeheader()
        lines.writerows(rows)


@contextmanager
def held(
    folder: Path,
    rows: Sequence[Texts],
    plan: Plan,
    *,
    columns: Mapping[str, Any] = COLUMNS,
    secret: bytes = SECRET,
    noise: Any = None,
    functions: Sequence[Callable[..., Any]] = (),
    say: Callable[[str], None] = print,
    **more: Any,
) -> Iterator[Asked]:
    """A table of these rows, as a custodian holds it."""
    write(folder / "rows.csv", rows, columns)
    record = {"source": "rows.csv", "unit": "who", "columns": dict(columns)} | more
    with ExitStack() as stack:
        table = ReadTable.of(record, folder)
        require_sealable(plan, table)
        tried, stored = tables_to_try(table, plan, stack), opened(table, secret, stack)
        noise = noise or RecordingNoise(np.random.default_rng(1))
        real = Ledger(plan, noise=noise)
        trials = [Side(each, trial_of(real)) for each in tried]
        own = _per_unit(functions, secret, say)
        operations = Operations(plan, table, trials, Side(stored, real), functions=own)

        def ask(request: Mapping[str, Any]) -> dict[str, Any]:
            said = operations.answer(json.loads(json.dumps(request, allow_nan=False)))
            return json.loads(json.dumps(said, allow_nan=False))

        yield Asked(Rows(ask, 0), SealedLedger(plan, ask), operations, noise)


def _per_unit(
    functions: Sequence[Callable[..., Any]], secret: bytes, say: Callable[[str], None]
) -> UnitFunctions | None:
    """Functions of the author, run in this process."""
    own = {code_of(each): each for each in functions}
    return UnitFunctions(OwnFunctions(own), own, secret, say) if own else None
