"""Sums to which every unit adds a bounded part, whatever its data are.

Rows of one unit are joined before anything is bounded, parts are rounded towards zero to a grid on
which the total is exact, and what is no number counts as zero. So one unit moves the total by no
more than the bound, rounding included (compare Casacuberta, Shoemate, Vadhan and Wagaman 2022,
"Widespread underestimation of sensitivity in differentially private libraries and how to fix it").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError
from dpaudit.ledger.entry import Entry, Key, KeyedNoise, NoiseBackend
from dpaudit.ledger.units import Units, Whole
from dpaudit.mechanisms import ExponentialMechanism, Norm, Released, StableHistogram
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import AddRemove, Contribution, Invocation

_GRID_BITS = 26
_MOST_STEPS = 2**_GRID_BITS
_EXACT = 2**53
"""Up to here floats hold every whole number."""
_HUGE = 1e100
"""Times the bound: of larger parts only the direction would matter, which floats cannot keep."""

_BITS = 256
_MOST_KEY = 2**_BITS
"""Whole numbers that are longer count as this key."""

Parts = Callable[[], Floats]
"""Makes the bounded parts of a sum, shape (units, d), for noise that looks at them."""

_SMALL = 1e-140
"""Squares of smaller numbers are not exact to the last bit."""


def first_rows(units: Units, most: int) -> NDArray[np.bool_]:
    """Whether each row is among the first ``most`` of its unit, shape (n,)."""
    if units.codes is None:
        return np.ones(units.count, dtype=bool)
    order = np.argsort(units.codes, kind="stable")
    ordered = units.codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if ordered.size else ordered
    ranks = np.arange(ordered.size) - np.repeat(starts, np.diff(np.r_[starts, ordered.size]))
    kept = np.empty(ordered.size, dtype=bool)
    kept[order] = ranks < most
    return kept


def bounded_total(
    rows: ArrayLike, units: Units, contribution: Contribution, norm: Norm, *, whole: bool = False
) -> tuple[Floats, Floats]:
    """The sum of every unit's bounded part, and these parts.

    Args:
        rows: private values, shape (n,) or (n, …).
        units: to whom they belong.
        contribution: the bound of a unit's part.
        norm: L1 or L2.
        whole: whether parts are rounded to whole numbers, as integer noise takes no others.

    Returns:
        Shape of one row, and shape (units, d).

    Raises:
        InputError: if the rows are no numbers.
    """
    values = numbers_of(rows)
    step, largest = _grid(contribution, norm, whole=whole)
    parts = bounded_parts(
        values, units, contribution, norm, step, np.float64(contribution.bound), largest
    )
    parts *= step  # a power of two
    total = parts.sum(axis=0)
    if whole:  # which integer noise would refuse above, and so tell it; it moves no two apart
        total = np.clip(total, -_EXACT, _EXACT)
    return np.asarray(total, dtype=np.float64).reshape(values.shape[1:]), parts


def bounded_counts(
    cells: Whole,
    size: int,
    units: Units,
    contribution: Contribution,
    norm: Norm,
    *,
    whole: bool = False,
) -> tuple[Floats, Parts]:
    """As :func:`bounded_total` of rows that are 1 in their cell and 0 elsewhere, without these.

    Args:
        cells: that of each row, shape (n,); rows with a negative one are left out.
        size: how many cells there are.
        units: to whom the rows belong.
        contribution: the bound of a unit's part.
        norm: L1 or L2.
        whole: as there.
    """
    units, cells = units.where(cells >= 0), cells[cells >= 0]
    if contribution.rows is not None:
        kept = first_rows(units, contribution.rows)
        units, cells = units.where(kept), cells[kept]
    codes = np.arange(cells.size) if units.codes is None else units.codes
    pairs, counts = np.unique(codes * size + cells, return_counts=True)
    owners, places = np.divmod(pairs, size)
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    lengths = np.diff(starts, append=owners.size)
    steps = np.empty(pairs.size)
    step, largest = _grid(contribution, norm, whole=whole)
    bound = np.float64(contribution.bound)
    for length in np.unique(lengths).tolist():  # of units with as many cells
        entries = starts[lengths == length, None] + np.arange(length)
        own = counts[entries].astype(np.float64)
        steps[entries] = _on_grid(own, _norms(own, norm), bound, largest, norm, step)
    steps *= step

    def parts() -> Floats:
        dense = np.zeros((units.count, size))
        dense[owners, places] = steps
        return dense

    total = np.bincount(places, steps, minlength=size)
    return total.astype(np.float64, copy=False), parts  # of no rows it is one of integers


def repeated(part: Floats, times: int) -> Floats:
    """The sum of so many equal parts, each of them 1 or less.

    Raises:
        InputError: if it is too large to be exact.
    """
    if float(part).as_integer_ratio()[0] * times > _EXACT:
        raise InputError("n is too large for an exact count; it must be a number of rows.")
    return np.asarray(part * times)


def numbers_of(rows: ArrayLike) -> NDArray[Any]:
    """Rows as an array of numbers.

    Raises:
        InputError: if they are none.
    """
    values = None
    with suppress(Exception):  # conversion may run foreign code, whose words may show a value
        values = np.asarray(rows)
    if values is None or values.dtype.kind not in "iufb" or values.ndim == 0:
        kind = "no one shape" if values is None else values.dtype.type.__name__
        kind = "a single value" if values is not None and not values.ndim else kind
        raise InputError(f"rows are of type {kind}; they must be an array of numbers.")
    return values


def bounded_parts(
    values: NDArray[Any],
    units: Units,
    contribution: Contribution,
    norm: Norm,
    step: float,
    bounds: Floats | np.float64,
    largest: Whole | int,
) -> Floats:
    """The bounded part of every unit in steps of a grid, shape (units, d).

    Args:
        values: private numbers, shape (n, …).
        units: to whom they belong.
        contribution: how many rows of a unit count, and the bound that is none of a unit's own.
        norm: L1 or L2.
        step: of the grid.
        bounds: of each unit, or of all.
        largest: the same in steps, exactly; squared for L2.
    """
    flat = values.reshape(len(values), math.prod(values.shape[1:])).astype(np.float64, copy=False)
    if contribution.rows is not None and units.codes is not None:
        kept = first_rows(units, contribution.rows)
        flat, units = flat[kept], Units(units.codes[kept], units.count)
    # What is changed here is changed row by row, so that no unit decides on another's part.
    if not max(flat.max(initial=0.0), -flat.min(initial=0.0)) <= _HUGE * contribution.bound:
        flat = _numbers(flat, contribution.bound)
    parts = _joined(flat, units)
    return _on_grid(parts, _norms(parts, norm), bounds, largest, norm, step)


def cells_of(keys: Any, public: Any) -> Whole:
    """For each key its place among the public ones, or −1, shape (n,).

    Keys are compared as Python compares them, as texts, numbers, or tuples of these; what is
    nothing of this is no public key, so that nobody's own may stop a release.

    Raises:
        InputError: if the public keys are not distinct, or others than that.
    """
    if isinstance(public, range) and public == range(len(public)) and _is_whole(keys):
        return np.where((keys >= 0) & (keys < len(public)), keys, -1).astype(np.int64)
    listed = [_hashable(key) for key in _held(public)]
    known = {key: place for place, key in enumerate(listed)}
    if _OTHER in known:
        raise InputError("keys has a public key that is not a text, a number or a tuple of these.")
    if len(known) != len(listed):
        raise InputError("keys has one of the public keys twice; they must be distinct.")
    own = (known.get(_hashable(key), -1) for key in _held(keys))
    return np.fromiter(own, dtype=np.int64)


def _is_whole(keys: Any) -> bool:
    return isinstance(keys, np.ndarray) and keys.dtype.kind == "i" and keys.ndim == 1


_OTHER = object()
_PLAIN = (str, int, float, bytes, type(None))


def _held(keys: Any) -> list[Any]:
    """Keys as they are: numpy would make texts of numbers, and a table of tuples."""
    return list(keys.tolist() if hasattr(keys, "tolist") else keys)


def _hashable(key: Any) -> Any:
    """A key as a plain one that compares by its content; of enumerations their value."""
    if issubclass(type(key), np.generic):
        key = key.item()
    if type(key) in (*_PLAIN, bool):
        return key
    if issubclass(type(key), tuple):
        parts = tuple(map(_hashable, key))
        return _OTHER if _OTHER in parts else parts
    for kind, content in ((str, str.__str__), (int, int.__int__), (float, float.__float__)):
        if issubclass(type(key), kind):
            return content(key)
    return _OTHER


def quantile_utilities(
    invocation: Invocation,
    values: ArrayLike,
    share: float,
    candidates: Sequence[float],
    units: ArrayLike | None,
) -> Floats:
    """How well each candidate divides the values, for the exponential mechanism.

    Raises:
        InputError: if the invocation's mechanism is another, or its utility sensitivity is below
            what its rows of one unit can do.
    """
    mechanism, contribution = invocation.mechanism, invocation.contribution
    if not isinstance(mechanism, ExponentialMechanism) or contribution is None:
        raise InputError(
            f"{invocation.describe()} is not an exponential mechanism; quantiles need one."
        )
    if contribution.rows is None:
        raise InputError(
            f"{invocation.describe()} does not bound the rows of a unit; quantiles need such a "
            "bound."
        )
    # A zeroed row is still a row, which may go from one side of a candidate to the other.
    absent = isinstance(invocation.relation, AddRemove)
    each = max(share, 1 - share) if absent else 1.0
    if mechanism.utility_sensitivity < each * contribution.rows:
        raise InputError(
            f"utility_sensitivity is {mechanism.utility_sensitivity:g}; one unit's rows can move "
            f"the utility by up to {each * contribution.rows:g}."
        )
    places = np.asarray(candidates, dtype=np.float64)
    if places.ndim != 1 or not places.size or not (np.diff(places) > 0).all():
        raise InputError("candidates must be increasing numbers, at least one.")
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("values are not numbers; they must be an array of numbers.") from None
    if numbers.ndim != 1:
        raise InputError(f"values has shape {numbers.shape}; it must be a list of numbers.")
    kept = first_rows(Units.of(units, len(numbers)), contribution.rows)
    ordered = np.sort(numbers[kept & ~np.isnan(numbers)])
    below = np.searchsorted(ordered, places, side="left")
    above = ordered.size - np.searchsorted(ordered, places, side="right")
    near = _share_on_grid(share)
    utilities: Floats = -np.abs((1 - near) * below - near * above)
    return utilities


def _share_on_grid(share: float) -> float:
    """The next multiple of 2^-26 towards 1/2, whose products with counts are exact.

    So no rounding moves a utility further than the unit's rows do, and max(q, 1 − q) grows not.
    """
    inwards = math.ceil if share < 0.5 else math.floor
    return float(inwards(share * _MOST_STEPS) / _MOST_STEPS)


def key_counts(
    invocation: Invocation, keys: Sequence[Key] | NDArray[Any], units: ArrayLike | None
) -> dict[Key, int]:
    """How many units have each key, in the order of the keys: of each unit the first distinct ones.

    Raises:
        InputError: if an argument is wrong, or the mechanism covers less than one unit may change.
    """
    most, listed = _keys_of_one(invocation), _listed(keys)
    distinct = sorted(set(listed))
    place = {key: number for number, key in enumerate(distinct)}
    cells = np.fromiter(map(place.__getitem__, listed), dtype=np.int64, count=len(listed))
    members = Units.of(units, len(listed))
    if members.codes is not None:
        rows = np.sort(np.unique(members.codes * len(distinct) + cells, return_index=True)[1])
        cells = cells[rows][first_rows(Units(members.codes[rows], members.count), most)]
    counts = np.bincount(cells, minlength=len(distinct))
    return dict(zip(distinct, counts.tolist(), strict=True))


def drawn(counts: Mapping[Key, int], noise: NoiseBackend, entry: Entry) -> dict[Key, int]:
    """What is told of private counts."""
    if isinstance(noise, KeyedNoise):
        return noise.release_keyed(entry, counts)
    return released_counts(counts, noise.release(entry, np.fromiter(counts.values(), np.int64)))


def released_counts(keys: Iterable[Key], released: Released) -> dict[Key, int]:
    """The released counts by their keys, in the same order; 0 tells nothing."""
    both = zip(keys, np.asarray(released).tolist(), strict=True)
    return {key: count for key, count in both if count}


def _numbers(values: Floats, bound: float) -> Floats:
    """NaN as 0, and infinities and huge numbers as ones so large that the bound takes over."""
    huge = _HUGE * bound
    return np.clip(np.nan_to_num(values, nan=0.0, posinf=huge, neginf=-huge), -huge, huge)


def _joined(values: Floats, units: Units) -> Floats:
    """The rows of each unit added up, shape (units, d)."""
    if units.codes is None:
        return values
    joined = np.empty((units.count, values.shape[1]))
    for column in range(values.shape[1]):
        joined[:, column] = np.bincount(units.codes, values[:, column], minlength=units.count)
    return joined


def _grid(contribution: Contribution, norm: Norm, *, whole: bool) -> tuple[float, int]:
    """The step of the grid, and the bound in steps; squared for L2."""
    step = grid_step(contribution.bound)
    if whole:
        step = max(step, 1.0)
    if contribution.bound <= _MOST_STEPS:
        step = min(step, 1.0)  # integers stay as they are while squares of the bound can be held
    limit = Fraction(contribution.bound) / Fraction(step)
    return step, int(limit if norm is Norm.L1 else limit * limit)


def grid_step(bound: float) -> float:
    """A power of two of which the bound has at most 2^26."""
    return math.ldexp(1.0, math.frexp(bound)[1] - _GRID_BITS)


def _on_grid(
    parts: Floats,
    norms: Floats,
    bounds: Floats | np.float64,
    largest: Whole | int,
    norm: Norm,
    step: float,
) -> Floats:
    """Each part in grid steps, rounded towards zero, its norm exactly within its bound.

    Sums of squares of such numbers are below 2^53, so they are exact, and so are totals of 2^27.
    """
    near = bounds * (1 - 2.0**-40)  # below it rounding cannot matter
    over, coarse = norms > bounds, step >= 1
    most = bounds if coarse else near
    factors = np.where(over, most / np.where(over, norms, 1.0), 1.0) / step
    steps = np.multiply(parts, factors[:, None])
    np.trunc(steps, out=steps)
    close = np.flatnonzero((norms > near) & (coarse | ~over))
    if close.size:
        rows, one = steps[close], norm is Norm.L1
        sizes = np.abs(rows).sum(axis=1) if one else np.einsum("ij,ij->i", rows, rows)
        beyond = sizes > (largest if isinstance(largest, int) else largest[close])
        steps[close[beyond]] = np.trunc(rows[beyond] * (1 - 2.0**-20))
    return steps


def _norms(parts: Floats, norm: Norm) -> Floats:
    """The norm of each part, shape (units,)."""
    if norm is Norm.L1 or parts.shape[1] == 1:
        with np.errstate(over="ignore"):
            absolute: Floats = np.abs(parts).sum(axis=1)
        return absolute
    with np.errstate(over="ignore", invalid="ignore"):
        norms: Floats = np.sqrt(np.einsum("ij,ij->i", parts, parts))
        extreme = np.flatnonzero(~np.isfinite(norms) | (norms < _SMALL))
        if extreme.size:  # squares overflow, or vanish
            largest = np.abs(parts[extreme]).max(axis=1, initial=5e-324)
            norms[extreme] = largest * np.linalg.norm(parts[extreme] / largest[:, None], axis=1)
    return norms


def _keys_of_one(invocation: Invocation) -> int:
    """How many keys of one unit count."""
    mechanism, contribution = invocation.mechanism, invocation.contribution
    rows = None if contribution is None else contribution.rows
    if not isinstance(mechanism, StableHistogram) or rows is None:
        raise InputError(
            f"{invocation.describe()} is not a stable histogram of some rows of a unit."
        )
    # Who is replaced, or zeroed, leaves its own keys and may come to others.
    moved = rows * (1 if isinstance(invocation.relation, AddRemove) else 2)
    if mechanism.key_sensitivity < moved:
        raise InputError(
            f"key_sensitivity of {invocation.describe()} is {mechanism.key_sensitivity}; under "
            f"{invocation.relation} {rows} keys of a unit can change {moved} counts, so declare at "
            f"least {moved}."
        )
    return rows


def _writable(key: Key) -> Key:
    """A key that every file can hold; nobody's own may stop a release."""
    if isinstance(key, int):
        return key if key.bit_length() <= _BITS else _MOST_KEY if key > 0 else -_MOST_KEY
    return key if key.isascii() else key.encode("utf-8", "replace").decode()


def _listed(keys: Sequence[Key] | NDArray[Any]) -> list[Key]:
    """All texts or all whole numbers; which other ones there are is nobody's business."""
    listed: Any = keys.tolist() if hasattr(keys, "tolist") else keys
    if isinstance(listed, list | tuple):
        plain = [each.item() if isinstance(each, np.generic) else each for each in listed]
        if len(kinds := set(map(type, plain))) <= 1 and kinds <= {str, int}:
            return list(map(_writable, plain))
    raise InputError("keys must be a list or an array, of texts alone or of whole numbers alone.")
