"""Answers of the privacy hazards of NIST SP 800-226."""

from dataclasses import replace

import pytest
from judged import answers, attack, finding, made, simple, status

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
from dpaudit.certificate import SubjectRecord
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    Opaque,
    PureBlackBox,
    StableHistogram,
    TruncatedLaplace,
)
from dpaudit.plan import FixedSizeSampling
from dpaudit.reporting.checklists.facts import Rules
from dpaudit.reporting.checklists.model import Status


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
