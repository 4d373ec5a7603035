"""What notebooks show of a plan, a guarantee, a certificate and an audit: one small table each.

A certificate is printed as the same table.

Labels, names and findings are other people's text. All of it is escaped, and mathematics in it is
not typeset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import escape
from typing import Any

from dpaudit.accounting import Guarantee
from dpaudit.base.by_class import implementation
from dpaudit.base.displayed import Displayed
from dpaudit.base.numbers import confidence, down, percent, plain, up
from dpaudit.certificate import AuditRecord, Certificate
from dpaudit.plan import Plan
from dpaudit.reporting.curves import best_odds, proved_points
from dpaudit.reporting.text import compact, escaped, markdown_table, visible
from dpaudit.reporting.wording import tables, words
from dpaudit.reporting.wording.headline import checked, headline

Lines = Iterator[Sequence[str]]
"""The title, the heads (none where the first column names the second), and the rows of a table."""

MOST_ROWS, LONGEST = 20, 300
"""Rows of a plan, and characters of a cell, that are shown."""


def _as_html(lines: Callable[[Any], Lines], shown: Any) -> str:
    """A table without scripts, colours and links."""
    (title,), heads, *rows = (
        [escape(visible(_cut(text))) for text in line] for line in lines(shown)
    )
    left, first = "style='text-align:left'", "td" if heads else "th"
    made = [f"<th {left}>{f'</th><th {left}>'.join(heads)}</th>"] if heads else []
    made += [
        f"<{first} {left}>{name}</{first}>" + "".join(f"<td {left}>{each}</td>" for each in rest)
        for name, *rest in rows
    ]
    body = "\n".join(f"<tr>{each}</tr>" for each in made)
    # The two classes keep the MathJax of notebooks away.
    opening = "<table class='tex2jax_ignore mathjax_ignore'>"
    return f"{opening}\n<caption {left}><b>{title}</b></caption>\n{body}\n</table>"


def _as_markdown(lines: Callable[[Any], Lines], shown: Any) -> str:
    (title,), heads, *rows = ([escaped(_cut(text)) for text in line] for line in lines(shown))
    return "\n".join([f"**{title}**", "", *markdown_table(heads or ("", ""), rows)])


def _as_text(lines: Callable[[Any], Lines], shown: Any) -> str:
    (title,), _, *rows = ([visible(_cut(text)) for text in line] for line in lines(shown))
    width = max(len(name) for name, *_ in rows)
    return "\n".join([title, *(f"  {name:{width}}  {text}" for name, text in rows)])


def _cut(text: str) -> str:
    return compact(text, LONGEST)


def _of_plan(plan: Plan) -> Lines:
    """Invocations that differ in their label alone share a row."""
    yield (f"Plan: protects one {plan.unit}, {plan.relation}, trust {plan.trust}",)
    yield "mechanism", "sensitivity", "per unit", "sampling", "label"
    rows = tables.invocation_rows(plan)
    for each in rows[:MOST_ROWS]:
        mechanism = f"{each['mechanism']} ({each['parameters']})"
        labels = ", ".join(each["labels"])
        yield mechanism, each["sensitivity"], str(each["count"]), each["sampling"], labels
    if len(rows) > MOST_ROWS:
        yield f"and {len(rows) - MOST_ROWS} more", "", "", "", ""


def _of_guarantee(proved: Guarantee) -> Lines:
    yield (f"Guarantee: {_proved(proved)}",)
    yield ()
    theorem = words.ACCOUNTANTS.get(proved.accountant, "")
    yield "accountant", ": ".join(filter(None, (proved.accountant, theorem)))
    if proved.epsilon == math.inf:
        yield "reason", str(proved.native.get("reason", ""))
    if proved.error_bound is not None:
        least = max(0.0, proved.epsilon - proved.error_bound)
        yield "tightest ε", f"at least {down(least)}"
    if points := proved_points(proved):
        yield "50:50 guess", f"right at most {percent(best_odds(points))} of the time"
    others = [(each, name) for name, each in proved.compared.items() if name != proved.accountant]
    if others:
        yield "other accountants", "; ".join(f"{name} {up(each)}" for each, name in sorted(others))


def _proved(proved: Guarantee) -> str:
    shown = "no finite ε" if proved.epsilon == math.inf else f"ε = {up(proved.epsilon)}"
    return f"{shown} at δ = {plain(proved.delta)}"


def _of_certificate(made: Certificate) -> Lines:
    head, claim, proved = headline(made), made.claim, made.guarantee
    yield (f"{head.sign} {head.label}: {made.subject.name}",)
    yield ()
    yield "meaning", head.sentence
    yield "verdict", f"{made.verdict}, of the {made.scope}"
    yield "protects", f"one {made.plan.unit} ({made.plan.relation}, {made.plan.trust})"
    yield "claimed", "nothing" if claim is None else words.stated(claim)
    yield "proved", "nothing" if proved is None else _proved(proved)
    if made.checked is not None:
        yield "checked", checked(made)
    for number, audit in enumerate(made.audits, 1):
        yield f"audit {number}", f"{_tested(audit)}; {_found(audit)}; {audit.method}"
    findings = dict.fromkeys(each.rule for each in made.all_findings)
    if findings:
        yield "findings", f"{', '.join(findings)}. {head.open_points}"


def _of_audit(audit: AuditRecord) -> Lines:
    yield (f"Audit: {_tested(audit)}",)
    yield ()
    yield "found", _found(audit)
    yield "by", f"{audit.method}, {audit.trainings or f'{audit.runs} runs on each side'}"
    yield from ((name, text) for name in ("event", "power") if (text := getattr(audit, name)))


def _tested(audit: AuditRecord) -> str:
    tested = f"ε = {plain(audit.claim_epsilon)} at δ = {plain(audit.delta)}"
    return f"{tested} is {'refuted' if audit.refuted else 'not refuted'}"


def _found(audit: AuditRecord) -> str:
    lower = audit.epsilon_lower
    if lower is None:
        return "no lower bound"
    sure = "exact" if audit.confidence is None else f"confidence {confidence(audit.confidence)}"
    return f"{'no finite ε holds' if lower == math.inf else f'ε ≥ {down(lower)}'} ({sure})"


_KINDS: dict[type, Callable[[Any], Lines]] = {
    Plan: _of_plan,
    Guarantee: _of_guarantee,
    Certificate: _of_certificate,
    AuditRecord: _of_audit,
}
for _kind, _lines in _KINDS.items():
    implementation(Displayed._repr_html_, _kind)(partial(_as_html, _lines))
    implementation(Displayed._repr_markdown_, _kind)(partial(_as_markdown, _lines))
implementation(Displayed.__str__, Certificate)(partial(_as_text, _of_certificate))
