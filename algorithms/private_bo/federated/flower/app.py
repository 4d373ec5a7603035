"""The Flower app: a project file that names the two components below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpaudit.base import files

_PROJECT = f"""\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "dp-fts-de"
version = "0.1.0"
description = "DP-FTS-DE: a server that releases through a ledger, and agents."
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "dpaudit"

[tool.flwr.app.components]
serverapp = "{__name__}:server_app"
clientapp = "{__name__}:client_app"

[tool.flwr.app.config]
folder = ""
"""


def write_app(folder: Path) -> Path:
    """Write the app into a new folder, and return the folder.

    Args:
        folder: its last part must be a name that Flower allows: letters, digits and hyphens.
    """
    folder.mkdir()
    files.write(folder / "pyproject.toml", _PROJECT)
    return folder


def __getattr__(name: str) -> Any:
    """``server_app`` or ``client_app``, made when Flower asks for it: flwr is an extra."""
    if name == "server_app":
        from flwr.serverapp import ServerApp

        from private_bo.federated.flower.server import serve

        server_app = ServerApp()
        server_app.main()(serve)
        return server_app
    if name == "client_app":
        from flwr.clientapp import ClientApp

        from private_bo.federated.flower.agent import answer, finish

        client_app = ClientApp()
        client_app.query()(answer)
        client_app.query("finish")(finish)
        return client_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
