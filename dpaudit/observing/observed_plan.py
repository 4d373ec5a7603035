"""What an observed run drew, as a plan file that a person can read, correct and declare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dpaudit.certificate import Claim
from dpaudit.mechanisms import Opaque
from dpaudit.observing import Noted, plan_of
from dpaudit.project.describing import plan_text
from dpaudit.workflow.calibrating import claim_table


def plan_file(name: str, noted: Sequence[Noted], charged: Claim | None) -> str:
    """A plan file with comments.

    Args:
        name: of the code, as ``dpaudit observe`` takes it.
        noted: what it drew.
        charged: what the libraries say that it cost; None where they say nothing.
    """
    return "".join(_written(name, tuple(noted), charged))


def _written(name: str, noted: tuple[Noted, ...], charged: Claim | None) -> Iterator[str]:
    plan = plan_of(noted)
    yield f"# What `dpaudit observe {name}` saw. Correct it, and declare it:\n"
    yield "#   dpaudit certify PLAN.toml                        what the plan proves\n"
    yield f"#   dpaudit observe {name} --plan PLAN.toml     whether the code keeps to it\n\n"
    head = {"unit": str(plan.unit), "relation": plan.relation.to_dict(), "trust": str(plan.trust)}
    yield f"{plan_text({'plan': head})}\n"
    if charged is not None:
        yield f"{plan_text({'claim': claim_table(charged)})}\n"
    for each in noted:
        yield from _comments(each)
        yield f"{plan_text({'invocation': [_table(each)]})}\n"


def _comments(noted: Noted) -> Iterator[str]:
    call, own = noted.calls[0], noted.invocation
    yield f"# {call.reading.primitive} of {call.library} at {call.line}\n"
    if call.reading.unit != 1:
        yield "# in units of the library's own sensitivity for it\n"
    if not noted.known:
        yield "# nobody says how far neighbours move the value: write sensitivity = …\n"
    elif isinstance(own.mechanism, Opaque):
        yield "# this cost is the library's word; nothing here proves it\n"
    if own.count < own.releases:
        yield f"# the library takes it that one {own.unit} moves {own.count} of {own.releases}\n"
    elif own.releases > 1:
        yield f"# if one {own.unit} moves only some of the {own.releases}, lower count\n"


def _table(noted: Noted) -> dict[str, Any]:
    own = noted.invocation
    mechanism = own.mechanism if noted.known else noted.calls[0].reading.mechanism
    written = mechanism.to_dict()
    made = {"mechanism": written.pop("kind"), **{k: v for k, v in written.items() if v is not None}}
    if noted.known:
        made["sensitivity"] = own.sensitivity
    return made | {"count": own.count, "total": own.releases, "at": own.at}
