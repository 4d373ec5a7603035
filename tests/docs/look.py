"""The built site in a real browser, every page; ``make docs-look`` builds it first.

Not part of the quick suite: it takes some minutes.
"""

from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from axe import LOOKS, faults
from chromium import binary, browser
from pages import Page

from dpaudit.base.finding_table import known_findings
from dpaudit.project.targets import own_packages

SITE = Path(__file__).parents[2] / "out" / "site" / "html"
PAGES = sorted(each.relative_to(SITE).as_posix() for each in SITE.rglob("*.html"))

pytestmark = pytest.mark.skipif(not PAGES, reason="the site is not built: make docs")


@pytest.fixture(scope="module")
def screen():
    if binary() is None:
        pytest.skip("there is no Chromium on the PATH")
    with browser() as page:
        yield page


@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_read_the_page(screen, name):
    url = (SITE / name).as_uri()
    assert {look: found for look in LOOKS if (found := faults(screen, url, *look))} == {}


@cache
def tags(name):
    return [facts for _, facts in Page((SITE / name).read_text("utf-8")).tags]


@cache
def places(name):
    return {facts.get("id") for facts in tags(name)}


@pytest.mark.parametrize("name", PAGES)
def test_links_within_the_site_lead_to_a_place(name):
    dead = []
    for link in filter(None, (facts.get("href") for facts in tags(name))):
        to = urlsplit(link)
        there = (SITE / name).parent / unquote(to.path) if to.path else SITE / name
        if to.scheme or to.netloc:
            continue
        known = there.exists() and there.resolve().is_relative_to(SITE.resolve())
        if known and to.fragment and there.suffix == ".html":
            known = unquote(to.fragment) in places(there.resolve().relative_to(SITE.resolve()))
        dead += [] if known else [link]
    assert dead == []


def test_every_finding_has_its_place():
    """Reports say that it is explained under its name."""
    assert {each.rule for each in known_findings(*own_packages())} <= places(
        "reference/findings.html"
    )
