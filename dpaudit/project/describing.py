"""What a plan file may say, as told by the classes themselves: parameters, and a plan of each kind.

Types follow from annotations, meanings from docstrings, so that mechanisms of other packages are
described as the own ones are.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from importlib import resources
from typing import Any, get_args, get_type_hints

from dpaudit.accounting import Accountant
from dpaudit.base import toml_tables
from dpaudit.base.fields import Kinded, Record, plain, requirements
from dpaudit.mechanisms import BandedToeplitz, Mechanism, Shuffled
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.continual.release import Stepwise
from dpaudit.plan import CyclicPoissonSampling, Invocation, Relation, Sampling

_OF_PLAN: dict[str, Any] = {"unit": "row", "relation": "add-remove", "trust": "central"}
_CLAIM = {"epsilon": 2.0, "delta": 1e-5}

_KNOWN: dict[str, dict[str, Any]] = tomllib.loads(
    resources.files("dpaudit.project").joinpath("examples.toml").read_text("utf-8")
)
"""Values in examples, and units of numbers, by the name of a key."""


@dataclass(frozen=True)
class Parameter(Record):
    """One key of a table.

    Attributes:
        name: as it is written.
        type: of its value, in words.
        unit: of a number that has one, else empty.
        default: as it is written; None where the key must be given, empty where it may be left out.
        meaning: what it says.
        example: a value, as it is written.
    """

    name: str
    type: str
    unit: str
    default: str | None
    meaning: str
    example: str


@dataclass(frozen=True)
class Description(Record):
    """A mechanism, relation, sampling scheme, factorisation or accountant.

    Attributes:
        name: its kind.
        family: what it is one of.
        about: what it is, in a sentence.
        parameters: its own keys.
        shared: keys that every invocation may have; empty for others than mechanisms.
        written: how it is chosen, in a line.
        example: a plan file that uses it; empty for an accountant.
    """

    name: str
    family: str
    about: str
    parameters: tuple[Parameter, ...]
    shared: tuple[Parameter, ...]
    written: str
    example: str


def described(name: str) -> Description:
    """Return what is known of a name.

    Raises:
        InputError: if it is the kind of nothing; with the nearest one.
    """
    families: tuple[type[Kinded], ...] = (Mechanism, Relation, Sampling, Factorization, Accountant)
    kinds = {kind: each for family in families[::-1] for kind, each in family.kinds().items()}
    found = kinds[toml_tables.chosen(kinds, name=name)]
    is_mechanism = issubclass(found, Mechanism)
    shared = [
        replace(each, default=each.default or "")  # a contribution may stand for the sensitivity
        for each in parameters(Invocation)
        if each.name in _SHARED
    ]
    return Description(
        name,
        found.family,
        first_line(found.__doc__),
        parameters(found),
        tuple(shared) if is_mechanism else (),
        *_written(found),
    )


_SHARED = ("sensitivity", "contribution", "count", "total", "group", "sampling", "at")


def first_line(docstring: str | None) -> str:
    """The summary of a docstring, without the markup of references."""
    return _plain_text((docstring or "").strip().split("\n")[0])


def _plain_text(text: str) -> str:
    """Without the markup of documentation."""
    return re.sub(r":\w+:`~?([^`]+)`|``([^`]+)``|\*([^*]+)\*", r"\1\2\3", " ".join(text.split()))


def parameters(kind: type, but: Collection[str] = ()) -> tuple[Parameter, ...]:
    """The keys that a dataclass is written with, in their order, but for some."""
    return tuple(_parameters(kind, but))


def _parameters(kind: type, but: Collection[str]) -> Iterator[Parameter]:
    hints, rules, about = get_type_hints(kind), requirements(kind), meanings(kind)
    for each in _fields(kind):
        if each.name in but:
            continue
        required = each.default is MISSING and each.default_factory is MISSING
        empty = each.default is MISSING or each.default is None or each.default == ""
        yield Parameter(
            each.name,
            _kinds(hints[each.name]) or rules.get(each.name, "a value"),
            _KNOWN["units"].get(each.name, ""),
            None if required else "" if empty else toml_tables.inline(plain(each.default)),
            about.get(each.name, ""),
            toml_tables.inline(_value(each)),
        )


def _value(field: Field[Any]) -> Any:
    default = 1.0 if field.default is MISSING or field.default is None else plain(field.default)
    return _KNOWN["values"].get(field.name, default)


def _kinds(hint: Any) -> str:
    """The kinds of a table, where a field is one of them."""
    for each in (hint, *get_args(hint)):
        if isinstance(each, type) and issubclass(each, Kinded):
            return f"a table {{ {each.tag} = one of {', '.join(sorted(each.kinds()))} }}"
    return ""


def _fields(kind: Any) -> Iterator[Field[Any]]:
    """The fields that a record has."""
    return (each for each in fields(kind) if each.init and each.compare)


def meanings(kind: type) -> dict[str, str]:
    """Read the meanings of attributes from the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        section = inspect.cleandoc(each.__doc__ or "").partition("Attributes:\n")[2]
        entries = re.split(r"\n    (?=\w+: )|\n(?=\S)|\n\n", "\n" + section)
        for entry in entries:
            name, colon, text = entry.strip().partition(": ")
            if colon and name.isidentifier():
                found[name] = _plain_text(text)
    return found


def example_of(kind: type[Kinded]) -> dict[str, Any]:
    """A table that is read as that kind: its tag, and what must be given."""
    needed = (f for f in _fields(kind) if f.default is MISSING and f.default_factory is MISSING)
    return {kind.tag: kind.kind} | {each.name: _value(each) for each in needed}


def _written(kind: type[Kinded]) -> tuple[str, str]:
    """Tell how it is chosen, and a plan file that uses it."""
    if issubclass(kind, Accountant):
        return f"--accountant {kind.kind}", ""
    head, own = dict(_OF_PLAN), example_of(kind)
    used = {"mechanism": "gaussian", "sigma": 8.0, "sensitivity": 1.0}
    if issubclass(kind, Mechanism):
        used = {"mechanism": own.pop(kind.tag), **own, "sensitivity": 1.0, "count": 1}
        if issubclass(kind, Stepwise) and kind.adds_up:
            used["contribution"] = used.pop("sensitivity")
        head["relation"] = "replace-one" if issubclass(kind, Shuffled) else "add-remove"
    elif issubclass(kind, Factorization):
        used |= {"mechanism": "continual-gaussian", "sigma": 40.0, "participations": 1}
        used["factorization"] = own
    elif issubclass(kind, CyclicPoissonSampling):
        stream = {"mechanism": "continual-gaussian", "participations": 4, "min_separation": 4}
        used |= stream | {"factorization": example_of(BandedToeplitz), "sampling": own}
    elif issubclass(kind, Sampling):
        head["relation"] = "replace-one" if kind.kind == "fixed-size" else "add-remove"
        used |= {"count": own.get("steps", 1), "sampling": own}
    elif issubclass(kind, Relation):
        own |= {each.name: _value(each) for each in _fields(kind)}
        head["relation"] = own if len(own) > 1 else kind.kind
    chosen = {**head, **used}[kind.family]
    text = plan_text({"plan": head, "claim": _CLAIM, "invocation": [used]})
    return f"{kind.family} = {toml_tables.inline(chosen)}", text


def plan_text(content: Mapping[str, Any]) -> str:
    """The text of a plan file with these tables."""
    lines = []
    for name, table in content.items():
        for each in table if isinstance(table, list) else [table]:
            lines.append(
                f"[[{toml_tables.key(name)}]]"
                if isinstance(table, list)
                else f"[{toml_tables.key(name)}]"
            )
            lines += [
                f"{toml_tables.key(key)} = {toml_tables.inline(value)}"
                for key, value in each.items()
            ]
            lines.append("")
    return "\n".join(lines)
