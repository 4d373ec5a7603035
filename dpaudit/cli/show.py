"""What the commands print: JSON for pipelines, short tables for people."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import markup as _markup
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table

from dpaudit.base import files as _files
from dpaudit.base.errors import InputError
from dpaudit.base.numbers import percent, plain, up
from dpaudit.base.optional_import import LIBRARIES
from dpaudit.base.validate import printable
from dpaudit.certificate import (
    Assumption,
    AuditRecord,
    Certificate,
    Finding,
    Severity,
    Standing,
    Verdict,
)
from dpaudit.certificate.checking import lacks_check
from dpaudit.certificate.decisions import ONLY_ASSUMED
from dpaudit.cli.command import WANTED
from dpaudit.reporting.wording.headline import passed_filter, rests_on

if TYPE_CHECKING:
    from dpaudit.auditing.replaying.replay import Comparison
    from dpaudit.project.describing import Description, Parameter
    from dpaudit.workflow.attacking import AuditOutcome
    from dpaudit.workflow.calibrating import Calibration
    from dpaudit.workflow.outcomes import ProjectOutcome
    from dpaudit.workflow.rehearsing import NeighbourReplay
    from dpaudit.workflow.releasing import QueryCost
    from dpaudit.workflow.verifying import Verification

COLOURS: dict[str, str] = {
    Verdict.CERTIFIED: "green",
    Verdict.UNPROVEN: "yellow",
    Verdict.REFUTED: "red",
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "cyan",
    "exceeded": "red",
}
"""Of verdicts, severities and statuses, which are equal where their words are."""


@contextmanager
def answering() -> Iterator[None]:
    """Print an answer whose reader may leave at any time: that changes no exit code.

    Raises:
        InputError: if stdout cannot be written for another reason, such as a full disk.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
    except SystemExit:  # how rich says that the pipe is closed
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        raise InputError(f"stdout cannot be written: {error.strerror}.") from None


def _discard_stdout() -> None:
    """Let what is left in the buffers go nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(*parts: RenderableType, soft_wrap: bool = False) -> None:
    """Print for people, where no JSON is wanted: with markup, and no guesses at numbers."""
    if not WANTED.get():
        with answering():  # a command goes on where nobody reads on, as in "| head"
            Console(highlight=False).print(*parts, soft_wrap=soft_wrap)


def escape(text: str) -> str:
    """A text of a file or a user as it is printed: no markup, no new line, and no moved cursor."""
    return _markup.escape(printable(text))


def grid() -> Table:
    """Facts, one a row: what they are about, and what is so."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def table(*heads: str) -> Table:
    """Columns without lines, whose cells are folded where they must be."""
    found = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for head in heads:
        found.add_column(head, overflow="fold")
    return found


def answered(kind: str, record: Mapping[str, Any]) -> bool:
    """Print an answer as JSON, if that is wanted; docs/answers.json has the schema of each kind."""
    if WANTED.get():
        text = _files.pretty_json({"schema": f"dpaudit-{kind}/1", **record})
        sys.stdout.write(re.sub(r"[^\n -~]", _seen_in_json, text))
    return WANTED.get()


def _seen_in_json(found: re.Match[str]) -> str:
    """A character that JSON may hold as it is, written out if a terminal would obey it."""
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


@answering()
def print_result(text: str, **facts: Any) -> None:
    """Print what was done, in a sentence, and as JSON what it was done with."""
    answered("done", {"said": text, **facts})
    say(escape(text))


def remark(sentence: str) -> None:
    """Print what a reader must know, if anything, apart from the answer."""
    if sentence:
        sys.stderr.write(f"dpaudit: {printable(sentence)}\n")


@answering()
def written(*paths: Path, replaced: bool = False, **facts: Any) -> None:
    """Print the paths of written files, and whether the first was there."""
    answered("files", {"files": [str(path) for path in paths], **facts})
    for number, path in enumerate(paths):
        done = "replaced" if replaced and not number else "wrote"
        say(f"{done} {escape(str(path))}", soft_wrap=True)


@answering()
def certificate(certificate: Certificate, files: Sequence[Path] = (), lists: str = "") -> None:
    """Print a certificate: verdict, numbers, run, audits, findings, files.

    Args:
        certificate: what is told.
        files: that were written.
        lists: the command that lists the premises, of a release whose queries are told beside it;
            what is published stays on the screen then. Without it all is told here.
    """
    more = {"files": [str(path) for path in files]} if files else {}
    if answered("certificate", certificate.to_dict() | more):
        return
    facts = grid()
    colour = COLOURS[certificate.verdict]
    facts.add_row("subject", escape(certificate.subject.name))
    why = ": the claim is exceeded" if certificate.claim_exceeded else ""
    facts.add_row("verdict", f"[bold {colour}]{certificate.verdict}[/]{why}")
    facts.add_row("claim", "none stated" if certificate.claim is None else str(certificate.claim))
    facts.add_row("guarantee", escape(_guarantee(certificate)))
    if certificate.checked is not None:
        looser = certificate.verdict is Verdict.CERTIFIED and lacks_check(certificate)
        why = "" if certificate.checked.epsilon is None else "its rules are looser here, and "
        rest = f"; {why}the verdict rests on the accountant alone" if looser else ""
        told = f"independently: the checker {certificate.checked}{rest}"
        facts.add_row("checked", escape(told))
    plan = certificate.plan
    facts.add_row("protects", f"one {escape(str(plan.unit))} ({plan.relation}, {plan.trust})")
    if certificate.release is not None:
        for said in () if lists else certificate.release.queries:
            facts.add_row("query", escape(said))
    else:
        for invocation in plan.invocations[:5]:
            facts.add_row("invocation", escape(_invocation(invocation)))
        if len(plan.invocations) > 5:
            facts.add_row("", f"… and {len(plan.invocations) - 5} more")
    if groups := {each.group.name for each in plan.invocations if each.group is not None}:
        facts.add_row("groups", escape(f"{len(groups)}, and no {plan.unit} belongs to two"))
    if certificate.run is not None:
        for name, value in certificate.run["summary"].items():
            facts.add_row(escape(name), escape(_value(value)))
    for record in certificate.audits:
        facts.add_row("audit", _audit_line(record))
    if certificate.rehearsal is not None and certificate.rehearsal.reason:
        facts.add_row("rehearsal", escape(f"none: {certificate.rehearsal.reason}"))
    for sentence in passed_filter(certificate):
        facts.add_row("filter", escape(sentence))
    where = f" {lists} lists them." if lists else ""
    facts.add_row("rests on", escape(rests_on(certificate) + where))
    say(facts)
    _premises(() if lists else certificate.assumptions)
    for finding in certificate.all_findings:
        _print_finding(finding)
    written(*files)


def _premises(assumptions: Sequence[Assumption]) -> None:
    """Print how each is known to hold, and on which it rests; not what does not apply."""
    there = [each for each in assumptions if each.standing is not Standing.NOT_APPLICABLE]
    if len(there) > 1:  # of a plan alone there is no more than the laws of its mechanisms
        found = table("standing", "assumption")
        for each in there:
            below = f" [dim](on: {'; '.join(each.rests_on)})[/]" if each.rests_on else ""
            found.add_row(each.standing, each.premise + below)
        say(found)


def _print_finding(finding: Finding) -> None:
    colour = COLOURS[finding.severity]
    remedy = finding.remedy if finding.rule in ("unproven", ONLY_ASSUMED) else ""
    said = escape(f"{finding.rule}: {finding.message} {remedy}".rstrip())
    say(f"[{colour}]{finding.severity}[/] {said}")


def _guarantee(certificate: Certificate) -> str:
    proved = certificate.guarantee
    if proved is None or proved.epsilon == float("inf"):
        return "none"
    width = f", at most {proved.error_bound:.2g} loose" if proved.error_bound else ""
    return f"ε = {up(proved.epsilon)}, δ = {proved.delta:g} ({proved.accountant}{width})"


def _invocation(invocation: Any) -> str:
    parameters = ", ".join(
        f"{name}={_value(value)}"
        for name, value in invocation.mechanism.to_dict().items()
        if name != "kind"
    )
    times = f"{invocation.count} × for one unit, {invocation.releases} in all"
    moved = "unknown" if invocation.mechanism.is_unknown else f"{invocation.sensitivity:g}"
    text = f"{invocation.describe()}: {parameters}; sensitivity {moved}; {times}"
    if invocation.group is not None:
        text += f"; group {_value(invocation.group.to_dict())}"
    sampling = invocation.sampling
    return text if sampling is None else f"{text}; {_value(sampling.to_dict())}"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(item)}" for name, item in value.items())
    return str(value)


def _audit_line(record: AuditRecord) -> str:
    colour = "red" if record.refuted else "green"
    pair = escape(_pair(record.pair))
    made = record.trainings or f"{record.runs} runs a side"
    return f"[{colour}]{record.verdict}[/]: ε ≥ {record.bound(3)} on {pair}, {escape(str(made))}"


def _pair(pair: Any) -> str:
    ends = (pair["x"], pair["x_prime"]) if isinstance(pair, dict) and "x" in pair else (pair, "")
    shown = (_value(end) for end in ends if end != "")
    return " against ".join(f"{each[:29]}…" if len(each) > 30 else each for each in shown)


def _claim(outcome: AuditOutcome) -> str:
    """Say what was tested: the claim, and the plan's curve where that is the null hypothesis."""
    plan = outcome.record.details.get("plan")
    return f"{outcome.claim}" + (f", and the whole curve δ(ε) of {plan}" if plan else "")


@answering()
def audit(outcome: AuditOutcome) -> None:
    """Print one audit."""
    if answered("audit", outcome.to_dict()):
        return
    record = outcome.record
    colour = "red" if record.refuted else "green"
    confidence = (
        "exact" if record.confidence is None else f"{100 * record.confidence:.6g} % confidence"
    )
    facts = grid()
    told = f"[bold {colour}]{record.verdict}[/]"
    if not record.refuted and outcome.concludes_nothing:
        told = f"[bold yellow]{record.verdict}, and nothing is concluded[/] (exit 2)"
    facts.add_row("verdict", told)
    if near := record.details.get("neighbours"):
        facts.add_row("neighbours", escape(near))
    facts.add_row("attacked", escape(outcome.name))
    facts.add_row("claim", escape(_claim(outcome)))
    if relation := record.details.get("relation"):
        unit = record.details["unit"]
        of = "" if unit == "data set" else f", of one {unit}"
        facts.add_row("relation", escape(f"{_value(relation)}{of}"))
    facts.add_row("lower bound", f"ε ≥ {record.bound()} at δ = {record.delta:g} ({confidence})")
    facts.add_row("pair", escape(_pair(record.pair)))
    if why := record.details.get("why_this_pair"):
        facts.add_row("", escape(_value(why)))
    facts.add_row("method", escape(record.method))
    facts.add_row("event", escape(record.event or "none"))
    own = record.details.get("own_randomness")
    made = record.trainings or f"{record.runs} a side"
    facts.add_row("runs", f"{made}, {own or f'seed {record.seed}'}")
    for example in record.details.get("examples", ()):
        facts.add_row("for example", escape(example))
    if tested := record.details.get("tested"):
        facts.add_row("tested", escape(tested.removeprefix("Tested: ")))
    for name, kind in record.details.get("unique_fields", {}).items():
        facts.add_row("unique field", escape(f"{name} {_UNIQUE[kind]}."))
    for name, value in _attack(record):
        facts.add_row(name, escape(value))
    if record.power:
        facts.add_row("power", escape(record.power))
    if record.caution:
        facts.add_row("caution", escape(record.caution))
    if outcome.rehearsal is not None:
        facts.add_row("rehearsal", escape(outcome.rehearsal.sentence))
    say(facts)
    for finding in outcome.findings:
        _print_finding(finding)


_UNIQUE = {
    "undeclared": "differs in nearly every run: an adversary who knows its meaning may compute "
    "something from it that no search finds (the noise of a seed, an order of calls); declare the "
    "field with --field FIELD=KIND, one of random, seed, time, or try a --score",
    "random": "is declared to be drawn afresh, independent of data and noise; nobody tested that",
    "seed": "is declared to be a seed or a key; an adversary who knows "
    "it may compute what was drawn "
    "from it, so try a --score that does so",
    "time": "is declared to be a time or a counter and was left out "
    "of the audit: nobody tested what "
    "it reveals about data",
}


def _attack(record: AuditRecord) -> Iterator[tuple[str, str]]:
    """Of an attack on memberships how well it does, and what would hold if more were known."""
    auc, rates = record.details.get("auc"), record.details.get("tpr_at_fpr")
    if isinstance(auc, float) and isinstance(rates, dict):
        shown = ", ".join(f"TPR {rate:.3g} at FPR {fpr}" for fpr, rate in rates.items())
        yield "attack", f"AUC {auc:.3f}, {shown}"
    for name in ("exposure", "extracted"):
        told = record.details.get(name)
        if isinstance(told, dict):
            most = f" (of {told['most']} bits)" if "most" in told else ""
            yield name, f"{told['included']} if included, {told['left_out']} if left out{most}"
    for name in ("family", "if_independent"):
        found = record.details.get(name)
        if isinstance(found, dict):
            yield "only if", f"{found['assumption']}: ε ≥ {_value(found['epsilon_lower'])}"


@answering()
def inventory() -> None:
    """Print what is installed: everything that a plan or a command can name."""
    from dpaudit.accounting import Accountant
    from dpaudit.mechanisms import Mechanism
    from dpaudit.mechanisms.continual.factorization import Factorization
    from dpaudit.plan import Relation, Sampling
    from dpaudit.project.describing import first_line, parameters
    from dpaudit.project.targets import configuration, registered_subjects

    def with_default(each: Parameter) -> str:
        return each.name if each.default is None else f"{each.name}={each.default or 'none'}"

    content: dict[str, Any] = {
        "subjects": [
            {"name": name, "about": first_line(kind.__doc__), "defaults": configuration(kind())}
            for name, kind in registered_subjects().items()
        ],
        "mechanisms": [
            {
                "name": name,
                "about": first_line(kind.__doc__),
                "fields": [*map(with_default, parameters(kind))],
            }
            for name, kind in sorted(Mechanism.kinds().items())
        ],
        "factorizations": sorted(Factorization.kinds()),
        "sampling": sorted(Sampling.kinds()),
        "accountants": sorted(Accountant.kinds()),
        "relations": sorted(Relation.kinds()),
    }
    if answered("inventory", content):
        return
    _described("mechanisms", content["mechanisms"])
    for heading in ("sampling", "factorizations", "accountants", "relations"):
        say(f"[bold]{heading}[/]", Padding(", ".join(content[heading]), (0, 0, 0, 2)))
    _described("subjects", content["subjects"])


def _described(heading: str, items: Sequence[dict[str, Any]]) -> None:
    """Print names with a sentence each."""
    say(f"[bold]{heading}[/]")
    for item in items:
        say(f"  [cyan]{escape(item['name'])}[/]", Padding(escape(item["about"]), (0, 0, 0, 4)))


@answering()
def verification(found: Verification) -> None:
    """Print what a verified file says; remarks go to stderr."""
    shown = {"kind": found.kind, "valid": not found.lacks, **found.facts}
    shown |= {"remarks": found.remarks} | ({"lacks": found.lacks} if found.lacks else {})
    opinion = {} if found.opinion is None else {"second_opinion": found.opinion.to_dict()}
    if found.assumptions:
        shown["assumptions"] = [each.to_dict() for each in found.assumptions]
    if answered("verification", shown | opinion):
        return
    facts = grid()
    says = f", and it says: {found.facts['verdict']}" if "verdict" in found.facts else ""
    facts.add_row(found.kind, "[red]refused[/]" if found.lacks else f"[green]valid[/]{says}")
    for name, value in found.facts.items():
        told = {True: "yes", False: "no"}[value] if isinstance(value, bool) else _value(value)
        told = "none" if value is None else up(value) if name.endswith("epsilon") else told
        told = (told[1:-1] or "none") if isinstance(value, list) else told
        facts.add_row(name.replace("_", " "), escape(told))
    if found.opinion is not None:
        facts.add_row("second opinion", escape(found.opinion.reason))
    say(facts)
    _premises(found.assumptions)
    for sentence in (*found.remarks, *found.lacks):
        remark(sentence)


# -- plans ----------------------------------------------------------------------------------------


@answering()
def descriptions(described: Sequence[Description]) -> None:
    """Print all of some kinds: what they are, their keys, a plan file."""
    if answered("kinds", {"kinds": [each.to_dict() for each in described]}):
        return
    for each in described:
        say(f"[bold]{escape(each.name)}[/] ({each.family}): {escape(each.about)}")
        if len(described) > 1 or not each.example:
            say(Padding(_markup.escape(each.written), (0, 0, 0, 2)))
        _parameters(each.parameters)
        if each.shared:
            say("\nof every invocation:")
        _parameters(each.shared)
        if len(described) == 1 and each.example:
            say("\n[dim]# a plan file[/]")
            say(_markup.escape(each.example), soft_wrap=True)


def _parameters(listed: Sequence[Parameter]) -> None:
    for each in listed:
        kind = f"{each.type}, in units {each.unit}" if each.unit else each.type
        default = f"; {each.default} by default" if each.default else ""
        kept = "; must be given" if each.default is None else default
        say(
            Padding(f"[cyan]{each.name}[/] = {escape(each.example)}", (0, 0, 0, 2)),
            Padding(escape(f"{kind}{kept}: {each.meaning}"), (0, 0, 0, 6)),
        )


@answering()
def findings(known: Sequence[Finding], *, in_full: bool) -> None:
    """Print what may be found: names and severities, or causes and cures."""
    if answered("findings", {"findings": [each.to_dict() for each in known]}):
        return
    if not in_full:
        listed = table("finding", "", "what it says")
        listed.columns[0].no_wrap = True
        for each in known:
            listed.add_row(escape(each.rule), each.severity, escape(each.message))
        say(listed)
    for each in known if in_full else ():
        say(
            f"[bold]{escape(each.rule)}[/] ({each.severity})",
            Padding(escape(each.message), (0, 0, 0, 2)),
            Padding(f"What to do: {escape(each.remedy)}", (0, 0, 0, 2)),
        )


@answering()
def calibrated(found: Calibration, output: Path | None, *, replaced: bool = False) -> None:
    """Print the noise, what it proves, and what other noise would cost."""
    if answered("calibration", found.to_dict()):
        return
    certificate = found.certificate
    proved = certificate.guarantee
    assert proved is not None
    facts = grid()
    facts.add_row("claim", f"{escape(str(certificate.claim))}: [green]{certificate.verdict}[/]")
    for at, (name, value) in list(found.noise.items())[:20]:
        often = f"{100 * found.confidence:.6g} %"
        most = found.reaches.get(at)
        reach = "" if most is None else f"; its noise is at most {up(most)} with {often}"
        facts.add_row(escape(at), f"[bold]{name} = {value!r}[/]{reach}")
    if len(found.noise) > 20:
        facts.add_row("", f"… and {len(found.noise) - 20} more")
    facts.add_row("guarantee", f"ε = {up(proved.epsilon)}, δ = {plain(proved.delta)}")
    say(facts)
    if found.costs:
        say(_costs_of(found))
    if output is not None:
        written(output, replaced=replaced)


def _costs_of(found: Calibration) -> Table:
    """What multiples of the noise cost."""
    proved = found.certificate.guarantee
    assert proved is not None
    at, (name, _) = next(iter(found.noise.items()))
    named = f"{name} of {escape(at)}" if len(found.noise) > 1 else name
    costs = table("noise", named, f"ε at δ = {plain(proved.delta)}", "advantage", "50:50 guess", "")
    costs.columns[0].no_wrap = True
    for cost in found.costs:
        costs.add_row(
            f"× {cost.factor:g}",
            plain(cost.noise),
            up(cost.epsilon),
            up(cost.advantage),
            percent((1 + cost.advantage) / 2),
            "[green]certified[/]" if cost.certified else "[red]not certified[/]",
        )
    return costs


# -- projects -------------------------------------------------------------------------------------


@answering()
def checked(outcome: ProjectOutcome, made: Sequence[Path]) -> None:
    """Print the table of a project, what no cell holds, and where the reports are."""
    from dpaudit.workflow import publishing

    if answered("project", outcome.to_dict() | {"files": [str(path) for path in made]}):
        return
    say(_judged(publishing.SUBJECT_HEADS, outcome.subjects, publishing.subject_cells))
    if outcome.budgets:
        say(_judged(publishing.BUDGET_HEADS, outcome.budgets, publishing.budget_cells))
    for name, text in publishing.remarks(outcome):
        say(f"[bold]{escape(name)}[/]: {escape(text)}")
    say(publishing.headline(outcome))
    index, here = next(path for path in made if path.name == "index.html"), Path.cwd()
    seen = index.relative_to(here) if index.is_relative_to(here) else index
    say(f"wrote {len(made)} files; begin with {escape(str(seen))}", soft_wrap=True)
    if outcome.beside:
        say("the better reports stay; dpaudit check without --since replaces them by the new ones")


def _judged(heads: Sequence[str], rows: Sequence[Any], cells: Callable[[Any], Any]) -> Table:
    """A table of rows, whose second cell is the verdict."""
    made = table(*heads)
    for row in rows:
        name, verdict, *rest = map(escape, cells(row))
        made.add_row(name, f"[{COLOURS[row.status]}]{verdict}[/]", *rest)
    return made


@answering()
def scaffolded(name: str, made: Sequence[Path]) -> None:
    """Print what was made, and what to do next."""
    from dpaudit.project.own_files import imported_names

    written(*made)
    code = [path for path in made if path.suffix == ".py" and path.parent == Path(name)]
    wanted = {each for path in code for each in imported_names(path)} - {each.stem for each in code}
    wanted |= set() if code else set(LIBRARIES["tables"])  # without code it is a release file
    first = "" if all(map(find_spec, wanted)) else "pip install -r requirements.txt && "
    then = "dpaudit check" if code else "dpaudit release visits.toml --plan && dpaudit check"
    say(f"next: cd {escape(name)} && {first}{then}", soft_wrap=True)


# -- releases -------------------------------------------------------------------------------------

_MOST_ROWS = 20
"""Rows of a query, or of a replay, that a terminal shows."""


@answering()
def planned(made: Certificate, costs: Sequence[QueryCost], file: Path) -> None:
    """Print the certificate, and what each query asks for and how exact it will be."""
    queries = [asdict(each) for each in costs]
    if answered("release-plan", {"queries": queries, "certificate": made.to_dict()}):
        return
    certificate(made, lists=shlex.join(["dpaudit", "certify", str(file)]))
    for each in costs:
        say(f"[bold]{escape(each.query)}[/]: {escape(each.what)}")
        facts = grid()
        facts.add_row("  error (95 %)", escape(each.error))
        facts.add_row("  noise", escape("; ".join(each.noise)))
        say(facts)


def released(made: Certificate, made_files: Sequence[Path]) -> None:
    """Print a certificate, and last the released numbers, each with the interval of its noise."""
    from dpaudit.reporting.results import result_tables

    file = next(str(path) for path in made_files if path.name == "certificate.json")
    certificate(made, made_files, lists=shlex.join(["dpaudit", "verify", file]))
    for told in result_tables(made, _MOST_ROWS):
        what = f": {told.what}" if told.what else ""
        say(f"[bold]{escape(told.query)}[/]{escape(what)}")
        cells = table()
        for place, head in enumerate(told.heads):
            number = place >= len(told.heads) - told.numbers
            cells.add_column(escape(head), justify="right" if number else "left", overflow="fold")
        for row in told.rows:
            cells.add_row(*map(escape, row))
        say(cells)
        if told.left:
            say(f"… and {told.left} more rows in the files")
        if told.note:
            say(f"[dim]{escape(told.note)}[/]")
    say(
        "[dim]Intervals are about the table after the bounds on rows, groups and values; "
        "owner.json counts what the bounds cut off.[/]"
    )


@answering()
def adds_up() -> None:
    """Print that releases of one table compose, where no book keeps their sum."""
    say("This ε adds to that of every other release of the same data; --book keeps the sum.")


# -- replays, which hold private values -----------------------------------------------------------


@answering()
def neighbours(replays: Sequence[NeighbourReplay]) -> None:
    """One line for each neighbour, with the release that it moves most."""
    lines = Table("neighbour", "furthest", "at", box=None, pad_edge=False)
    lines.add_column("found", no_wrap=True)
    for each in replays:
        largest = None if math.isinf(each.hops) else each.largest
        apart = ("", "") if largest is None else (f"{largest.share:.4g}", _place(largest))
        rules = ", ".join(dict.fromkeys(finding.rule for finding in each.report.findings))
        raised = f"raised {each.report.raised}" if each.report.raised else ""
        lines.add_row(*map(escape, (each.neighbour, *apart, rules or raised)))
    lines.caption = "furthest: distance of values before noise, divided by the declared sensitivity"
    say(lines)


@answering()
def one_neighbour(replay: NeighbourReplay) -> None:
    """The releases that a neighbour moves most, and what is found."""
    moved = Table("release", "distance", "declared", box=None, pad_edge=False)
    ordered = sorted(replay.report.comparisons, key=lambda one: one.share, reverse=True)
    for one in ordered[:_MOST_ROWS]:
        moved.add_row(escape(_place(one)), f"{one.observed:.6g}", f"{one.declared:.6g}")
    if len(ordered) > _MOST_ROWS:
        moved.caption = f"{len(ordered) - _MOST_ROWS} more releases, which change less"
    say(moved)
    for finding in replay.report.findings:
        say(f"[red]{finding.rule}[/]: {escape(finding.message)}")
    if replay.report.raised:
        say(f"[red]raised[/]: {escape(replay.report.raised)}")


def _place(one: Comparison) -> str:
    whom = "" if one.unit is None else f" for {one.unit}"
    return f"{one.at}{whom} ({one.source})"
