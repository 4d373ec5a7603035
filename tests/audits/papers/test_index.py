"""The index: what a certificate says, in words."""

from __future__ import annotations

import math
from html.parser import HTMLParser

import pytest
from examples import gaussian_invocation
from paper_certificates import DELTA, PROVED, WORDS, audit, certificate

from audits.papers.entries import PAPERS
from audits.papers.generating import REPORTS
from audits.papers.index import index_html, index_markdown, row_of
from dpaudit import Plan
from dpaudit.base.errors import InputError
from dpaudit.base.numbers import down, up
from dpaudit.certificate import SubjectRecord, certify, load_certificate
from dpaudit.mechanisms import Opaque
from dpaudit.workflow.outcomes import Status


def test_a_tight_claim_holds():
    row = row_of("x", WORDS, certificate(PROVED))
    assert row.status is Status.CERTIFIED
    assert row.verdict == ("certified", "the claim holds")
    assert row.claim[1] == "Theorem 1"
    assert row.proved[0] == f"ε = {up(PROVED)}"
    assert row.attack == ("none", "")


@pytest.mark.parametrize(("factor", "loose"), [(1.1, False), (1.12, True), (50.0, True)])
def test_a_loose_claim_is_called_so(factor, loose):
    row = row_of("x", WORDS, certificate(factor * PROVED))
    assert row.verdict[1].endswith("loose") is loose


def test_a_refuted_claim_is_false_whatever_is_proved():
    attacked = certificate(2 * PROVED).with_audits([audit(1.0), audit(3.0, refuted=True)])
    row = row_of("x", WORDS, attacked)
    assert row.verdict == ("refuted", "the claim is false")
    assert row.attack == ("ε ≥ 3", "attack to 3, at 99.9 %; the best of 2 attacks")


def test_more_proved_than_claimed_is_no_refutation():
    row = row_of("x", WORDS, certificate(PROVED / 2))
    assert row.status is Status.EXCEEDED
    assert "false" not in row.verdict[1]


def test_disjoint_supports():
    opaque = certificate(1.0, mechanism=Opaque("projection", 1.0, DELTA))
    exact = audit(math.inf, refuted=True, confidence=None)
    row = row_of("x", WORDS, opaque.with_audits([exact, audit(2.0, refuted=True)]))
    assert row.proved == ("nothing", "")
    assert row.attack[0] == "no ε holds"
    assert "%" not in row.attack[1]


def test_no_proof_and_no_refutation():
    row = row_of("x", WORDS, certificate(1.0, mechanism=Opaque("projection", 1.0, DELTA)))
    assert row.status is Status.UNPROVEN
    assert row.verdict[1] == "no proof, no refutation"


def test_attacks_that_find_nothing_name_the_last_one():
    found = certificate(PROVED).with_audits([audit(0.0), audit(-0.0)])
    assert row_of("x", WORDS, found).attack[0] == "found nothing"


def test_a_certificate_without_a_claim_is_refused():
    plan = Plan.of(gaussian_invocation())
    with pytest.raises(InputError, match="states no claim"):
        row_of("x", WORDS, certify(plan, subject=SubjectRecord("x"), delta=DELTA))


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links, self.classes = [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self.links += [given["href"]] if tag == "a" else []
        self.classes += [given["class"]] if tag == "span" and "class" in given else []


def certificates():
    return {
        "curator": certificate(1.0).with_audits([audit(3.0, refuted=True)]),
        "dp-fts": certificate(9 * PROVED),
        "joint-gp-ucb": certificate(PROVED),
    }


def test_markdown():
    text = index_markdown(certificates(), (".json", ".html"))
    assert "3 certificates: 1 refuted, 2 certified." in text
    assert "False: PO-GP-UCB" in text
    assert "loose (90 % of the claimed ε is enough): DP-FTS, synthetic" in text
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) == 3
    assert all(line.count(" | ") == 5 for line in rows)
    assert "[html](curator.html)" in rows[0]
    assert "Zhou" not in text  # a paper without certificates has no table


def test_html_says_the_same_without_scripts_or_addresses_elsewhere():
    text = index_html(certificates(), (".json", ".html"))
    page = _Page()
    page.feed(text)
    assert page.tags.count("table") == 3
    assert page.classes == ["refuted", "certified", "certified"]
    assert "curator.json" in page.links
    assert not any(":" in link for link in page.links)
    assert "script" not in page.tags
    assert "3 certificates: 1 refuted, 2 certified." in text


@pytest.mark.skipif(not (REPORTS / "index.md").exists(), reason="reports/ is not shipped here")
def test_the_index_says_what_the_certificates_say():
    """Read, not made anew: whatever the certificates are, the index must agree with them."""
    text = (REPORTS / "index.md").read_text(encoding="utf-8")
    page = (REPORTS / "index.html").read_text(encoding="utf-8")
    names = [name for paper in PAPERS for name in paper.algorithms]
    assert sorted(path.stem for path in REPORTS.glob("*.json")) == sorted(names)
    for name in names:
        known = load_certificate(REPORTS / f"{name}.json")
        (line,) = (line for line in text.splitlines() if f"({name}.json)" in line)
        assert f"**{row_of(name, WORDS, known).status}**" in line
        assert f'href="{name}.html"' in page
        if known.guarantee is not None:
            assert f"ε = {up(known.guarantee.epsilon)}<br>" in line
        bound = max(each.epsilon_lower or 0.0 for each in known.audits)
        words = {0.0: "found nothing", math.inf: "no ε holds"}.get(bound, f"ε ≥ {down(bound)}")
        assert f"| {words}<br>" in line
