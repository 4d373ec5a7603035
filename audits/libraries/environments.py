"""Interpreters: this one, or one of an environment of its own under ``out/libraries``."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

from dpaudit.base import files
from dpaudit.base.errors import InputError

PLACE = Path("out/libraries")
TABLE: dict[str, dict[str, list[str]]] = files.read_toml(
    Path(__file__).parent / "environments.toml", what="environments"
)


def program(environment: str) -> str:
    """What a reader types for ``dpaudit``."""
    return str(PLACE / environment / "bin/dpaudit") if environment else "dpaudit"


def python(environment: str) -> Path:
    """The interpreter of an environment, made if it is not there; InputError if that fails."""
    if not environment:
        return Path(sys.executable)
    if environment not in TABLE:
        raise InputError(f"environment {environment!r} is not in environments.toml; add it.")
    home, wanted = PLACE / environment, TABLE[environment]
    found, made = home / "bin/python", home / "made.json"
    if made.exists() and files.load_json(made, what="packages") == wanted:
        return found
    sys.stderr.write(f"making {home} …\n")
    venv.create(home, with_pip=True, clear=True)
    command = [str(found), "-m", "pip", "install", "-q", "-e", ".", *wanted["packages"]]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise InputError(f"{' '.join(command)} failed; its output says why.")
    files.write(made, json.dumps(wanted))
    return found
