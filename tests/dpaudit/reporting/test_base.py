"""How a renderer is found, and what is refused."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import metadata

import pytest

from dpaudit import Finding, Severity
from dpaudit.base.errors import InputError
from dpaudit.base.finding_table import explained_at
from dpaudit.certificate import SecondOpinion
from dpaudit.reporting import (
    JsonRenderer,
    MarkdownRenderer,
    Renderer,
    base,  # its entry points
    render_to,
    renderer_for,
    suffixes,
)


def test_no_certificate_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"^certificates is empty; give at least one to render\.$"):
        render_to([], tmp_path / "report.html")


@pytest.fixture
def known(monkeypatch):
    """The registered renderers, which a test may add to."""
    monkeypatch.setattr(Renderer, "_known", dict(Renderer._known))
    return Renderer._known


def test_the_longest_ending_wins(known):
    class Special(JsonRenderer):
        suffix = ".special.json"

    assert type(renderer_for("a/REPORT.Special.JSON")) is Special
    assert type(renderer_for("a/special.json")) is JsonRenderer


def test_an_ending_belongs_to_one_renderer(known):
    with pytest.raises(InputError, match=r"^suffix '\.json' .* that of dpaudit\..*Json"):

        class Other(Renderer):
            suffix = ".json"

    assert type(renderer_for("a.json")) is JsonRenderer


def test_the_same_class_again_takes_its_place(known):
    """As in a session in which a source is edited and run again."""

    def made():
        class Again(JsonRenderer):
            suffix = ".again"

        return Again

    made()
    assert made() is known[".again"]


@pytest.mark.parametrize("wrong", ["json2", ".JSON2"])
def test_an_ending_has_a_dot_and_no_capital(known, wrong):
    with pytest.raises(InputError, match="must be in lower case and begin with a dot"):
        type("Other", (JsonRenderer,), {"suffix": wrong})


def test_without_an_ending_it_is_a_base_of_others(known):
    before = dict(known)
    type("Base", (JsonRenderer,), {})
    assert known == before


@pytest.mark.parametrize("name", ["report.docx", "report", "report.html.gz", ".html"])
def test_unknown_ending_is_refused(tmp_path, certificates, name):
    with pytest.raises(InputError, match=r"it must end in one of .*\.html, .*\.json, .*\.md"):
        render_to(certificates["bare"], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.label.md", "a.LABEL.pdf", "a.label.sarif.json"])
def test_a_label_in_another_format_is_refused(tmp_path, certificates, name):
    with pytest.raises(InputError, match=r"a label ends in \.label\.html"):
        render_to(certificates["bare"], tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    assert render_to(certificates["bare"], tmp_path / "a.label.html").exists()


def test_missing_folder_is_refused(tmp_path, certificates):
    with pytest.raises(InputError, match="cannot be written"):
        render_to(certificates["bare"], tmp_path / "no" / "report.md")


def opinion(reason):
    return SecondOpinion("other", "1.0", None, None, None, None, (None, None), None, reason)


@pytest.mark.parametrize("ending", ["html", "md"])
def test_a_second_opinion_is_shown_with_the_guarantee_of_its_certificate(
    certificates, tmp_path, ending
):
    both = (certificates["certified"], certificates["bare"])
    said = (opinion("They <agree> here."), opinion("There is none."))
    text = render_to(both, tmp_path / f"a.{ending}", said).read_text()
    first, second = text.index("agree"), text.index("There is none.")
    assert text.count("Second opinion") == 2
    assert "<agree>" not in text
    assert text.index("What is proved") < first < second
    assert "Second opinion" not in renderer_for(f"a.{ending}").render(*both)


@pytest.mark.parametrize("ending", [".json", ".sarif.json", ".xml"])
def test_a_format_for_machines_shows_no_second_opinion(certificates, tmp_path, ending):
    with pytest.raises(InputError, match=r"shows no second opinion; these do: \.html, \.md, \.pdf"):
        render_to(certificates["bare"], tmp_path / f"a{ending}", [opinion("x")])
    assert list(tmp_path.iterdir()) == []


def test_registry():
    assert {".html", ".json", ".md"} <= set(suffixes())
    assert isinstance(renderer_for("a/b.MD"), MarkdownRenderer)


def test_importing_loads_no_large_library():
    code = (
        "import sys, dpaudit.reporting; large = {'matplotlib', 'jinja2', 'typst', 'scipy'};"
        "print(sorted((large | {'dp_accounting'}) & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


class Offered:
    """An entry point of a package that is not really installed."""

    value = "package:Renderer"

    def __init__(self, load):
        self.load = load


@pytest.fixture
def offered(monkeypatch, known):
    def install(load):
        monkeypatch.setattr(base, "entry_points", lambda group: [Offered(load)])
        base._load_offered.cache_clear()

    yield install
    base._load_offered.cache_clear()


def test_an_installed_package_offers_its_renderer(offered, certificates, tmp_path):
    def load():
        class Shout(JsonRenderer):
            suffix = ".shout"

            def render(self, *certificates):
                return super().render(*certificates).upper()

        return Shout

    offered(load)
    assert ".shout" in suffixes()
    assert '"VERDICT": "CERTIFIED"' in render_to(
        certificates["bare"], tmp_path / "a.shout"
    ).read_text("utf-8")


def test_a_package_that_cannot_be_loaded_is_named(offered):
    def load():
        raise ImportError("no module named 'colour'")

    offered(load)
    with pytest.raises(
        InputError, match=r"^renderer 'package:Renderer' .* no module named 'colour'"
    ):
        renderer_for("a.json")


@pytest.fixture
def site(monkeypatch):
    """The documentation is published at an address, or at none."""

    def published(address):
        lines = {"Project-URL": [f"Documentation, {address}"] if address else None}
        monkeypatch.setattr(metadata, "metadata", lambda name: _Lines(lines))
        explained_at.cache_clear()

    yield published
    explained_at.cache_clear()


class _Lines(dict):
    get_all = dict.get


def test_reports_link_to_where_a_finding_is_explained(site, certificates):
    own = Finding("generator-seeded", Severity.ERROR, "A message.")
    theirs = replace(own, rule="theirs")
    shown = replace(certificates["bare"], findings=(own, theirs))
    page = "https://example.org/dp/reference/findings.html#generator-seeded"
    for address, links in (("https://example.org/dp/", 1), ("", 0)):
        site(address)
        for ending in (".html", ".md"):
            assert renderer_for(f"r{ending}").render(shown).count(page) == links
        (run,) = json.loads(renderer_for("r.sarif").render(shown))["runs"]
        helped = [each.get("helpUri") for each in run["tool"]["driver"]["rules"]]
        assert [each for each in helped if each] == [page] * links
