"""The command that refutes and replays."""

from __future__ import annotations

from pathlib import Path

import pytest

from audits.outsourced.__main__ import main
from dpaudit import Verdict
from dpaudit.certificate import load_certificate

SHIPPED = Path(__file__).parents[3] / "reports" / "outsourced" / "curator-taipei-epsilon-0.1.json"


def test_from_a_file(tmp_path, capsys):
    folder = str(tmp_path)
    refuted = main(["refute", "--problem", "taipei", "--curator", "Curator", "--folder", folder])
    assert refuted == 1
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    certificate = load_certificate(files[0])
    assert certificate.verdict is Verdict.REFUTED
    assert certificate.audits[1].pair["row"] == 0
    assert main(["replay", str(files[0])]) == 0
    assert "DIFFERENT" not in capsys.readouterr().out


def test_missing_file(tmp_path, capsys):
    assert main(["replay", str(tmp_path / "none.json")]) == 3
    assert "none.json" in capsys.readouterr().err


@pytest.mark.skipif(not SHIPPED.exists(), reason="the reports are in the repository only")
def test_the_published_counterexample(capsys):
    assert main(["replay", str(SHIPPED)]) == 0
    assert capsys.readouterr().out.count("same: refuted") == 4
