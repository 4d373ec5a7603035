"""The certificate's lists as rows of a table."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpaudit.base import files
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.numbers import plain, up
from dpaudit.base.toml_tables import inline
from dpaudit.certificate import AuditRecord, Certificate, Claim, Finding, Severity, Standing
from dpaudit.certificate.assumptions import SEEDED
from dpaudit.certificate.records import OBSERVED
from dpaudit.mechanisms import Norm
from dpaudit.plan import Invocation, Plan
from dpaudit.project.project_file import PROJECT_FILE
from dpaudit.reporting.text import compact
from dpaudit.reporting.wording import words

_LONGEST_PAIR = 1000
_SIDES = ("x", "x_prime")
_LONGEST_ROW = 100
_DEEPEST = 6
_NORMS = {Norm.L1: "L1 norm", Norm.L2: "L2 norm", Norm.CHANGE: "any change is 1"}
_ORDER = {severity: place for place, severity in enumerate(Severity)}

_found = FindingTable(__name__)
ONLY_ASSUMED = "only-assumed"
"""Name of the warning that a report adds where a premise is only assumed."""
_MOST_DECISIONS = 3
"""Premises of one warning that are decided one by one."""

Row = dict[str, Any]
"""The cells of one line of a table, by the names that the templates know."""


def invocation_rows(plan: Plan) -> tuple[Row, ...]:
    """One row for all invocations that differ in their label alone, by first appearance."""
    alike: dict[str, list[Invocation]] = {}
    for invocation in plan.invocations:
        record = invocation.to_dict() | {"at": ""}
        alike.setdefault(files.canonical_json(record), []).append(invocation)
    return tuple(_row(group) for group in alike.values())


def rehearsal_facts(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    """Return what was rehearsed, by name."""
    made = certificate.rehearsal
    if made is None:
        return ()
    if made.reason:
        return (("Rehearsal", f"none: {made.reason}"),)
    lists = (
        ("Neighbours", made.neighbours),
        ("Data further away", made.elsewhere),
        ("Refused before any release", made.refused),
        ("Noise drawn by", made.external),
    )
    return (
        ("Rehearsed on", made.data),
        ("Releases of a run", str(made.releases)),
        *((name, "; ".join(values)) for name, values in lists if values),
        ("Draws of noise tested", str(made.draws)),
        ("Seed of the rehearsal", str(made.seed)),
    )


def seal_facts(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    """Return where a sealed run was, what kept its code from the data, and what that could read."""
    made = certificate.seal
    if made is None:
        return ()
    read = "; ".join(f"{name} (SHA-256 {digest})" for name, digest in sorted(made.files.items()))
    return (
        ("System", made.system),
        ("Kept from the data by", "; ".join(made.means)),
        *([("Run on", f"made-up rows ({made.made_up})")] if made.made_up else ()),
        ("Source of the table", made.source),
        ("Digest of source, schema and bounds", made.table),
        ("Public files that the code could read", read or "none but its own"),
        *([("Functions of one unit's rows", ", ".join(made.functions))] if made.functions else ()),
    )


def _row(alike: Sequence[Invocation]) -> Row:
    first = alike[0]
    fields = {name: value for name, value in first.mechanism.to_dict().items() if name != "kind"}
    sampling = {} if first.sampling is None else first.sampling.to_dict()
    scheme = sampling.pop("scheme", "")
    return {
        "labels": tuple(invocation.at for invocation in alike),
        "mechanism": first.mechanism.kind,
        "parameters": _assignments(fields),
        "sensitivity": f"{plain(first.sensitivity)} ({_NORMS[first.mechanism.norm]})",
        "count": first.count,
        "total": first.releases,
        "sampling": f"{scheme}: {_assignments(sampling)}" if scheme else "all take part",
        "group": "all" if first.group is None else first.group.name,
        "trust": str(first.trust),
    }


def _assignments(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in fields.items())


def _value(value: Any) -> str:
    return plain(value) if isinstance(value, float) else compact(value)


def compared_rows(certificate: Certificate) -> list[Row]:
    """Every accountant that applies, least ε first."""
    proved = certificate.guarantee
    if proved is None:
        return []
    compared = {str(proved.accountant): proved.epsilon} | dict(proved.compared)
    return [
        {
            "name": name,
            "theorem": words.ACCOUNTANTS.get(name, ""),
            "epsilon": up(epsilon),
            "chosen": name == proved.accountant,
        }
        for name, epsilon in sorted(compared.items(), key=lambda item: (item[1], item[0]))
    ]


def premise_rows(certificate: Certificate) -> list[Row]:
    """Every premise; those that do not apply for one reason share a row."""
    rows: dict[tuple[str, ...], Row] = {}
    for each in certificate.assumptions:
        alike = each.standing is Standing.NOT_APPLICABLE
        row = {"standing": each.standing, "reason": each.reason, "premises": []}
        key = (each.reason,) if alike else (each.reason, each.premise)
        rows.setdefault(key, row)["premises"].append(str(each.premise))
    return [{**row, "premise": "; ".join(row["premises"])} for row in rows.values()]


def all_findings(certificate: Certificate) -> tuple[Finding, ...]:
    """Every finding, and a warning for each reason why premises are only assumed; worst first."""
    found = (*certificate.findings, *only_assumed(certificate))
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))


def only_assumed(certificate: Certificate) -> Iterator[Finding]:
    """Premises that nothing enforces or tests, by the reason that they share."""
    why: dict[str, list[str]] = {}
    for each in certificate.assumptions:
        if each.alone.rank == Standing.ASSUMED.rank:
            why.setdefault(each.evidence, []).append(str(each.premise))
    for evidence, premises in why.items():
        found = _found(ONLY_ASSUMED, premises="; ".join(premises), evidence=evidence)
        yield replace(found, remedy=_decision(certificate, premises, evidence))


def _decision(certificate: Certificate, premises: Sequence[str], evidence: str) -> str:
    """Who has to confirm what, or what to do where nobody can confirm it."""
    if evidence in SEEDED.values():
        return words.DECISIONS["seeded"]
    if len(premises) > _MOST_DECISIONS:
        return words.DECISIONS["several"]
    unit = certificate.plan.unit
    return " ".join(words.DECISIONS[each].format(unit=unit) for each in premises)


def neighbours_text(pair: Any) -> str:
    """A pair of neighbours with six digits; of long lists only what differs.

    >>> neighbours_text({"x": [[1.0], [2.0], [3.0]], "x_prime": [[1.0], [2.5], [3.0]]})
    '3 rows, of which row 2 differs: [2.0] in x, [2.5] in x_prime'
    """
    sides: list[Any] = [pair.get(side) for side in _SIDES] if isinstance(pair, Mapping) else []
    lists = all(isinstance(side, list | tuple) for side in sides)
    if lists and len({*map(len, sides)}) == 1:
        rows = list(zip(*sides, strict=True))
        apart = [place for place, row in enumerate(rows) if row[0] != row[-1]]
        if len(apart) == 1 and len(rows) > 2:
            shown = (f"{compact(_short(side[apart[0]]))} in {name}" for name, side in pair.items())
            return f"{len(rows)} rows, of which row {apart[0] + 1} differs: {', '.join(shown)}"
    return compact(_short(pair))


def _short(value: Any) -> Any:
    """A JSON value whose floats have six significant digits."""
    return json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.6g}"))


def series_rows(series: Mapping[str, Sequence[float]]) -> tuple[Row, ...]:
    """Every curve of a run, drawn or not."""
    rows = []
    for name, values in sorted(series.items()):
        ends = (values[0], values[-1], min(values), max(values)) if values else ()
        shown = [plain(float(value)) for value in ends] or ["–"] * 4
        row = dict(zip(("first", "last", "least", "most"), shown, strict=True))
        rows.append({"name": name, "rounds": len(values)} | row)
    return tuple(rows)


def facts(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Named JSON values as short texts, in alphabetical order: a file does not keep another."""
    return tuple((str(name), _value(value)) for name, value in sorted(values.items()))


def nested_facts(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Named JSON values, those inside of others under joined names; in alphabetical order.

    >>> nested_facts({"test_runs": 3, "counts": {"hits": [2, 1], "p_value": 0.25}})
    (('counts, hits', '2, 1'), ('counts, p value', '0.25'), ('test runs', '3'))
    """
    return tuple(_nested((), values)) if values else ()


def _nested(path: tuple[str, ...], value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value and len(path) < _DEEPEST:
        for name, inner in sorted(value.items()):
            yield from _nested((*path, spaced(str(name))), inner)
    elif (
        isinstance(value, list | tuple)
        and 0 < len(value) <= _LONGEST_ROW
        and not any(isinstance(item, list | tuple | Mapping) for item in value)
    ):
        yield ", ".join(path), ", ".join(map(_value, value))
    else:
        yield ", ".join(path), _value(value)


def spaced(name: str) -> str:
    """The name of a field as words; other text stays as it is.

    >>> spaced("p_value"), spaced("__main__"), spaced("ε_0 of x")
    ('p value', '__main__', 'ε_0 of x')
    """
    return name.replace("_", " ") if re.fullmatch(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+", name) else name


def commands(certificate: Certificate) -> tuple[str, ...]:
    """The lines for a shell that make the certificate again, and what they do not make."""
    return (*_making(certificate), "dpaudit verify certificate.json")


def _making(certificate: Certificate) -> Iterator[str]:
    subject, audits, claim = certificate.subject, certificate.audits, certificate.claim
    made, proved, run = certificate.rehearsal, certificate.guarantee, certificate.run or {}
    functions = [audit for audit in audits if "target" in audit.details]
    of_check = claim is not None and claim.source == PROJECT_FILE
    whole = len(audits) == 1 and (functions or made) and "ledger" not in run and not of_check
    line = replay_command(certificate, audits[0]) if whole else None
    named = [subject.name, *_settings(subject.configuration)]
    if subject.code_hash is None and not subject.name.endswith(".toml"):  # a function's plan is one
        named = [str(audit.details["plan"]) for audit in functions if "plan" in audit.details][:1]
    if OBSERVED in certificate.not_covered:
        yield "# made by dpaudit observe, from a run whose data and options are not recorded"
    elif line is not None:
        yield f"{line} -o certificate.json"
    elif not named:
        yield "# made in Python, or from several audits: no single command makes all of it"
    elif certificate.release is not None and "ledger" in run and certificate.seed is not None:
        given = ["--seed", str(certificate.seed), *_synthetic(run["summary"]["data"])]
        yield shlex.join(["dpaudit", "release", subject.name, *given, "-o", "out"])
    elif "ledger" in run and certificate.seed is not None:
        seal, data = certificate.seal, str(run["summary"]["data"])
        given = [] if seal is not None and seal.source == data else ["--data", data]
        given += ["--seed", str(certificate.seed)]
        given += ["--no-rehearsal"] * (made is None and seal is None)
        yield shlex.join(["dpaudit", "run", *named, *given])
    else:
        if "ledger" in run:
            yield "# the run drew fresh noise, which cannot be drawn again"
        given = ["--claim", _stated(claim)] if claim and (of_check or not claim.source) else []
        given += ["--rehearse", "--data", made.data] if made and not made.reason else []
        sealed = certificate.seal and certificate.seal.made_up
        given += ["--rehearse", "--data", sealed] if sealed else []
        if proved is not None:
            given += ["--delta", repr(proved.delta), "--accountant", str(proved.accountant)]
        elif claim is not None:
            given += ["--delta", repr(claim.delta)]
        yield shlex.join(["dpaudit", "certify", *named, *given, "-o", "certificate.json"])
    if audits and line is None:
        yield "# each audit is repeated by the command in its own section"


def _synthetic(data: str) -> list[str]:
    """The option for so many made-up rows, where these were the data."""
    words = data.split()
    return ["--synthetic", words[1]] if words[0] == "synthetic" and len(words) == 2 else []


def replay_command(certificate: Certificate, audit: AuditRecord) -> str | None:
    """The command that repeats an audit; None where its pair does not fit a command line."""
    pair, trained = audit.pair, audit.trainings is not None
    if trained and "target" not in audit.details:
        return None
    sides = [pair[side] for side in _SIDES if side in pair] if isinstance(pair, Mapping) else pair
    if not isinstance(sides, list | tuple) or len(sides) != 2:
        return None
    texts = [files.canonical_json(side) for side in sides]
    if sum(map(len, texts)) > _LONGEST_PAIR:
        return None
    subject = certificate.subject
    command = ["--command"] if audit.details.get("target") == "command" else []
    line = ["dpaudit", "audit", *command, subject.name]
    line += _of_training(audit) if trained else ["--pair", *texts]
    line += _tested(certificate.claim, audit)
    line += [*_of_function(audit.details), *_of_outputs(audit.details)]
    line += ["--runs", str(audit.runs)] if audit.runs and not trained else []
    line += [] if audit.confidence is None else ["--confidence", repr(audit.confidence)]
    line += [*_settings(subject.configuration)]
    line += [] if audit.seed is None else ["--seed", str(audit.seed)]
    return shlex.join(line)


def _of_training(audit: AuditRecord) -> Iterator[str]:
    """Return what the command says of canaries and of the models that judge them."""
    details = audit.details
    yield from ("--canaries", str(details["canaries"] // max(1, audit.runs)))
    for name in ("attack", "shadows", "targets"):
        if name in details:
            yield from (f"--{name}", str(details[name]))


def _tested(claim: Claim | None, audit: AuditRecord) -> list[str]:
    """Write what an audit tests: a claim of a risk, which may be more than one (ε, δ), or these."""
    if "plan" in audit.details:
        return ["--plan", str(audit.details["plan"]), "--delta", repr(audit.delta)]
    tested = (audit.claim_epsilon, audit.delta)
    if claim is None or claim.risk is None or tested != (claim.epsilon, claim.delta):
        return ["--epsilon", repr(tested[0]), "--delta", repr(tested[1])]
    return ["--claim", _stated(claim)]


def _stated(claim: Claim) -> str:
    stated = claim.to_dict().items()
    return ", ".join(f"{name} = {inline(value)}" for name, value in stated if name != "source")


def _of_function(details: Mapping[str, Any]) -> Iterator[str]:
    """Return what the command says of a function beside its claim."""
    if "target" not in details:
        return
    if "plan" not in details:
        relation = details.get("relation")
        shown = relation if isinstance(relation, str) else files.canonical_json(relation)
        yield from ("--unit", str(details.get("unit")), "--relation", shown)
    if "own_randomness" in details:
        yield "--own-randomness"
    arguments = details.get("arguments")
    for name, value in sorted(arguments.items()) if isinstance(arguments, Mapping) else ():
        yield from ("--arg", f"{name}={files.canonical_json(value)}")


def _of_outputs(details: Mapping[str, Any]) -> Iterator[str]:
    """Return what the command says of a score, and of fields that differ in nearly every run."""
    if "given_score" in details:
        yield from ("--score", str(details["given_score"]))
    for name, kind in details.get("unique_fields", {}).items():
        if kind != "undeclared":
            yield from ("--field", f"{name}={kind}")


def _settings(configuration: Mapping[str, Any]) -> list[str]:
    """``--set`` for every field that a command line can give; objects keep their defaults."""
    settable = {k: v for k, v in sorted(configuration.items()) if not isinstance(v, Mapping)}
    return [part for k, v in settable.items() for part in ("--set", f"{k}={_setting(v)}")]


def _setting(value: Any) -> str:
    """The text that ``--set`` reads back as the same value."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return files.canonical_json(value)
