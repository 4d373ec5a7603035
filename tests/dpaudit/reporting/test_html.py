"""Reports in HTML: pages and drawings."""

import json
import re
from dataclasses import replace
from html import escape
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from axe import LOOKS, faults
from chromium import binary, browser
from pages import Page
from renderer_conformance import PeopleConformance
from report_certificates import all_kinds

from dpaudit import UnsupportedError
from dpaudit.reporting import HtmlRenderer, render_to, renderer_for
from dpaudit.reporting.figures.plot import Dot, Ink, Line, Mark, Plot
from dpaudit.reporting.html.page import LabelRenderer
from dpaudit.reporting.html.svg import markup

# The HTML page: the suite of all renderers, and what makes a page safe and accessible


class TestHtml(PeopleConformance):
    renderer = HtmlRenderer

    def read(self, rendered):
        return Page(rendered).text.replace("≤ e ε", "≤ eε")

    def facts(self, certificate):
        return (fact.replace("e^ε", "eε") for fact in super().facts(certificate))

    def test_powers_are_typeset(self, certificates):
        rendered = self.rendered(certificates["certified"])
        assert "≤ e<sup>ε</sup> · P(M(D′) ∈ S)" in rendered
        assert "e^ε" not in rendered

    def test_nothing_external_and_nothing_that_runs(self, certificate):
        page = Page(self.rendered(certificate))
        tags = {tag for tag, _ in page.tags}
        assert not tags & {"script", "img", "iframe", "object", "embed", "link", "b", "base"}
        for _, attributes in page.tags:
            for name, value in attributes.items():
                assert not name.startswith("on")
                if name in {"src", "href", "xlink:href", "action"}:
                    assert value.startswith("#")
                assert "url(" not in (value or "").replace("url(#", "")

    def test_style_is_self_contained(self, certificates):
        text = self.rendered(certificates["certified"])
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
        assert "@import" not in style
        assert "url(" not in style
        assert "default-src 'none'" in text

    def test_a_reader_learns_where_findings_are_explained(self, certificates):
        for kind, told in (("certified", True), ("bare", False)):
            text = self.read(self.rendered(certificates[kind]))
            assert ("on the page Findings of the documentation" in text) == told

    def test_headings_are_in_order(self, certificate):
        page = Page(self.rendered(certificate))
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels.count(1) == 1
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))

    def test_ids_are_unique_and_targets_exist(self, certificate):
        page = Page(self.rendered(certificate))
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        for tag, attributes in page.tags:
            named = attributes.get("aria-labelledby", "").split()
            link = attributes.get("href", "")
            assert set(named) | ({link[1:]} if link else set()) <= set(ids), tag

    def test_several_reports_have_headings_and_ids_of_their_own(self, certificates):
        page = Page(HtmlRenderer().render(*(certificates[k] for k in ("certified", "refuted"))))
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        for _, attributes in page.tags:
            link = attributes.get("href", "")
            assert {link[1:]} <= {"", *ids}
            assert set(attributes.get("aria-labelledby", "").split()) <= set(ids)

    def test_every_drawing_has_a_text_or_is_hidden(self, certificate):
        page = Page(self.rendered(certificate))
        for tag, attributes in page.tags:
            if tag == "svg":
                assert attributes.get("aria-hidden") == "true" or attributes["aria-labelledby"]

    def test_colours_come_from_the_page(self, certificates):
        text = self.rendered(certificates["certified"])
        drawings = re.findall(r"<svg class=\"chart\".*?</svg>", text, re.DOTALL)
        assert len(drawings) == 5
        for drawing in drawings:
            assert not re.search(r"(?:fill|stroke): ?#[0-9a-f]", drawing)

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_contrast(self, certificates, theme):
        """WCAG 2.1: 4.5 to 1 for text, 3 to 1 for what is drawn."""
        colours = _palette(self.rendered(certificates["bare"]), theme)
        grounds = (
            "paper",
            "panel",
            "certified-soft",
            "unproven-soft",
            "refuted-soft",
            "limited-soft",
        )
        for ground in grounds:
            assert _contrast(colours["text"], colours[ground]) >= 4.5
            assert _contrast(colours["muted"], colours[ground]) >= 4.5
        for verdict in ("certified", "limited", "unproven", "refuted"):
            assert _contrast(colours[verdict], colours[f"{verdict}-soft"]) >= 4.5
            assert _contrast(colours[verdict], colours["panel"]) >= 4.5
        for name, colour in colours.items():
            if name.startswith("ink-") and name != "ink-grid":
                assert _contrast(colour, colours["panel"]) >= 3, name

    def test_style_of_the_user_does_not_matter(self, certificates):
        import matplotlib as mpl

        plain_page = self.rendered(certificates["certified"])
        with mpl.rc_context({"xtick.top": True, "lines.linewidth": 9, "xtick.major.size": 20}):
            assert HtmlRenderer().render(certificates["certified"]) == plain_page


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


@pytest.mark.parametrize("kind", sorted(all_kinds()))
def test_every_certificate_has_a_label_in_words(kind, tmp_path):
    certificate = all_kinds()[kind]
    text = (
        render_to(certificate, tmp_path / "of.label.html").read_text("utf-8").replace("&#39;", "'")
    )
    assert certificate.to_dict()["digest"] in text
    assert "<script" not in text
    for name in ("Who is protected", "Against whom", "What is not promised"):
        assert f"<dt>{name}</dt>" in text
    assert "e^" not in text
    assert "P(M(D)" not in text
    open_ = [each for each in certificate.all_findings if str(each.severity) != "note"]
    assert ("a decision." in text) == bool(open_)
    for assumed in (each for each in certificate.assumptions if str(each.standing) == "assumed"):
        assert f"<li>{escape(assumed.premise, quote=False)}</li>" in text
    refuted = str(certificate.verdict) == "refuted"
    assert ("at least one refutes it" in text) == (refuted and bool(certificate.audits))


def test_a_label_is_of_one_certificate():
    several = list(all_kinds().values())[:2]
    with pytest.raises(UnsupportedError, match="a label shows one"):
        renderer_for("x.label.html").render(*several)


KEPT = Path(__file__).parents[3] / "reports"


@pytest.fixture(scope="module")
def screen():
    if binary() is None:
        pytest.skip("there is no Chromium on the PATH")
    with browser() as page:
        yield page


def wrong(screen, path, looks=LOOKS):
    return {look: found for look in looks if (found := faults(screen, path.as_uri(), *look))}


@pytest.mark.parametrize(
    ("renderer", "shown", "looks"),
    [
        (HtmlRenderer, ["scripts"], LOOKS),
        (HtmlRenderer, ["bare", "refuted", "thousand"], LOOKS[1:2]),
        (LabelRenderer, ["certified"], LOOKS),
        (LabelRenderer, ["unbounded"], LOOKS),
    ],
)
def test_everybody_can_read_a_report(screen, certificates, tmp_path, renderer, shown, looks):
    path = tmp_path / "report.html"
    path.write_text(renderer().render(*(certificates[name] for name in shown)), "utf-8")
    assert wrong(screen, path, looks) == {}


_CAPTIONS = """JSON.stringify([...document.querySelectorAll(".mark, .ends span")].map(each => {
    const range = document.createRange();
    range.selectNodeContents(each);
    const box = range.getBoundingClientRect();
    return [box.left, box.right, box.top, box.bottom]; }))"""
_MARKS = """JSON.stringify([...document.querySelectorAll(".scale .mark")].map(each => {
    const [bar, own] = [each.parentElement.querySelector("svg"), each].map(
        shown => shown.getBoundingClientRect());
    const at = each.classList.contains("before") ? own.right : own.left;
    return [bar.left + bar.width * parseFloat(each.dataset.at) / 100, at]; }))"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", ["certified", "scripts", "thousand", "refuted"])
def test_captions_stand_at_their_values_and_none_overlap(
    screen, certificates, tmp_path, width, kind
):
    path = tmp_path / "report.html"
    path.write_text(HtmlRenderer().render(certificates[kind]), "utf-8")
    screen.look(width)
    screen.open(path.as_uri())
    for wanted, found in json.loads(screen.value(_MARKS)):
        assert abs(wanted - found) <= 6
    boxes = [box for box in json.loads(screen.value(_CAPTIONS)) if box[1] > box[0]]
    assert len(boxes) >= 4
    for one, other in combinations(boxes, 2):
        beside = one[1] <= other[0] or other[1] <= one[0]
        assert beside or one[3] <= other[2] or other[3] <= one[2]


def test_everybody_can_read_the_first_page_of_a_project(screen):
    assert wrong(screen, KEPT / "index.html", LOOKS[1:3]) == {}


def test_what_cannot_be_read_is_found(screen, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<p style='color: #aaa; width: 500px'>grey<details><img src=x></details>")
    (narrow, *_) = wrong(screen, path).values()
    told = {rule for rule, _ in narrow}
    assert told >= {"color-contrast", "image-alt", "html-has-lang", "is wider than the screen"}


# Drawings: numbers and fixed words alone, in colours of the page

LINE = Line(np.array([0.0, 1.0]), np.array([0.5, 0.25]), Ink.PROVED)
PLOT = Plot("uses", "ε", (LINE,), (Dot(0.5, 0.4, Ink.CLAIM, Mark.SQUARE, hollow=True),))


def test_same_markup_for_the_same_plot():
    assert markup(PLOT, "a") == markup(PLOT, "a")


def test_is_well_formed_and_named():
    root = ET.fromstring(markup(PLOT, "a"))
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "a-title a-words"


def test_every_identifier_bears_the_name():
    for element in ET.fromstring(markup(PLOT, "x7")).iter():
        assert element.get("id", "x7-").startswith("x7-")
        assert element.get("href", "#x7-").startswith("#x7-")


def test_colours_are_variables():
    text = markup(PLOT, "a")
    assert "var(--ink-proved)" in text
    assert "var(--ink-claim)" in text
    assert not any(ink.value in text for ink in Ink)


def test_logarithmic_axis_ends_at_zero():
    text = markup(replace(PLOT, floor=1e-7), "a")
    assert "10⁻⁶" in text
    assert "10⁻⁷" not in text
    assert ">0<" in text


@pytest.mark.parametrize("value", [0.0, 1e300, -1e300, 5e-324])
def test_a_single_value_is_a_point(value):
    single = Line(np.array([1.0]), np.array([value]), Ink.FIRST)
    assert "<use" in markup(Plot("round", "value", (single,)), "a")
