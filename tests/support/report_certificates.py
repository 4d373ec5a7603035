"""Certificates of every kind, and one in which every text is hostile."""

import math
from dataclasses import replace
from functools import cache

import pytest
from audit_records import attack
from seals import SEAL, sealed

from dpaudit import (
    AddRemove,
    Claim,
    Finding,
    Gaussian,
    Invocation,
    Laplace,
    Opaque,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    Severity,
    TrustModel,
    Verdict,
    ZeroOut,
    certify,
)
from dpaudit.accounting import AccountantName, CurvePoint, Guarantee, guarantee
from dpaudit.certificate import (
    Assumption,
    Certificate,
    Premise,
    Rehearsal,
    Standing,
    SubjectRecord,
)

HOSTILE = (
    '<script>alert(1)</script><img src="http://evil/x" onerror=alert(1)> [a](http://evil) '
    "![b](//evil) {{ 7 * 7 }} {% raw %} $\\frac{ | `code` *b* _i_ # h & \u202eabc\u0007 大安區 '\""
)


def invocation(mechanism, **fields):
    given = {
        "sensitivity": 1.0,
        "unit": PrivacyUnit("response"),
        "relation": ReplaceOne(),
        "trust": TrustModel.LOCAL,
    }
    return Invocation(mechanism, **(given | fields))


def audit(*, refuted, epsilon_lower, **fields):
    given = {
        "method": "black-box, event chosen on a pilot",
        "confidence": 0.999999,
        "runs": 123457,
        "event": "release ≥ 3.2101",
        "seed": 77,
        "pair": {"x": [0.0], "x_prime": [1.0]},
        "power": "noise 20 % too small would have been detected with probability 0.93",
        "details": {"hits_x": 51234},
    }
    return attack(refuted=refuted, epsilon_lower=epsilon_lower, **(given | fields))


FULL_RUN = {
    "summary": {"dearest place": "Daan Νταάν", "final regret": 812.25},
    "series": {
        "cumulative regret": [float(i) for i in range(1, 3001)],
        "without privacy": [i / 2 for i in range(1, 3001)],
        "simple regret": [1 / i for i in range(1, 3001)],
        "empty": [],
    },
}
FINDINGS = (
    Finding("response-unit", Severity.NOTE, "Answers are protected one by one.", "", ""),
    Finding("data-dependent-bound", Severity.WARNING, "B was read off the data.", "Fix it.", "c:3"),
    Finding("wrong-range", Severity.ERROR, "The range forgets R.", "Add it.", "clip"),
)
SUBJECT = SubjectRecord(
    "shop.local:Market",
    {"epsilon": 1.0, "rounds": 2000, "kernel": {"type": "SE", "scale": 0.2}, "name": "1"},
    "ab" * 32,
    "shop/local.py:120",
)


def certified():
    plan = Plan.of(invocation(Laplace(1.0), total=2000, at="answer"))
    made = certify(
        plan,
        subject=SUBJECT,
        claim=Claim(1.0, 0.0, "theorem 2"),
        findings=FINDINGS[:2],
        not_covered=("Response times.", "Who was asked."),
    )
    return replace(
        made.with_audits([audit(refuted=False, epsilon_lower=0.91)]), run=FULL_RUN, seed=3
    )


def refuted():
    plan = Plan.of(invocation(Laplace(1.0), total=2000, at="answer"))
    made = certify(plan, subject=SUBJECT, claim=Claim(1.0), findings=FINDINGS)
    exact = audit(
        refuted=False, epsilon_lower=0.5, confidence=None, event=None, runs=0, method="exact"
    )
    return made.with_audits([audit(refuted=True, epsilon_lower=1.9345678), exact])


def exceeded():
    def step(sigma, at):
        return invocation(
            Gaussian(sigma),
            unit=PrivacyUnit("user"),
            relation=AddRemove(),
            trust=TrustModel.CENTRAL,
            sampling=PoissonSampling(0.5),
            count=3,
            at=at,
        )

    plan = Plan.of(*(step(4.0 + i % 2, f"step {i}") for i in range(12)))
    return certify(plan, subject=SubjectRecord("plan.toml"), claim=Claim(0.1, 1e-5))


def opaque():
    plan = Plan.of(invocation(Opaque("a vendor's mechanism", 1.0)))
    return certify(plan, subject=SubjectRecord("vendor:Thing"), claim=Claim(1.0))


def unbounded():
    plan = Plan.of(invocation(Gaussian(4.0)))
    return Certificate(
        SubjectRecord("vendor:Thing"),
        None,
        Verdict.UNPROVEN,
        plan,
        Guarantee(math.inf, 0.0, AccountantName.ZCDP, None, compared={"zcdp": math.inf}),
    )


def bare():
    """Only what is required."""
    plan = Plan((invocation(Laplace(2.0)),))
    proved = Guarantee(0.5, 0.0, AccountantName.PURE, None, curve=(CurvePoint(0.5, 0.0),))
    return Certificate(SubjectRecord("x" * 300), None, Verdict.CERTIFIED, plan, proved)


def hostile():
    unit = PrivacyUnit("<b>u</b><script>x</script>")
    plan = Plan.of(invocation(Opaque(HOSTILE, 1.0), unit=unit, at=HOSTILE, group=HOSTILE))
    record = SubjectRecord(HOSTILE, {HOSTILE: HOSTILE, "b": [HOSTILE]}, None, HOSTILE)
    attack = audit(
        refuted=True,
        epsilon_lower=math.inf,
        method=HOSTILE,
        event=HOSTILE,
        power=HOSTILE,
        pair=[HOSTILE, {HOSTILE: HOSTILE}],
        details={HOSTILE: [HOSTILE]},
    )
    made = certify(plan, subject=record, claim=Claim(1.0, 0.0, HOSTILE)).with_audits([attack])
    return replace(
        made,
        findings=(Finding(HOSTILE, Severity.ERROR, HOSTILE, HOSTILE, HOSTILE),),
        not_covered=(HOSTILE,),
        run={"summary": {HOSTILE: HOSTILE}, "series": {HOSTILE: [1.0, 2.0], "one": [2.0]}},
        versions={HOSTILE: HOSTILE},
        rehearsal=Rehearsal(
            HOSTILE, 1, 2, (HOSTILE,), (HOSTILE,), (HOSTILE,), 3, external=(HOSTILE,)
        ),
        assumptions=tuple(
            Assumption(each, Standing.TESTED, Standing.ENFORCED, (Premise.UNITS,), HOSTILE)
            for each in Premise
        ),
        seal=replace(
            SEAL,
            system=HOSTILE,
            means=(HOSTILE,),
            tries={HOSTILE: HOSTILE},
            source=HOSTILE,
            files={HOSTILE: "ef" * 32},
        ),
    )


def many(number):
    """That many invocations, no two of them alike."""
    unit = PrivacyUnit("user")
    invocations = (
        invocation(Laplace(40.0 + i), unit=unit, at=f"statistic number {i}") for i in range(number)
    )
    plan = Plan(tuple(invocations))
    proved = guarantee(plan, 0.0, AccountantName.PURE)
    return Certificate(SUBJECT, Claim(10.0), Verdict.CERTIFIED, plan, proved)


def thousand():
    return many(1000)


def scripts():
    """Names from all over the world, and operating curves of an attack."""
    names = (
        "Опрос Žižkov",
        "大安區調查",
        "东京とうきょう",
        "여론조사",
        "סקר (3.5) פרטי",
        "استطلاع 12",
        "सर्वेक्षण 🙂",
        "การสำรวจ",
    )
    step = {"unit": PrivacyUnit("परिवार"), "relation": ZeroOut(), "trust": TrustModel.CENTRAL}
    plan = Plan.of(*(invocation(Laplace(9.0, clip=(-0.5, 0.5)), at=name, **step) for name in names))
    rates = [i / 400 for i in range(401)]
    details = {
        "roc": {"fpr": rates, "tpr": [rate**0.7 for rate in rates]},
        "auc": 0.588235,
        "tpr_at_fpr": {"0.01": 0.0398, "0.001": 0.0079},
        "counts": {"hits": [3, 1, 4], "runs": 20},
    }
    attack = audit(refuted=False, epsilon_lower=0.3, method=names[1], details=details)
    made = certify(plan, subject=SubjectRecord("・".join(names)), claim=Claim(1.0, 0.0, names[4]))
    lines = tuple(f"{name}: {name}." for name in names)
    return replace(made.with_audits([attack]), not_covered=lines)


KINDS = {
    made.__name__: made
    for made in (
        certified,
        sealed,
        refuted,
        exceeded,
        opaque,
        unbounded,
        bare,
        hostile,
        scripts,
        thousand,
    )
}


@cache
def all_kinds():
    """One of every kind, by its name; made once in a process."""
    return {name: make() for name, make in KINDS.items()}


@pytest.fixture(scope="session")
def certificates():
    return all_kinds()


@pytest.fixture(params=KINDS, scope="session")
def certificate(request, certificates):
    return certificates[request.param]


@pytest.fixture(scope="session")
def hostile_text():
    return HOSTILE
