"""How a row's findings are judged, and whose fault a violation is."""

import pytest

from audits.libraries.row import Attack, Published, Row
from audits.libraries.verdicts import Fault, Judged, Standing

GIVEN = ("a row", "numpy", "laplace", "sum", "numpy/simple.py:total")
REFUTED = {"verdict": "refuted", "epsilon_lower": 2.349, "runs": 500}
MISSED = {"verdict": "not-refuted", "epsilon_lower": 0.1, "runs": 500}


def seen(verdict="unproven", *findings, **more):
    found = [[severity, rule, ""] for severity, rule in findings]
    return {"verdict": verdict, "findings": found, "epsilon": 1.0, "usual": 1.0, **more}


def judge(found, **fields):
    return Judged(Row(*GIVEN, **fields), {"version": "1", "seconds": 1.0, **found})


FURTHER = ("error", "sensitivity-understated")
BRANCH = ("error", "private-control-flow")
WARNED = ("error", "library-warns")


@pytest.mark.parametrize(
    ("found", "fields", "standing", "fault"),
    [
        ({"observe": seen("certified")}, {}, "certified", "NONE"),
        ({"observe": seen("unproven")}, {}, "unproven", "NONE"),
        ({"observe": seen("certified"), "audit": REFUTED}, {}, "refuted", "CONTRADICTS"),
        ({"audit": MISSED}, {}, "unproven", "NONE"),
        ({"observe": seen("unproven", FURTHER)}, {}, "unproven", "CONTRADICTS"),
        ({"observe": seen("unproven", BRANCH)}, {}, "unproven", "CHECK"),
        ({"observe": seen("unproven", BRANCH)}, {"harmless": "why"}, "unproven", "NONE"),
        ({"observe": seen("unproven", FURTHER, WARNED)}, {}, "unproven", "WARNED"),
        ({"observe": seen(), "audit": REFUTED}, {"documented": "so"}, "refuted", "DOCUMENTED"),
        ({"observe": seen(), "audit": REFUTED}, {"stated": "open"}, "refuted", "OPEN"),
        ({"observe": seen(), "audit": REFUTED}, {"stated": "home-made"}, "refuted", "OWN"),
        ({"observe": seen("unproven", ("error", "charged-less"))}, {}, "unproven", "NONE"),
        ({"error": "no such thing"}, {}, "unproven", "NONE"),
    ],
)
def test_verdict_and_fault(found, fields, standing, fault):
    made = judge(found, **fields)
    assert made.standing is Standing(standing)
    assert made.fault is Fault[fault]


def test_harmless_does_not_excuse_an_attack():
    made = judge({"observe": seen("unproven", BRANCH), "audit": REFUTED}, harmless="why")
    assert made.accused
    assert made.fault is Fault.CONTRADICTS


def test_a_right_row_that_is_accused_is_a_false_alarm():
    assert judge({"audit": REFUTED}, right=True).false
    assert judge({"observe": seen("unproven", BRANCH)}, right=True).false
    assert not judge({"audit": MISSED}, right=True).false
    assert not judge({"audit": REFUTED}).false


def test_only_what_a_library_states_and_nobody_has_published_has_a_note():
    told = Published("something", "somebody")
    assert judge({"audit": REFUTED}).unpublished
    for fields in ({"published": told}, {"stated": "home-made"}, {"documented": "so"}):
        assert not judge({"audit": REFUTED}, **fields).unpublished
    assert not judge({"observe": seen("unproven", FURTHER)}).unpublished


def test_evidence_rounds_down_and_says_what_an_attack_missed():
    assert "ε ≥ 2.34 (95 %, 500 runs a side)" in judge({"audit": REFUTED}).evidence
    assert "nothing found in 500 runs" in judge({"audit": MISSED}).evidence
    endless = {**REFUTED, "epsilon_lower": "inf"}
    assert "ε ≥ ∞" in judge({"audit": endless}).evidence


@pytest.mark.parametrize(
    ("found", "claim", "cost", "over"),
    [
        (seen(epsilon=1.5), "epsilon = 1", "1.5 (1 at δ = 1e-5)", "over by 50 %"),
        (seen(word=1.2, usual=1.2), "epsilon = 1", "1.2", "over by 20 %"),
        (seen(), "epsilon = 1", "1", "as claimed"),
        (seen(usual=0.4), "epsilon = 1, delta = 1e-5", "1 (0.4 at δ = 1e-5)", "60 % wasted"),
        (seen(epsilon=None, usual=None), "epsilon = 1", "no bound", "–"),
        (seen(), "rho = 0.5", "1", "–"),
    ],
)
def test_cost_beside_the_claim(found, claim, cost, over):
    made = judge({"observe": found}, claim=claim, attack=Attack(0, 1))
    assert (made.cost, made.over) == (cost, over)
