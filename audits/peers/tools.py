"""The tools: what they are, which rows they take, and their environments under ``out/peers``."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audits.peers.rows import ROWS, Row
from dpaudit.base import files
from dpaudit.base.errors import InputError

HERE = Path(__file__).parent
PLACE = Path("out/peers")
TAKES = ("all", "pure", "gaussian", "curve")


@dataclass(frozen=True)
class Tool:
    """A tool with one of its settings: a table of ``tools.toml``, which says what is what."""

    name: str
    version: str
    settings: str
    knows: str
    setting: str = ""
    rows: str = "all"
    adapter: str = ""
    environment: str = ""
    packages: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    url: str = ""
    commit: str = ""
    path: str = ""

    def __post_init__(self) -> None:
        if self.rows not in TAKES:
            raise InputError(f"rows = {self.rows!r} of {self.name!r}; give one of {TAKES}.")
        if self.adapter and not (HERE / "adapters" / f"{self.adapter}.py").exists():
            raise InputError(f"adapter {self.adapter!r} of {self.name!r} is no file in adapters.")

    @property
    def taken(self) -> list[Row]:
        """The rows that can be given to it."""
        if self.rows == "pure":
            return [row for row in ROWS if row.entry.claim.delta == 0]
        if self.rows == "gaussian":
            return [row for row in ROWS if row.gaussian]
        return [row for row in ROWS if self.rows == "all" or row.entry.curve]

    @property
    def source(self) -> Path:
        """Where its checkout is to be, or the part of it that is imported."""
        return PLACE / self.environment / "source" / self.path

    def prepare(self) -> Path:
        """The interpreter of its environment, made if it is not there; InputError if it fails."""
        if self.commit and not self.source.is_dir():
            raise InputError(f"{self.source} is missing; check {self.url} out at {self.commit}.")
        home = PLACE / self.environment / "venv"
        python, made = home / "bin/python", home / "made.json"
        if not made.exists() or files.load_json(made, what="packages") != list(self.packages):
            venv.create(home, with_pip=True)
            bare = [each for each in self.packages if each.split("=")[0] in self.bare]
            for options in [["--no-deps", *bare]] * bool(bare) + [
                [each for each in self.packages if each not in bare]
            ]:
                command = [str(python), "-m", "pip", "install", "-q", *options]
                if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
                    raise InputError(f"{' '.join(command)} failed; its output says why.")
            files.write(made, json.dumps(self.packages))
        return python


def read(tables: list[dict[str, Any]]) -> tuple[Tool, ...]:
    """Tools from tables; InputError if a table is wrong, or a name comes twice."""
    try:
        lists = [{k: tuple(v) if isinstance(v, list) else v for k, v in t.items()} for t in tables]
        tools = tuple(Tool(**table) for table in lists)
    except TypeError as error:
        raise InputError(f"a tool has a wrong or missing key: {error}.") from None
    if len({tool.name for tool in tools}) < len(tools):
        raise InputError("two tools have one name; give each its own.")
    return tools


TOOLS = read(files.read_toml(HERE / "tools.toml", what="tools")["tool"])
