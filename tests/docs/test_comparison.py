"""The page on other tools states what the reports have."""

import re
from pathlib import Path

from dpaudit import __version__

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparison.md").read_text("utf-8")
AUDITED, STATED = "reports/auditors/auditors.md", "reports/libraries/libraries.md"
MEASURED = {
    AUDITED: ("jax-privacy", "PrivacyGuard", "DP-Auditorium"),
    STATED: ("OpenDP", "Tumult Analytics", "PipelineDP", "opacus", "dp_accounting", "autodp"),
}
"""Which page has which tool at the version that is compared."""


def rows(text):
    """The cells of every line of a table."""
    lines = (each for each in text.splitlines() if each.startswith("|"))
    return [[cell.strip() for cell in each.strip("|").split("|")] for each in lines]


def read(name):
    return (ROOT / name).read_text("utf-8")


def section(title):
    return re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)[1]


def measured(title, columns, least):
    """The rows of a section's tables that have so many columns."""
    found = [each for each in rows(section(title)) if len(each) == columns]
    found = [each for each in found if re.match(r"[\d.]+$", each[-1])]
    assert len(found) >= least
    return found


def test_the_audits_are_those_of_the_report():
    text = read(AUDITED).partition("## Where others")[0]
    known = {each[0]: each for each in rows(text) if len(each) == 9}
    for name, given, *found, right, time in measured("Audits", 7, 6):
        learned = (name, given) == ("dpaudit", "outputs alone")
        row = known["dpaudit, score learned" if learned else name.removesuffix(", where δ is 0")]
        assert [f"{each} %" for each in found] == row[3:6]
        assert right == row[6].partition(" (")[0]
        assert f"×{time}" == row[8]


LIBRARIES = {
    "Tumult": "tmlt.analytics",
    "SmartNoise": "smartnoise-sql",
    "PipelineDP": "pipeline-dp",
}
PLACES = ("inside", "above", "below")


def test_the_libraries_are_those_of_the_report():
    known = {each[0]: each for each in rows(read(STATED))}
    for tool, count, *verdicts in measured("Releases of tables", 5, 5):
        first = tool.split()[0]
        row = known[LIBRARIES.get(first, first.lower())]
        assert [count, *verdicts] == [row[1], *row[3:6]]


def test_the_accountants_are_those_of_the_report():
    told = [each for each in rows(section("Accounting")) if re.search(r"\d\.\d", each[0])]
    assert len(told) == 6
    for name, *cells in told:
        tool, version, law = re.match(r"(\w+) ([\d.]+), (\w+)", name).groups()
        called = f"{tool.replace('_', '-')} {law.replace('Rényi', 'RDP')}"
        line = rf"^- \*\*{called}\*\* \(\S+ {version};.*\): (.*)\.$"
        counts = zip((re.match(r"\d+", each)[0] for each in cells), PLACES, strict=True)
        known = ", ".join(f"{count} {place}" for count, place in counts if count != "0")
        assert re.findall(line, read(STATED), re.MULTILINE) == [known]


def test_the_releases_are_those_of_the_page():
    known = {each[0].replace("`", ""): each for each in rows(read("docs/release-peers.md"))}
    for tool, seconds, memory in measured("Releases of tables", 3, 6):
        row = known[tool]
        assert row[4].split()[0] == seconds
        assert row[6] == memory


def test_the_catalogue_is_as_good_as_stated():
    for words in ("False alarms", "Found"):
        line = rf"^- {words}: \d+ of \d+ \(([\d.]+) %"
        (percent,) = re.findall(line, read("docs/catalogue.md"), re.MULTILINE)
        assert f" {float(percent):.1f} %" in section("What dpaudit does that you may want")


def test_versions_are_those_that_were_measured():
    versions = rows(PAGE.partition("\n## ")[0])
    stated = {re.sub(r"\[(.*)\]\(.*\)", r"\1", each[0]): each[1] for each in versions}
    for page, tools in MEASURED.items():
        for tool in tools:
            assert stated[tool].split(",")[0] in read(page), tool


def test_this_version_is_named():
    assert f"| dpaudit | {__version__} |" in PAGE
