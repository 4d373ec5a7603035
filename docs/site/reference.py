"""The reference pages of the site, made from the code.

Each page is a function without arguments that returns Markdown; :data:`PAGES` names them by their
path within the site.
"""

from __future__ import annotations

import importlib
import inspect
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import typer
from kinds import facts, records

from dpaudit.accounting import Accountant
from dpaudit.base.fields import Kinded
from dpaudit.base.finding_table import known_findings
from dpaudit.base.toml_tables import inline
from dpaudit.certificate import Claim
from dpaudit.certificate.risk import Risk
from dpaudit.cli.exits import Exit
from dpaudit.cli.main import app
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.plan import Relation, Sampling, TrustModel
from dpaudit.project import project_file
from dpaudit.project.audit_request import REPEATABLE, AuditRequest, Execution, keys
from dpaudit.project.describing import (
    Description,
    Parameter,
    described,
    first_line,
    parameters,
)
from dpaudit.project.project_file import BudgetEntry, SubjectEntry
from dpaudit.project.targets import own_packages
from dpaudit.reporting.base import renderer_for, suffixes
from dpaudit.signing.policy import Attack, Limit, Policy
from dpaudit.tables import keys as release_keys
from dpaudit.tables.expressions import KNOWN

EXAMPLES = tomllib.loads((Path(__file__).parent / "examples.toml").read_text("utf-8"))
"""Values by file, table and key."""

_API = (
    ("dpaudit", "what most code needs"),
    ("dpaudit.plan", "what an algorithm declares"),
    ("dpaudit.mechanisms", "what it may declare"),
    ("dpaudit.ledger", "the door for private data"),
    ("dpaudit.accounting", "what a plan costs"),
    ("dpaudit.certificate", "what is stated, and why"),
    ("dpaudit.auditing", "attacks on running code"),
    ("dpaudit.training.membership", "attacks on members of a training"),
    ("dpaudit.reporting", "reports for people and machines"),
    ("dpaudit.project", "subjects and project files"),
    ("dpaudit.signing.statements", "signatures"),
    ("dpaudit.signing.policy", "what may be demanded"),
    ("dpaudit.book", "an organisation's budgets"),
    ("dpaudit.base.errors", "what may be raised"),
)


def commands() -> str:
    """Every command with its arguments and options."""
    group: Any = typer.main.get_command(app)
    text = "\n\n".join(_command(("dpaudit", name), each) for name, each in group.commands.items())
    return f"# Commands\n\n{_escaped(group.epilog)}\n\n{text}\n"


def _command(words: tuple[str, ...], command: Any) -> str:
    name = " ".join(words)
    lines = [f"{'#' * len(words)} `{name}`", "", _escaped(inspect.cleandoc(command.help or ""))]
    inner = getattr(command, "commands", {})
    if inner:
        return "\n\n".join([*lines, *(_command((*words, n), each) for n, each in inner.items())])
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join(each.metavar or each.name.upper() for each in arguments)
    lines += ["", f"```sh\n{name} {usage} [OPTIONS]\n```", ""]
    rows = [(_spelled(each), getattr(each, "help", None) or "") for each in command.params]
    return "\n".join([*lines, _table(("argument or option", "what it does"), rows)])


def _spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return _code(parameter.metavar or parameter.name.upper())
    value = f" {parameter.metavar}" if parameter.metavar and not parameter.is_flag else ""
    return _code(", ".join(parameter.opts) + value)


def plan_file() -> str:
    """The tables of a plan file that are not a kind's own."""
    shared = described("gaussian")
    relations, models = (", ".join(map(_code, each)) for each in (Relation.kinds(), TrustModel))
    rows = [
        ("`unit`", "who is protected", "a text of at most 80 characters", "`row`", "`user`"),
        (
            "`relation`",
            "which data sets are [neighbours](relations.md)",
            f"one of {relations}; or a table with its `kind`",
            "must be given",
            "`add-remove`",
        ),
        ("`trust`", "who sees raw data", f"one of {models}", "`central`", "`local`"),
    ]
    risks = "\n\n".join(
        f"### {_code(parameters(each)[0].name)}\n\n{_escaped(first_line(each.__doc__))}\n\n"
        f"{_keys(parameters(each), 'plan.claim')}"
        for each in Risk.__subclasses__()
    )
    return f"""# Plan files

A plan file is TOML: `[plan]` says who is protected, `[claim]` what is stated, and each
`[[invocation]]` what is released. This one certifies:

```toml
{shared.example.strip()}
```

## `[plan]`

A finding says which defaults were taken.

{_table(("key", "what it says", "type", "default", "example"), rows)}

## `[claim]`

It may be left out. It states one of these: ε and δ,

{_keys(parameters(Claim, ("source", "risk")), "plan.claim")}

or how well an attack may do, or a whole curve:

{risks}

## `[[invocation]]`

`mechanism` names one of the [mechanisms](mechanisms.md), whose own keys stand beside these:

{_keys(shared.shared)}
"""


def project() -> str:
    """The tables of a project file."""
    _, _, rest = (inspect.getdoc(project_file) or "").partition("::\n\n")
    example, _, after = rest.partition("\n\nReading one")
    drawn = [
        replace(
            each,
            default=""
            if (own := getattr(REPEATABLE.execution, each.name)) is None
            else inline(own),
        )
        for each in parameters(Execution, ("progress",))
        if each.name in keys(Execution)
    ]
    own = parameters(
        AuditRequest, {each.name for each in fields(AuditRequest)} - {*keys(AuditRequest)}
    )
    subject = parameters(SubjectEntry, ("settings", "audits", "default_audit"))
    return f"""# Project files

What `dpaudit check` certifies, attacks and compares with budgets, by default `dpaudit.toml`.

```toml
{inspect.cleandoc(example)}
```

Reading one{_escaped(after)}

## `[[subject]]`

Public fields are given as `set = {{ … }}`.

{_keys(subject, "project.subject")}

## `[audit]` and `[[subject.audit]]`

{_keys(drawn, "project.audit")}

In `[[subject.audit]]` also:

{_keys(own, "project.attack")}

## `[[budget]]`

{_keys(parameters(BudgetEntry, ("limit",)), "project.budget")}

`epsilon` and `delta` are the limit.
"""


def policy() -> str:
    """The tables of a policy."""
    return f"""# Policy files

What `dpaudit verify --policy` demands of a certificate, in addition to a signature and the
verdict *certified*.

{_keys(parameters(Policy, ("limit", "audit")), "policy.policy")}

## `[[limit]]`

{_keys(parameters(Limit), "policy.limit")}

## `[[audit]]`

{_keys(parameters(Attack), "policy.audit")}
"""


def release_file() -> str:
    """The tables of a release file."""
    asks = [
        (_code(name), _escaped(about), ", ".join(map(_code, own)), _told("asks", name))
        for name, (about, own) in release_keys.ASKS.items()
    ]
    return f"""# Release files

What `dpaudit release` reads; [a page](../release.md) says what it means. Expressions have
{_escaped(KNOWN)}.

## `[data]`

{_said("data", release_keys.DATA)}

### `columns.NAME`

{_said("column", release_keys.COLUMN)}

### `join`

{_said("join", release_keys.JOIN)}

## `[privacy]`

The keys of a claim are those of [plan files](plan-file.md).

{_said("privacy", release_keys.PRIVACY)}

## `[[query]]`

One of these, with what goes with it:

{_table(("key", "what it asks for", "goes with", "example"), asks)}

Of each query:

{_said("query", release_keys.QUERY)}

Of those with which they go:

{_said("beside", release_keys.BESIDE)}
"""


def _said(table: str, keys: Mapping[str, str]) -> str:
    rows = ((_code(key), _escaped(about), _told(table, key)) for key, about in keys.items())
    return _table(("key", "what it says", "example"), rows)


def _told(table: str, key: str) -> str:
    return _code(inline(EXAMPLES["release"][table][key]))


def kinds(title: str, family: type[Kinded]) -> Callable[[], str]:
    """The page of a family: all its kinds with their keys."""

    def page() -> str:
        texts = [_kind(described(name), kind) for name, kind in sorted(family.kinds().items())]
        return "\n\n".join([f"# {title}", *texts]) + "\n"

    return page


def _kind(told: Description, kind: type[Kinded]) -> str:
    parts = [f"## {told.name}", _escaped(told.about), f"Written as `{told.written}`."]
    if rows := list(facts(told, kind)):
        heads = ("neighbours", "what counts") if told.family == "sampling" else ("of it", "is")
        parts.append(_table(heads, rows))
    if told.parameters:
        parts.append(_keys(told.parameters))
    if told.example:
        parts.append(f"```toml\n{told.example.strip()}\n```")
    return "\n\n".join(parts)


def findings() -> str:
    """Every finding with cause and cure, each with an anchor."""
    parts = [
        "# Findings",
        "The report states what each … stands for. `dpaudit explain FINDING` prints the same.",
    ]
    for rule, found in groupby(known_findings(*own_packages()), key=lambda each: each.rule):
        parts.append(f"## {rule}")
        for each in found:
            parts.append(f"*{each.severity}*: {_escaped(each.message)}")
            parts.append(f"What to do: {_escaped(each.remedy)}")
    return "\n\n".join(parts) + "\n"


def exit_codes() -> str:
    """What the commands answer pipelines with."""
    meanings = {
        Exit.CERTIFIED: "certified, or not refuted",
        Exit.REFUTED: "refuted, or the claim is exceeded",
        Exit.UNPROVEN: "unproven, or inconclusive",
        Exit.INPUT: "usage or input error: one sentence on stderr says what would be right",
        Exit.INTERRUPTED: "interrupted",
    }
    rows = [(str(int(code)), meanings[code]) for code in Exit]
    return (
        f"# Exit codes\n\n{_table(('code', 'meaning'), rows)}\n\n"
        "`check` exits with the code of its worst row: 3 is worse than 1, and 1 worse than 2.\n"
    )


def certificates() -> str:
    """The fields of a certificate, and the formats of reports."""
    name = "certificate-3.json"
    text = (resources.files("dpaudit.certificate") / name).read_text("utf-8")
    schema = json.loads(text)
    rows = [
        (_code(key), "yes" if key in schema["required"] else "no", _about(value))
        for key, value in schema["properties"].items()
    ]
    formats = [
        (
            _code(each),
            _escaped(first_line(renderer_for(f"x{each}").__doc__)),
        )
        for each in suffixes()
    ]
    return f"""# Certificates and reports

A certificate is JSON of the schema `{schema["$id"]}` (JSON Schema, shipped as
`{name}`). Readers of a version accept every file of that version for ever: a field is added under a
new version alone, and `dpaudit verify` reads older versions too.

{_table(("field", "always there", "what it holds"), rows)}

## The records within

If several records are listed at one place, a certificate has one of them. Fields in brackets may be
absent.

{_table(("record", "its fields"), [(_code(place), told) for place, told in records(schema)])}

## Formats by ending

{_table(("ending", "what it is"), formats)}
"""


def _about(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return "a SHA-256 hash, in hexadecimal digits"
    if "enum" in schema or "const" in schema:
        return ", ".join(_code(each) for each in schema.get("enum", [schema.get("const")]))
    inner = schema.get("items", {})
    several = "a list of records" if "properties" in inner else f"a list of {inner.get('type')}s"
    kinds = {"array": several, "object": "a record"}
    told = [kinds.get(each.get("type"), each.get("type")) for each in schema.get("anyOf", [schema])]
    about = _escaped(schema.get("description", ""))
    return f"{' or '.join(dict.fromkeys(map(str, told)))}. {about}".strip()


def api() -> Iterator[tuple[str, str]]:
    """A page for each public package, of its docstrings, and one that lists them."""
    listed = "\n".join(f"api/{name}" for name, _ in _API)
    yield "reference/python.md", f"# Python\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    seen: dict[int, str] = {}
    for name, about in reversed(_API):  # what several packages offer is told by the inner one
        module = importlib.import_module(name)
        public = sorted(getattr(module, "__all__", None) or _own(module))
        told = [(each, getattr(module, each)) for each in public]
        told = [(each, value) for each, value in told if inspect.isclass(value) or callable(value)]
        inner = [
            f"* :py:obj:`{each} <{seen[id(value)]}>`" for each, value in told if id(value) in seen
        ]
        parts = [f"{name}\n{'=' * len(name)}\n\n{about.capitalize()}.", "\n".join(inner)]
        for each, value in told:
            if id(value) not in seen:
                seen[id(value)] = f"{name}.{each}"
                is_class = inspect.isclass(value)
                kind, members = ("class", "\n   :members:") if is_class else ("function", "")
                parts.append(f".. auto{kind}:: {name}.{each}{members}")
        yield f"reference/api/{name}.rst", "\n\n".join(filter(None, parts)) + "\n"


def _own(module: Any) -> list[str]:
    """What a module defines for others."""
    found = vars(module).items()
    return [n for n, v in found if getattr(v, "__module__", "") == module.__name__ and n[0] != "_"]


def _keys(listed: Sequence[Parameter], table: str = "") -> str:
    """The keys of a table; of one whose keys are no kind's, with examples of its own."""
    heads = ("key", "what it says", "type", "default", "example")
    return _table(heads, (_key(each, table) for each in listed))


def _key(one: Parameter, table: str) -> Iterator[str]:
    file, _, name = table.partition(".")
    example = inline(EXAMPLES[file][name][one.name]) if table else one.example
    yield _code(one.name)
    yield _escaped(one.meaning)
    yield _escaped(f"{one.type}, in units {one.unit}" if one.unit and not table else one.type)
    absent = {None: "must be given", "": "may be left out", '""': "may be left out"}
    yield absent[one.default] if one.default in absent else _code(str(one.default))
    yield _code(example)


def _table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(' '.join(c.split()) for c in row)} |" for row in lines)


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _escaped(text: str) -> str:
    """Prose in which Markdown and HTML find nothing."""
    for mark in ("\\", "<", "*", "_", "|", "["):
        text = text.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return text


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands,
    "reference/plan-file.md": plan_file,
    "reference/project-file.md": project,
    "reference/policy-file.md": policy,
    "reference/release-file.md": release_file,
    "reference/mechanisms.md": kinds("Mechanisms", Mechanism),
    "reference/relations.md": kinds("Relations", Relation),
    "reference/samplings.md": kinds("Sampling", Sampling),
    "reference/factorizations.md": kinds("Factorisations of streams", Factorization),
    "reference/accountants.md": kinds("Accountants", Accountant),
    "reference/findings.md": findings,
    "reference/exit-codes.md": exit_codes,
    "reference/certificates.md": certificates,
}
