"""What tests of the command line share."""

from functools import partial
from pathlib import Path

import pytest
from typed_commands import typed

SUPPORT = Path(__file__).parents[2] / "support"


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder, on 80 columns; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.syspath_prepend(str(SUPPORT))  # there are subjects, too
    return partial(typed, capsys)
