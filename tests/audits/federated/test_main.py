"""The command of the federated attack."""

from __future__ import annotations

import pytest

from audits.federated.__main__ import main


def test_table(capsys):
    assert main(["--quick", "--runs", "3000", "--rounds", "6"]) == 0
    out = capsys.readouterr().out
    assert "δ = N^-1.1 = 0.02462" in out
    assert out.splitlines()[-1].split()[:2] == ["0.35", "1.0"]


@pytest.mark.parametrize("option", ["--runs", "--rounds"])
def test_wrong_input(option, capsys):
    assert main(["--quick", "--rounds", "4", option, "0"]) == 3
    error = capsys.readouterr().err
    assert option[2:] in error
    assert error.count("\n") == 1
