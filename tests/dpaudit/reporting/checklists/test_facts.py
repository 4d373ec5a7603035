"""What checklists read in a certificate."""

from pathlib import Path

import pytest
from judged import made

import dpaudit
import private_bo
from dpaudit import Gaussian, Laplace, PrivacyUnit, ReplaceOne
from dpaudit.plan import FixedSizeSampling
from dpaudit.reporting.checklists.facts import Facts, Level, Rules, listed

OF_AUTHORS = {"integer-overflow", "seed-reused"}
"""What authors write in their own findings, and no audit here does."""


def test_every_named_finding_exists():
    """A finding that is renamed must not drop out of the checklists."""
    root = Path(dpaudit.__file__).parent
    folders = (root, Path(private_bo.__file__).parent)
    source = "".join(
        path.read_text("utf-8")
        for folder in folders
        for path in folder.rglob("*.py")
        if path != root / "reporting" / "checklists" / "facts.py"
    )
    groups = (Rules.IMPLEMENTATION, Rules.SOUNDNESS, Rules.SIDE_CHANNELS)
    named = set().union(*groups, Rules.CONTRIBUTIONS, Rules.UNCOUNTED)
    assert {rule for rule in named if f'"{rule}"' not in source} == OF_AUTHORS


@pytest.mark.parametrize(
    ("unit", "level"),
    [
        ("user", Level.PERSON),
        ("Hospital_Patient", Level.PERSON),
        ("user response", Level.EVENT),
        ("daily user", Level.OTHER),
        ("thing", Level.OTHER),
        ("—", Level.OTHER),
    ],
)
def test_level(unit, level):
    assert Facts(made(Laplace(1.0), unit=PrivacyUnit(unit))).level is level


@pytest.mark.parametrize("kind", ["refuted", "opaque", "unbounded", "hostile"])
def test_unproved_says_why_nothing_is_proved(certificates, kind):
    facts = Facts(certificates[kind])
    assert facts.proved is None
    assert facts.unproved


def test_proved_has_no_reason_against_it(certificates):
    facts = Facts(certificates["certified"])
    assert facts.proved is certificates["certified"].guarantee
    assert facts.unproved == ""


def test_population_is_the_least_that_is_known():
    sampling = FixedSizeSampling(10, 2500)
    sampled = made(Gaussian(5.0), delta=1e-6, sampling=sampling, relation=ReplaceOne())
    assert Facts(sampled).population == 2500
    assert Facts(made(Laplace(1.0))).population is None


def test_long_names_are_cut():
    assert listed(["x" * 61]) == "x" * 59 + "…"
