"""The rows of the catalogue of libraries: pipelines, what is stated of each, and how to ask.

They stand in ``rows.toml``. A pipeline is a short function ``f(rows)`` or ``f(rows, rng)`` in a
file under ``pipelines``, which imports the library and nothing of this project: anybody may run it.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audits.result_table import Environment, Record, answer, processor_time
from dpaudit.base import files
from dpaudit.base.errors import InputError

HERE = Path(__file__).parent.relative_to(Path(__file__).parents[2])
"""As it is named from the root of the repository, where all commands run."""
STATED = ("docstring", "charged", "map", "open", "home-made")
"""Who says the claim: the library's documentation, what it charges, its map (of OpenDP); *open*
where its documentation does not say which neighbours it means; *home-made* where the author of the
pipeline says it, and no library."""
RELATIONS = ("replace-one", "add-remove")
PLACE = Path("out/libraries")
WORKER = "audits.libraries.worker"
_ENVIRONMENTS: dict[str, dict[str, list[str]]] = files.read_toml(
    Path(__file__).parent / "environments.toml", what="environments"
)


def environment(name: str) -> Environment:
    """An environment of ``environments.toml``, with this project in it; this one where empty."""
    if not name:
        return Environment()
    if name not in _ENVIRONMENTS:
        raise InputError(f"environment {name!r} is not in environments.toml; add it.")
    return Environment(PLACE / name, tuple(_ENVIRONMENTS[name]["packages"]), project=True)


def program(name: str) -> str:
    """What a reader types for ``dpaudit`` in an environment."""
    return str(PLACE / name / "bin/dpaudit") if name else "dpaudit"


@dataclass(frozen=True)
class Attack:
    """Two neighbours that ``dpaudit audit`` tells apart, and with how many runs a side.

    Attributes:
        x: data of the pipeline.
        x_prime: its neighbour.
        runs: on each side.
    """

    x: Any
    x_prime: Any
    runs: int = 1_000

    def arguments(self, target: str, claim: str, relation: str) -> list[str]:
        """Those of ``dpaudit audit``."""
        pair = [json.dumps(each) for each in (self.x, self.x_prime)]
        what = ["--claim", claim, "--relation", relation, "--runs", str(self.runs)]
        return ["audit", target, "--pair", *pair, *what, "--seed", "0"]


@dataclass(frozen=True)
class Published:
    """A violation that somebody has published.

    Attributes:
        name: what is wrong, in a few words; rows of other versions have the same.
        source: who says it, and where.
        mended: the version that mends it; empty where none does.
    """

    name: str
    source: str
    mended: str = ""


@dataclass(frozen=True)
class Row:
    """One pipeline.

    Attributes:
        name: of the row; no two rows have one.
        library: as it is named when it is installed.
        offers: what of the library is used.
        kind: mean, sum, count, …: what it computes.
        pipeline: ``FOLDER/FILE.py:function`` under ``pipelines``.
        claim: as ``--claim`` takes it.
        stated: who says so; one of ``STATED``.
        queries: how many numbers with noise of their own it releases, at least.
        relation: which data sets are neighbours.
        data: file under ``data`` that it is run and rehearsed on; none for an attack alone.
        plan: file under ``plans`` with the plan that it must match, in place of claim and relation;
            where noise is home-made, it says the sensitivity.
        rehearsed: whether it runs on neighbours too; not where each run starts an engine.
        attack: two neighbours that are told apart.
        right: whether the claim is known to hold, so that whatever accuses it is a false alarm.
        documented: what the documentation says of a limit, and where; empty if nothing.
        published: a violation that it shows, or would show if it were not mended.
        environment: of ``environments.toml``; this one where empty.
        note: what a reader must know, in a sentence.
        harmless: why what a rehearsal shows here is no violation, in a sentence; empty if it is one
            or nothing is shown.
    """

    name: str
    library: str
    offers: str
    kind: str
    pipeline: str
    claim: str = "epsilon = 1"
    stated: str = "docstring"
    queries: int = 1
    relation: str = "replace-one"
    data: str = "people.csv"
    plan: str = ""
    rehearsed: bool = True
    attack: Attack | None = None
    right: bool = False
    documented: str = ""
    published: Published | None = None
    environment: str = ""
    note: str = ""
    harmless: str = ""

    def __post_init__(self) -> None:
        file = self.pipeline.partition(":")[0]
        named = [f"pipelines/{file}"]
        named += [f"data/{self.data}"] * bool(self.data) + [f"plans/{self.plan}"] * bool(self.plan)
        missing = [name for name in named if not (Path(__file__).parent / name).is_file()]
        if missing:
            raise InputError(f"row {self.name!r} names {missing[0]}, which is no file; write it.")
        for field, known in (("stated", STATED), ("relation", RELATIONS)):
            if getattr(self, field) not in known:
                raise InputError(
                    f"{field} = {getattr(self, field)!r} of row {self.name!r}; it must be one of "
                    f"{', '.join(known)}."
                )
        if not self.data and self.attack is None:
            raise InputError(f"row {self.name!r} is neither run nor attacked; give data or attack.")

    @property
    def target(self) -> str:
        """File and function, as a command names it."""
        return f"{HERE / 'pipelines' / self.pipeline}"

    @property
    def observing(self) -> dict[str, Any]:
        """What ``observe_target`` is called with, beside the name."""
        given: dict[str, Any] = {
            "data": str(HERE / "data" / self.data),
            "rehearsed": self.rehearsed,
        }
        if self.plan:
            given["plan"] = str(HERE / "plans" / self.plan)
        else:
            given |= {"relation": self.relation, "claim": self.claim}
        return given | {"seed": 0}

    def commands(self) -> list[list[str]]:
        """Arguments of the commands that replay the row."""
        found = []
        if self.data:
            given = self.observing | ({"rehearse": ""} if self.rehearsed else {})
            options = {k: v for k, v in given.items() if k != "rehearsed"}
            words = [w for k, v in options.items() for w in (f"--{k}", str(v)) if w]
            found.append(["observe", self.target, *words])
        if self.attack is not None:
            found.append(self.attack.arguments(self.target, self.claim, self.relation))
        return found

    @property
    def asked(self) -> Record:
        """What a record of it repeats."""
        return {"commands": self.commands()}

    @property
    def replay(self) -> list[str]:
        """The commands as a reader types them at the root of the repository."""
        return [f"{program(self.environment)} {shlex.join(each)}" for each in self.commands()]

    def measured(self) -> Record:
        """What its commands find; what stopped them under ``error``."""
        before, found = processor_time(), Record()
        try:
            for command in self.commands():
                seen = self._observed() if command[0] == "observe" else self._attacked(command)
                found[command[0]], version = seen, seen.pop("version", None)
                found.setdefault("version", version or self._version())
        except InputError as error:
            found["error"] = str(error)
        return found | {"seconds": round(processor_time() - before, 1)}

    def _observed(self) -> Record:
        task = {"kind": "observe", "name": self.target, "library": self.library}
        return environment(self.environment).ask(WORKER, task | {"options": self.observing})

    def _attacked(self, command: list[str]) -> Record:
        python = str(environment(self.environment).python())
        made = answer([python, "-m", "dpaudit", *command, "--json"])
        kept = ("verdict", "epsilon_lower", "delta", "confidence", "runs", "event")
        return {key: str(made[key]) if made[key] == math.inf else made[key] for key in kept}

    def _version(self) -> str:
        task = {"kind": "version", "library": self.library}
        return str(environment(self.environment).ask(WORKER, task)["version"])


def unique(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows; InputError if two have one name."""
    found: dict[str, Row] = {}
    for row in rows:
        if found.setdefault(row.name, row) is not row:
            raise InputError(f"two rows are named {row.name!r}; give each a name of its own.")
    return tuple(found.values())


def read(tables: Record) -> tuple[Row, ...]:
    """Rows of ``rows.toml``, in its order: what a row does not say, its library says.

    Raises:
        InputError: if a field is wrong, or two rows have one name.
    """
    given = tables["given"]
    return unique(
        _row(library | given.get(own.pop("given", ""), {}) | own)
        for library, rows in ((each, each.pop("rows")) for each in tables["library"])
        for own in rows
    )


def _row(fields: Record) -> Row:
    prefix, folder = fields.pop("prefix"), fields.pop("folder")
    fields |= {"name": f"{prefix}: {fields['name']}", "pipeline": folder + fields["pipeline"]}
    if attack := fields.get("attack"):
        fields["attack"] = Attack(*map(json.loads, attack[:2]), *attack[2:])
    if published := fields.get("published"):
        fields["published"] = Published(*published)
    return Row(**fields)


ROWS = read(files.read_toml(Path(__file__).parent / "rows.toml", what="rows"))
