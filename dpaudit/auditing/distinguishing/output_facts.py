"""Any object as facts and numbers under readable labels; different objects differ in them.

A function of an output is as private as the output, so that a form may be judged in its place.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import itertools
import math
import numbers
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.outputs import (
    EXACT,
    Partial,
    Raised,
    Unread,
    is_plain,
    riding,
)
from dpaudit.mechanisms.pairs import Floats

Block = tuple[str, tuple[int, ...]]
"""A label, and the shape of what lies along the first axis."""

MOST = 20_000
"""Facts and single numbers of one output; all others together are one fact."""
DEEPEST = 40
LONGEST = 60
"""Characters of a value that a fact shows."""
FEW = 256
"""Different words, bytes of a sequence and odd entries of an array that are told one by one."""
UNREAD = ", holds something that no test can read"
"""How the fact of an object ends that may hold anything, such as a function or a coroutine."""
_FAILS = ", cannot be read ("
_LOW = 2**32
_HEAP_TYPE = 1 << 9
"""Flag of classes that are written in Python, or could be."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
WORD = re.compile(r"[^\W\d]\w*")


@dataclass(eq=False)
class Form:
    """The facts, numbers and arrays that an output is made of.

    Attributes:
        facts: that hold; what follows a null character tells them apart and is not shown.
        numbers: single ones, by label; NaN is a fact as well.
        blocks: arrays of numbers, flattened.
        texts: all of it: values, keys and messages.
        left_out: fields that are there and are not looked at.
    """

    facts: set[str] = field(default_factory=set)
    numbers: dict[str, float] = field(default_factory=dict)
    blocks: dict[Block, Floats] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)

    @property
    def failed(self) -> bool:
        """Whether it is an exception."""
        return any(fact.startswith("it raises ") for fact in self.facts)

    @property
    def plain(self) -> dict[str, float]:
        """Its single numbers, but for lengths and low bits."""
        made = ("length ", "last ")
        return {name: each for name, each in self.numbers.items() if not name.startswith(made)}

    @property
    def values(self) -> Floats:
        """All numbers in it, but for lengths and low bits."""
        blocks = (each for (name, _), each in self.blocks.items() if not name.startswith("(last "))
        return np.concatenate([[*self.plain.values()], *blocks])

    @property
    def words(self) -> set[str]:
        """Words of its texts."""
        return {word for text in self.texts for word in WORD.findall(text)}

    @property
    def unread(self) -> list[str]:
        """Facts of what may hold anything."""
        return [each for each in sorted(self.facts) if each.endswith(UNREAD) or _FAILS in each]

    @property
    def size(self) -> int:
        """About how many numbers would take as much memory."""
        return 16 * (len(self.facts) + len(self.numbers)) + sum(map(np.size, self.blocks.values()))

    @property
    def types(self) -> frozenset[str]:
        """Facts of types."""
        return frozenset(fact for fact in self.facts if " type " in fact or " dtype " in fact)

    @property
    def digest(self) -> str:
        """Equal for equal forms, in any process."""
        blocks = sorted((key, self.blocks[key].tobytes()) for key in self.blocks)
        return _digest(sorted(self.facts), sorted(map(str, self.numbers.items())), blocks)


def read_numbers(text: str) -> Iterator[float]:
    """The numbers in a text."""
    yield from (float(each.group()) for each in NUMBER.finditer(text))


def entry_name(block: Block, place: int) -> str:
    """Return what an entry of a block is called, such as ``output[3]``."""
    label, rest = block
    first, within = divmod(place, math.prod(rest))
    inner = map(int, np.unravel_index(within, rest)) if rest else ()
    return f"{label}{[first, *inner]}"


def canonical(output: Any, *, carried: bool = False) -> Form:
    """The form of any object, ``carried``: with what rides on it; what cannot be read is a fact.

    >>> form = canonical({"b": [1.5, float("nan")]})
    >>> sorted(fact for fact in form.facts if chr(0) not in fact)
    ['output has type dict', "output['b'] is present", "output['b'][1] is NaN"]
    >>> form.numbers["length of output['b']"], list(form.blocks)
    (2.0, [("output['b']", ())])
    """
    left_out = frozenset[str]()
    if isinstance(output, Partial):
        output, left_out = output.output, output.left_out
    reader = _Reader(carried, left_out)
    reader.read("output", output)
    if reader.room < 0:
        reader.form.facts.add(f"the rest of output is as it is\0{reader.rest.hexdigest()}")
    return reader.form


class _Reader:
    def __init__(self, carried: bool, left_out: frozenset[str]) -> None:
        self.form, self.room, self.depth, self.carried = Form(), MOST, 0, carried
        self.left_out = left_out
        self.rest = hashlib.blake2b()

    def read(self, label: str, value: Any) -> None:
        """Add what a value is."""
        if label in self.left_out:
            self.form.left_out.add(label)
            return
        self.depth += 1
        try:
            if self.depth > DEEPEST:
                self.hidden(f"{label} is as it is", _repr(value))
            elif self.room < 0:
                self.rest.update(_encoded(label, _repr(value)))
            else:
                self._read(label, value, type(value))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - foreign objects may raise anything
            self.fact(f"{label}, a {_type(value)}{_FAILS}{type(error).__name__})")
        self.depth -= 1

    def fact(self, text: str) -> None:
        self.room -= 1
        if self.room < 0:
            self.rest.update(_encoded(text))
        else:
            self.form.facts.add(text)

    def hidden(self, shown: str, *content: Any) -> None:
        """A fact that does not show what it depends on."""
        self.fact(f"{shown}\0{_digest(*content)}")

    def shown(self, label: str, value: Any) -> None:
        """The fact of a value, which shows the beginning of a long one."""
        self.fact(f"{label} {_short(_repr(value))}")

    def number(self, label: str, value: float) -> None:
        self.room -= 1
        if self.room < 0:
            self.rest.update(_encoded(label, value))
            return
        self.form.numbers[label] = value
        if value != value or (value == 0 and math.copysign(1, value) < 0):
            self.fact(f"{label} is {'NaN' if value else '-0.0'}")

    def _read(self, label: str, value: Any, kind: type) -> None:
        if kind is float:
            self.number(label, value)
        elif value is None or kind is bool:
            self.fact(f"{label} is {value}")
        elif isinstance(value, Raised):
            self.fact(f"it raises {value.kind}")
            self.form.texts.append(value.message)
            self.hidden(
                f"it raises {value.kind} with one particular message",
                _ADDRESS.sub("", value.message),
            )
        elif kind is Unread:
            self.fact(f"{label}, a part of it{UNREAD}")
        elif kind is list and _numeric(value) and (is_plain(value) or not self.carried):
            self._sequence(label, value)
        else:
            if kind is not str:
                self.fact(f"{label} has type {_type(value)}")
            reader = _reader(kind)
            reader(self, label, value)
            if self.carried and not is_plain(value):
                self.fact(f"{label}, a {_type(value)}{UNREAD}")
            if self.carried and (beside := riding(value)):
                self._attributes(label, beside)
            if reader is not _Reader._object and (hung := _hung_on(value)):
                self._attributes(label, hung)

    def _integer(self, label: str, value: int) -> None:
        try:
            self.number(label, float(value))
        except OverflowError:
            self.number(label, math.inf if value > 0 else -math.inf)
        if abs(value) >= EXACT:
            self.number(f"last 32 bits of {label}", float(value % _LOW))
            self.number(f"last bit of {label}", float(value % 2))
            self.hidden(f"{label} is one particular number beyond 2^53", hex(value))

    def _text(self, label: str, text: str) -> None:
        self.shown(f"{label} is", str(text))
        self.number(f"length of {label}", float(len(text)))
        found = [*itertools.islice(read_numbers(text), FEW)]
        self.form.texts.append(text)
        if found:
            self.form.blocks[f"(numbers in {label})", ()] = np.array(found)
            self.shown(f"{label} without its numbers is", NUMBER.sub("#", text))
        words = dict.fromkeys(WORD.findall(text))
        for word in itertools.islice(words, FEW) if len(words) > 1 else ():
            self.shown(f"{label} holds the word", word)

    def _bytes(self, label: str, content: bytes) -> None:
        self.shown(f"{label} is", bytes(content))
        self.number(f"length of {label}", float(len(bytes(content))))
        self._numbers(label, np.frombuffer(bytes(content)[:FEW], np.uint8), ())

    def _mapping(self, label: str, value: Mapping[Any, Any]) -> None:
        self.number(f"length of {label}", float(len(value)))
        names = [_key(key) for key in value]
        self.form.texts += names
        self.hidden(f"{label} has its keys in one particular order", names)
        for name, each in zip(names, value.values(), strict=True):
            place = f"{label}[{name}]"
            self.fact(f"{place} is present")
            self.read(place, each)

    def _attributes(self, label: str, fields: Mapping[str, Any]) -> None:
        for name, each in fields.items():
            self.fact(f"{label}.{name} is present")
            self.read(f"{label}.{name}", each)

    def _sequence(self, label: str, values: Any) -> None:
        self.number(f"length of {label}", float(len(values)))
        if not _numeric(values):
            for place, each in enumerate(values):
                self.read(f"{label}[{place}]", each)
            return
        kinds = [(name, len([*group])) for name, group in itertools.groupby(map(_type, values))]
        if len(kinds) > 1:
            self.hidden(f"{label} has numbers of particular types", kinds)
        elif kinds[0][0] != "float":
            self.fact(f"{label} has numbers of type {kinds[0][0]}")
        self._numbers(label, values, ())

    def _set(self, label: str, values: Set[Any]) -> None:
        self.number(f"length of {label}", float(len(values)))
        self.form.texts += (names := sorted(map(_key, values)))
        for each in names:
            self.fact(f"{label} holds {each}")
        if _numeric(values):
            self._numbers(f"(sorted {label})", sorted(values), ())

    def _array(self, label: str, array: NDArray[Any]) -> None:
        self.fact(f"{label} has dtype {array.dtype.str}")
        self.fact(f"{label} has shape {array.shape}")
        self.number(f"length of {label}", float(len(array)) if array.ndim else 0.0)
        if isinstance(array, np.ma.MaskedArray):
            self.read(f"{label}.mask", np.ma.getmaskarray(array))
            array = array.data
        if array.dtype.names:
            self._attributes(label, {name: array[name] for name in array.dtype.names})
        elif array.dtype.kind == "c":
            for part, values in (("real", array.real), ("imaginary", array.imag)):
                self._numbers(f"({part} part of {label})", values.ravel(), array.shape[1:])
        elif array.dtype.kind in "biufmM":
            plain = array.astype(np.int64) if array.dtype.kind in "mM" else array
            self._numbers(label, plain.ravel(), array.shape[1:])
        else:
            self.read(label, array.tolist())

    def _numbers(self, label: str, values: Any, rest: tuple[int, ...]) -> None:
        """Numbers of which some may be beyond what floats hold."""
        try:
            floats = np.asarray(values, dtype=np.float64)
        except OverflowError:
            for place, each in enumerate(values):
                self.read(entry_name((label, rest), place), each)
            return
        if any(name.startswith(f"{label}[") for name in self.left_out):
            values = floats = self._without(label, rest, floats.copy())
        self.form.blocks[label, rest] = floats
        for odd, what in ((np.isnan(floats), "NaN"), ((floats == 0) & np.signbit(floats), "-0.0")):
            places = np.flatnonzero(odd)
            for place in places[:FEW]:
                self.fact(f"{entry_name((label, rest), int(place))} is {what}")
            if len(places) > FEW:
                self.hidden(f"{label} is {what} at certain places", places.tobytes())
        if not isinstance(values, np.ndarray) or values.dtype.kind in "iu":
            whole = (np.abs(floats) >= EXACT) & np.isfinite(floats)
            if whole.any():
                low = [int(x) % _LOW if big else 0 for x, big in zip(values, whole, strict=True)]
                self.form.blocks[f"(last 32 bits of {label})", rest] = np.array(low, np.float64)
                self.form.blocks[f"(last bits of {label})", rest] = np.array(low, np.float64) % 2
                self.hidden(f"{label} is made of particular numbers", *map(str, values))

    def _without(self, label: str, rest: tuple[int, ...], floats: Floats) -> Floats:
        """The same entries, with 0 in place of those that are left out."""
        for place in range(len(floats)):
            if (name := entry_name((label, rest), place)) in self.left_out:
                self.form.left_out.add(name)
                floats[place] = 0.0
        return floats

    def _object(self, label: str, value: Any) -> None:
        if hasattr(value, "columns") and hasattr(value, "to_dict"):  # a frame of pandas or polars
            self.read(f"{label}.columns", [*value.columns])
            for name in value.columns:
                self.read(f"{label}[{name!r}]", value[name])
        elif hasattr(value, "to_numpy") or hasattr(value, "toarray"):
            plain = value.to_numpy() if hasattr(value, "to_numpy") else value.toarray()
            self.read(label, plain.copy())
            for name in ("dtype", "name"):
                self.shown(f"{label}.{name} is", getattr(value, name, None))
        elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
            self.shown(f"{label}.mode is", getattr(value, "mode", None))  # of an image
            self.read(label, np.asarray(value.detach() if hasattr(value, "detach") else value))
        elif isinstance(value, Iterator):
            self.read(label, [*itertools.islice(value, MOST)])
        elif fields := _fields(value):
            self._attributes(label, fields)
        else:
            self.shown(f"{label} is", value)
            if _hides(value):
                self.fact(f"{label}, a {_type(value)}{UNREAD}")
            if isinstance(value, numbers.Number):
                self.number(label, float(value))  # type: ignore[arg-type]
        index = getattr(value, "index", None)
        if hasattr(value, "to_dict") and index is not None and not callable(index):
            self.read(f"{label}.index", [*index])

    def _scalar(self, label: str, value: np.generic) -> None:
        plain = value.item()
        if isinstance(plain, np.generic) or value.dtype.kind in "mM":
            self.shown(f"{label} is", value)
        else:
            self.read(label, plain)


_READERS: tuple[tuple[Any, Any], ...] = (
    (enum.Enum, lambda reader, label, value: reader.fact(f"{label} is {value.name}")),
    (int, _Reader._integer),
    (complex, lambda reader, label, value: reader._attributes(label, _parts(value))),
    (str, _Reader._text),
    (bytes | bytearray | memoryview, _Reader._bytes),
    (Mapping, _Reader._mapping),
    (list | tuple, _Reader._sequence),
    (Set, _Reader._set),
    (np.ndarray, _Reader._array),
    (np.generic, _Reader._scalar),
    (float, lambda reader, label, value: reader.number(label, float(value))),
)


@functools.lru_cache(maxsize=1024)
def _reader(kind: type) -> Callable[[_Reader, str, Any], None]:
    fitting = (reader for kinds, reader in _READERS if issubclass(kind, kinds))
    return next(fitting, _Reader._object)


def _fields(value: Any) -> dict[str, Any]:
    """The attributes of an object, whether it is a dataclass, has slots or is an exception."""
    if isinstance(value, type | os.PathLike | numbers.Number):
        return {}
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    slots = (kind.__dict__.get("__slots__", ()) for kind in type(value).__mro__)
    names = [name for each in slots for name in ([each] if isinstance(each, str) else each)]
    names += ["args"] if isinstance(value, BaseException) else []
    held = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return held | getattr(value, "__dict__", {})


def _hides(value: Any) -> bool:
    """Tell whether an object without attributes may hold something all the same."""
    written = all(each is object or each.__flags__ & _HEAP_TYPE for each in type(value).__mro__)
    return bool(_ADDRESS.search(repr(value))) and not (written and hasattr(value, "__dict__"))


def _parts(value: complex) -> dict[str, float]:
    return {"real": value.real, "imag": value.imag}


def _hung_on(value: Any) -> dict[str, Any]:
    """Attributes that a class of one's own adds to a list, a number or an array."""
    known = isinstance(value, enum.Enum) or type(value).__module__.partition(".")[0] == "numpy"
    return {} if known else getattr(value, "__dict__", {})


def _type(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _repr(value: Any) -> str:
    return _ADDRESS.sub("", repr(value))


def _encoded(*content: Any) -> bytes:
    return repr(content).encode("utf-8", "backslashreplace")


def _digest(*content: Any) -> str:
    return hashlib.blake2b(_encoded(*content), digest_size=16).hexdigest()


def _short(text: str) -> str:
    """A text, or the beginning of a long one with a hidden digest."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…\0{_digest(text)}"


def _key(value: Any) -> str:
    """The name of a key or an element; of objects and long texts, with a digest."""
    plain = isinstance(value, str | bytes | int | float | tuple | enum.Enum | None)
    text = _repr(value) if plain else f"{_type(value)} {canonical(value).digest}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…#{_digest(text)[:16]}"


def _numeric(values: Any) -> bool:
    """Tell whether there are numbers, and nothing else."""
    kinds, plain = set(map(type, values)), (float, int, np.floating, np.integer)
    odd = kinds & {bool} or any(issubclass(kind, enum.Enum) for kind in kinds)
    return bool(kinds) and not odd and all(issubclass(kind, plain) for kind in kinds)


Forms = Sequence[Form]


def forms(outputs: Sequence[Any]) -> NDArray[Any]:
    """The form of each output, as an array of objects."""
    made = np.empty(len(outputs), dtype=object)
    made[:] = [canonical(output) for output in outputs]
    return made


def digests(outputs: Sequence[Any]) -> Floats:
    """A whole number for each output, equal for equal ones."""
    return np.array([float(int(canonical(each).digest[:12], 16)) for each in outputs])
