"""Commands of dpaudit as a user types them."""

from __future__ import annotations

import json
import warnings
from typing import Any, NamedTuple

from dpaudit.cli.main import _outcome

LONGEST = 700
"""Characters of a sentence, however long what was given is."""


class Answer(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """The answer on one line, as if none had been folded."""
        return " ".join(self.out.split())

    def says(self, code: int, *texts: str) -> None:
        """It ends like that, and each text stands in its answer, however lines are folded."""
        assert self.code == code, self
        for text in texts:
            assert text in self.text, self

    def record(self, code: int) -> Any:
        """It ends like that; what it answers in JSON."""
        assert self.code == code, self
        return json.loads(self.out)

    def refuses(self, *texts: str, code: int = 3) -> None:
        """It answers nothing, and says why in one sentence, not too long, with each text."""
        assert (self.code, self.out, self.err.count("\n")) == (code, "", 1), self
        assert self.err.startswith("dpaudit: "), self
        assert len(self.err) <= LONGEST, self
        for text in texts:
            assert text in self.err, self


def typed(capsys, *words: object) -> Answer:
    """Run a command; it has no traceback, nor a fault."""
    with warnings.catch_warnings():
        code = _outcome([str(word) for word in words])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert "fault of dpaudit" not in captured.err
    return Answer(code, captured.out, captured.err)
