"""The site has every page, and every page that is made from the code says all there is."""

import re
import sys
from pathlib import Path

import pytest

from dpaudit.finding_table import known_findings
from dpaudit.mechanisms import Mechanism

HOME = Path(__file__).parents[2] / "docs" / "site"


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(HOME))
    try:
        import build

        return build.pages()
    finally:
        sys.path.remove(str(HOME))
        for name in ("build", "reference"):
            sys.modules.pop(name, None)


def test_every_page_is_listed(pages):
    listed = set(re.findall(r"^(?:.* <)?([\w/.-]+?)>?$", pages["index.md"], re.MULTILINE))
    listed |= {
        f"reference/{each}" for each in re.findall(r"^api/\S+", pages["reference/python.md"], re.M)
    }
    assert {re.sub(r"\.(md|rst)$", "", page) for page in pages} - {"index"} <= listed


def test_every_finding_and_mechanism_has_its_heading(pages):
    headings = set(re.findall(r"^## (\S+)$", pages["reference/findings.md"], re.MULTILINE))
    assert headings == {each.rule for each in known_findings()}
    found = re.findall(r"^## (\S+)$", pages["reference/mechanisms.md"], re.MULTILINE)
    assert found == sorted(Mechanism.kinds())
    assert "[rdp](accountants.md#rdp)" in pages["reference/mechanisms.md"]


def test_every_command_and_option_is_there(pages):
    text = pages["reference/commands.md"]
    for words in ("## `dpaudit certify`", "### `dpaudit book reserve`", "`--second-opinion`"):
        assert words in text


def test_links_within_the_site_lead_to_pages(pages):
    for page, text in pages.items():
        for link in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", text):
            there = (Path("/") / page).parent / link
            assert str(there.resolve().relative_to("/")) in pages, (page, link)
