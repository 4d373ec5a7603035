"""Parties, data and result of a federation."""

import itertools
import json
import math
from dataclasses import fields as dataclass_fields
from dataclasses import replace

import numpy as np
import pytest
from audited import audited
from rehearsals import Gossip, rules
from subject_conformance import SubjectConformance

import private_bo
from dpaudit import Ledger, Verdict, ZeroOut, certify
from dpaudit.accounting import compose
from dpaudit.auditing.replaying.replay import replay
from dpaudit.base.errors import InputError
from dpaudit.certificate import SubjectRecord
from dpaudit.project import RunResult
from dpaudit.project.targets import configuration, parse_settings
from private_bo.federated import (
    DPFTS,
    DPFTSDE,
    FTS,
    FTSDE,
    PlainTS,
    Reliance,
    SamplingScheme,
    Sensitivity,
    ZeroedAgent,
    synthetic,
)
from private_bo.federated.algorithms import Server

SMALL = DPFTSDE(agents=8, regions=2, rate=0.5, features=10, rounds=6, initial=3, clip=4.0)
PROBLEM = synthetic(8, seed=1, points=60)


def test_wrong_data_are_refused_before_anything_is_released() -> None:
    for data in ([], synthetic(7, points=20), None):
        ledger = Ledger(SMALL.plan(), rng=np.random.default_rng(0))
        with pytest.raises(InputError, match="data"):
            SMALL.run(data, ledger, np.random.default_rng(0))
        assert len(ledger) == 0
    with pytest.raises(InputError, match="agent is 8"):
        ZeroedAgent(PROBLEM, 8)
    with pytest.raises(InputError, match="must be one of synthetic"):
        SMALL.load("nowhere", np.random.default_rng(0))
    with pytest.raises(InputError):
        SMALL.load("/nowhere.mat", np.random.default_rng(0))
    for kind in (DPFTS, FTS, PlainTS):
        with pytest.raises(InputError, match="regions is 2"):
            kind(regions=2)


def test_public_names() -> None:
    assert {DPFTS, DPFTSDE} < set(private_bo.SUBJECTS)
    assert private_bo.PlainTS is PlainTS
    assert DPFTSDE().load("synthetic", np.random.default_rng(0)).agents == 200
    assert DPFTSDE(agents=30, regions=4).load("digits", np.random.default_rng(0)).agents == 30


def run(subject: DPFTSDE, data: object = PROBLEM, seed: int = 0) -> tuple[RunResult, Ledger]:
    ledger = Ledger(subject.plan(), rng=np.random.default_rng(seed))
    with ledger:
        result = subject.run(data, ledger, np.random.default_rng(seed + 1))
    return result, ledger


def test_without_noise_sampling_and_clipping_it_is_fts_de() -> None:
    quiet = replace(SMALL, rate=1.0, noise_multiplier=1e-15, clip=1e4)
    fields = {field.name: getattr(SMALL, field.name) for field in dataclass_fields(FTSDE)}
    exact = FTSDE(**fields).run(PROBLEM, np.random.default_rng(1))
    assert run(quiet)[0].for_owner.series == exact.for_owner.series
    one = FTS(**{**fields, "regions": 1}).run(PROBLEM, np.random.default_rng(1))
    assert (
        one.owner == FTSDE(**{**fields, "regions": 1}).run(PROBLEM, np.random.default_rng(1)).owner
    )


def test_plain_thompson_sampling_hears_nobody() -> None:
    alone = PlainTS(agents=8, features=10, rounds=6, initial=3).run(
        PROBLEM, np.random.default_rng(1)
    )
    assert alone.for_owner.summary["queries that followed a broadcast"] == 0
    followed = run(SMALL)[0].for_owner.summary
    assert followed["queries that followed a broadcast"] >= 8  # all of them at t = 1
    assert 1 <= followed["rounds in which an agent followed the broadcast"] <= 6


SYNTHETIC = DPFTSDE()
LANDMINES = DPFTSDE(
    agents=29, regions=4, rate=0.35, clip=22.0, features=100, rounds=60, reliance=Reliance.INVERSE
)
# (q, z, published ε): Figure 2 c and d, and the thirteen settings of Figure 3 a, nine of them new.
SYNTHETIC_LOSSES = [
    (0.15, 1.0, 5.93), (0.25, 1.0, 9.91), (0.5, 1.0, 20.12), (0.25, 1.2, 7.39), (0.25, 1.5, 5.22),
]  # fmt: skip
LANDMINE_LOSSES = [
    (0.35, 1.0, 15.17), (0.35, 1.6, 7.12), (0.35, 2.0, 5.14), (0.35, 3.0, 3.05), (0.35, 4.0, 2.16),
    (0.1, 1.0, 3.75), (0.15, 1.0, 5.98), (0.2, 1.0, 7.69), (0.25, 1.0, 9.82),
]  # fmt: skip
ALL_LOSSES = [(SYNTHETIC, *row) for row in SYNTHETIC_LOSSES]
ALL_LOSSES += [(LANDMINES, *row) for row in LANDMINE_LOSSES]


class TestDPFTSDE(SubjectConformance):
    subject = SMALL

    def data(self) -> object:
        return PROBLEM

    def neighbour(self) -> object:
        return ZeroedAgent(PROBLEM, 3)

    def bad_data(self) -> list[object]:
        return [[], synthetic(9, seed=1, points=60)]


@pytest.mark.parametrize(("subject", "q", "z", "published"), ALL_LOSSES)
def test_published_losses(subject: DPFTSDE, q: float, z: float, published: float) -> None:
    algorithm = replace(subject, rate=q, noise_multiplier=z)
    claim = algorithm.claim()
    assert claim.epsilon == pytest.approx(published, abs=0.01)
    assert claim.delta == algorithm.agents**-1.1
    plan = replace(algorithm, declared=Sensitivity.PAPER).plan()
    moments = compose(plan, "moments").epsilon(claim.delta).upper
    assert moments == pytest.approx(claim.epsilon, rel=1e-9)


@pytest.mark.parametrize(
    ("q", "classic", "paper", "true"),
    [(0.35, 15.17, 10.38, 6.21), (0.25, 9.82, 6.67, 4.01), (0.1, 3.75, 2.01, 1.20)],
)
def test_what_the_noise_buys(q: float, classic: float, paper: float, true: float) -> None:
    """Landmines at z = 1: published, by PLD, and by PLD with the true sensitivity."""
    algorithm = replace(LANDMINES, rate=q)
    assert algorithm.claim().epsilon == pytest.approx(classic, abs=0.01)
    assert algorithm.certified(Sensitivity.PAPER) == pytest.approx(paper, abs=0.01)
    found = algorithm.certified(Sensitivity.JOINT)
    assert true - 0.03 < found <= true


def test_three_accountants_side_by_side() -> None:
    for q, moments, rdp, pld in [(0.15, 5.93, 4.88, 3.96), (0.5, 20.12, 18.40, 15.71)]:
        algorithm = replace(SYNTHETIC, rate=q, declared=Sensitivity.PAPER)
        plan = algorithm.plan()
        found = {
            name: compose(plan, name).epsilon(algorithm.target_delta).upper
            for name in ("moments", "rdp", "pld")
        }
        assert found["moments"] == pytest.approx(moments, abs=0.01)
        assert pld < found["rdp"] <= rdp + 0.005  # more orders than the source of the number
        assert found["pld"] == pytest.approx(pld, abs=0.01)


@pytest.mark.parametrize("kind", Sensitivity)
def test_settings_of_the_command_are_read_as_text(kind: Sensitivity) -> None:
    """What a remedy says to set is no TOML value of another type."""
    given = parse_settings([f"noise_scaled_to={kind}", f"declared={kind}"])
    read = replace(SMALL, **given)
    assert (read.noise_scaled_to, read.declared) == (kind, kind)


def test_the_plan_has_the_true_sensitivity_of_every_round() -> None:
    plan = LANDMINES.plan()
    assert (plan.relation, str(plan.unit), plan.trust) == (ZeroOut(), "agent", "central")
    rounds = [i.sensitivity for i in plan.invocations for _ in range(i.count)]
    weights = LANDMINES.public_weights.values
    assert len(rounds) == 60
    for t, declared in enumerate(rounds):
        norms = np.sqrt((weights[t] ** 2).sum(axis=0))
        assert declared == pytest.approx(22.0 / (0.35 * 2) * norms.max(), rel=1e-9)
    sigmas = [i.mechanism.sigma for i in plan.invocations for _ in range(i.count)]
    assert sigmas == pytest.approx(22.0 / 0.35 * weights.max(axis=(1, 2)), rel=1e-9)
    assert plan.invocations[0].at == "iterations 0 to 10"
    assert plan.invocations[-1].at == "iterations 39 to 59"


@pytest.mark.parametrize("scaled_to", Sensitivity)
def test_calibration_buys_the_claim_with_less_noise(scaled_to: Sensitivity) -> None:
    published = replace(SMALL, regions=4, noise_scaled_to=scaled_to)
    found = published.calibrated()
    assert found.claim().epsilon == published.claim().epsilon
    assert found.noise_multiplier < published.noise_multiplier
    certified = found.certified(Sensitivity.JOINT)
    assert 0.995 * found.claim().epsilon <= certified <= found.claim().epsilon
    assert published.calibrated(2.0).claim().epsilon == 2.0


def test_fixed_size_sampling_is_accounted_for_as_replacement() -> None:
    fixed = replace(SMALL, sampling=SamplingScheme.FIXED_SIZE)
    (first, *_) = fixed.plan().invocations
    assert first.relation.kind == "replace-one"
    assert first.sensitivity == pytest.approx(2 * SMALL.plan().invocations[0].sensitivity)
    rdp = compose(fixed.plan(), "rdp").epsilon(fixed.target_delta).upper
    assert fixed.claim().epsilon == rdp
    assert run(fixed)[1].spent().hash == fixed.plan().hash


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rate": 0.004}, "rate is 0.004, which samples 0.8 of 200"),
        ({"rate": 0.0}, "rate is 0"),
        ({"rate": 1.5}, "rate is 1.5"),
        ({"agents": 1, "regions": 1, "rate": 1.0}, "agents is 1"),
        ({"agents": 2.0}, "agents is 2.0"),
        ({"regions": 201}, "regions is 201"),
        ({"features": 51}, "must be even"),
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"clip": float("nan")}, "clip is nan"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"reliance": "often"}, "must be one of"),
        ({"sampling": "some"}, "must be one of"),
        ({"declared": "none"}, "must be one of"),
        ({"last_broadcast": 1}, "true or false"),
        ({"sampling": "fixed-size", "agents": 29, "rate": 0.35}, "multiple of 1/29"),
        ({"agents": 2, "rate": 0.5, "weights": ((0.5, 0.4), (0.5, 0.5))}, "sum to 0.9"),
        ({"agents": 2, "rate": 0.5, "weights": ((0.5, 0.5),)}, "weights has shape"),
        ({"agents": 2, "rate": 0.5, "weights": ((0.5,), (0.5, 0.5))}, "weights is"),
        ({"agents": 2, "rate": 0.5, "weights": 3.0}, "weights is 3.0; it must be a sequence"),
        (
            {"agents": 2, "rate": 0.5, "weights": ((0.5, 0.5 + 1e-7), (0.5, 0.5))},
            r"1\.0000001 over",
        ),
        ({"contrast": -1.0}, "contrast"),
        ({"agents": 10**8}, "agents × regions × rounds is 8000000000; it must be at most 20000000"),
        ({"rounds": 10**8}, "agents × regions × rounds is"),
        ({"rounds": 10**400}, "rounds is a number of 1329 bits; it must be an integer"),
        ({"initial": 100_000}, "agents × .initial . rounds.² is"),
        ({"features": 10**9}, "features is 1000000000; it must be at most 10000"),
        ({"features": 8000}, "agents × .initial . rounds. × features is"),
        ({"sharp_rounds": 10**9}, "sharp_rounds is 1000000000; it must be at most 1000000"),
        ({"fading_rounds": 10**9}, "fading_rounds is"),
        ({"own_scale": 1e-300}, "own_scale is 1e-300; it must be from 1e-6 to 1e6"),
        ({"own_scale": 1e300}, "own_scale is"),
        ({"shared_scale": 1e-300}, "shared_scale is"),
        ({"scale": 1e-308}, "scale is 1e-308"),
        ({"offset": 1e308}, "offset is 1e308; it must be from -1e6 to 1e6"),
        ({"offset": -1e7}, "offset is -1e7"),
        ({"noise_variance": 1e308}, "noise_variance is"),
        ({"clip": 1e308}, "clip is"),
        ({"noise_multiplier": 1e-308}, "noise_multiplier is 1e-308; it must be from 1e-18"),
        ({"beta": 0.0}, "beta is 0"),
        ({"refit_every": 0}, "refit_every is 0"),
        ({"refit_every": 2.5}, "refit_every is 2.5"),
        ({"noise_scaled_to": True}, "must be one of joint, paper"),
        ({"scale": 0.0}, "scale"),
    ],
)
def test_wrong_fields_are_refused_in_one_sentence(fields: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        DPFTSDE(**fields)
    assert "\n" not in str(refused.value)


def test_public_weights_may_be_given() -> None:
    rows = ((0.5, 0.5, 0.0, 0.0), (0.0, 0.0, 0.5, 0.5))
    subject = DPFTSDE(agents=4, rate=0.5, rounds=3, weights=rows)
    (only,) = subject.plan().invocations
    assert (only.count, only.at) == (3, "iterations 0 to 2")
    assert only.sensitivity == pytest.approx(11.0 / (0.5 * np.sqrt(2)) * 0.5)


def test_an_audit_that_could_show_nothing_says_what_to_do() -> None:
    with pytest.raises(InputError, match="84574 are needed, so give more"):
        audited("private_bo:DPFTSDE")


def test_the_claim_is_certified_and_both_sensitivities_are_shown() -> None:
    certificate = certify(
        LANDMINES.plan(), subject=SubjectRecord("x", configuration(LANDMINES)),
        claim=LANDMINES.claim(), findings=LANDMINES.findings(),
        not_covered=LANDMINES.not_covered(),
    )  # fmt: skip
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee is not None
    assert {"moments", "rdp", "pld"} <= set(certificate.guarantee.compared)
    messages = {finding.rule: finding.message for finding in certificate.findings}
    assert "6.199" in messages["noise-above-sensitivity"]
    assert "10.38" in messages["noise-above-sensitivity"]
    assert "60 releases" in messages["unused-broadcast"]
    assert "public" in messages["public-weights"]
    json.dumps(certificate.to_dict())


def test_what_is_beside_the_theorem_is_stated() -> None:
    def message(**fields: object) -> str:
        found = replace(SMALL, **fields).findings()  # type: ignore[arg-type]
        return next(each.message for each in found if each.rule == "off-theorem")

    assert "here it is 1 in every round" in message()
    assert "here it is 2.5 in every round" in message(beta=2.5)
    assert "1/sqrt(t)" in message()
    assert "1 − p_t" not in message(reliance=Reliance.INVERSE_SQUARE)
    assert "fits" in message()
    assert "fits" not in message(refit_every=None)
    assert any("few runs cannot refute" in each for each in SMALL.not_covered())


def test_algorithm_1_as_printed_releases_once_more() -> None:
    printed = replace(SMALL, last_broadcast=True)
    assert printed.claim() == SMALL.claim()
    assert printed.certified(Sensitivity.JOINT) > SMALL.certified(Sensitivity.JOINT)
    same, more = run(SMALL), run(printed)
    assert (len(same[1]), len(more[1])) == (6, 7)
    assert more[0].owner == same[0].owner  # nobody acts on it


@pytest.mark.parametrize("agent", [0, 3])
def test_replay_finds_no_more_than_declared(agent: int) -> None:
    """Both neighbours with the same noise: an agent's vectors, or zero in every round."""
    report = replay(replace(SMALL, clip=1.0), PROBLEM, ZeroedAgent(PROBLEM, agent), seed=2)
    assert report.clean
    assert len(report.comparisons) == 6
    moved = [each.observed / each.declared for each in report.comparisons]
    # Clipped at 1, every vector is at the clip norm: who is sampled moves all that is declared.
    assert max(moved) == pytest.approx(1.0, rel=1e-6)
    assert min(moved) == 0.0


def test_replay_sees_the_wrong_clip() -> None:
    """S in place of S/√P moves the release by √P times what is declared."""

    class Wrong(DPFTSDE):
        def server(self, ledger):  # type: ignore[no-untyped-def]
            server = super().server(ledger)
            server.clip *= math.sqrt(self.regions)
            return server

    wrong = Wrong(**{**configuration(SMALL), "clip": 1.0})
    report = replay(wrong, PROBLEM, ZeroedAgent(PROBLEM, 0), seed=2)
    assert report.findings[0].rule == "sensitivity-understated"


def test_canary_transcripts_have_the_declared_shift_and_noise() -> None:
    """Means and deviations over 4000 transcripts, within 6 standard errors, fixed seed."""
    subject = replace(SMALL, noise_multiplier=0.7)
    (pair,) = subject.audit_pairs()
    agent = pair.x["agent"]
    with_it = subject.audit_release(pair.x, 4000, np.random.default_rng(0))
    without = subject.audit_release(pair.x_prime, 4000, np.random.default_rng(1))
    assert with_it.shape == without.shape == (4000, 6, 2)
    shift = subject.public_weights.values[:, :, agent] * 4.0 / (0.5 * np.sqrt(2))
    spread = np.sqrt(subject.sigmas[:, None] ** 2 + 0.25 * shift**2)
    assert (abs(with_it.mean(axis=0) - 0.5 * shift) < 6 * spread / np.sqrt(4000)).all()
    ratio = without.std(axis=0) / subject.sigmas[:, None]
    assert (abs(ratio - 1) < 6 / np.sqrt(2 * 4000)).all()
    with pytest.raises(InputError, match="fields"):
        subject.audit_release({"agent": 0}, 1, np.random.default_rng(0))
    with pytest.raises(InputError, match="at most 7"):
        subject.audit_release({"agent": 8, "present": True}, 1, np.random.default_rng(0))


def test_a_run_is_its_plan_and_repeats() -> None:
    (one, ledger), (two, _) = run(SMALL), run(SMALL)
    assert one == two
    assert ledger.spent().hash == SMALL.plan().hash
    regret = one.for_owner.series["simple regret"]
    assert len(regret) == 7
    assert all(later <= earlier for earlier, later in itertools.pairwise(regret))
    assert regret[-1] >= 0
    assert one.for_owner.summary["final simple regret"] == regret[-1]
    assert run(SMALL, seed=5)[0].owner != one.owner


def test_one_region_is_dp_fts() -> None:
    whole = replace(SMALL, regions=1)
    fields = configuration(whole)
    single = DPFTS(**fields)
    assert single.plan().hash == whole.plan().hash
    assert run(single)[0].owner == run(whole)[0].owner
    assert single.claim() == whole.claim()
    # One region has the paper's sensitivity: there is nothing to gain.
    assert single.certified(Sensitivity.JOINT) == pytest.approx(single.certified(Sensitivity.PAPER))
    assert "noise-above-sensitivity" not in [finding.rule for finding in single.findings()]


def test_a_silent_agent_changes_no_other_agents_first_points() -> None:
    with_it, without = run(SMALL)[0], run(SMALL, ZeroedAgent(PROBLEM, 2))[0]
    with_it, without = with_it.for_owner, without.for_owner
    assert with_it.series["simple regret"][0] == without.series["simple regret"][0]


TINY = {"agents": 6, "rate": 0.5, "features": 10, "rounds": 4, "initial": 3, "clip": 2.0}
KINDS = (DPFTS, DPFTSDE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", ["poisson", "fixed-size"])
def test_a_rehearsal_finds_nothing(kind: type, sampling: str) -> None:
    assert rules(kind(**TINY, sampling=sampling, noise_multiplier=5.0)) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_rehearsal_finds_vectors_that_are_not_clipped(kind: type) -> None:
    class Unlimited(Server):
        @property
        def limit(self) -> float:
            return math.inf

    mistaken = type("Mistaken", (kind,), {"server_class": Unlimited})
    assert rules(mistaken(**TINY)) == {"sensitivity-understated"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_rehearsal_finds_a_regret_that_is_published(kind: type) -> None:
    mistaken = type("Mistaken", (Gossip, kind), {})
    assert rules(mistaken(**TINY)) == {"result-not-from-releases"}
