"""The Flower app: three small files that name what is installed already."""

from __future__ import annotations

from pathlib import Path

from dpaudit import files

__all__ = ["write_app"]

_PROJECT = """\
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
serverapp = "dp_fts_de_server:app"
clientapp = "dp_fts_de_agent:app"

[tool.flwr.app.config]
folder = ""
"""

_SERVER = """\
from flwr.serverapp import ServerApp
from private_bo.federated.flower.server import serve

app = ServerApp()
app.main()(serve)
"""

_AGENT = """\
from flwr.clientapp import ClientApp
from private_bo.federated.flower.agent import answer, finish

app = ClientApp()
app.query()(answer)
app.query("finish")(finish)
"""


def write_app(folder: Path) -> Path:
    """Write the app into a new folder.

    Args:
        folder: its last part must be a name that Flower allows: letters, digits and hyphens.

    Returns:
        The folder.
    """
    folder.mkdir()
    contents = {
        "pyproject.toml": _PROJECT,
        "dp_fts_de_server.py": _SERVER,
        "dp_fts_de_agent.py": _AGENT,
    }
    for name, content in contents.items():
        files.write(folder / name, content)
    return folder
