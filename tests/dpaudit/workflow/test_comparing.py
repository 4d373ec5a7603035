"""What became worse since older certificates, and which they are."""

import json
import shutil
from dataclasses import replace

import pytest
from audit_records import attack
from examples import gaussian_invocation, response_plan
from projects import budget, entry

from dpaudit import (
    AddRemove,
    Claim,
    DiscreteGaussian,
    Gaussian,
    InputError,
    Laplace,
    Opaque,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    TrustModel,
    certify,
    guarantee,
)
from dpaudit.base.files import digest
from dpaudit.certificate import (
    Finding,
    Rehearsal,
    Severity,
    SubjectRecord,
    Verdict,
)
from dpaudit.workflow.outcomes import Direction, Status, changes
from dpaudit.workflow.publishing import read_baseline, remarks

# What changed between two certificates, and in which direction

SUBJECT = SubjectRecord("m:X", {"sigma": 4.0}, "a" * 64, "m.py:1")


def certificate(*invocations, claim=None, delta=1e-6, subject=SUBJECT):
    plan = Plan.of(*(invocations or (gaussian_invocation(),)))
    return certify(plan, subject=subject, claim=claim, delta=delta)


def told(old, new):
    return {change.what: change for change in changes(old, new)}


def test_a_certificate_has_not_changed_since_itself():
    assert changes(certificate(), certificate()) == ()


def test_a_certificate_that_speaks_of_the_plan_alone_now_is_worse():
    plan = certificate()
    code = plan.with_rehearsal(Rehearsal("numbers", 3, 5, ("row 1 removed",)), ())
    change = told(code, plan)["speaks of"]
    assert (change.before, change.after) == ("plan and code", "plan")
    assert change.direction is Direction.WORSE
    assert told(plan, code)["speaks of"].direction is Direction.BETTER


@pytest.mark.parametrize(
    ("better", "worse", "what", "before", "after"),
    [
        (gaussian_invocation(8.0), gaussian_invocation(4.0), "mechanism sigma", "8.0", "4.0"),
        (gaussian_invocation(), gaussian_invocation(count=3), "count", "1", "3"),
        (gaussian_invocation(), gaussian_invocation(sensitivity=1.5), "sensitivity", "1.0", "1.5"),
        (
            gaussian_invocation(sampling=PoissonSampling(0.1), relation=AddRemove()),
            gaussian_invocation(relation=AddRemove()),
            "sampling",
            '{"rate":0.1,"scheme":"poisson"}',
            "none",
        ),
    ],
)
def test_the_invocation_that_makes_it_worse_is_named(better, worse, what, before, after):
    found = told(certificate(better), certificate(worse))
    change = found[f"invocation 'invocation 1' {what}"]
    assert (change.before, change.after) == (before, after)
    assert found["ε at δ = 1e-06"].direction is Direction.WORSE
    back = told(certificate(worse), certificate(better))
    assert back["ε at δ = 1e-06"].direction is Direction.BETTER
    assert back["ε at δ = 1e-06"].before == found["ε at δ = 1e-06"].after


def test_another_mechanism_and_other_labels():
    old = certificate(gaussian_invocation(at="sum"))
    exact = gaussian_invocation(mechanism=DiscreteGaussian(4.0), at="sum")
    kind = told(old, certificate(exact))["invocation 'sum' mechanism kind"]
    assert (kind.before, kind.after) == ("gaussian", "discrete-gaussian")
    more = told(old, certificate(gaussian_invocation(at="sum"), gaussian_invocation(at="mean")))
    assert more["invocation 'mean'"].before == "none"
    assert more["ε at δ = 1e-06"].direction is Direction.WORSE


def test_many_different_invocations_are_counted():
    old = certificate(*(gaussian_invocation() for _ in range(40)))
    new = certificate(*(gaussian_invocation(5.0) for _ in range(40)))
    found = changes(old, new)
    assert sum(change.what.startswith("invocation") for change in found) == 10
    assert "30 more" in told(old, new)["plan"].after


def test_the_order_of_invocations_is_told_too():
    first, second = gaussian_invocation(at="a"), gaussian_invocation(5.0, at="b")
    found = changes(certificate(first, second), certificate(second, first))
    assert [(change.what, change.direction) for change in found] == [("plan", Direction.NEUTRAL)]


def test_guarantees_are_compared_at_the_old_delta():
    """At a larger δ the same plan has a smaller ε, which is no progress."""
    assert told(certificate(delta=1e-6), certificate(delta=1e-4)) == {}
    worse = certificate(gaussian_invocation(3.9), delta=1e-2)
    assert worse.guarantee.epsilon < certificate().guarantee.epsilon
    change = told(certificate(), worse)["ε at δ = 1e-06"]
    assert change.direction is Direction.WORSE
    assert change.after == f"{guarantee(worse.plan, 1e-6).epsilon:.6g}"


def test_the_last_digits_of_a_library_are_no_change():
    old = certificate()
    moved = replace(old.guarantee, epsilon=old.guarantee.epsilon * (1 + 1e-12))
    assert changes(old, replace(old, guarantee=moved)) == ()


def test_a_proof_that_is_lost_or_found():
    proved = certificate()
    opaque = gaussian_invocation(mechanism=Opaque("sketch", 1.0, 0.0))
    lost = told(proved, certificate(opaque))
    assert lost["verdict"].direction is Direction.WORSE
    assert lost["ε at δ = 1e-06"].after == "unbounded"
    found = told(certificate(opaque), proved)
    assert found["verdict"].direction is Direction.BETTER
    assert found["guarantee"].direction is Direction.BETTER
    pure_lost = told(certify(response_plan(), subject=SUBJECT), certificate(delta=0.0))
    assert pure_lost["verdict"].direction is Direction.WORSE


@pytest.mark.parametrize(
    ("change", "what", "direction"),
    [
        ({"unit": PrivacyUnit("event")}, "unit", Direction.WORSE),
        ({"relation": AddRemove()}, "relation", Direction.WORSE),
        ({"trust": TrustModel.LOCAL}, "trust", Direction.BETTER),
    ],
)
def test_a_promise_to_somebody_else_is_not_compared_by_its_epsilon(change, what, direction):
    found = told(certificate(), certificate(gaussian_invocation(**change)))
    assert found[what].direction is direction
    back = told(certificate(gaussian_invocation(**change)), certificate())
    assert back[what].direction is Direction.WORSE


def test_verdicts_have_an_order():
    fine = certificate(claim=Claim(9.0, 1e-6))
    exceeded = certificate(claim=Claim(0.1, 1e-6))
    unproven = certificate(gaussian_invocation(mechanism=Opaque("sketch", 1.0, 0.0)))
    made = attack(refuted=True, claim_epsilon=9.0, delta=1e-6, epsilon_lower=10.0)
    refuted = fine.with_audits((made,))
    assert refuted.verdict is Verdict.REFUTED
    others = SubjectRecord("m:X", {"sigma": 4.0}, "b" * 64, "m.py:1")
    withstood = replace(made, refuted=False, epsilon_lower=1.0)
    for better, worse in [
        (fine, unproven), (fine, exceeded), (fine, refuted),
        (unproven, exceeded), (unproven, refuted), (exceeded, refuted),
    ]:  # fmt: skip
        assert told(better, worse)["verdict"].direction is Direction.WORSE
        if worse is not refuted:
            assert told(worse, better)["verdict"].direction is Direction.BETTER
    assert told(fine, exceeded)["claim"].direction is Direction.NEUTRAL
    # Other code that withstands as many attacks is an improvement, if it keeps what it claims.
    mended = replace(fine.with_audits((withstood,)), subject=others)
    assert told(refuted, mended)["verdict"].direction is Direction.BETTER
    unbroken = replace(withstood, epsilon_lower=0.05)
    above = replace(exceeded.with_audits((unbroken,)), subject=others)
    assert told(refuted, above)["verdict"].direction is Direction.NEUTRAL
    unattacked = told(refuted, replace(fine, subject=others))["verdict"]
    assert unattacked.direction is Direction.NEUTRAL
    assert unattacked.after == "certified, with fewer audits"
    # What was refuted is not mended by attacking it no more, or again with less luck.
    for same in (fine, exceeded, fine.with_audits((withstood,))):
        change = told(refuted, same)["verdict"]
        assert change.direction is Direction.WORSE
        assert "an audit found this same plan" in change.after
    # Nor is a proof of something else than the code, where the claim is too loose to be refuted.
    loose = certificate(claim=Claim(50.0, 1e-6)).with_audits((made,))
    assert loose.verdict is Verdict.UNPROVEN
    assert told(loose, certificate(claim=Claim(50.0, 1e-6)))["verdict"].direction is Direction.WORSE
    assert told(fine, refuted)["audits"].after == "1, ε ≥ 10"
    assert told(fine.with_audits((withstood,)), fine)["audits"].direction is Direction.WORSE
    assert told(fine, fine.with_audits((withstood,)))["audits"].direction is Direction.NEUTRAL


def test_code_fields_and_versions():
    moved = SubjectRecord("m:X", {"sigma": 4.0, "bins": 3}, "b" * 64, "m.py:1")
    new = replace(certificate(subject=moved), versions={"dpaudit": "9"})
    found = told(certificate(), new)
    assert str(found["code hash"]) == f"code hash: {'a' * 12} → {'b' * 12}"
    assert str(found["field bins"]) == "field bins: none → 3"
    assert found["version of dpaudit"].after == "9"
    assert {change.direction for change in found.values()} == {Direction.NEUTRAL}


def test_numbers_that_print_alike_are_shown_apart():
    old, new = certificate(gaussian_invocation(4.0)), certificate(gaussian_invocation(4 - 1e-7))
    change = told(old, new)["ε at δ = 1e-06"]
    assert change.direction is Direction.WORSE
    assert float(change.before) < float(change.after)


def test_laplace_by_hand():
    """ε = count · sensitivity / scale."""
    old = certificate(gaussian_invocation(mechanism=Laplace(4.0)), delta=0.0)
    new = certificate(gaussian_invocation(mechanism=Laplace(2.0), count=2), delta=0.0)
    assert str(told(old, new)["ε at δ = 0"]) == "ε at δ = 0: 0.25 → 1 (worse)"
    assert Gaussian(2.0).kind == "gaussian"


def test_a_looser_claim_is_worse():
    def claimed(claim):
        return certificate(claim=claim)

    stated = claimed(Claim(3.0, 1e-6))
    for looser in (
        Claim(3.1, 1e-6), Claim(3.0, 1e-5), Claim(2.0, 1e-5), Claim(3.0000000001, 1e-6), None,
    ):  # fmt: skip
        change = told(stated, claimed(looser))["claim"]
        assert change.direction is Direction.WORSE
        assert change.before != change.after
    for tighter in (Claim(2.9, 1e-6), Claim(3.0, 1e-7)):
        assert told(stated, claimed(tighter))["claim"].direction is Direction.NEUTRAL
    assert told(claimed(None), stated)["claim"].direction is Direction.NEUTRAL


def test_findings_and_open_points_that_come_and_go():
    def found(*findings, not_covered=()):
        made = certificate()
        return replace(made, findings=findings, not_covered=not_covered)

    error = Finding("noise-reused", Severity.ERROR, "One draw serves twice.", at="sum")
    warning = Finding("data-dependent-bound", Severity.WARNING, "The bound is a statistic.")
    note = Finding("aside", Severity.NOTE, "By the way.")
    found_error = told(found(), found(error))["error noise-reused at sum"]
    assert (found_error.direction, found_error.after) == (Direction.WORSE, error.message)
    gone = told(found(error), found())["error noise-reused at sum"]
    assert (gone.direction, gone.before, gone.after) == (
        Direction.NEUTRAL, error.message, "none",
    )  # fmt: skip
    added = told(found(), found(warning, note))
    assert list(added) == ["warning data-dependent-bound"]
    assert added["warning data-dependent-bound"].direction is Direction.NEUTRAL
    assert told(found(error), found(replace(error, message="Other words."))) == {}
    milder = told(found(error), found(replace(error, severity=Severity.WARNING)))
    assert set(milder) == {"error noise-reused at sum", "warning noise-reused at sum"}
    silent = told(found(not_covered=("Timing.", "Tuning.")), found(not_covered=("Timing.",)))
    assert str(silent["not covered"]) == "not covered: Tuning. → none"


def test_nothing_proved_is_not_epsilon_zero():
    none = certificate(gaussian_invocation(mechanism=Opaque("sketch", 1.0, 0.0)))
    assert none.guarantee is None
    unbounded = certificate(delta=0.0)
    assert unbounded.guarantee.epsilon == float("inf")
    assert "guarantee" not in told(none, unbounded)
    assert told(unbounded, certify(response_plan(), subject=SUBJECT))["ε at δ = 0"].before == (
        "unbounded"
    )
    endless = attack(claim_epsilon=9.0, epsilon_lower=float("inf"))
    attacked = certificate().with_audits((endless,))
    assert told(certificate(), attacked)["audits"].after == "1, no finite ε"


def test_trust_that_is_asked_of_fewer_is_better():
    local, central = (gaussian_invocation(trust=t) for t in (TrustModel.LOCAL, TrustModel.CENTRAL))
    joint = gaussian_invocation(trust=TrustModel.JOINT)
    mixed = certificate(local, central)
    assert told(mixed, certificate(local, local))["trust"].direction is Direction.BETTER
    assert told(certificate(local, local), mixed)["trust"].direction is Direction.WORSE
    back = told(certificate(joint, central), certificate(central, central))
    assert back["trust"].direction is Direction.BETTER
    other = told(certificate(joint), certificate(central))
    assert other["trust"].direction is Direction.WORSE


# Comparing a project with its older certificates: which they are, and what became worse


def forged_curve(text):
    """A certificate with a curve that nobody proved, and a digest that fits."""
    record = json.loads(text)
    record["guarantee"]["curve"] = [[0.0, 1e-9]]
    record["versions"] = {"dpaudit": "0.0.1"}
    record.pop("digest")
    return json.dumps(record | {"digest": digest(record)})


def test_nothing_changed(project):
    entries = [entry("Sum", None, "audit = []"), entry("p", "laplace.toml")]
    project(*entries)
    outcome = project(*entries, since=project.root / "reports")
    assert all(row.since == row.name and not row.changes for row in outcome.subjects)
    assert not outcome.is_worse


def test_worse_is_told_with_its_reason(project):
    project(entry("Sum", None, "audit = []"))
    worse = entry("Sum", None, "audit = []", "set = { scale = 0.5 }", "claim = { epsilon = 3 }")
    outcome = project(worse, since=project.root / "reports" / "Sum.json")
    told = [str(change) for change in outcome.subjects[0].changes]
    assert told[0] == "ε at δ = 0: 1 → 2 (worse)"
    assert any(each.startswith("claim: ε = 1, δ = 0 → ε = 3, δ = 0") for each in told)
    assert "invocation 'sum' mechanism scale: 1.0 → 0.5" in told
    assert "field scale: 1.0 → 0.5" in told
    assert outcome.status is Status.CERTIFIED
    assert outcome.is_worse


def test_new_renamed_and_gone(project):
    project(entry("a", "laplace.toml"), entry("b", "code.py:Sum", "audit = []"))
    later = project(
        entry("renamed", "laplace.toml"), entry("new", "normal.toml"),
        since=project.root / "reports",
    )  # fmt: skip
    assert [row.since for row in later.subjects] == ["a", ""]
    assert later.gone == ("b",)


def test_two_subjects_of_one_target_are_told_apart_by_their_fields(project):
    def scaled(name, scale):
        return entry(name, "code.py:Sum", f"set = {{ scale = {scale} }}", "audit = []")

    project(scaled("wide", 8.0))
    old = project.root / "reports" / "wide.json"
    old = old.rename(project.root / "old.json")
    outcome = project(scaled("narrow", 2.0), scaled("broad", 8.0), since=old)
    assert [row.since for row in outcome.subjects] == ["", "old"]
    assert outcome.gone == ()
    assert project(scaled("narrow", 2.0), scaled("other", 4.0), since=old).gone == ("old",)
    assert project(scaled("alone", 2.0), since=old).is_worse


def test_a_failed_subject_is_not_gone(project):
    project(entry("a", "laplace.toml"), entry("b", "normal.toml"))
    later = project(
        entry("a", "nowhere.toml"), entry("c", "normal.toml"), since=project.root / "reports"
    )
    assert later.gone == ()


def test_a_budget_that_allows_more_is_worse(project):
    entries = [entry("a", "laplace.toml"), entry("b", "response.toml")]
    project(*entries, budget(3, "a", "b"))
    since, kept = project.root / "reports", project.root / "kept"
    shutil.copytree(since, kept)
    for now, worse, told in (
        ([budget(3, "a", "b")], False, None),
        ([budget(30, "a", "b")], True, "ε = 3, δ = 0 of a, b → ε = 30, δ = 0 of a, b (worse)"),
        ([budget(3, "a", "b", delta=0.1)], True, "→ ε = 3, δ = 0.1 of a, b (worse)"),
        ([budget(3, "a")], True, "→ ε = 3, δ = 0 of a (worse)"),
        ([], True, "→ none (worse)"),
        ([budget(2, "a", "b")], False, "→ ε = 2, δ = 0 of a, b"),
        ([budget(9, "a"), budget(3)], False, "→ ε = 9, δ = 0 of a"),  # the other one still holds
    ):
        outcome = project(*entries, *now, since=since)
        assert outcome.status is Status.CERTIFIED
        assert (outcome.is_worse, outcome.beside) == (worse, worse), told
        shutil.rmtree(since)
        shutil.copytree(kept, since)
        said = [text for name, text in remarks(outcome) if name == "project"]
        assert len(said) == (told is not None)
        assert all(text.startswith("budget 'budget 1': ε = 3, ") for text in said)
        assert all(text.endswith(told) for text in said)


def test_subjects_that_are_renamed_or_gone_need_no_budget(project):
    project(entry("a", "laplace.toml"), entry("b", "response.toml"), budget(3, "a", "b"))
    since = project.root / "reports"
    later = project(entry("renamed", "laplace.toml"), budget(3, "renamed"), since=since)
    assert (later.is_worse, later.gone) == (False, ("b",))


def test_budgets_of_older_reports_may_be_unknown_but_not_wrong(project):
    project(entry("a", "laplace.toml"), budget(3, "a"))
    listed = project.root / "reports" / ".dpaudit-files.json"
    record = json.loads(listed.read_text())
    assert project(entry("a", "laplace.toml"), since=listed.parent / "a.json").changes == ()
    listed.write_text(json.dumps(record | {"budgets": [{"name": "x", "limit": {"epsilon": -1}}]}))
    with pytest.raises(InputError, match=r"dpaudit-files\.json.*subjects"):
        read_baseline(listed.parent)
    record.pop("budgets")
    listed.write_text(json.dumps(record))
    (change,) = project(entry("a", "laplace.toml"), budget(3), since=listed.parent).changes
    assert str(change) == "budgets: unknown → ε = 3, δ = 0 of a"


def test_reports_for_machines_are_passed_over(project, tmp_path):
    certificate = certify(response_plan(), subject=SubjectRecord("m:X"))
    certificate.save(tmp_path / "x.json")
    (tmp_path / "x.other.json").write_text('{"version": "2.1.0"}')
    (tmp_path / "list.json").write_text("[]")
    assert set(read_baseline(tmp_path).certificates) == {"x"}


@pytest.mark.parametrize(
    "damage", ["tampered", "forged", "truncated", "version", "missing", "empty"]
)
def test_a_bad_certificate_stops_before_any_work(project, tmp_path, damage):
    project(entry("a", "laplace.toml"))
    old = tmp_path / "old"
    shutil.move(project.root / "reports", old)
    text = (old / "a.json").read_text()
    changed, message = {
        "tampered": (
            text.replace('"count": 1', '"count": 2'),
            "a.json.*certificate was edited",
        ),
        "forged": (forged_curve(text), r"a.json.*guarantee\.curve does not follow"),
        "truncated": (text[:100], "a.json.*is not JSON"),
        "version": (
            text.replace("dpaudit-certificate/3", "dpaudit-certificate/9"),
            "a.json.*/9",
        ),
        "missing": (text, "does not exist"),
        "empty": ("{}", "holds no certificate"),
    }[damage]
    (old / "a.json").write_text(changed)
    with pytest.raises(InputError, match=message):
        project(entry("Leaves"), since=old / "none" if damage == "missing" else old)
    assert not (project.root / "reports").exists()
