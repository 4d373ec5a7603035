"""Checklists: models, terms, facts, and the three that come with the package."""

import json
from dataclasses import replace
from pathlib import Path
from string import Formatter

import pytest
from audit_records import attack
from hypothesis import given, settings
from hypothesis import strategies as st
from judged import answers, finding, made, simple, status

import dpaudit
import private_bo
from dpaudit import (
    Claim,
    Finding,
    Gaussian,
    Invocation,
    Laplace,
    MetricBall,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    Severity,
    TrustModel,
    certify,
)
from dpaudit.certificate import Certificate, SubjectRecord
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    Opaque,
    PureBlackBox,
    StableHistogram,
    TruncatedLaplace,
)
from dpaudit.plan import FixedSizeSampling
from dpaudit.reporting.checklists import checklists, model
from dpaudit.reporting.checklists.model import Status
from dpaudit.reporting.checklists.terms import Facts, Level, Rules, listed, terms

# Checklists: every answer follows from the certificate, and nothing unknown is met

HAZARDS = {
    "The Privacy Parameter ε": ("nist-large-epsilon",),
    "Variants of Differential Privacy": ("nist-catastrophic-failure",),
    "The Unit of Privacy": ("nist-unit-of-privacy", "nist-event-level"),
    "Comparing Differential Privacy Guarantees": (
        "nist-different-delta",
        "nist-different-unit",
        "nist-large-delta",
    ),
    "Mixing Differential Privacy With Other Data Releases": ("nist-other-releases",),
    "Differentially Private Algorithms": ("nist-custom-implementation",),
    "Systemic Bias": ("nist-systemic-bias",),
    "Human Bias": ("nist-human-bias",),
    "Statistical Bias": ("nist-statistical-bias",),
    "Counting Queries": ("nist-bounded-contribution", "nist-histogram-bins"),
    "Machine Learning": ("nist-machine-learning",),
    "Synthetic Data": ("nist-synthetic-data", "nist-synthetic-quality"),
    "Unstructured Data": ("nist-unstructured-data",),
    "Query Models": ("nist-interactive-queries",),
    "Trust Models": ("nist-trust-assumptions",),
    "Mechanism Implementation Challenges": ("nist-side-channels",),
    "Data Security and Access Control": ("nist-data-security", "nist-access-control"),
    "Data Collection Exposure": ("nist-data-collection",),
}
"""The 24 hazards of NIST SP 800-226, under the titles of its sections."""
REPORTING = {
    "DP setting": ("dpfy-setting",),
    "Instantiating the DP definition": (
        "dpfy-data-accesses",
        "dpfy-final-output",
        "dpfy-unit",
        "dpfy-adjacency",
    ),
    "Privacy accounting details": (
        "dpfy-accountant",
        "dpfy-assumptions",
        "dpfy-formal-statement",
    ),
    "Transparency and verifiability": ("dpfy-recomputable", "dpfy-open-code"),
}
LABEL = {
    "Label": (
        "label-parameters",
        "label-unit",
        "label-utility",
        "label-mechanism",
        "label-hyperparameters",
        "label-deployment",
        "label-empirical",
        "label-interpretation",
        "label-other",
    )
}


class TestLists:
    def test_rules_are_those_of_the_sources(self, certificate):
        for checklist, groups in zip(
            checklists(certificate), (HAZARDS, REPORTING, LABEL), strict=True
        ):
            found = {}
            for item in checklist.items:
                found[item.group] = (*found.get(item.group, ()), item.rule)
            assert found == groups

    def test_rules_are_unique(self, certificate):
        rules = [item.rule for each in checklists(certificate) for item in each.items]
        assert len(rules) == len(set(rules)) == 24 + 10 + 9

    def test_every_answer_has_one_sentence(self, certificate):
        for item in answers(certificate).values():
            assert isinstance(item.status, Status)
            assert item.reason.endswith(".")
            assert item.title
            assert "\n" not in item.reason
            assert len(item.reason) < 400

    def test_same_answers_for_a_certificate_read_back(self, certificate):
        again = Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))
        assert checklists(again) == checklists(certificate)

    def test_counts(self, certificates):
        for checklist in checklists(certificates["certified"]):
            assert sum(map(checklist.count, Status)) == len(checklist.items)


class TestUnknownIsNeverMet:
    NEVER_TOLD = (
        "nist-systemic-bias",
        "nist-human-bias",
        "nist-statistical-bias",
        "nist-histogram-bins",
        "nist-synthetic-quality",
        "nist-unstructured-data",
        "nist-interactive-queries",
        "nist-data-collection",
        "label-other",
    )
    """What no certificate can tell."""

    def test_what_a_certificate_cannot_tell(self, certificate):
        for rule in self.NEVER_TOLD:
            assert status(certificate, rule) is Status.UNKNOWN, rule

    @pytest.mark.parametrize("name", ["opaque", "unbounded", "refuted", "hostile"])
    def test_nothing_that_needs_a_proof_is_met_without_one(self, certificates, name):
        """refuted and hostile: an audit exceeds the proof, or an error disputes the plan."""
        for rule in (
            "nist-large-epsilon",
            "nist-catastrophic-failure",
            "nist-large-delta",
            "nist-bounded-contribution",
            "nist-machine-learning",
            "nist-synthetic-data",
            "nist-trust-assumptions",
            "dpfy-assumptions",
            "dpfy-formal-statement",
            "label-parameters",
            "label-interpretation",
        ):
            assert status(certificates[name], rule) is not Status.MET, rule

    @given(
        rules=st.sets(st.sampled_from(sorted(Rules.IMPLEMENTATION | Rules.UNCOUNTED)), max_size=3),
        severity=st.sampled_from(Severity),
    )
    @settings(max_examples=30, deadline=None)
    def test_a_further_finding_never_makes_an_item_met(self, rules, severity):
        plain = simple()
        worse = replace(
            plain, findings=(*plain.findings, *(finding(rule, severity) for rule in sorted(rules)))
        )
        before, after = answers(plain), answers(worse)
        for rule, item in after.items():
            assert item.status is not Status.MET or before[rule].status is Status.MET


class TestTables:
    @pytest.fixture(params=["nist", "dpfy", "label"])
    def items(self, request):
        table = model._loaded(request.param)
        return [
            item for group in table.values() if isinstance(group, dict) for item in group.values()
        ]

    def test_conditions_and_quotations_are_terms(self, items):
        known = terms(Facts(simple())).keys()
        for item in items:
            answers = {name: answer for name, answer in item.items() if name != "title"}
            assert answers.keys() - {"otherwise"} <= known
            for _, sentence in answers.values():
                quoted = {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}
                assert quoted <= known

    def test_every_item_has_a_last_answer(self, items):
        for item in items:
            assert next(iter(item)) == "title"
            assert list(item)[-1] == "otherwise"

    def test_what_is_quoted_is_no_placeholder(self):
        quoted = made(Laplace(1.0), unit=PrivacyUnit("{relation} {0.__class__}"))
        assert "{relation} {0.__class__}" in answers(quoted)["label-unit"].reason

    def test_tally(self, certificates):
        (nist, *_) = checklists(certificates["bare"])
        counts = [nist.count(each) for each in Status]
        assert (
            nist.tally
            == "Of 24 items: {} met, {} not met, {} not applicable, {} unknown.".format(*counts)
        )


# The terms that the tables name


def of(certificate):
    return terms(Facts(certificate))


def test_bounds_are_rounded_to_their_safe_side():
    found = of(made(Laplace(3.0)).with_audits([attack(epsilon_lower=0.12345678)]))
    assert (found["epsilon"], found["lower_bound"]) == ("0.333334", "0.123456")


def test_what_does_not_apply_is_false():
    found = of(made(Opaque("vendor", 1.0), claim=Claim(1.0)))
    for name in (
        "epsilon",
        "accountant",
        "recomputable",
        "attacks",
        "lower_bound",
        "radius",
        "run",
    ):
        assert not found[name], name
    assert found["unproved"]
    assert found["unexplained"] == "opaque"


def test_thresholds():
    assert of(simple())["strong_epsilon"]
    assert of(made(Laplace(0.1)))["doubtful_epsilon"]
    assert of(made(Gaussian(5.0), delta=1e-4))["uncommon_delta"]
    assert not of(made(Gaussian(5.0), delta=1e-5))["uncommon_delta"]


def test_a_ball_has_a_radius():
    assert of(made(Laplace(1.0), relation=MetricBall(0.25)))["radius"] == "0.25"


def test_a_lower_bound_of_zero_is_one():
    found = of(simple().with_audits([attack(epsilon_lower=0.0)]))
    assert found["lower_bound"] == "0"


# What checklists read in a certificate

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


# Answers of the privacy hazards of NIST SP 800-226


class TestGuarantee:
    @pytest.mark.parametrize(
        ("scale", "wanted"),
        [
            (1.0, Status.MET),
            (0.5, Status.UNKNOWN),
            (0.11, Status.UNKNOWN),
            (0.1, Status.NOT_MET),
            (0.01, Status.NOT_MET),
        ],
    )
    def test_large_epsilon(self, scale, wanted):
        assert status(made(Laplace(scale)), "nist-large-epsilon") is wanted

    def test_catastrophic_failure(self):
        assert status(made(Gaussian(5.0), delta=1e-6), "nist-catastrophic-failure") is Status.MET
        box = made(ApproximateBlackBox(0.5, 1e-7), delta=1e-6)
        assert status(box, "nist-catastrophic-failure") is Status.NOT_MET
        for telling in (TruncatedLaplace(5.0, 90.0), StableHistogram(5.0, 90.0)):
            made_of = made(telling, delta=1e-6)
            assert status(made_of, "nist-catastrophic-failure") is Status.NOT_MET
        assert status(made(PureBlackBox(0.5)), "nist-catastrophic-failure") is Status.MET

    @pytest.mark.parametrize(
        ("unit", "captures", "event"),
        [
            ("user", Status.MET, Status.MET),
            ("hospital patient", Status.MET, Status.MET),
            ("row", Status.UNKNOWN, Status.NOT_MET),
            ("user response", Status.UNKNOWN, Status.NOT_MET),
            ("user-day", Status.UNKNOWN, Status.UNKNOWN),
            ("click of a user", Status.UNKNOWN, Status.NOT_MET),
            ("ad_click by one user", Status.UNKNOWN, Status.NOT_MET),
            ("visit (any patient)", Status.UNKNOWN, Status.UNKNOWN),
            ("day of a user", Status.UNKNOWN, Status.UNKNOWN),
            ("user per day", Status.UNKNOWN, Status.UNKNOWN),
            ("daily user", Status.UNKNOWN, Status.UNKNOWN),
            ("click user", Status.UNKNOWN, Status.UNKNOWN),
            ("of a user", Status.UNKNOWN, Status.UNKNOWN),
            ("—", Status.UNKNOWN, Status.UNKNOWN),
        ],
    )
    def test_unit(self, unit, captures, event):
        certificate = made(Laplace(1.0), unit=PrivacyUnit(unit))
        assert status(certificate, "nist-unit-of-privacy") is captures
        assert status(certificate, "nist-event-level") is event

    @pytest.mark.parametrize("unit", ["user", "row", "thing"])
    @pytest.mark.parametrize("relation", [ReplaceOne(), MetricBall(0.25)])
    def test_no_unit_is_protected_where_nothing_is_proved(self, unit, relation):
        fields = {"unit": PrivacyUnit(unit), "relation": relation}
        error = Finding("noise-reused", Severity.ERROR, "One draw serves twice.")
        for certificate in (
            made(Opaque("x", 1.0), claim=Claim(1.0), **fields),
            made(Gaussian(5.0), delta=0.0, **fields),
            replace(made(Laplace(1.0), **fields), findings=(error,)),
        ):
            for rule in ("nist-unit-of-privacy", "nist-event-level", "nist-bounded-contribution"):
                assert status(certificate, rule) in (Status.UNKNOWN, Status.NOT_APPLICABLE)

    def test_one_statement_is_compared_with_nothing(self):
        alone = made(Opaque("x", 1.0), claim=Claim(1.0))
        assert alone.guarantee is None
        for rule in ("nist-different-unit", "nist-different-delta"):
            assert status(alone, rule) is Status.NOT_APPLICABLE
            assert status(made(Laplace(1.0)), rule) is Status.NOT_APPLICABLE
            assert status(made(Laplace(1.0), claim=Claim(1.0)), rule) is Status.MET

    def test_a_ball_covers_small_changes_only(self):
        item = answers(made(Laplace(1.0), relation=MetricBall(0.25)))["nist-unit-of-privacy"]
        assert item.status is Status.NOT_MET
        assert "0.25" in item.reason

    def test_different_delta(self):
        same = made(Gaussian(5.0), claim=Claim(1.0, 1e-6))
        assert status(same, "nist-different-delta") is Status.MET
        other = made(Gaussian(5.0), claim=Claim(1.0, 1e-6), delta=1e-9)
        assert status(other, "nist-different-delta") is Status.NOT_MET
        attacked = same.with_audits([attack(delta=0.01)])
        assert status(attacked, "nist-different-delta") is Status.NOT_MET
        assert status(made(Laplace(1.0)), "nist-different-delta") is Status.NOT_APPLICABLE

    @pytest.mark.parametrize(
        ("delta", "wanted"), [(1e-6, Status.MET), (1e-5, Status.MET), (1e-4, Status.NOT_MET)]
    )
    def test_large_delta(self, delta, wanted):
        assert status(made(Gaussian(5.0), delta=delta), "nist-large-delta") is wanted

    def test_delta_is_held_against_the_population(self):
        """δ of 1/n or more allows one of n units to be published whole."""
        for population, wanted in ((50_000, Status.MET), (200_000, Status.NOT_MET)):
            sampling = FixedSizeSampling(100, population)
            relation = ReplaceOne()
            certificate = made(Gaussian(5.0), delta=5e-6, sampling=sampling, relation=relation)
            assert status(certificate, "nist-large-delta") is wanted

    def test_other_releases(self):
        assert status(made(Laplace(1.0)), "nist-other-releases") is Status.UNKNOWN
        leaking = made(Laplace(1.0), findings=[finding("result-not-from-releases")])
        assert status(leaking, "nist-other-releases") is Status.NOT_MET
        assert status(leaking, "dpfy-data-accesses") is Status.NOT_MET
        assert status(leaking, "nist-machine-learning") is Status.UNKNOWN


class TestAlgorithms:
    def test_an_error_in_the_declaration_takes_the_proof_away(self):
        certificate = made(Laplace(1.0), findings=[finding("wrong-range", Severity.ERROR)])
        item = answers(certificate)["nist-large-epsilon"]
        assert item.status is Status.NOT_MET
        assert "wrong-range" in item.reason

    def test_an_attack_beyond_the_proof_takes_it_away(self):
        beyond = simple().with_audits([attack(refuted=True, epsilon_lower=1.5)])
        within = simple().with_audits([attack(refuted=False, epsilon_lower=0.9)])
        assert status(beyond, "nist-large-epsilon") is Status.NOT_MET
        assert status(beyond, "dpfy-formal-statement") is Status.NOT_MET
        assert status(within, "nist-large-epsilon") is Status.MET

    def test_a_claim_that_is_too_strong_leaves_the_proof(self):
        certificate = made(Laplace(1.0), claim=Claim(0.1))
        assert certificate.claim_exceeded
        assert status(certificate, "nist-large-epsilon") is Status.MET

    def test_bounded_contribution(self):
        plain = made(Laplace(1.0), count=3)
        assert status(plain, "nist-bounded-contribution") is Status.UNKNOWN
        run = replace(plain, run={"summary": {}, "series": {}})
        assert status(run, "nist-bounded-contribution") is Status.MET
        assert "3 releases" in answers(run)["nist-bounded-contribution"].reason
        for rule in ("touched-too-often", "parts-of-others"):
            often = replace(run, findings=(finding(rule),))
            assert status(often, "nist-bounded-contribution") is Status.NOT_MET
        event = made(Laplace(1.0), unit=PrivacyUnit("row"))
        assert status(event, "nist-bounded-contribution") is Status.NOT_APPLICABLE

    def test_code_that_is_not_the_mathematics(self):
        for rule in sorted(Rules.IMPLEMENTATION):
            certificate = replace(simple(), findings=(finding(rule),))
            assert status(certificate, "nist-custom-implementation") is Status.NOT_MET


class TestDeployment:
    def test_local_model_has_no_store_of_raw_data(self):
        local = made(Laplace(1.0), trust=TrustModel.LOCAL, relation=ReplaceOne())
        assert status(local, "nist-data-security") is Status.NOT_APPLICABLE
        assert status(local, "nist-access-control") is Status.NOT_APPLICABLE
        assert status(local, "nist-trust-assumptions") is Status.MET

    @pytest.mark.parametrize("trust", [t for t in TrustModel if t is not TrustModel.LOCAL])
    def test_other_models_rest_on_trust(self, trust):
        certificate = made(Laplace(1.0), trust=trust)
        for rule in ("nist-data-security", "nist-access-control", "nist-trust-assumptions"):
            assert status(certificate, rule) is Status.UNKNOWN

    def test_one_trusted_step_is_enough_to_need_trust(self):
        steps = [
            Invocation(Laplace(1.0), 1.0, PrivacyUnit("user"), ReplaceOne(), trust)
            for trust in (TrustModel.LOCAL, TrustModel.CENTRAL)
        ]
        certificate = certify(Plan.of(*steps), subject=SubjectRecord("a:B"))
        assert status(certificate, "nist-trust-assumptions") is Status.UNKNOWN

    def test_side_channels(self):
        assert status(made(Laplace(1.0)), "nist-side-channels") is Status.NOT_MET  # float-noise
        exact = replace(made(Laplace(1.0)), findings=())
        assert status(exact, "nist-side-channels") is Status.UNKNOWN


# Answers of the privacy label


class TestLabel:
    def test_utility_needs_a_measured_run(self):
        plain = simple()
        assert status(plain, "label-utility") is Status.NOT_MET
        run = {"summary": {"answers": 3}, "series": {}}
        assert status(replace(plain, run=run), "label-utility") is Status.UNKNOWN
        run = {"summary": {"mean squared error": 3}, "series": {}}
        assert status(replace(plain, run=run), "label-utility") is Status.MET

    def test_mechanism_must_be_explained(self):
        assert status(made(Laplace(1.0)), "label-mechanism") is Status.MET
        for mechanism in (Opaque("vendor", 1.0), PureBlackBox(1.0)):
            certificate = made(mechanism, delta=0.0)
            assert status(certificate, "label-mechanism") is Status.NOT_MET

    def test_empirical(self):
        plain = simple()
        assert status(plain, "label-empirical") is Status.NOT_MET
        attacked = plain.with_audits([attack(), attack(epsilon_lower=0.98765432)])
        item = answers(attacked)["label-empirical"]
        assert item.status is Status.MET
        assert "2 attacks" in item.reason
        assert "0.987654" in item.reason

    def test_interpretation(self):
        """Laplace noise of ε = ln 3: the best guess is right with 1 − e^(−ε/2)/2 = 0.7113."""
        item = answers(made(Laplace(1 / 1.0986122886681098)))["label-interpretation"]
        assert "71.2 %" in item.reason


# Answers of the reporting list of “How to DP-fy ML”


class TestReporting:
    def test_tuning_must_be_spoken_of(self):
        plain = simple()
        assert status(plain, "dpfy-data-accesses") is Status.UNKNOWN
        other = replace(plain, not_covered=("That somebody took part.",))
        assert status(other, "dpfy-data-accesses") is Status.UNKNOWN
        told = replace(plain, not_covered=("Tuning of the learning rate.",))
        assert status(told, "dpfy-data-accesses") is Status.MET

    def test_formal_statement_is_rounded_up(self):
        item = answers(made(Laplace(3.0)))["dpfy-formal-statement"]
        assert item.status is Status.MET
        assert "ε = 0.333334" in item.reason

    def test_code(self, certificates):
        assert status(certificates["certified"], "dpfy-open-code") is Status.UNKNOWN
        assert status(certificates["exceeded"], "dpfy-open-code") is Status.NOT_MET
