"""One conformance suite that every renderer inherits, and what is particular to each."""

import json
import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from markdown_it import MarkdownIt

from dpaudit.certificate import Certificate, load_certificate
from dpaudit.errors import InputError
from dpaudit.reporting import (
    HtmlRenderer,
    JsonRenderer,
    MarkdownRenderer,
    Renderer,
    render_to,
    renderer_for,
    suffixes,
)
from dpaudit.reporting._text import down, plain, up, visible


def _squeezed(text):
    return " ".join(text.split())


class Page(HTMLParser):
    """What a browser would see: tags, attributes and visible text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self._inside = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_endtag(self, tag):
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data):
        if "style" not in self._inside and "svg" not in self._inside:
            self.texts.append(data)

    @property
    def text(self):
        return _squeezed(" ".join(self.texts))


class RendererConformance:
    """A subclass gives the renderer and how a reader sees its output."""

    renderer: type[Renderer]

    def read(self, rendered):
        """The text that a reader sees, with single spaces."""
        raise NotImplementedError

    def number(self, value, shown):
        return shown

    def test_every_fact_appears(self, certificate):
        text = self.read(self.renderer().render(certificate)).casefold()
        missing = [fact for fact in self.facts(certificate) if fact.casefold() not in text]
        assert missing == []

    def facts(self, certificate):
        record = certificate.to_dict()
        yield self.seen(certificate.subject.name)
        yield str(certificate.verdict)
        yield from (record["digest"], record["plan_hash"])
        if certificate.subject.code_hash:
            yield certificate.subject.code_hash
        yield self.seen(certificate.subject.location)
        yield from self.numbers_of(certificate)
        for invocation in certificate.plan.invocations:
            yield from (self.seen(invocation.at), invocation.mechanism.kind)
        yield from (str(certificate.plan.unit), str(certificate.plan.relation))
        for audit in certificate.audits:
            yield from map(self.seen, (audit.method, audit.event or "", audit.power))
            yield from (audit.verdict, str(audit.runs))
        for finding in certificate.findings:
            yield from map(self.seen, (finding.rule, finding.message, finding.remedy, finding.at))
            yield str(finding.severity)
        yield from map(self.seen, certificate.not_covered)
        for name, version in certificate.versions.items():
            yield from (self.seen(name), self.seen(version))
        run = certificate.run or {"summary": {}, "series": {}}
        for name in (*run["summary"], *run["series"], *certificate.subject.configuration):
            yield self.seen(name)

    def numbers_of(self, certificate):
        claim, proved = certificate.claim, certificate.guarantee
        if claim is not None:
            yield self.number(claim.epsilon, plain(claim.epsilon))
            yield self.seen(claim.source)
        if proved is not None:
            yield self.number(proved.epsilon, up(proved.epsilon))
            yield str(proved.accountant)
            yield from proved.compared
        for audit in certificate.audits:
            yield self.number(audit.epsilon_lower, down(audit.epsilon_lower))

    def seen(self, text):
        """How a text of the certificate looks in the output of :meth:`read`."""
        return _squeezed(visible(text))

    def test_same_bytes_for_same_certificate(self, certificate):
        text = json.dumps(certificate.to_dict(), sort_keys=True)  # a file does not keep the order
        again = Certificate.from_dict(json.loads(text))
        assert self.renderer().render(certificate) == self.renderer().render(again)

    def test_thousand_invocations_are_quick_and_small(self, certificates):
        self.renderer().render(certificates["bare"])
        start = time.process_time()
        rendered = self.renderer().render(certificates["thousand"])
        assert time.process_time() - start < 2
        assert len(rendered.encode()) < 2_000_000

    def test_is_found_by_its_suffix(self, tmp_path, certificates):
        path = tmp_path / f"REPORT{self.renderer.suffix.upper()}"
        assert render_to(certificates["bare"], path) == path
        assert path.read_text("utf-8") == self.renderer().render(certificates["bare"])
        assert list(tmp_path.iterdir()) == [path]


class TestHtml(RendererConformance):
    renderer = HtmlRenderer

    def read(self, rendered):
        return Page(rendered).text

    def test_nothing_external_and_nothing_that_runs(self, certificate):
        page = Page(HtmlRenderer().render(certificate))
        tags = {tag for tag, _ in page.tags}
        assert not tags & {"script", "img", "iframe", "object", "embed", "link", "b", "base"}
        for _, attributes in page.tags:
            for name, value in attributes.items():
                assert not name.startswith("on")
                if name in {"src", "href", "xlink:href", "action"}:
                    assert value.startswith("#")
                assert "url(" not in (value or "").replace("url(#", "")

    def test_style_is_self_contained(self, certificates):
        text = HtmlRenderer().render(certificates["certified"])
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
        assert "@import" not in style
        assert "url(" not in style
        assert "default-src 'none'" in text

    def test_headings_are_in_order(self, certificate):
        page = Page(HtmlRenderer().render(certificate))
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels.count(1) == 1
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))

    def test_ids_are_unique_and_targets_exist(self, certificate):
        page = Page(HtmlRenderer().render(certificate))
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        for tag, attributes in page.tags:
            named = attributes.get("aria-labelledby", "").split()
            link = attributes.get("href", "")
            assert set(named) | ({link[1:]} if link else set()) <= set(ids), tag

    def test_every_drawing_has_a_text_or_is_hidden(self, certificate):
        page = Page(HtmlRenderer().render(certificate))
        for tag, attributes in page.tags:
            if tag == "svg":
                assert attributes.get("aria-hidden") == "true" or attributes["aria-labelledby"]

    def test_colours_come_from_the_page(self, certificates):
        text = HtmlRenderer().render(certificates["certified"])
        drawings = re.findall(r"<svg class=\"chart\".*?</svg>", text, re.DOTALL)
        assert len(drawings) == 4
        for drawing in drawings:
            assert not re.search(r"(?:fill|stroke): ?#[0-9a-f]", drawing)

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_contrast(self, certificates, theme):
        """WCAG 2.1: 4.5 to 1 for text, 3 to 1 for what is drawn."""
        colours = _palette(HtmlRenderer().render(certificates["bare"]), theme)
        grounds = ("paper", "panel", "certified-soft", "unproven-soft", "refuted-soft")
        for ground in grounds:
            assert _contrast(colours["text"], colours[ground]) >= 4.5
            assert _contrast(colours["muted"], colours[ground]) >= 4.5
        for verdict in ("certified", "unproven", "refuted"):
            assert _contrast(colours[verdict], colours[f"{verdict}-soft"]) >= 4.5
            assert _contrast(colours[verdict], colours["panel"]) >= 4.5
        for name, colour in colours.items():
            if name.startswith("ink-") and name != "ink-grid":
                assert _contrast(colour, colours["panel"]) >= 3, name

    def test_style_of_the_user_does_not_matter(self, certificates):
        import matplotlib as mpl

        plain_page = HtmlRenderer().render(certificates["certified"])
        with mpl.rc_context({"xtick.top": True, "lines.linewidth": 9, "xtick.major.size": 20}):
            assert HtmlRenderer().render(certificates["certified"]) == plain_page

    def test_same_bytes_in_another_process(self, certificates, tmp_path):
        path = certificates["refuted"].save(tmp_path / "c.json")
        code = (
            "import sys; from dpaudit.certificate import load_certificate as load;"
            "from dpaudit.reporting import render_to; render_to(load(sys.argv[1]), sys.argv[2])"
        )
        target = tmp_path / "c.html"
        environment = os.environ | {"PYTHONHASHSEED": "42"}
        subprocess.run([sys.executable, "-c", code, path, target], check=True, env=environment)
        assert target.read_text("utf-8") == HtmlRenderer().render(certificates["refuted"])


def _palette(text, theme):
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    blocks = light + dark if theme == "dark" else light
    colours = dict(re.findall(r"--([\w-]+): ([^;]+);", blocks))
    return {
        name: colours[value[6:-1]] if value.startswith("var(") else value
        for name, value in colours.items()
    }


def _luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


class TestMarkdown(RendererConformance):
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


class TestJson(RendererConformance):
    renderer = JsonRenderer

    def read(self, rendered):
        return _squeezed(" ".join(_leaves(json.loads(rendered))))

    def seen(self, text):
        return _squeezed(text)

    def number(self, value, shown):
        return json.dumps(value).replace("Infinity", "null")

    def test_reads_back(self, certificates, tmp_path):
        path = render_to(certificates["exceeded"], tmp_path / "again.json")
        assert load_certificate(path) == certificates["exceeded"]
        saved = certificates["exceeded"].save(tmp_path / "saved.json")
        assert saved.read_bytes() == path.read_bytes()


def _leaves(value):
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield "null" if value == "infinity" else value
    else:
        yield json.dumps(value)


@pytest.mark.parametrize("name", ["report.docx", "report", "report.html.gz", ".html"])
def test_unknown_ending_is_refused(tmp_path, certificates, name):
    with pytest.raises(InputError, match=r"it must end in one of \.html, \.json, \.md"):
        render_to(certificates["bare"], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_missing_folder_is_refused(tmp_path, certificates):
    with pytest.raises(InputError, match="cannot be written"):
        render_to(certificates["bare"], tmp_path / "no" / "report.md")


def test_registry():
    assert {".html", ".json", ".md"} <= set(suffixes())
    assert isinstance(renderer_for("a/b.MD"), MarkdownRenderer)


def test_importing_loads_neither_matplotlib_nor_jinja():
    code = (
        "import sys, dpaudit.reporting; "
        "print(sorted({'matplotlib', 'jinja2', 'scipy', 'dp_accounting'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
