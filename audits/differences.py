"""Where two records in JSON differ by more than rounding: what is shipped, and what is made now.

Certificates of the papers and replayed counterexamples are compared alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.base import files

TOLERANCE = 1e-9
"""Relative difference of two numbers that counts as none.

Other processors and versions of the numerical libraries add in another order and change the last
two or three of sixteen digits; whatever changes in the algorithm, the seed or the accounting
changes far more. ``dpaudit verify`` allows a recomputed ε the same.
"""

RESIDUE = 1e-9
"""Absolute difference that counts as none where a number is itself a rounding error."""

IGNORED = frozenset(
    {("digest",), ("versions",), ("subject", "code_hash"), ("witness",), ("checked", "rules")}
)
"""What follows from the rest, or changes with every release of a library or line of code.

A witness is searched for in floats and promises nothing: a reader proves the checked ε by it.
"""

CHECKED = ("checked", "epsilon")
NEAR = 1e-3
"""Relative difference of two checked ε, which are as near as the grids that were found."""

LOCATION = ("subject", "location")
"""File and line of the code; the line moves with every edit above it, and is not compared."""

ROUNDING_ERRORS = frozenset(
    {
        "error_bound",
        "rounding",
        "largest_error_of_a_row",
        "residuals_on_x",
        "residuals_on_x_prime",
    }
)
"""What says how far floats are from real arithmetic: no digit of it is stable."""

ABSENT = "absent"
_LENGTH = 120
_MISSING = object()


@dataclass(frozen=True)
class Difference:
    """One place where two records differ.

    Attributes:
        path: of the place, such as ``audits[0].epsilon_lower``.
        shipped: what is there, as JSON.
        regenerated: what the code makes.
    """

    path: str
    shipped: str
    regenerated: str

    def __str__(self) -> str:
        return f"{self.path}: {self.shipped} -> {self.regenerated}"


def differences(
    shipped: Mapping[str, Any], regenerated: Mapping[str, Any]
) -> tuple[Difference, ...]:
    """Where two JSON records, of a certificate or of an audit, differ by more than rounding.

    Floats are the same within :data:`TOLERANCE`, relative to the larger of the two or, in a list of
    numbers, to the largest of the list: the zero of a point (488.03, 3e-14) is a rounding error.
    Whole numbers, truth values and texts must be equal. Digest, versions, the hash of the code and
    its line are not compared.

    Args:
        shipped: as it was written.
        regenerated: as it is written today.
    """
    guarantee = shipped.get("guarantee")
    bound = guarantee.get("error_bound") if isinstance(guarantee, Mapping) else None
    allowed = bound if isinstance(bound, float) and math.isfinite(bound) else 0.0
    return tuple(_apart(shipped, regenerated, (), TOLERANCE, 0.0, allowed))


CURVE = ("guarantee", "curve")
"""Its ε are compared within the error bound that the accountant states for its own."""

EXERCISED = ("rehearsal", "exercised")
"""How many neighbours moved a release, a last bit may decide; whether any did is compared."""


def _apart(
    old: Any,
    new: Any,
    place: tuple[str | int, ...],
    relative: float,
    absolute: float,
    bound: float,
) -> Iterator[Difference]:
    if place in IGNORED:
        return
    if place and place[-1] in ROUNDING_ERRORS:
        absolute = RESIDUE
    if place[:2] == CURVE and place[3:] == (0,):
        absolute = max(absolute, bound)
    if place == CHECKED:
        relative = NEAR
    if place[:2] == EXERCISED and isinstance(old, int) and isinstance(new, int):
        old, new = old > 0, new > 0
    if place == LOCATION:
        old, new = (_file(each) for each in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            values = (each.get(key, _MISSING) for each in (old, new))
            yield from _apart(*values, (*place, key), relative, absolute, bound)
    elif isinstance(old, list) and isinstance(new, list):
        absolute = max(absolute, relative * _largest(old))
        for number in range(max(len(old), len(new))):
            values = (each[number] if number < len(each) else _MISSING for each in (old, new))
            yield from _apart(*values, (*place, number), relative, absolute, bound)
    elif not _same(old, new, relative, absolute):
        yield Difference(_path(place), _shown(old), _shown(new))


def _same(old: Any, new: Any, relative: float, absolute: float) -> bool:
    numbers = all(type(each) in (int, float) for each in (old, new))
    if numbers and (isinstance(old, float) or isinstance(new, float)):
        return math.isclose(old, new, rel_tol=relative, abs_tol=absolute)
    return type(old) is type(new) and bool(old == new)


def _largest(values: Sequence[Any]) -> float:
    """The largest size in a list of floats; 0 of any other list."""
    floats = [abs(each) for each in values if isinstance(each, float)]
    return max(floats) if floats and len(floats) == len(values) else 0.0


def _file(location: Any) -> Any:
    return location.rpartition(":")[0] if isinstance(location, str) else location


def _path(place: tuple[str | int, ...]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(steps).removeprefix(".")


def _shown(value: Any) -> str:
    if value is _MISSING:
        return ABSENT
    text = files.canonical_json(value)
    return text if len(text) <= _LENGTH else f"{text[: _LENGTH - 1]}…"
