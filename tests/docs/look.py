"""The built site in a real browser, every page; ``make docs-look`` builds it first.

Not part of the quick suite: it takes some minutes.
"""

from pathlib import Path

import pytest
from axe import LOOKS, faults
from chromium import binary, browser

from dpaudit.finding_table import known_findings

SITE = Path(__file__).parents[2] / "out" / "site" / "html"
PAGES = sorted(each.relative_to(SITE).as_posix() for each in SITE.rglob("*.html"))

pytestmark = [
    pytest.mark.skipif(binary() is None, reason="there is no Chromium on the PATH"),
    pytest.mark.skipif(not PAGES, reason="the site is not built: make docs"),
]


@pytest.fixture(scope="module")
def screen():
    with browser() as page:
        yield page


@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_read_the_page(screen, name):
    url = (SITE / name).as_uri()
    assert {look: found for look in LOOKS if (found := faults(screen, url, *look))} == {}


def test_every_finding_has_its_place(screen):
    """Reports say that it is explained under its name."""
    screen.open((SITE / "reference" / "findings.html").as_uri())
    rules = {each.rule for each in known_findings()}
    missing = [r for r in rules if not screen.value(f"!!document.getElementById({r!r})")]
    assert rules
    assert missing == []
