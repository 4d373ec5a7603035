"""Foreign text in SARIF messages."""

import re

import pytest
from foreign_texts import NASTY

from dpaudit.reporting.machine.sarif.text import message


class TestMessages:
    @pytest.mark.parametrize("text", NASTY)
    def test_nothing_means_anything(self, text):
        escaped = message(text)["text"]
        assert not re.search(r"(?<!\\)(?:\\\\)*\[", escaped)
        assert not re.search(r"(?<!\{)(?:\{\{)*\{\d", escaped.replace("{{", ""))
        unescaped = re.sub(r"\\([\[\]\\])|([{}])\2", lambda m: m[1] or m[2], escaped)
        assert unescaped == text

    def test_empty(self):
        assert message("") == {"text": "–"}
