"""Commands of dpaudit as a user types them."""

from __future__ import annotations

import warnings

from dpaudit.cli.main import _outcome


def typed(capsys, *words: object) -> tuple[int, str, str]:
    """Run a command and return exit code, stdout and stderr; it has no traceback, nor a fault."""
    with warnings.catch_warnings():
        code = _outcome([str(word) for word in words])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert "fault of dpaudit" not in captured.err
    return code, captured.out, captured.err
