"""The table of defects."""

import pytest
import torch

from audits.opacus import __main__ as command


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def test_the_command_prints_a_row_a_check(capsys):
    assert command.main(["--only", "of the mean"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "not-the-declared-noise" in lines[2]
    assert not any("UNEXPECTED" in line for line in lines)
