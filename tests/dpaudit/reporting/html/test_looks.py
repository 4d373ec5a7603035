"""Reports in a real browser: on narrow and wide screens, light and dark, and to screen readers."""

from pathlib import Path

import pytest
from axe import LOOKS, faults
from chromium import binary, browser

from dpaudit.reporting import HtmlRenderer
from dpaudit.reporting.html.page import LabelRenderer

pytestmark = pytest.mark.skipif(binary() is None, reason="there is no Chromium on the PATH")

KEPT = Path(__file__).parents[4] / "reports"


@pytest.fixture(scope="module")
def screen():
    with browser() as page:
        yield page


def wrong(screen, path, looks=LOOKS):
    return {look: found for look in looks if (found := faults(screen, path.as_uri(), *look))}


@pytest.mark.parametrize(
    ("renderer", "shown", "looks"),
    [
        (HtmlRenderer, ["scripts"], LOOKS),
        (HtmlRenderer, ["bare", "refuted"], LOOKS[1:2]),
        (LabelRenderer, ["certified"], LOOKS),
        (LabelRenderer, ["unbounded"], LOOKS),
    ],
)
def test_everybody_can_read_a_report(screen, certificates, tmp_path, renderer, shown, looks):
    path = tmp_path / "report.html"
    path.write_text(renderer().render(*(certificates[name] for name in shown)), "utf-8")
    assert wrong(screen, path, looks) == {}


def test_everybody_can_read_the_first_page_of_a_project(screen):
    assert wrong(screen, KEPT / "index.html", LOOKS[1:3]) == {}


def test_what_cannot_be_read_is_found(screen, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<p style='color: #aaa; width: 500px'>grey<details><img src=x></details>")
    (narrow, *_) = wrong(screen, path).values()
    told = {rule for rule, _ in narrow}
    assert told >= {"color-contrast", "image-alt", "html-has-lang", "is wider than the screen"}
