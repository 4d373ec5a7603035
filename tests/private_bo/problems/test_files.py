"""Where data sets are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit.base.errors import InputError
from private_bo.problems import (
    light_sensors,
    stocks,
)


@pytest.mark.parametrize("loader", [light_sensors, stocks])
def test_missing_files_are_named(
    loader: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="nowhere"):
        loader(tmp_path / "nowhere")
    monkeypatch.setenv("DPAUDIT_DATA", str(tmp_path))
    with pytest.raises(InputError, match="put the data there"):
        loader()
    monkeypatch.delenv("DPAUDIT_DATA")
    with pytest.raises(InputError, match="DPAUDIT_DATA is not set"):
        loader()
