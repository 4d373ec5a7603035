"""What must be true of a value and an invocation before anything is charged."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.mechanisms.continual.release import Continual, IndividualGaussian
from dpaudit.plan import Invocation, PrivateSelection, TrustModel

DEBUG = "DPAUDIT_DEBUG"
"""The variable by which an owner lets sentences tell what may follow from private data."""
_Checked = TypeVar("_Checked")
_OWN_PACKAGE = __name__.partition(".")[0]
_PYTHON = f"{Path(os.__file__).parent}{os.sep}"


def require_sound(invocation: Invocation, value: NDArray[Any]) -> None:
    """Refuse a value that the mechanism, or the declared sensitivity, does not cover.

    Raises:
        InputError: if it does not.
    """
    if value.size == 0:
        raise InputError("value is empty; a release needs at least one number.")
    invocation.mechanism.checked(value)
    invocation.require_covered(value.size)


def require_open(invocation: Invocation, value: NDArray[Any], *, unit: str | None) -> None:
    """Refuse a value that somebody else has summed up where parts are to be bounded.

    Args:
        invocation: as declared.
        value: the private value.
        unit: whom it belongs to; None where it depends on every unit.

    Raises:
        PlanMismatchError: if the invocation declares a contribution, or one unit takes part at more
            steps of a whole stream than declared.
        InputError: if the mechanism refuses the value.
    """
    require_unbounded(invocation)
    if isinstance(invocation.mechanism, PrivateSelection):
        raise PlanMismatchError(f"{invocation.describe()} selects among runs; use select for it.")
    require_sound(invocation, value)
    if unit is not None or invocation.trust is TrustModel.LOCAL:
        _require_steps_of_one(invocation, value)


def _require_steps_of_one(invocation: Invocation, value: NDArray[Any]) -> None:
    """Refuse a whole stream of one unit, at more steps than the unit may take part in.

    Raises:
        PlanMismatchError: if there are more.
    """
    stream = invocation.mechanism
    if isinstance(stream, Continual) and not stream.may_take_part(range(len(value))):
        raise PlanMismatchError(
            f"{invocation.describe()} is a stream of one {invocation.unit}, which takes part "
            f"at each of {len(value)} steps; declare as many participations, 1 step apart."
        )


def require_unbounded(invocation: Invocation) -> None:
    """Refuse what is declared to be bounded at the door to all that does not bound it.

    Raises:
        PlanMismatchError: if the invocation declares a contribution.
    """
    if invocation.contribution is not None:
        raise PlanMismatchError(
            f"{invocation.describe()} is declared with a bounded contribution; use the ledger's "
            "sum, count, histogram, stable_histogram or quantile, which bound it."
        )


def require_continual(invocation: Invocation, unit: str | None) -> None:
    """Refuse what has no steps, and a stream under local trust of nobody knows whom.

    Raises:
        PlanMismatchError: if the mechanism is no continual release, or declares a contribution, or
            nobody is named under local trust.
    """
    require_unbounded(invocation)
    if not isinstance(invocation.mechanism, Continual):
        raise PlanMismatchError(
            f"{invocation.describe()} is not a continual release; use release for it."
        )
    if unit is None and invocation.trust is TrustModel.LOCAL:
        raise PlanMismatchError(
            f"{invocation.describe()} is a stream of one {invocation.unit} under local trust; name "
            "it as unit, so that its participations are counted."
        )


def require_individual(invocation: Invocation) -> None:
    """Refuse what has no budgets of units.

    Raises:
        PlanMismatchError: if the mechanism has none, or units are sampled.
    """
    if not isinstance(invocation.mechanism, IndividualGaussian):
        raise PlanMismatchError(
            f"{invocation.describe()} has no budgets of units; declare individual-gaussian."
        )
    if invocation.sampling is not None:
        raise PlanMismatchError(
            f"{invocation.describe()} is declared with sampling; leave sampling out, because every "
            "unit may take part in every step."
        )


def caller(between: Sequence[str]) -> str:
    """Module and line that asked for the release: not of this package, those between, or Python."""
    passed = {_OWN_PACKAGE, *between}
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        str(frame.f_globals.get("__name__", "")).partition(".")[0] in passed
        or of_python(frame.f_code.co_filename)
    ):
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__', '?')}:{frame.f_lineno}"


def unshown(check: Callable[..., _Checked], **field: Any) -> _Checked:
    """An argument that passes a check; the error does not show it, as it may come of data.

    Raises:
        InputError: if it does not.
    """
    try:
        return check(**field)
    except InputError as error:
        wanted = str(error).rpartition("it must be ")[2]
        raise InputError(f"{next(iter(field))} must be {wanted}") from None


def shape_of(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of one step of a stream.

    Raises:
        InputError: if a length is no integer of at least 1.
    """
    check = partial(validate.integer_at_least, 1)
    return tuple(unshown(check, shape=length) for length in shape)


def of_python(file: str) -> bool:
    """Whether a file is of Python itself."""
    return file.startswith((_PYTHON, "<frozen ")) and "site-packages" not in file
