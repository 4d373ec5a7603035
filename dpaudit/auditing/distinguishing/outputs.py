"""Foreign code as a release: what it is given, and what it gives back.

It is given fresh copies of data. Its outputs are read with what rides on an object beside what it
shows, as whoever is handed the object is handed that too.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from inspect import Parameter
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.children import within_time
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.base.fields import Checked, Positive
from dpaudit.base.validate import shown

EXACT = 2**53
"""Whole numbers from here on may be rounded by floats."""
_FLAT = frozenset({int, float, bool, str, bytes, type(None)})


def copies(data: Any) -> Callable[[], Any]:
    """A maker of copies of data as they are now, so that code may change what it is given.

    Containers and arrays are copied, whatever else they hold is shared.

    >>> fresh = copies({"rows": [1, 2]})
    >>> fresh()["rows"].append(3)
    >>> fresh()
    {'rows': [1, 2]}
    """
    kept = _copied(data)
    return lambda: _copied(kept)


def _copied(data: Any) -> Any:
    kind = type(data)
    if kind is list or kind is tuple:
        if _FLAT.issuperset(map(type, data)):  # quick, and most data are
            return kind(data)
        return kind([_copied(item) for item in data])
    if kind is dict:
        if _FLAT.issuperset(map(type, data.values())):
            return data.copy()
        return {key: _copied(item) for key, item in data.items()}
    if kind is set or isinstance(data, np.ndarray):
        return data.copy()
    return data


class NotPlainError(InputError):
    """Outputs are no plain numbers of one shape; they may be encoded as such."""


class RefusedError(InputError):
    """A check of dpaudit refuses the data."""


class ScoreError(RefusedError):
    """A score that was given fails on an output."""


@dataclass(frozen=True)
class Raised:
    """An exception as the output of a run.

    Attributes:
        kind: its class.
        message: its text.
    """

    kind: str
    message: str


@dataclass(frozen=True)
class Partial:
    """An output of which some fields are not looked at.

    Attributes:
        output: all of it.
        left_out: names of these fields, such as ``output['served_at']``.
    """

    output: Any
    left_out: frozenset[str]


def attempt(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or what it raises; dpaudit's own exceptions are passed on.

    Neither too little memory nor an exit is an answer.
    """
    try:
        return call()
    except (MemoryError, DpAuditError):
        raise
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        return Raised(type(error).__name__, _told(error))


def _told(error: BaseException, deep: int = 8) -> str:
    """All that an exception says: text, notes and attributes, and those of what is behind it."""
    behind = (error.__cause__, error.__context__, *getattr(error, "exceptions", ()))
    further = [_told(each, deep - 1) for each in behind if each is not None and deep]
    return " ".join([str(error), *([str(held)] if (held := vars(error)) else []), *further])


def singles(raw: Any, size: int) -> Sequence[Any]:
    """The outputs of a batch, one by one.

    Raises:
        InputError: if they are no sequence of this length.
    """
    batch: Any = raw if isinstance(raw, list | tuple) else as_array(raw)
    shape = (len(batch),) if isinstance(batch, list | tuple) else batch.shape
    if shape[:1] != (size,):
        raise InputError(f"it returned shape {shape}; its first axis must be the {size} runs.")
    outputs: Sequence[Any] = batch
    return outputs


@dataclass(frozen=True)
class Plain:
    """Outputs of one shape as they are; any other one as NaN, for which every score is the same.

    Attributes:
        shape: of one output.
    """

    shape: tuple[int, ...]

    def __call__(self, outputs: Sequence[Any]) -> NDArray[np.float64]:
        """Outputs as floats, shape (n, *shape)."""
        if (rows := self._rows(outputs)) is not None:
            return rows
        each = (self._rows([output]) for output in outputs)
        odd = np.full((1, *self.shape), np.nan)
        return np.concatenate([odd if row is None else row for row in each])

    def _rows(self, outputs: Any) -> NDArray[np.float64] | None:
        try:
            batch = outputs if isinstance(outputs, np.ndarray) else stack_outputs(outputs)
            rows = check_outputs(batch, len(outputs), "")
        except NotPlainError:
            return None
        return rows if rows.shape[1:] == self.shape else None


def as_array(raw: Any, runs: str = "") -> NDArray[Any]:
    """An output, or a batch of them, as an array.

    Raises:
        NotPlainError: if it is none, or would be rounded.
    """
    try:
        array = np.asarray(raw)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - foreign objects may raise anything
        raise _odd("outputs of changing shapes", runs) from None
    mixed = array.dtype.kind == "f" and isinstance(raw, list | tuple)
    if mixed and any(isinstance(each, int) and abs(each) > EXACT for each in raw):
        raise _odd("whole numbers beyond 2^53", runs)
    return array


def stack_outputs(outputs: Sequence[Any]) -> NDArray[Any]:
    """Outputs as one array.

    Raises:
        NotPlainError: if they have several shapes, or would be rounded.
    """
    told = ("to_numpy", "mask", "__dict__")  # an index, names, what is hidden or hung on
    if any(hasattr(output, name) for output in outputs for name in told):
        raise _odd("more than the numbers of an array", "")
    arrays = [as_array(output) for output in outputs]
    if len({each.shape for each in arrays}) > 1:
        raise _odd("outputs of several shapes", "")
    if len({each.dtype for each in arrays}) > 1:  # together they may be rounded
        for each in arrays:
            check_outputs(each[np.newaxis], 1, "")
    return np.stack(arrays)


def _odd(what: str, runs: str) -> NotPlainError:
    return NotPlainError(
        f"the mechanism returned {what} {runs}; every output must be a number or an array of "
        "numbers of one shape, because the score takes nothing else."
    )


def check_outputs(raw: Any, size: int, runs: str) -> NDArray[np.float64]:
    """Outputs as floats, shape (size, …).

    Raises:
        NotPlainError: if they are no numbers, NaN, whole numbers that are no floats, or of changing
            shapes.
        InputError: if there is a wrong number of them.
    """
    array = as_array(raw, runs)
    if array.dtype.kind not in "biuf":
        shown = repr(raw if array.ndim == 0 else array.ravel()[:1].tolist())
        raise _odd(f"{shown:.60}", runs)
    if array.ndim == 0 or len(array) != size:
        raise InputError(
            f"the mechanism returned shape {array.shape} {runs}; its first axis must be the "
            f"{size} runs."
        )
    if array.size == 0:
        raise _odd("nothing", runs)
    if array.dtype.kind in "iu" and ((array > EXACT).any() or (array < -EXACT).any()):
        raise _odd("whole numbers beyond 2^53", runs)
    numbers = array.astype(np.float64)
    if np.isnan(numbers).any():
        raise _odd("NaN", runs)
    zero = numbers == 0
    if zero.any():  # −0 is another answer than 0: the number next to it
        numbers[zero & np.signbit(numbers)] = -5e-324
    return numbers


_OWN = __name__.partition(".")[0]
_PLAIN: tuple[type, ...] = (
    *(bool, int, float, complex, str, bytes, list, dict, tuple, set, frozenset),
    *(np.generic, np.ndarray),
)
"""What a class may hold for all of its objects, beside its methods."""
_EXACT = {
    *(type(None), bool, int, float, complex, str, bytes, bytearray, list, dict, tuple, set),
    *(frozenset, np.ndarray, np.ma.MaskedArray, date, datetime, time, timedelta, Decimal, Fraction),
}
_HOLDING = (list, tuple, dict, set, frozenset)
_LIBRARIES = ("pandas", "polars", "scipy", "torch")
"""Whose tables, matrices and tensors are read."""


def is_plain(value: Any) -> bool:
    """Tell whether an object is of a kind that is read to the end: data, and nothing that computes.

    Classes of one's own may hold anything out of sight; records are read, of a dataclass or a named
    tuple that a module defines and that hold their fields alone.
    """
    kind = type(value)
    if kind in _EXACT:
        return kind not in _HOLDING or not any(map(_is_disguised, value))
    if isinstance(value, np.generic) and kind.__module__ == "numpy":
        return True
    if isinstance(value, type | ModuleType):
        return False
    if kind.__module__.partition(".")[0] in _LIBRARIES:
        return hasattr(value, "shape")
    own = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    if not own or any(isinstance(held, property) for held in vars(kind).values()):
        return False
    if kind.__bases__ == (tuple,):
        return hasattr(kind, "_fields")
    names = {each.name for each in fields(kind)} if is_dataclass(kind) else None
    return kind.__bases__ == (object,) and type(kind) is type and names == set(_held(value))


def _is_disguised(value: Any) -> bool:
    """Tell whether it is a number or a text that may show another one."""
    kind = type(value)
    known = kind in _EXACT or kind.__module__ == "numpy"
    return isinstance(value, int | float | str | bytes) and not known


class Unread:
    """Stands for what no test can read."""


def riding(value: Any) -> dict[str, Any]:
    """Return what an object carries that its numbers, text or fields do not show, by name."""
    if isinstance(value, type | ModuleType):
        return {}  # which are unread as they are
    if isinstance(value, np.ndarray | np.generic):
        return _of_array(value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_tensor(value)
    found = dict(_of_class(type(value)))
    if any(hasattr(value, shown) for shown in ("to_numpy", "to_dict", "__array__")):
        found |= {name: each for name, each in _held(value).items() if not name.startswith("_")}
        found |= {"attrs": attrs} if (attrs := getattr(value, "attrs", None)) else {}
    return found


def _held(value: Any) -> Mapping[str, Any]:
    return getattr(value, "__dict__", {})


def _of_array(value: Any) -> dict[str, Any]:
    whole: Any = getattr(value, "base", None)
    while isinstance(getattr(whole, "base", None), np.ndarray):
        whole = whole.base
    size = getattr(whole, "nbytes", None)
    found: dict[str, Any] = {} if whole is None or size == value.nbytes else {"base": whole}
    metadata = value.dtype.metadata
    return found | ({"dtype.metadata": dict(metadata)} if metadata else {})


def _of_tensor(value: Any) -> dict[str, Any]:
    found = dict(_held(value))
    if value.layout is sys.modules["torch"].strided:
        store = value.untyped_storage()
        if store.nbytes() != value.numel() * value.element_size():
            found["storage"] = bytes(store)
    if value.is_leaf and value.grad is not None:
        found["grad"] = value.grad
    if value.grad_fn is not None:
        found["graph"] = Unread()  # holds what it was computed from
    return found


def _of_class(kind: type) -> dict[str, Any]:
    """Return what classes of one's own hold, as text or numbers."""
    own = (each for each in kind.__mro__ if not _of_library(each))
    return {
        f"{each.__name__}.{name}": held
        for each in own
        for name, held in vars(each).items()
        if isinstance(held, _PLAIN) and not name.startswith("__")
    }


@cache
def _of_library(kind: type) -> bool:
    """Tell whether a class is Python's, or was installed."""
    package = kind.__module__.partition(".")[0]
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return package in (*sys.stdlib_module_names, _OWN) or "site-packages" in file


_PLACE_ONLY = Parameter.POSITIONAL_ONLY
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class BlackBox(Checked):
    """A user function as a release: ``f(data, rng)``, ``f(data, rng, size)`` or ``f(data)``.

    The first parameter takes the data, whatever its name. A generator is taken by a parameter that
    is named ``rng``, or else by the second one if it has no default; without one, the function
    draws its own randomness. Only a parameter that is named ``size`` makes it give ``size`` runs a
    call. All others keep their defaults, or are set by ``arguments``. It may return anything.

    >>> noisy = BlackBox(lambda data, rng: sum(data) + rng.laplace())
    >>> noisy([1, 2], 3, np.random.default_rng(0)).shape
    (3,)

    Attributes:
        function: the code under attack.
        timeout: seconds that one run may take; None for any time.
        arguments: values of further parameters, by name.
        left_out: fields of an output that are not looked at, by name.
        batched: whether a call makes several runs.
        takes_rng: whether it takes a generator.

    Raises:
        InputError: if it is no such function, or a parameter without default is not set.
    """

    function: Callable[..., Any]
    timeout: Positive | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    batched: bool = field(init=False)
    takes_rng: bool = field(init=False)
    _rng_by_name: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        parameters = _parameters(self.function)
        rest = {each.name: each for each in parameters[1:] if each.kind not in _VARIADIC}
        second = parameters[1] if len(parameters) > 1 else None
        by_place = (
            "rng" not in rest
            and second is not None
            and second.kind not in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)
            and second.default is Parameter.empty
            and second.name not in {"size", *self.arguments}
        )
        given = {"size", "rng", *([second.name] if by_place and second is not None else [])}
        free = rest.keys() - given
        takes_any = any(each.kind is Parameter.VAR_KEYWORD for each in parameters)
        for name in self.arguments:
            if name in given | {parameters[0].name} or not (name in free or takes_any):
                raise InputError(
                    f"{self.name} has no parameter {shown(name)} to set; these can "
                    f"be set: {', '.join(sorted(free)) or 'none'}."
                )
        for name in sorted(free - self.arguments.keys()):
            if rest[name].default is Parameter.empty:
                raise InputError(
                    f"{self.name} needs the parameter {name}, which nothing sets; give --arg "
                    f"{name}=JSON (arguments={{{name!r}: …}}), or make it f(data, rng), or "
                    "f(data, rng, size) for batches."
                )
        self._set("batched", "size" in rest)
        self._set("takes_rng", by_place or "rng" in rest)
        self._set("_rng_by_name", "rng" in rest and rest["rng"].kind is not _PLACE_ONLY)

    @property
    def name(self) -> str:
        """What the function calls itself."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def within(self, timeout: float | None) -> BlackBox:
        """The same with this timeout, unless it has one of its own."""
        return self if self.timeout is not None else replace(self, timeout=timeout)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """``size`` outputs, one after the other unless the function makes them at once.

        Every call is given a copy of the data, so that code may change them.

        Raises:
            NotPlainError: if an output is no number, or differs in shape from the first one.
            TrialTimeoutError: if a call takes longer than the timeout.
        """
        fresh = copies(data)
        if self.batched:
            return as_array(self.raw(fresh(), size, rng))
        return stack_outputs([self.raw(fresh(), 1, rng)[0] for _ in range(size)])

    def raw(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Call it once for ``size`` runs, of which it makes one unless it is batched."""
        given = {**self.arguments, **({"rng": rng} if self._rng_by_name else {})}
        places = (rng,) if self.takes_rng and not self._rng_by_name else ()
        limit = None if self.timeout is None else self.timeout * size
        sizes = {"size": size} if self.batched else {}
        made = within_time(limit, lambda: self.function(data, *places, **sizes, **given))
        if not self.left_out:
            return made if self.batched else [made]
        outputs = singles(made, size) if self.batched else [made]
        return [Partial(output, self.left_out) for output in outputs]


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Those of a function that takes data."""
    wanted = "it must be a function f(data), f(data, rng) or f(data, rng, size)"
    if not callable(function):
        raise InputError(f"the black box is {function!r:.60}; {wanted}.")
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise InputError(f"the black box {function!r:.60} has no signature; {wanted}.") from None
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind is Parameter.VAR_POSITIONAL:  # takes data and rng
        parameters.insert(0, Parameter("data", _PLACE_ONLY))
    if not parameters or parameters[0].kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD):
        raise InputError(f"the black box has the parameters {signature}; {wanted}.")
    return parameters
