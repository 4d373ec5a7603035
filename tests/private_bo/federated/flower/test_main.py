"""The command: one sentence for wrong input."""

from __future__ import annotations

import pytest

from private_bo.federated.flower import __main__ as command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--stop", "one"], "stop is 'one'; it must be AGENT@ITERATION"),
        (["--stop", "9@1"], "stop is 9@1; it must be an agent below 4"),
        (["--agents", "0"], "agents is 0; it must be"),
        (["--patience", "0"], "patience is 0.0; it must be"),
        (["--rate", "0.1"], "rate is 0.1, which samples 0.4 of 4 agents"),
        (["--folder", "/"], "folder '/' cannot be made"),
        (["--seed", "-1"], "seed is -1; it must be"),
    ],
)
def test_wrong_input_is_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments) == 3
    error = capsys.readouterr().err
    assert error.startswith(sentence)
    assert error.count("\n") == 1
