"""What is said of a certificate: headline, statement, tables and words."""

import math
import shlex
from dataclasses import replace

import pytest
from audit_records import attack
from gaussian_truth import gaussian_epsilon
from guarantees import certificate_of

from dpaudit import (
    AddRemove,
    Claim,
    Gaussian,
    Invocation,
    Laplace,
    MetricBall,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    RandomizedResponse,
    ReplaceOne,
    Severity,
    TrustModel,
    Verdict,
    ZeroOut,
)
from dpaudit.accounting import AccountantName, Guarantee
from dpaudit.accounting.accountant import FILTER
from dpaudit.certificate import Rehearsal, Standing, SubjectRecord, certify
from dpaudit.certificate.decisions import only_assumed
from dpaudit.certificate.records import OBSERVED
from dpaudit.project.audit_request import AuditRequest
from dpaudit.project.targets import parse_settings
from dpaudit.reporting.checklists import checklists
from dpaudit.reporting.checklists.model import Status
from dpaudit.reporting.curves import growth
from dpaudit.reporting.wording import words
from dpaudit.reporting.wording.headline import Odds, headline, strongest_refutation
from dpaudit.reporting.wording.statement import statement
from dpaudit.reporting.wording.tables import (
    commands,
    compared_rows,
    invocation_rows,
    neighbours_text,
    premise_rows,
    replay_command,
    series_rows,
)
from dpaudit.workflow.attacking import hypothesis

# The sentences of the first screen


def test_certified(certificates):
    said = headline(certificates["certified"])
    assert said.label == "Certified: the plan"
    assert said.sentence == (
        "If the code does what the plan declares, someone who sees everything that leaves your "
        "device can improve a 50:50 guess about "
        "which of two answers you gave to at most 69.7 %."
    )
    assert "The claim (ε = 1, δ = 0) is proved." in said.details
    assert said.open_points == "4 warnings need a decision."
    assert any("It speaks of the plan alone" in detail for detail in said.details)


@pytest.mark.parametrize(
    ("ledger", "words"),
    [
        ({"seeded": True, "samplers": {"numpy 2": 1}}, "an experiment, not a deployment"),
        ({"seeded": False, "samplers": {"numpy 2": 1}}, "in floating point, by explicit choice"),
        ({"seeded": False, "samplers": {"opendp 0.12, exact": 1}}, None),
        (
            {"seeded": False, "samplers": {"numpy 2": 1}, "external": {"numpy 2": 1}},
            "Other libraries drew noise for its run: 'numpy 2'.",
        ),
    ],
)
def test_how_the_noise_of_a_run_was_drawn(certificates, ledger, words):
    run = {"summary": {}, "series": {}, "ledger": {"entries": 1, **ledger}}
    said = " ".join(headline(replace(certificates["certified"], run=run)).details)
    assert (" of its run" in said or " for its run" in said) == (words is not None)
    assert words is None or words in said


def test_a_run_with_a_seed_is_to_be_repeated_without_one(certificates):
    run = {"summary": {}, "series": {}, "ledger": {"entries": 1, "seeded": True}}
    made = certificates["certified"].with_rehearsal(Rehearsal("numbers", 0, 3, ("row 1 removed",)))
    found = {each.message.split(".")[0]: each for each in made.with_run(run, None).all_findings}
    assert found["noise of the declared law, fresh and secret"].remedy == "Run it without a seed."


def test_certified_with_the_code(certificates):
    rehearsal = Rehearsal("numbers", 0, 3, ("row 1 removed",))
    said = headline(certificates["certified"].with_rehearsal(rehearsal))
    assert said.label == "Certified: the plan and the code"
    assert said.sentence.startswith("Someone who sees everything that leaves your device can")
    assert any("the plan and of the code that was rehearsed" in line for line in said.details)


@pytest.mark.parametrize(
    ("proved", "look", "start"),
    [
        (0.75, "certified", "✓ Certified: the plan"),
        (0.7501, "limited", "◐ Proved, limited protection: the plan"),
        (0.9, "limited", "◐ Proved, limited protection: the plan"),
        (0.968, "weak", "! Proved, weak protection: the plan"),
    ],
)
def test_only_what_protects_looks_certified(proved, look, start):
    """ε = log(p / (1 − p)) leaves a guess that is right with probability p."""
    epsilon = math.log(proved / (1 - proved))
    proof = Guarantee(epsilon, 0.0, AccountantName.PURE, None)
    made = replace(certificate_of(Laplace(1.0)), guarantee=proof)
    said = headline(made)
    assert made.verdict is Verdict.CERTIFIED
    assert (said.look, f"{said.sign} {said.label}") == (look, start)
    assert "limited where such a guess can be right in more than 75 %" in said.details[0]
    assert "weak above 90 %" in said.details[0]
    told = any(
        line.startswith("The verdict of the certificate is certified") for line in said.details
    )
    assert told == (look != "certified")


def test_protection_is_judged_of_proofs_alone(certificates):
    looks = {
        kind: headline(certificates[kind]).look for kind in ("exceeded", "refuted", "thousand")
    }
    assert looks == {"exceeded": "unproven", "refuted": "refuted", "thousand": "weak"}


def test_what_is_only_assumed_is_a_warning_of_every_report(certificates):
    made = certificates["certified"]
    found = made.all_findings
    assert {each for each in found if each.rule != "only-assumed"} == {*made.findings}
    assumed = [each for each in found if each.rule == "only-assumed"]
    assert assumed == [*only_assumed(made.assumptions, made.plan.unit)]
    for row in made.assumptions:
        named = [each for each in assumed if str(row.premise) in each.message]
        assert bool(named) == (row.alone.rank == Standing.ASSUMED.rank), row.premise
        assert all(each.message.endswith(row.evidence) for each in named)
        assert all(each.severity is Severity.WARNING for each in named)


def test_neighbours_are_shown_by_what_differs():
    rows = [[float(n), 0.1234567891] for n in range(9)]
    moved = [*rows[:3], [3.0, 1.0], *rows[4:]]
    assert neighbours_text({"x": rows, "x_prime": moved}) == (
        "9 rows, of which row 4 differs: [3.0, 0.123457] in x, [3.0, 1.0] in x_prime"
    )
    assert neighbours_text({"x": 1, "x_prime": [2]}) == '{"x": 1, "x_prime": [2]}'
    assert neighbours_text(["a", 1e-9]) == '["a", 1e-09]'


def test_the_whole_curve_bounds_the_guess(certificates):
    """Total variation of Laplace noise at distance 1 scale: 1 − e^−1/2."""
    proved = headline(certificates["certified"]).odds.proved
    assert proved == pytest.approx((1 + 0.393469340287) / 2)
    assert proved >= (1 + 0.393469340287) / 2


def test_each_kind_of_claim_is_told_in_its_own_numbers(certificates):
    for claim, limit in (
        (Claim.of(advantage=0.5), 0.75),
        (Claim.of(success=0.8), 0.8),
        (Claim.of(curve=[[0.0, 0.4], [1.0, 0.0]]), 0.7),
    ):
        plan = certificates["certified"].plan
        said = headline(certify(plan, subject=SubjectRecord("tests:X"), claim=claim))
        assert f"The claim ({claim}) is proved." in said.details
        assert said.odds.claimed == pytest.approx(limit)
    beyond = certify(plan, subject=SubjectRecord("tests:X"), claim=Claim.of(advantage=0.2))
    assert "promises that" in headline(beyond).sentence
    assert "at most 60 %, but the proof allows 69.7 %" in headline(beyond).sentence
    assert "curve" not in " ".join(headline(certificates["bare"]).details)


def attacked(claim, **changes):
    """A function that was attacked, and of which nothing else is known."""
    given = {"epsilon_lower": 0.5, "refuted": False, "power": "Noise 20 % smaller would be found."}
    facts = {"claim_epsilon": claim.epsilon, "delta": claim.delta, **given, **changes}
    record = attack(confidence=0.95, runs=500, **facts)
    return certify(
        hypothesis(AuditRequest("code.py:f", claim=claim)).target.plan,
        subject=SubjectRecord("code.py:f"),
        claim=claim,
    ).with_audits([record])


def test_an_audit_alone_is_headed_by_what_was_attacked():
    said = headline(attacked(Claim(1.0)))
    assert said.label == "Not refuted"
    assert said.sentence == (
        "An attack of 500 runs on each of two neighbouring data sets does not refute the claim "
        "that code.py:f satisfies ε = 1, δ = 0."
    )
    assert said.details[0] == "Noise 20 % smaller would be found."
    assert "certainty" not in " ".join([said.sentence, *said.details])
    said = headline(attacked(Claim(1.0), epsilon_lower=1.5, refuted=True))
    assert said.label == "Refuted"
    assert "two neighbouring data sets refutes the claim that code.py:f" in said.sentence
    assert said.details[0].startswith("It shows that ε is at least 1.5 at δ = 0")


def test_what_a_whole_curve_refutes_is_not_told_by_a_bound_below_it():
    said = headline(attacked(Claim.of(mu=1.0), refuted=True))
    assert said.details[0] == (
        "It shows that μ = 1, with everything that follows from it, is exceeded (confidence 95 %)."
    )


def test_without_a_claim(certificates):
    said = headline(certificates["bare"])
    assert "no claim to compare" in " ".join(said.details)
    assert said.odds.claimed is None
    assert said.open_points == ""


def test_exceeded_says_what_is_proved_beside_what_is_claimed(certificates):
    said = headline(certificates["exceeded"])
    assert said.sentence.startswith("The claim is not proved: it promises that someone who sees")
    assert "to at most 52.5 %" in said.sentence
    assert said.odds.proved > said.odds.claimed


@pytest.mark.parametrize("kind", ["opaque", "unbounded"])
def test_nothing_proved(certificates, kind):
    said = headline(certificates[kind])
    assert said.sentence.startswith("Nothing is proved")
    assert "certainty" in said.sentence
    assert said.odds.proved is None


def test_refuted_shows_the_strongest_attack(certificates):
    certificate = certificates["refuted"]
    said = headline(certificate)
    assert said.label == "Refuted"
    assert said.sentence.startswith("The claim does not hold")
    details = " ".join(said.details)
    assert "123457 runs shows that ε is at least 1.93456 at δ = 0" in details
    assert "where at most 1 is claimed (confidence 99.9999 %)" in details
    assert strongest_refutation(certificate) is certificate.audits[0]


def test_an_attack_beyond_the_proof_takes_the_proof_off_the_first_screen(certificates):
    said = headline(certificates["refuted"])
    assert said.odds.contradicted
    assert said.odds.proved is None
    assert "so the attacked code does not follow the plan" in " ".join(said.details)


def test_an_attack_within_the_proof_leaves_it(certificates):
    certificate = certificates["refuted"]
    audits = tuple(replace(a, epsilon_lower=0.8, claim_epsilon=0.5) for a in certificate.audits)
    held = replace(certificate, audits=audits, claim=Claim(0.5), findings=())
    said = headline(held)
    assert not said.odds.contradicted
    assert said.odds.proved is not None
    assert "This attack does not contradict the proof" in " ".join(said.details)


def test_exact_and_unbounded_refutations(certificates):
    exact = replace(certificates["hostile"].audits[0], confidence=None)
    said = headline(replace(certificates["hostile"], audits=(exact,)))
    assert "An exact computation shows that no finite ε holds at δ = 0" in " ".join(said.details)


def test_refuted_without_a_bound_or_an_audit(certificates):
    bare = replace(certificates["refuted"].audits[0], epsilon_lower=None)
    said = headline(replace(certificates["refuted"], audits=(bare,)))
    assert "ε = 1 at δ = 0 is exceeded" in " ".join(said.details)
    said = headline(replace(certificates["refuted"], audits=()))
    assert "no audit that shows it" in said.sentence


def test_verdicts_differ_on_the_first_screen(certificates):
    kinds = ("certified", "opaque", "refuted")
    said = [headline(certificates[kind]) for kind in kinds]
    assert [one.look for one in said] == [Verdict.CERTIFIED, Verdict.UNPROVEN, Verdict.REFUTED]
    assert len({one.label for one in said}) == len({one.sentence for one in said}) == 3


# The guarantee in words, and what is left without each assumption


def left(certificate, start):
    """What is said to be left where the assumption fails that starts so."""
    (found,) = [a for a in statement(certificate).assumptions if a.holds.startswith(start)]
    return found.left


def number(text):
    return float(text.removeprefix("ε = ").removesuffix(" is proved."))


def test_gaussian_in_closed_form():
    """Twice the distance is 2μ, twice the uses √2 μ, a replacement 2μ."""
    made = certificate_of(Gaussian(4.0), count=4)
    mu = math.sqrt(4) / 4.0
    for start, moved in (
        ("Neighbouring values", 2 * mu),
        ("No user takes part", math.sqrt(2) * mu),
        ("The data of one user", 2 * mu),
        ("No person has", 2 * mu),
    ):
        exact = gaussian_epsilon(moved)
        assert exact <= number(left(made, start)) <= exact * (1 + 1e-5)


def test_without_secrecy_of_the_sample_the_plain_mechanism_is_left():
    made = certificate_of(Gaussian(4.0), count=4, sampling=PoissonSampling(0.1))
    exact = gaussian_epsilon(math.sqrt(4) / 4.0)
    assert exact <= number(left(made, "Who was sampled")) <= exact * 1.01
    assert left(made, "The data of one user") == "ε = 0.347432 is proved."
    assert left(made, "No person has") == "ε = 0.426784 is proved."


def test_pure_loss_adds_up():
    made = certificate_of(Laplace(2.0), Laplace(4.0), relation=ReplaceOne())
    assert left(made, "No user takes part") == "ε = 1.5 is proved."
    assert left(made, "Neighbouring values") == "ε = 1.5 is proved."
    assert left(made, "The number of units") == "Nothing is proved of that."


def test_groups_that_overlap():
    parts = [
        Invocation(
            Laplace(scale),
            1.0,
            PrivacyUnit("user"),
            AddRemove(),
            TrustModel.CENTRAL,
            group=name,
        )
        for scale, name in ((2.0, "east"), (4.0, "west"))
    ]
    made = certify(Plan.of(*parts), subject=SubjectRecord("x"))
    assert made.guarantee.epsilon == pytest.approx(0.5)
    assert left(made, "No user belongs") == "ε = 0.75 is proved."


def test_metric_ball_of_twice_the_radius():
    made = certificate_of(Laplace(4.0), relation=MetricBall(0.5))
    assert left(made, "The data of one user move by at most 0.5") == "ε = 0.5 is proved."


def test_only_what_the_plan_rests_on_is_named():
    clipped = certificate_of(Laplace(4.0, clip=(-0.5, 0.5)), relation=ZeroOut())
    assert left(clipped, "Values are clipped") == "Nothing is proved."
    local = certificate_of(
        RandomizedResponse(1.0, 4), relation=ReplaceOne(), trust=TrustModel.LOCAL
    )
    holds = " ".join(a.holds for a in statement(local).assumptions)
    for word in ("clip", "sensitivity", "server", "sampled", "groups", "real numbers"):
        assert word not in holds


def test_nothing_proved_rests_on_nothing(certificates):
    for kind in ("opaque", "unbounded"):
        said = statement(certificates[kind])
        assert said.assumptions == ()
        assert said.promise.startswith("Nothing")
        assert growth(certificates[kind]) is None


def test_promise_names_delta_only_where_there_is_one():
    assert "+ δ" not in statement(certificate_of(Laplace(2.0))).promise
    assert "+ δ with ε = " in statement(certificate_of(Gaussian(4.0))).promise


def test_unknown_accountant_result_is_left_out(certificates):
    """A certificate whose accountant has no theorem for its plan, as only a forger makes it."""
    forged = replace(certificates["opaque"], guarantee=certificates["bare"].guarantee)
    assert growth(forged) is None
    assert "Not computed" in left(forged, "No response takes part")


# Rows and commands


def test_invocations_that_differ_in_label_alone_share_a_row(certificates):
    rows = invocation_rows(certificates["exceeded"].plan)
    assert [len(row["labels"]) for row in rows] == [6, 6]
    assert rows[0]["labels"][:2] == ("step 0", "step 2")
    assert rows[0]["sampling"] == "poisson: rate = 0.5"
    assert rows[1]["parameters"] == "sigma = 5"
    assert len(invocation_rows(certificates["thousand"].plan)) == 1000


def test_findings_worst_first(certificates):
    found = [f.severity for f in certificates["refuted"].all_findings]
    assert found == [
        Severity.ERROR,
        Severity.ERROR,
        *[Severity.WARNING] * 4,
        Severity.NOTE,
    ]


def test_compared_least_first_and_one_chosen(certificates):
    rows = compared_rows(certificates["exceeded"])
    epsilons = [float(row["epsilon"].replace("∞", "inf")) for row in rows]
    assert epsilons == sorted(epsilons)
    assert sum(row["chosen"] for row in rows) == 1
    assert compared_rows(certificates["opaque"]) == []


def test_command_reads_back_to_the_same_configuration(certificates):
    certificate = certificates["certified"]
    line = shlex.split(commands(certificate)[0])
    assert line[:3] == ["dpaudit", "certify", certificate.subject.name]
    given = [line[i + 1] for i, part in enumerate(line) if part == "--set"]
    plain = {k: v for k, v in certificate.subject.configuration.items() if k != "kernel"}
    assert parse_settings(given) == plain


def test_command_quotes_hostile_text(certificates, hostile_text):
    assert shlex.split(commands(certificates["hostile"])[0])[2] == hostile_text


def made_by(certificate, *audits, **fields):
    """What the commands of a certificate begin with; a rehearsed one without audits by default."""
    changed = {"audits": audits, "run": None, "rehearsal": Rehearsal("grid", 1, 2), **fields}
    made = replace(certificate, **changed)
    assert commands(made)[-1] == "dpaudit verify certificate.json"
    return [shlex.split(line, comments=True) for line in commands(made)[:-1]]


def test_whatever_made_a_certificate_is_what_its_report_says(certificates):
    known = certificates["certified"]
    audit = known.audits[0]
    name, run = known.subject.name, {"summary": {"data": "grid"}, "ledger": {}}
    ((*words, to, file),) = made_by(known, audit)
    assert shlex.join(words) == replay_command(known, audit)
    assert [to, file] == ["-o", "certificate.json"]
    (words,) = made_by(known, run=run, seed=3)
    assert words[:3] == ["dpaudit", "run", name]
    assert words[-4:] == ["--data", "grid", "--seed", "3"]
    (words,) = made_by(known, run=run, seed=3, rehearsal=None)
    assert words[-1] == "--no-rehearsal"
    noise, words = made_by(known, run=run, seed=None)  # of a deployment
    assert (noise, words[:3]) == ([], ["dpaudit", "certify", name])
    assert words[words.index("--rehearse") :][:3] == ["--rehearse", "--data", "grid"]
    of_check = Claim(2.0, 1e-6, "dpaudit.toml")
    words, audits = made_by(known, audit, claim=of_check)
    assert words[words.index("--claim") + 1] == "epsilon = 2.0, delta = 1e-06"
    assert audits == []


def test_no_command_is_told_where_none_makes_the_certificate(certificates):
    known = certificates["certified"]
    assert made_by(known, not_covered=(OBSERVED,)) == [[]]
    assert made_by(known, subject=SubjectRecord("a training")) == [[]]
    assert made_by(known, subject=SubjectRecord("training", {"chunk": 8}, "0" * 64)) == [[]]
    (words,) = made_by(known, subject=SubjectRecord("plan.toml"), rehearsal=None)
    assert words[:3] == ["dpaudit", "certify", "plan.toml"]


def test_replay(certificates):
    certificate = certificates["certified"]
    line = shlex.split(replay_command(certificate, certificate.audits[0]))
    assert line[3:6] == ["--pair", "[0.0]", "[1.0]"]
    assert line[line.index("--runs") + 1] == "123457"
    assert line[line.index("--seed") + 1] == "77"
    claim = Claim.of(mu=0.5, delta=1e-9)
    tested = replace(certificate.audits[0], claim_epsilon=claim.epsilon, delta=claim.delta)
    line = shlex.split(replay_command(replace(certificate, claim=claim), tested))
    assert line[line.index("--claim") + 1] == "mu = 0.5, delta = 1e-09"
    huge = replace(certificate.audits[0], pair=[list(range(1000)), []])
    assert replay_command(certificate, huge) is None
    assert replay_command(certificate, replace(huge, pair="unknown")) is None
    assert replay_command(certificate, replace(huge, pair={"row": 0, "move": [1.0]})) is None


def test_series(certificates):
    series = certificates["certified"].run["series"]
    rows = {row["name"]: row for row in series_rows(series)}
    assert rows["empty"]["rounds"] == 0
    assert (rows["simple regret"]["first"], rows["simple regret"]["least"]) == ("1", "0.000333333")


def test_every_finding_is_there_once_and_no_lesser_one_before_a_worse(certificate):
    shown = certificate.all_findings
    own = [each for each in shown if each.rule != "only-assumed"]
    assert sorted(map(id, own)) == sorted(map(id, certificate.findings))
    severities = [list(Severity).index(finding.severity) for finding in shown]
    assert severities == sorted(severities)


# The terms of a plan in words


@pytest.mark.parametrize(
    ("relation", "asked"),
    [
        (AddRemove(), "whether you took part"),
        (ReplaceOne(), "which of two answers you gave"),
        (ZeroOut(), "whether your data were used"),
        (MetricBall(0.25), "differ by at most 0.25"),
    ],
)
def test_relations_in_words(certificates, relation, asked):
    plan, central = certificates["bare"].plan, TrustModel.CENTRAL
    changed = Plan(tuple(replace(i, relation=relation, trust=central) for i in plan.invocations))
    assert asked in headline(replace(certificates["bare"], plan=changed)).sentence
    assert "one household" in words.neighbours(relation, PrivacyUnit("household"))


@pytest.mark.parametrize("trust", TrustModel)
def test_every_trust_model_has_words(certificates, trust):
    plan = certificates["bare"].plan
    changed = Plan(tuple(replace(i, trust=trust) for i in plan.invocations))
    said = headline(replace(certificates["bare"], plan=changed)).sentence
    assert words.adversary(trust)[1:] in said
    assert words.TRUST[trust].lower().startswith(trust.value)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_mixed_trust_promises_the_weakest(certificates, order):
    """A server that holds raw data sees more than what leaves a device."""
    use = certificates["bare"].plan.invocations[0]
    both = [replace(use, trust=t, at=t) for t in (TrustModel.LOCAL, TrustModel.CENTRAL)]
    plan = Plan(tuple(both[n] for n in order))
    mixed = replace(certificates["bare"], plan=plan)
    said = headline(mixed).sentence
    assert words.adversary(TrustModel.CENTRAL)[1:] in said
    assert words.adversary(TrustModel.LOCAL)[1:] not in said
    said_of_trust = words.trusted(plan)
    assert "no more than the weakest of these, central" in said_of_trust[0]
    assert said_of_trust[1:] == (words.TRUST[TrustModel.CENTRAL],)
    assert set(said_of_trust) < set(statement(mixed).setting)
    assert not set(said_of_trust) & set(statement(certificates["bare"]).setting)
    items = {item.rule: item for one in checklists(mixed) for item in one.items}
    assert "publishes" in items["dpfy-setting"].reason
    assert "device" not in items["dpfy-setting"].reason
    assert items["label-deployment"].reason.endswith("no more than central.")
    assert items["nist-trust-assumptions"].status is Status.UNKNOWN


def test_every_accountant_and_severity_has_words():
    assert words.ACCOUNTANTS.keys() == {*AccountantName, FILTER} - {AccountantName.BEST}
    assert words.SEVERITIES.keys() == set(Severity)


def test_published_counts_the_releases_of_each_mechanism(certificates):
    assert words.published(certificates["exceeded"]) == ("36 releases by the mechanism gaussian",)
    assert words.published(certificates["bare"]) == ("1 release by the mechanism laplace",)


def test_premises_without_code_share_a_row():
    about = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    made = certify(Plan.of(Invocation(Laplace(1.0), 1.0, *about)), subject=SubjectRecord("p.toml"))
    rows = premise_rows(made)
    reasons = [row["reason"] for row in rows if row["reason"].startswith("No code is recorded")]
    assert len(reasons) == 1
    shown = [name for row in rows for name in row["premises"]]
    assert sorted(shown) == sorted(str(each.premise) for each in made.assumptions)


def test_an_audit_without_a_unit_names_none():
    unit = PrivacyUnit("data set")
    assert "data set" not in words.protected(unit)
    assert words.neighbours(ReplaceOne(), unit) == (
        "The two neighbouring data sets of an audit are hard to tell apart."
    )
    assert words.protected(PrivacyUnit("patient")) == "one patient (privacy unit)"


def test_two_bounds_are_explained_where_they_differ():
    claim = Claim(1.0, 1e-6)
    assert Odds(0.685, 0.732).differ(claim)
    assert not Odds(0.7312, 0.7313).differ(claim)
    assert not Odds(None, 0.732).differ(claim)
    assert not Odds(0.8, 0.732).differ(claim)
    assert not Odds(0.685, 0.732).differ(Claim.of(advantage=0.4))
