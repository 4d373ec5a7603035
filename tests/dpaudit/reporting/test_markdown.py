"""Markdown: the suite of all renderers, and no foreign character means anything."""

import re

from markdown_it import MarkdownIt
from pages import Page
from renderer_conformance import PeopleConformance

from dpaudit.reporting import MarkdownRenderer


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
