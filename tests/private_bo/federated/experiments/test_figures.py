"""The tables and the command of the federated experiments."""

import json
from pathlib import Path

import numpy as np
import pytest

from private_bo.federated import DPFTSDE, PlainTS
from private_bo.federated.experiments import figures
from private_bo.federated.experiments.figures import PLAIN, document, main

SMALL = DPFTSDE(agents=6, rate=0.5, features=10, rounds=3, initial=3)


def test_the_command_prints_a_table_and_writes_only_where_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    alike = {f: getattr(SMALL, f) for f in ("agents", "features", "rounds", "initial")}
    cells = {PLAIN: PlainTS(**alike), "DP-FTS-DE": SMALL}
    monkeypatch.setattr(figures, "panels", lambda *_: {"equal certified ε": cells})
    few = ["--trials", "2", "--workers", "1"]
    assert figures.main(["equal", *few]) == 0
    text = capsys.readouterr().out
    assert "| TS | – | – |" in text
    assert f"| DP-FTS-DE | {SMALL.published_loss:.2f} |" in text
    assert not list(tmp_path.iterdir())
    assert figures.main(["equal", *few, "-o", "out"]) == 0
    assert capsys.readouterr().out == text  # the same seed
    written = sorted(path.suffix for path in (tmp_path / "out").iterdir())
    assert written == [".json", ".md"]
    record = json.loads((tmp_path / "out" / "federated_equal_synthetic.json").read_text())
    assert np.shape(record["equal certified ε"][PLAIN]) == (2, 4)


def test_wrong_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["figure2", "--trials", "1", "--rounds", "1"]) == 3
    assert "trials is 1" in capsys.readouterr().err
    monkeypatch.setenv("DPAUDIT_DATA", "/nowhere")
    assert main(["figure3"]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_differences_are_paired() -> None:
    cells = {"first": SMALL, "second": PlainTS()}
    curves = {SMALL: np.array([[1.0, 0.5], [3.0, 2.0]]), PlainTS(): np.array([[1.0, 1], [3, 2.5]])}
    text = document("x", {"p": cells}, curves, (("first", "second"), ("first", "absent")))
    assert "| first against second | 0.5000 ± 0.0000 | 0.5000 ± 0.0000 |" in text
    assert "absent" not in text


def test_the_mean_over_rounds_is_shown() -> None:
    curves = {PlainTS(): np.array([[9.0, 1.0, 0.5], [9.0, 3.0, 2.5]])}  # means .75 and 2.75
    text = document("x", {"p": {"TS": PlainTS()}}, curves, ())
    assert "| t = 1 | t = 2 | mean of t = 1…2 |" in text
    assert "| TS | – | – | 2.0000 ± 1.0000 | 1.5000 ± 1.0000 | 1.7500 ± 1.0000 |" in text
