"""Rows and commands."""

import shlex
from dataclasses import replace

from dpaudit import Claim, Severity
from dpaudit.certificate import Rehearsal, SubjectRecord
from dpaudit.certificate.records import OBSERVED
from dpaudit.project.targets import parse_settings
from dpaudit.reporting.wording.tables import (
    commands,
    compared_rows,
    invocation_rows,
    replay_command,
    series_rows,
    sorted_findings,
)


def test_invocations_that_differ_in_label_alone_share_a_row(certificates):
    rows = invocation_rows(certificates["exceeded"].plan)
    assert [len(row["labels"]) for row in rows] == [6, 6]
    assert rows[0]["labels"][:2] == ("step 0", "step 2")
    assert rows[0]["sampling"] == "poisson: rate = 0.5"
    assert rows[1]["parameters"] == "sigma = 5"
    assert len(invocation_rows(certificates["thousand"].plan)) == 1000


def test_findings_worst_first(certificates):
    found = [f.severity for f in sorted_findings(certificates["refuted"].findings)]
    assert found == [
        Severity.ERROR,
        Severity.ERROR,
        Severity.WARNING,
        Severity.WARNING,
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
    shown = sorted_findings(certificate.findings)
    assert sorted(map(id, shown)) == sorted(map(id, certificate.findings))
    severities = [list(Severity).index(finding.severity) for finding in shown]
    assert severities == sorted(severities)
