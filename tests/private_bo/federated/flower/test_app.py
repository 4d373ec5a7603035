"""The Flower app is a project file that names two components."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from private_bo.federated.flower import app


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_project_file_names_components_that_exist(tmp_path: Path) -> None:
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp

    folder = app.write_app(tmp_path / "app")
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    components = project["tool"]["flwr"]["app"]["components"]
    for name, kind in (("serverapp", ServerApp), ("clientapp", ClientApp)):
        module, _, attribute = components[name].partition(":")
        assert isinstance(getattr(import_module(module), attribute), kind)
    with pytest.raises(AttributeError, match="no attribute 'other_app'"):
        _ = app.other_app
