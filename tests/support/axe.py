"""What a screen reader, or a narrow screen, could not read of a page, in a real Chromium."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from chromium import Browser

LOOKS = tuple(product((390, 1280), (False, True)))
"""Width of the screen, and whether it is dark."""

_RUN = """(async () => {
  document.querySelectorAll("details").forEach(each => { each.open = true; });
  const found = await axe.run({resultTypes: ["violations"]});
  const where = v => v.nodes.map(node => node.target.join(" ")).join(", ");
  return JSON.stringify(found.violations.map(v => [v.id, where(v)]));
})()"""


@cache
def source() -> str:
    """The source of axe-core, from a package that carries it."""
    for name in ("axe_playwright_python", "axe_core_python"):
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            return Path(found.origin).with_name("axe.min.js").read_text("utf-8")
    pytest.skip("axe-core is not installed: pip install axe-core-python")


def faults(page: Browser, url: str, width: int, dark: bool) -> list[list[str]]:
    """Rules of axe-core that the page breaks at that look, and whether it is too wide for it."""
    page.look(width, dark=dark)
    page.open(url)
    wide = page.value("document.documentElement.scrollWidth") > width
    page.value(source() + ";0")
    found = json.loads(page.value(_RUN))
    return [*found, *([["is wider than the screen", f"{width}"]] if wide else [])]
