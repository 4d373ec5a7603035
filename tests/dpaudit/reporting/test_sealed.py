"""Reports of sealed runs say how the code was kept from the data, and whom one trusts."""

import re
from dataclasses import replace

import pytest
from seals import RUN, SEAL, sealed

from dpaudit.reporting import render_to
from dpaudit.reporting.checklists import checklists
from dpaudit.reporting.wording import tables
from dpaudit.reporting.wording.headline import headline
from dpaudit.reporting.wording.words import SEAL as WORDS

TITLE = "How the code was kept from the data"


def rendered(certificate, folder, name):
    return render_to(certificate, folder / name).read_text("utf-8")


def told(text):
    """The words of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", text).replace("\\", "").split())


def test_the_headline_says_sealed():
    said = headline(sealed())
    assert said.label == "Certified: the plan and code, sealed"
    assert any("It speaks of the plan and code, sealed" in each for each in said.details)
    assert "If the code does" not in said.sentence


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_report_tells_system_means_tries_files_and_source(tmp_path, name):
    text = told(rendered(sealed(), tmp_path, name))
    assert TITLE in text
    for each in (SEAL.system, *SEAL.means, *SEAL.tries, "EPERM", SEAL.source, SEAL.table):
        assert each in text
    assert f"wards.csv (SHA-256 {'ef' * 32})" in text
    assert WORDS["trust"] in text
    for whom in ("this package", "Python", "the kernel", "schema"):
        assert whom in WORDS["trust"]
    assert "How long a sealed run and each of its answers take." in text
    alone = replace(sealed(), seal=replace(SEAL, files={}))
    assert "none but its own" in rendered(alone, tmp_path, name)


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_report_of_code_that_was_not_sealed_has_no_such_section(tmp_path, certificates, name):
    assert TITLE not in rendered(certificates["certified"], tmp_path, name)


def test_the_contents_of_a_page_lead_to_it(tmp_path):
    page = rendered(sealed(), tmp_path, "report.html")
    assert 'href="#seal"' in page
    assert 'id="seal"' in page


def test_the_label_says_sealed_and_whom_one_trusts(tmp_path):
    text = told(rendered(sealed(), tmp_path, "report.label.html"))
    assert "Certified: the plan and code, sealed" in text
    assert WORDS["trust"] in text


def test_checklists_know_what_holds_by_construction():
    items = {item.rule: item for each in checklists(sealed()) for item in each.items}
    assert "by construction" in items["dpfy-assumptions"].reason
    assert "dpaudit" in items["nist-custom-implementation"].reason


def test_an_experiment_is_repeated_without_a_rehearsal_and_on_its_own_table():
    run = "dpaudit run visits.py:Visits --seed 7"
    assert tables.commands(sealed(seed=7))[0] == run
    made_up = RUN | {"summary": {"data": "synthetic 50"}}
    again = tables.commands(sealed(seed=7, run=made_up))[0]
    assert again == "dpaudit run visits.py:Visits --data 'synthetic 50' --seed 7"
