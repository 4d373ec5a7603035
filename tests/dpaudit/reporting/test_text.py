"""Texts of a report: what is hostile is shown, and Markdown and environment are told."""

import html
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import DictLoader, UndefinedError
from markdown_it import MarkdownIt
from pages import Page
from renderer_conformance import PeopleConformance

from dpaudit.reporting import MarkdownRenderer
from dpaudit.reporting.text import (
    compact,
    escaped,
    markdown_environment,
    markdown_table,
    strict_environment,
    visible,
)

# Foreign text


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


# Markdown: the suite of all renderers, and no foreign character means anything


class TestMarkdown(PeopleConformance):
    renderer = MarkdownRenderer

    def read(self, rendered):
        return Page(MarkdownIt("gfm-like", {"linkify": False}).render(rendered)).text

    def test_no_foreign_character_means_anything(self, certificates):
        text = MarkdownRenderer().render(certificates["hostile"])
        assert "<" not in text
        assert "://" not in text
        assert not re.search(r"(?<!\\)\$", text)
        page = Page(MarkdownIt("gfm-like", {"linkify": False}).render(text))
        plain_tags = {"h1", "h2", "h3", "p", "ul", "li", "strong", "em", "code"}
        tags = {tag for tag, _ in page.tags}
        assert tags <= plain_tags | {"table", "thead", "tbody", "tr", "th", "td"}
        assert sum(tag == "code" for tag, _ in page.tags) == 1
        assert sum(tag == "em" for tag, _ in page.tags) == 1

    def test_commands_can_be_copied(self, certificates):
        text = MarkdownRenderer().render(certificates["certified"])
        assert "`dpaudit verify certificate.json`" in text


# Templates that escape everything and miss nothing in silence


def rendered(template, **given):
    loader = DictLoader({"a": template})
    return strict_environment(loader).get_template("a").render(**given)


def test_text_is_escaped():
    assert rendered("<p>{{ x }}</p>", x="<b>&") == "<p>&lt;b&gt;&amp;</p>"


def test_what_is_missing_is_an_error():
    with pytest.raises(UndefinedError):
        rendered("{{ x }}")


def test_hidden_characters_can_be_shown():
    assert rendered("{{ x | visible }}", x="a\u202eb") == "a⟨U+202E⟩b"


def test_the_first_loader_that_has_a_template_gives_it():
    made = strict_environment(DictLoader({"a": "one"}), DictLoader({"a": "two", "b": "three"}))
    assert made.get_template("a").render() == "one"
    assert made.get_template("b").render() == "three"


def test_in_markdown_text_is_one_line_that_means_nothing():
    made = markdown_environment(
        DictLoader({"a": "# {{ x }}{% macro m() %}*b*{% endmacro %} {{ m() }}"})
    )
    shown = made.get_template("a").render(x="*b*\n<i>")
    assert shown == r"# \*b\* &lt;i&gt; *b*"
