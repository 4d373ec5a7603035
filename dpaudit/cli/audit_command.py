"""The command ``audit``: attacks on running code, asked by options.

The options are those fields of an ``AuditRequest`` and of its ``Execution`` that are declared with
one: name and words from the declaration, type from the annotation, help from the docstring. The
request itself refuses what has no meaning together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from dpaudit.cli.command import derived
from dpaudit.cli.options import typed, working

_SUBJECT = "SUBJECT|FILE.py:function|module:function"


def options() -> dict[str, Any]:
    """Derive the options of the command, by the names of the fields that they give."""
    from dpaudit.project.audit_request import AuditRequest, Execution
    from dpaudit.project.describing import meanings

    target = typer.Argument(metavar=_SUBJECT, help=_sentence(meanings(AuditRequest)["target"]))
    found: dict[str, Any] = {"target": Annotated[str | None, target]}
    for kind in (AuditRequest, Execution):
        about, hints = meanings(kind), get_type_hints(kind)
        for each in (each for each in fields(kind) if "option" in each.metadata):
            usage, usual = each.metadata["option"], each.default
            shown = str(usual) if usual and usual is not MISSING else False
            words = _words(hints[each.name], usage)
            found[each.name] = typed(words, usage, _sentence(about[each.name]), show_default=shown)
    output = typer.Option("-o", "--output", help="Write the certificate with this audit (JSON).")
    return found | {"output": Annotated[Path | None, output]}


def _words(hint: Any, usage: str) -> Any:
    """The type of what is typed for a field: a flag has no words, a pair two, a table several."""
    (kind, *_) = (each for each in get_args(hint) or (hint,) if each is not NoneType)
    if " " not in usage:
        return bool
    if get_origin(hint) is Mapping:
        return list[str]
    return tuple[str, str] if usage.endswith("JSON JSON") else kind if kind in (int, float) else str


def _sentence(meaning: str) -> str:
    return meaning[:1].upper() + meaning[1:]


@derived(options)
def audit(output: Path | None, **given: Any) -> None:
    """Attack running code on neighbouring data, with a stated error rate."""
    from dpaudit.cli import show
    from dpaudit.project.audit_request import AuditRequest
    from dpaudit.workflow import attacking

    request, journal = AuditRequest.of_options(given), given["journal"]
    request = replace(request, notice=partial(typer.echo, err=True))
    kept = "nothing is kept; with --journal FILE and --seed N the same command would go on"
    if journal is not None:
        kept = f"finished runs are in {journal}, and the same command goes on with them"
    with working(f"audit {request.target}", kept):
        outcome = attacking.audit(request)
    if output is not None:
        outcome.certificate().save(output)
    show.audit(outcome)
    raise typer.Exit(outcome.exit_code)
