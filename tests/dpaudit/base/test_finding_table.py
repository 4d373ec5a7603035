"""Findings whose words stand in tables."""

import tomllib
from importlib import metadata, resources
from importlib.metadata import PackageNotFoundError

import pytest

from dpaudit import Severity
from dpaudit.base.finding_table import FindingTable, explained_at

PACKAGES = (
    "dpaudit.auditing.noise",
    "dpaudit.rehearsal",
    "dpaudit.auditing.replaying",
    "dpaudit.certificate",
    "dpaudit.training.opacus",
    "dpaudit.project",
    "dpaudit.workflow",
)


def test_a_finding_has_the_words_of_its_section_and_the_facts_of_the_call():
    table = FindingTable("dpaudit.rehearsal.session")
    found = table("does-not-end", "sum", seconds=7.0)
    assert (found.rule, found.severity, found.at) == ("raises-on-neighbour", Severity.ERROR, "sum")
    assert "does not end within 7 seconds, and" in found.message
    assert found.remedy == "Bound every loop by public numbers."
    assert (
        FindingTable("dpaudit.auditing.noise.floats")(
            "float-lsb", hits=1, others=0, draws=2, direction="x to x'", p_value=0.5
        ).severity
        is Severity.WARNING
    )


def test_a_fact_that_is_missing_is_an_error():
    with pytest.raises(KeyError):
        FindingTable("dpaudit.rehearsal.session")("does-not-end")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_section_is_whole_and_used(package):
    folder = resources.files(package)
    rows = tomllib.loads(folder.joinpath("findings.toml").read_text("utf-8"))
    code = "".join(each.read_text("utf-8") for each in folder.iterdir() if each.suffix == ".py")
    keys = {"message", "remedy", "rule", "severity", "about"}
    for name, row in rows.items():
        assert {"message", "remedy"} <= row.keys() <= keys
        assert Severity(row.get("severity", "error"))
        assert all(text.strip() == text and "\n" not in text for text in row.values())
        assert f'"{name}"' in code


def test_a_package_that_is_not_installed_has_no_site(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "metadata", missing)
    explained_at.cache_clear()
    assert explained_at("generator-seeded") == ""
    explained_at.cache_clear()
