"""What a notebook shows: small tables whose texts cannot run, and that load no renderer before."""

import math
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from accounting_builders import use
from audit_records import attack
from markdown_it import MarkdownIt
from pages import Page

from dpaudit import (
    AddRemove,
    Claim,
    Finding,
    Gaussian,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    Severity,
    TrustModel,
    certify,
    guarantee,
)
from dpaudit.certificate import SubjectRecord
from dpaudit.reporting.notebooks import LONGEST, MOST_ROWS

HOSTILE = (
    "<script>alert(1)</script>|$x$ [a](javascript:alert(1)) <img src=x onerror=alert(1)> \u202e"
)
ABOUT = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
TAGS = {"table", "caption", "b", "tr", "th", "td"}


def plan(label=HOSTILE):
    return Plan.of(use(Gaussian(2.0), count=10, at=label))


def audit(**facts):
    known = {"method": HOSTILE, "event": HOSTILE, "power": HOSTILE, "delta": 1e-5}
    return attack(**known | {"epsilon_lower": 0.123456789, "confidence": 0.95} | facts)


def certificate(*audits):
    made = certify(
        plan(),
        subject=SubjectRecord(HOSTILE),
        claim=Claim(10.0, 1e-5),
        findings=[Finding("of-mine", Severity.WARNING, HOSTILE)],
    )
    return made.with_audits(audits)


SHOWN = [plan(), guarantee(plan(), 1e-5), guarantee(plan()), certificate(audit()), audit()]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda each: type(each).__name__)
def test_hostile_text_stays_text(shown):
    page = Page(shown._repr_html_())
    assert {tag for tag, _ in page.tags} <= TAGS
    assert {name for _, given in page.tags for name in given} <= {"class", "style"}
    seen = MarkdownIt("commonmark", {"html": True}).enable("table").render(shown._repr_markdown_())
    assert {tag for tag, _ in Page(seen).tags} <= TAGS | {"p", "strong", "thead", "tbody"}
    for text in (shown._repr_html_(), shown._repr_markdown_()):
        assert "\u202e" not in text
        assert len(text) < 4000


@pytest.mark.parametrize("shown", SHOWN, ids=lambda each: type(each).__name__)
def test_both_forms_say_the_same(shown):
    seen = MarkdownIt("commonmark").enable("table").render(shown._repr_markdown_())
    assert Page(seen).text.split() == Page(shown._repr_html_()).text.split()


def test_mathematics_is_left_alone():
    assert "<table class='tex2jax_ignore mathjax_ignore'>" in plan()._repr_html_()


def test_a_plan_shows_its_invocations_and_how_many_are_left():
    text = Page(plan("noisy sum")._repr_html_()).text
    assert "gaussian (sigma = 2) 1 (L2 norm) 10 all take part noisy sum" in text
    many = Plan.of(*(Invocation(Laplace(1.0 + n), 1.0, *ABOUT, at=f"{n}") for n in range(25)))
    text = many._repr_html_()
    assert text.count("<tr>") == 1 + MOST_ROWS + 1
    assert "and 5 more" in text
    alike = Plan.of(*(Invocation(Laplace(1.0), 1.0, *ABOUT) for _ in range(500)))
    assert len(alike._repr_html_()) < 1000 + LONGEST


def test_numbers_are_rounded_to_their_safe_side():
    proved = replace(guarantee(plan(), 1e-5), epsilon=0.12345678, error_bound=0.00000001)
    text = Page(proved._repr_html_()).text
    assert "ε = 0.123457 at δ = 1e-05" in text
    assert "tightest ε at least 0.123456" in text
    assert "ε ≥ 0.123456 (confidence 95 %)" in Page(audit()._repr_html_()).text


def test_what_is_missing_is_said():
    assert "no finite ε at δ = 0" in guarantee(plan())._repr_html_()
    assert "no pure guarantee" in guarantee(plan())._repr_html_()
    assert "no lower bound" in audit(epsilon_lower=None)._repr_html_()
    assert (
        "no finite ε holds (exact)" in audit(epsilon_lower=math.inf, confidence=None)._repr_html_()
    )
    bare = replace(certificate(), claim=None, guarantee=None)
    assert re.search("claimed nothing proved nothing", Page(bare._repr_html_()).text)


def test_a_certificate_shows_verdict_claim_proof_attack_and_findings():
    text = Page(certificate(audit(refuted=True, epsilon_lower=20.0))._repr_html_()).text
    for words in ("✗ Refuted", "claimed ε = 10, δ = 1e-05", "proved ε = 7.5", "of-mine"):
        assert words in text
    assert "audit 1 ε = 1 at δ = 1e-05 is refuted; ε ≥ 20" in text


def test_nothing_is_loaded_before_it_is_shown():
    code = """
import sys
import numpy as np
from dpaudit import *
from dpaudit.certificate import SubjectRecord
plan = Plan.of(Invocation(Laplace(2.0), 1.0, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL))
certify(plan, subject=SubjectRecord("mine"))
Ledger(plan, rng=np.random.default_rng(1))
assert "dpaudit.reporting" not in sys.modules
plan._repr_html_(), guarantee(plan)._repr_html_()
assert "dpaudit.reporting.notebooks" in sys.modules
assert "matplotlib" not in sys.modules
"""
    code = code.replace("import *", f"import {NAMES}")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


NAMES = "AddRemove, Invocation, Laplace, Ledger, Plan, PrivacyUnit, TrustModel, certify, guarantee"


def test_a_subclass_is_shown_as_its_base():
    class Mine(Plan):
        """Of an author."""

    assert Mine(plan().invocations)._repr_html_() == plan()._repr_html_()
