"""What the reference says of each kind beside its keys, tried on the example of each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from dpaudit.accounting import Accountant, compose
from dpaudit.accounting.amplification import fallback
from dpaudit.base.errors import DpAuditError, UnsupportedError
from dpaudit.ledger import SecureNoise
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import Invocation, Plan, Relation
from dpaudit.project.describing import Description, example_of, first_line
from dpaudit.project.plan_file import read_plan

_NORMS = {
    "l1": "the L1 norm",
    "l2": "the L2 norm",
    "change": "no norm: 1 where a unit may change the value at all",
}


def facts(told: Description, kind: type) -> Iterator[tuple[str, str]]:
    """Rows for a kind, each a name and Markdown."""
    if issubclass(kind, Mechanism):
        plan = read_plan(tomllib.loads(told.example)).plan
        yield "sensitivity in", _NORMS[kind.norm]
        yield "dominating pair", _pair(plan.invocations[0])
        taking = [name for name, each in _related(told) if _is_proved(Plan((each,)))]
        yield "relations", _links(taking, "relations")
        able = [name for name in sorted(Accountant.kinds()) if _is_proved(plan, name)]
        yield "accountants", _links(able, "accountants")
        yield "exact sampler", "yes" if _is_exact(plan) else "no"
    elif told.family == "sampling":
        for name, each in _related(told):
            instead = fallback(each)
            yield f"under {_links([name], 'relations')}", instead[0] if instead else "as declared."


def _pair(invocation: Invocation) -> str:
    try:
        pair = type(invocation.mechanism.pair(invocation.sensitivity))
    except UnsupportedError:
        return "none"
    about = re.sub(r"([|*_])", r"\\\1", first_line(pair.__doc__).rstrip("."))
    return f"`{pair.__name__}`: {about}"


def _is_proved(plan: Plan, accountant: str = "best") -> bool:
    with suppress(DpAuditError):
        compose(plan, accountant)
        return True
    return False


def _is_exact(plan: Plan) -> bool:
    with suppress(DpAuditError):
        SecureNoise().require(plan)
        return True
    return False


def _related(told: Description) -> Iterator[tuple[str, Invocation]]:
    """The example under each relation that will do."""
    for name, relation in sorted(Relation.kinds().items()):
        content = tomllib.loads(told.example)
        content["plan"]["relation"] = example_of(relation)
        with suppress(DpAuditError):
            (invocation,) = read_plan(content).plan.invocations
            fallback(invocation)
            yield name, invocation


def _links(names: list[str], page: str) -> str:
    return ", ".join(f"[{name}]({page}.md#{name})" for name in names) or "none"


def records(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The records within a JSON schema, by where they stand, and their fields as Markdown.

    A list's are told by ``[]``; a field in brackets may be absent.
    """

    def within(place: str, part: Any) -> Iterator[tuple[str, str]]:
        if not isinstance(part, Mapping):
            return
        if "$ref" in part:
            part = schema["$defs"][part["$ref"].rpartition("/")[2]]
        told = part.get("properties", {})
        if place and told:
            names = (
                f"`{name}`" if name in part.get("required", ()) else f"[`{name}`]" for name in told
            )
            yield place, ", ".join(names)
        for name, each in told.items():
            yield from within(f"{place}.{name}" if place else name, each)
        yield from within(f"{place}[]", part.get("items"))
        for each in part.get("anyOf", ()):
            yield from within(place, each)

    return within("", schema)
