"""Policies: what they refuse to be, and each demand alone."""

import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from audit_records import attack
from examples import RESPONSE, gaussian_invocation, response_plan
from scipy import stats
from seals import sealed

from dpaudit import (
    AddRemove,
    Claim,
    Finding,
    InputError,
    Invocation,
    Laplace,
    MetricBall,
    Opaque,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    Severity,
    TrustModel,
    certify,
)
from dpaudit.certificate import CheckRecord, ReleaseRecord, SubjectRecord
from dpaudit.mechanisms import PureBlackBox
from dpaudit.signing.policy import Policy, Seen, read_policy
from dpaudit.signing.statements import statement_of

NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
ONE, TWO = "1" * 64, "2" * 64
SUBJECT = SubjectRecord("survey:Survey", {}, "ab" * 32)
CERTIFICATE = certify(response_plan(), subject=SUBJECT, claim=Claim(1.0))
GAUSSIAN = certify(Plan.of(gaussian_invocation(8.0)), subject=SUBJECT, claim=Claim(1.0, 1e-5))


def lacks(certificate=CERTIFICATE, signers=(ONE,), at=NOW, seen=(), **policy):
    """What a policy of these keys misses, in a certificate that one key signed now."""
    statement = replace(statement_of(certificate, "0" * 64, at), signers=frozenset(signers))
    found = Policy.from_dict(policy).lacks(Seen(certificate, statement, NOW, *seen))
    assert all(re.fullmatch(r"[^A-Z].*; .*\.|it was signed at .*\.|.*\.", each) for each in found)
    return " ".join(found)


def audit(**changes):
    return attack(**({"method": "white-box likelihood ratio", "runs": 1000} | changes))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "policy demands nothing; add keys or a [[limit]]."),
        ("threshold = 1", "policy demands nothing"),
        ("secure_noise = false\nnever = []", "policy demands nothing"),
        ("tresholds = 2", "unknown key 'tresholds'; did you mean 'threshold'?"),
        ("secure-noise = true", "did you mean 'secure_noise'?"),
        ("[limits]\nunit = 'user'", "did you mean 'limit'?"),
        ("[[limit]]\nunit = 'user'\nepsilom = 1", "did you mean 'epsilon'?"),
        ("[[limit]]\nunit = 'user'", "limit lacks the key 'epsilon'"),
        ("[[limit]]\nunit = 'user'\nepsilon = nan", "epsilon is nan; it must be"),
        ("[[limit]]\nunit = 'user'\nepsilon = 'x'", "epsilon is 'x'; it must be"),
        ("[[limit]]\nunit = 'user'\nepsilon = 1\nrelations = ['add-remov']", "'add-remove'?"),
        ("[[limit]]\nunit = 'user'\nepsilon = 1\ntrust = ['nobody']", "it must be one of local"),
        ("limit = 3", "limit is 3; it must be a sequence."),
        ("limit = [3]", "limit is 3; it must be a table."),
        (f"keys = ['{ONE}', '{ONE}']", "threshold is 1 of 2 keys; it must be at most"),
        (f"keys = ['{ONE}']\nthreshold = 2", "threshold is 2 of 1 keys"),
        ("threshold = 2\ndays = 3", "threshold is 2 of 0 keys"),
        (f"keys = ['{ONE}']\nthreshold = 0", "threshold is 0; it must be an integer"),
        ("keys = ['ana.pub.pem']", "keys has 'ana.pub.pem'; it must be 64 hexadecimal"),
        (f"keys = ['{'AB' * 32}']", "in lower case"),
        (f"keys = '{ONE}'", "it must be a sequence"),
        ("days = 0", "days is 0; it must be"),
        ("enforced = ['noise']", "enforced is 'noise'; it must be one of values within"),
        ("accountants = ['gausian']", "did you mean 'gaussian'?"),
        ("dpaudit = 'latest'", "dpaudit is 'latest'; it must be like '>=0.1, <2'."),
        ("dpaudit = 0.1", "dpaudit is 0.1; it must be like"),
        ("dpaudit = ['>=0.1']", "it must be like"),
        ("journal = 1", "journal is 1; it must be true or false."),
        ("worst = 'bad'", "worst is 'bad'; it must be one of error, warning, note."),
        ("[[audit]]\nconfidence = 1", "confidence is 1; it must be a number in (0, 1)."),
        ("keys = [", "is not TOML"),
    ],
)
def test_one_that_cannot_be_meant_is_refused(tmp_path, text, told):
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(told)) as caught:
        read_policy(path)
    assert "\n" not in str(caught.value)


def test_every_demand_has_a_test_of_its_own():
    """Each key, by the name of the test that shows what lacks."""
    tested = """keys threshold days limit subject plan_hash code_hash declaration scope enforced
    tested secure_noise journal anchor accountants laws dpaudit audit never worst checked book
    current"""
    assert [each.name for each in fields(Policy)] == tested.split()


def of_release():
    """A certificate of one declared query, whose rows no code of an author saw."""
    query = replace(response_plan().invocations[0], mechanism=Laplace(100.0), at="visits")
    release = ReleaseRecord("visits.csv", ("visits: counts of rows",), "cd" * 32)
    about = {"subject": SubjectRecord("visits.toml"), "claim": Claim(1.0), "release": release}
    return certify(Plan.of(query), **about)


def test_scope():
    made = of_release()
    assert lacks(made, scope=["release"]) == lacks(made, scope=["sealed"]) == ""
    assert "the scope is 'release'; the policy wants 'plan'" in lacks(made, scope=["plan"])
    for wanted in ("release", "sealed"):
        assert "the scope is 'plan'" in lacks(CERTIFICATE, scope=[wanted])


def test_what_is_sealed_will_do_where_its_code_or_a_seal_is_wanted():
    made = sealed()
    for wanted in ("sealed", "plan and code"):
        assert lacks(made, scope=[wanted]) == ""
    for wanted in ("release", "plan"):
        assert "the scope is 'sealed'; the policy wants" in lacks(made, scope=[wanted])


def test_what_a_seal_enforces():
    made = sealed()
    for premise in (
        "control flow from public facts and releases",
        "no other way out than the ledger",
    ):
        assert lacks(made, enforced=[premise]) == ""
    assert "'units and groups as named' is assumed" in lacks(
        made, tested=["units and groups as named"]
    )


def test_declaration():
    assert lacks(of_release(), declaration="cd" * 32) == ""
    assert "the declaration is" in lacks(of_release(), declaration="ef" * 32)
    assert "the declaration is none" in lacks(CERTIFICATE, declaration="ef" * 32)


def test_what_a_release_enforces():
    made = of_release()
    for premise in ("values within the sensitivity", "results from releases"):
        assert lacks(made, enforced=[premise]) == lacks(made, tested=[premise]) == ""
    assert "'a unit's name is a person' is assumed" in lacks(
        made, tested=["a unit's name is a person"]
    ).replace('"', "'")


def test_keys_and_threshold():
    assert lacks(keys=[ONE, TWO]) == ""
    assert lacks(keys=[TWO]).startswith("0 of the policy's keys signed it; the policy wants 1.")
    assert lacks(keys=[ONE, TWO], threshold=2).startswith("1 of the policy's keys signed it")
    assert lacks(keys=[ONE, TWO], threshold=2, signers=(ONE, TWO)) == ""
    assert lacks(keys=[TWO, "3" * 64], threshold=2, signers=(ONE, TWO)) != ""


def test_days():
    assert lacks(days=1, at=NOW - timedelta(hours=23)) == ""
    assert "signed at 2026-05-31 11:00:00+00:00; the policy wants 1 days at most" in lacks(
        days=1, at=NOW - timedelta(hours=25)
    )
    assert "state no time" in lacks(days=1, at=None)
    assert "in the future" in lacks(days=1, at=NOW + timedelta(minutes=6))
    assert "in the future" in lacks(journal=True, at=NOW + timedelta(minutes=6))
    assert lacks(days=1, at=NOW + timedelta(minutes=4)) == ""
    assert lacks(days=1e300, at=NOW - timedelta(days=9999)) == ""


def limit(**changes):
    return {"limit": [{"unit": str(RESPONSE), "epsilon": 1.0} | changes]}


def test_limit():
    assert lacks(**limit()) == ""
    assert "the ε that is proved at δ = 0 is 1; the policy wants 0.999" in lacks(
        **limit(epsilon=0.999)
    )
    assert "the unit is 'response'; the policy wants 'user'" in lacks(**limit(unit="user"))
    assert lacks(limit=[limit()["limit"][0], {"unit": "user", "epsilon": 0.0}]) == ""
    assert "the trust model is 'local'; the policy wants 'central'" in lacks(
        **limit(trust=["central"])
    )
    assert "the relation is 'replace-one'" in lacks(**limit(relations=["add-remove"]))
    assert "the relation is 'replace-one'; the policy wants 'none'" in lacks(**limit(relations=[]))


def test_a_limit_at_another_delta_is_what_the_gaussian_mechanism_leaves():
    """δ(ε) by Balle and Wang (2018), Theorem 8, for a sensitivity of 1 and σ = 8."""
    epsilon, sigma = 0.5, 8.0
    a, b = 1 / (2 * sigma), epsilon * sigma
    delta = stats.norm.cdf(a - b) - 2.718281828459045**epsilon * stats.norm.cdf(-a - b)
    of = {"certificate": GAUSSIAN}
    about = {"unit": "row", "epsilon": epsilon}
    assert lacks(**of, limit=[about | {"delta": delta * 1.0001}]) == ""
    assert "is proved at δ" in lacks(**of, limit=[about | {"delta": delta * 0.9999}])
    assert "is proved at δ = 0 is inf" in lacks(**of, limit=[about])


def test_a_ball_hides_no_unit_unless_it_is_asked_for():
    (invocation,) = response_plan().invocations
    ball = replace(invocation, relation=MetricBall(4.0))
    made = certify(Plan.of(ball), subject=SUBJECT)
    assert "the relation is 'metric-ball'" in lacks(made, **limit(epsilon=9))
    assert lacks(made, **limit(epsilon=9, relations=["metric-ball"])) == ""


def test_subject_and_hashes():
    plan = CERTIFICATE.plan.hash
    assert lacks(subject=["survey:Survey"], plan_hash=plan, code_hash="ab" * 32) == ""
    assert "the subject is 'survey:Survey'; the policy wants 'a' or 'b'" in lacks(
        subject=["b", "a"]
    )
    assert "the plan_hash is" in lacks(plan_hash=ONE)
    assert "the code_hash is" in lacks(code_hash=ONE)
    bare = replace(CERTIFICATE, subject=replace(SUBJECT, code_hash=None))
    assert "the code_hash is none" in lacks(bare, code_hash=ONE)


def test_assumptions():
    touches, flow = "touches of one unit as declared", "control flow from public facts and releases"
    laws, noise = "each mechanism costs what it states", "a unit's name is a person"
    assert lacks(enforced=[laws]) == lacks(tested=[laws]) == ""
    assert f"{touches!r} is assumed; the policy wants it enforced." in lacks(enforced=[touches])
    assert f'"{noise}" is assumed' in lacks(tested=[noise])
    assert f"{flow!r} is assumed; the policy wants it tested." in lacks(tested=[flow])
    assert lacks(tested=["sampling as declared and secret"]) == ""  # the plan samples nobody
    bare = replace(CERTIFICATE, subject=replace(SUBJECT, code_hash=None))
    assert "is not about code" in lacks(bare, tested=[touches])
    assert lacks(bare, enforced=[laws]) == ""


def ran(**ledger):
    facts = {"entries": 3, "samplers": {"opendp 0.12, exact": 3}, "seeded": False}
    run = {"summary": {}, "series": {}, "ledger": facts | ledger}
    return replace(CERTIFICATE, run=run, findings=())


def test_the_run():
    assert lacks(ran(), secure_noise=True) == ""
    for other in (
        CERTIFICATE,
        replace(CERTIFICATE, run={"summary": {}, "series": {}}),
        ran(seeded=True),
        ran(samplers={}),
        ran(external={"opendp 0.12, exact": 1}),
        ran(samplers={"opendp 0.12, exact": 3, "numpy floats": 1}),
        replace(ran(), findings=CERTIFICATE.findings),
    ):
        assert "came from exact samplers without a seed" in lacks(other, secure_noise=True)
    assert "give it with --ledger" in lacks(journal=True)
    assert "give it with --anchor" in lacks(anchor=True, seen=(True,))
    assert lacks(journal=True, anchor=True, seen=(True, True)) == ""


def test_accountants_and_versions():
    assert lacks(accountants=["pld", "pure"]) == ""
    assert "the accountant is 'pure'; the policy wants 'pld'" in lacks(accountants=["pld"])
    made = replace(CERTIFICATE, versions={"dpaudit": "1.4.2"})
    assert lacks(made, dpaudit=">=1.4, <2") == lacks(made, dpaudit="~=1.4") == ""
    assert "dpaudit that made it is '1.4.2'; the policy wants '>=2'" in lacks(made, dpaudit=">=2")
    for version in ("latest", ""):
        odd = replace(CERTIFICATE, versions={"dpaudit": version})
        assert "dpaudit that made it" in lacks(odd, dpaudit=">=0")
    assert "'none'" in lacks(replace(CERTIFICATE, versions={}), dpaudit=">=0")


def test_checked():
    unit = CERTIFICATE.plan.unit.name
    limit = {"unit": unit, "epsilon": 1.0}
    assert lacks(checked=True) == lacks(checked=True, limit=[limit]) == ""  # a closed form
    lower = lacks(checked=True, limit=[limit | {"epsilon": 0.4}])
    assert "the policy wants ε = 0.4 at δ = 0 checked" in lower
    claimed = lacks(replace(CERTIFICATE, claim=Claim(0.4)), checked=True)
    assert "and the claim is ε = 0.4, δ = 0; the policy wants it checked" in claimed
    nothing = replace(CERTIFICATE, checked=CheckRecord(None, 0.0, (), "no rule"))
    assert "proves nothing: no rule; the policy wants it checked" in lacks(nothing, checked=True)


def test_laws():
    box = Invocation(PureBlackBox(0.5), 1.0, PrivacyUnit("user"), AddRemove(), TrustModel.CENTRAL)
    boxed = certify(Plan.of(box), subject=SUBJECT)
    within = {"limit": [{"unit": "user", "epsilon": 1.0}]}
    assert lacks(boxed, days=3) == lacks(boxed, **within, laws=["pure-black-box"]) == ""
    assert "'pure-black-box' costs; the policy wants a proof" in lacks(boxed, **within)
    assert "'pure-black-box' costs" in lacks(boxed, laws=["outside-accountant"])


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, True),
        ({"confidence": None, "runs": 0, "method": "white-box, exact"}, True),
        ({"claim_epsilon": 0.5}, True),
        ({"claim_epsilon": 1.1}, False),
        ({"delta": 0.1}, False),
        ({"confidence": 0.98}, False),
        ({"runs": 999}, False),
        ({"method": "black-box, output threshold"}, False),
        ({"pair": [3, 3]}, False),
        ({"pair": {"x": [3], "x_prime": [3]}}, False),
    ],
)
def test_an_audit(changes, found):
    attacked = CERTIFICATE.with_audits([audit(**changes)])
    wanted = {"method": "white-box", "confidence": 0.99, "runs": 1000}
    assert (lacks(attacked, audit=[wanted]) == "") is found
    assert "the policy wants one" in lacks(audit=[wanted])
    assert lacks(replace(attacked, claim=None), audit=[wanted]) == lacks(attacked, audit=[wanted])


def test_an_audit_of_a_large_claim_says_nothing_of_a_small_limit():
    made = certify(response_plan(), subject=SUBJECT, claim=Claim(50.0))
    attacked = made.with_audits([audit(claim_epsilon=50.0)])
    assert lacks(attacked, audit=[{"runs": 1}], **limit(epsilon=50)) == ""
    assert "no audit of the stated claim or guarantee" in lacks(
        attacked, audit=[{"runs": 1}], **limit()
    )


def test_an_audit_at_a_large_delta_says_nothing_of_a_limit_at_a_small_one():
    """With probability .9 the claim says nothing at all, so that nothing can refute it."""
    claim = Claim(1.0, 0.9)
    made = certify(response_plan(), subject=SUBJECT, claim=claim)
    attacked = made.with_audits([audit(claim_epsilon=1.0, delta=0.9)])
    assert "no audit of the stated claim or guarantee" in lacks(
        attacked, audit=[{"runs": 1}], **limit()
    )


def test_findings():
    note = Finding("style", Severity.NOTE, "")
    made = replace(CERTIFICATE, findings=(note, Finding("floats", Severity.WARNING, "")))
    assert lacks(made, never=["other"]) == lacks(made, worst="warning", days=9) == ""
    assert "the note 'style' was found; the policy wants none." in lacks(made, never=["style"])
    assert lacks(made, worst="note") == "the warning 'floats' was found; the policy wants none."


def test_whatever_is_not_certified_is_refused():
    opaque = Opaque(label="sketch", epsilon=1.0)
    (invocation,) = response_plan().invocations
    plan = Plan.of(replace(invocation, mechanism=opaque, relation=ReplaceOne(), sensitivity=1.0))
    for made in (
        CERTIFICATE.with_audits([audit(refuted=True, epsilon_lower=6.0)]),
        certify(plan, subject=SUBJECT),
        certify(response_plan(), subject=SUBJECT, claim=Claim(0.5)),
    ):
        found = lacks(made, **limit(epsilon=99))
        assert f"the verdict is '{made.verdict}'; the policy wants 'certified'." in found


def test_what_is_demanded_of_exports_no_certificate_meets():
    assert "demands 'book', which only an export of a book has." in lacks(book=["a" * 32])
    assert "demands 'current', which only an export of a book" in lacks(current=True)
