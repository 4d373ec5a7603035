"""Foreign text."""

import html
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dpaudit.reporting.text import compact, escaped, markdown_table, visible


@settings(derandomize=True, max_examples=100)
@given(st.text())
def test_no_character_hides(text):
    shown = visible(text)
    kept = set(shown) - set("\n\t\u200c\u200d")
    assert not {unicodedata.category(character) for character in kept} & {"Cc", "Cf", "Cs", "Zl"}
    shown.encode()


@pytest.mark.parametrize("code", [0x202E, 0x2066, 0x200F, 0x0, 0x1B, 0xFEFF, 0xD800, 0xE000])
def test_hidden_characters_are_written_out(code):
    assert visible(f"a{chr(code)}b") == f"a⟨U+{code:04X}⟩b"


def test_scripts_stay_as_they_are():
    text = "大安區 Straße ραβ नमस्ते עברית 🙂"
    assert visible(text) == text


def test_compact():
    assert compact({"b": 1, "a": ["é"]}) == '{"a": ["é"], "b": 1}'
    assert compact([0] * 5000, limit=10) == "[0, 0, 0, … (14990 more characters)"


@pytest.mark.parametrize(
    "text", ["*a*", "[a](b)", "<b>", "# a", "1. a", "- a", "| a |", "`a`", "~~a~~"]
)
def test_escaped_text_means_nothing_to_markdown(text):
    page = MarkdownIt("gfm-like", {"linkify": False}).render(escaped(text))
    assert re.fullmatch(r"<p>[^<]*</p>\n", page)
    assert html.unescape(page[3:-5]) == text


def test_addresses_make_no_links():
    shown = escaped("http://a.de WWW.b.de c@d.de")
    assert html.unescape(shown) == "http://a.de WWW.b.de c@d.de"
    assert not re.search(r"://|www\.|@", shown, re.IGNORECASE)


def test_table():
    assert list(markdown_table(("a", "b"), [("1", "2")])) == [
        "| a | b |",
        "| --- | --- |",
        "| 1 | 2 |",
        "",
    ]
