"""Dataclasses that check themselves, and that are written as records and read again.

What a field must be stands in its annotation, and is enforced when an instance is made:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Noise(Record):
...     scale: Positive
...     draws: Count = 1
>>> Noise(2)
Noise(scale=2.0, draws=1)
>>> Noise(scale=-1)
Traceback (most recent call last):
    ...
dpaudit.base.errors.InputError: scale is -1; it must be a finite number above 0.
>>> Noise.from_dict({"scale": 1.0, "drawz": 3})
Traceback (most recent call last):
    ...
dpaudit.base.toml_tables.KeysError: noise has an unknown key 'drawz'; did you mean 'draws'?

A rule that concerns several fields stands in ``__post_init__``, after ``super().__post_init__()``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum, StrEnum
from functools import cache, partial
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Self, TypeAlias, Union, cast, get_args, get_origin
from typing import get_type_hints as type_hints

import numpy as np

from dpaudit.base import toml_tables, validate
from dpaudit.base.applications import load_extensions
from dpaudit.base.errors import InputError
from dpaudit.base.provenance import is_own

Check = Callable[..., Any]
_OWN_PACKAGE = __name__.partition(".")[0] + "."


def at_least(minimum: int, maximum: int | None = None) -> Check:
    """Return the check of an integer within bounds, for an annotation."""
    return partial(validate.integer_at_least, minimum, maximum)


Finite: TypeAlias = Annotated[float, validate.finite]
Positive: TypeAlias = Annotated[float, validate.positive]
NonNegative: TypeAlias = Annotated[float, validate.non_negative]
Probability: TypeAlias = Annotated[float, validate.probability]
"""In [0, 1), as a δ."""
OpenProbability: TypeAlias = Annotated[float, validate.open_fraction]
"""In (0, 1), as a confidence."""
Rate: TypeAlias = Annotated[float, validate.fraction]
"""In (0, 1], as a sampling rate."""
MOST = 10**15
"""The largest count: floats hold every integer up to it, and no algorithm counts so far."""
Count: TypeAlias = Annotated[int, at_least(1, MOST)]
Natural: TypeAlias = Annotated[int, at_least(0)]
Name: TypeAlias = Annotated[str, validate.text]
Interval: TypeAlias = Annotated[tuple[float, float], validate.interval]


class Checked:
    """A frozen dataclass whose annotations are enforced when an instance is made.

    Checked are annotations with a check, such as :data:`Positive`; enumerations, given as a member
    or its value; ``bool`` and ``str``; dataclasses; tuples of these, for which a list will do; and
    each of them or None. Anything else is left to ``__post_init__``.
    """

    def __post_init__(self) -> None:
        for name, check in _checks(type(self)):  # type: ignore[arg-type]  # is hashable
            given = getattr(self, name)
            value = check(name, given)
            if value is not given:
                self._set(name, value)

    def _set(self, name: str, value: Any) -> None:
        """Set a field of a frozen instance, while it is being made."""
        object.__setattr__(self, name, value)


class Record(Checked):
    """A checked dataclass that is written as a JSON record and read again."""

    left_out: ClassVar[frozenset[str]] = frozenset()
    """Fields that are not written where they are None."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return _written(self, self.left_out)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return what :meth:`to_dict` wrote.

        Raises:
            InputError: if a field is unknown, missing or invalid.
        """
        return cast("Self", _read(cls, cls.__name__.lower(), record))


class Kinded(Checked):
    """A family of dataclasses, each known by its ``kind``, which is unique in the family.

    A family is a direct subclass, with the name that it bears in errors; its members have a kind.
    """

    family: ClassVar[str] = ""
    tag: ClassVar[str] = "kind"
    """The key of the kind in a record."""
    kind: ClassVar[str] = ""
    homes: ClassVar[tuple[str, ...]] = ()
    """Modules, or packages by their public names, that define the members of this package; they
    are imported when a kind is asked for that is not known yet."""
    _members: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if Kinded in cls.__bases__:
            cls._members = {}
            return
        kind = cls.__dict__.get("kind")
        if not kind:
            return
        if not cls.__module__.startswith(_OWN_PACKAGE):
            cls._load_homes()  # so that a kind that is taken is refused here
        known = cls._members.setdefault(kind, cls)
        again = _place(known) == _place(cls) and not known.__module__.startswith(_OWN_PACKAGE)
        if known is not cls and not again:
            raise InputError(
                f"{cls.family} kind {kind!r} already belongs to "
                f"{known.__module__}.{known.__qualname__}; give the new class a kind of its own."
            )
        cls._members[kind] = cls  # the same class again, in a session that edits its source

    @classmethod
    def kinds(cls) -> dict[str, type[Self]]:
        """Return every member of the family by its kind, those of installed packages too."""
        cls._load_homes()
        load_extensions()
        return dict(cls._members)

    @classmethod
    def _load_homes(cls) -> None:
        for home in map(import_module, cls.homes):
            for name in getattr(home, "__all__", ()):
                getattr(home, name)

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the fields, as JSON values; fields that are None are left out."""
        names = frozenset(each.name for each in fields(self))  # type: ignore[arg-type]
        return {self.tag: self.kind} | _written(self, names)

    @classmethod
    def parse(cls, value: object) -> Self:
        """Give a member; or what :meth:`to_dict` wrote; or a kind alone, where no field is needed.

        Raises:
            InputError: if the kind or a field is unknown, missing or invalid.
        """
        if isinstance(value, cls):
            return value
        given = dict(value) if isinstance(value, Mapping) else {cls.tag: value}
        member = cls.named(given.pop(cls.tag, None))
        return cast("Self", _read(member, member.kind, given))

    @classmethod
    def named(cls, kind: object) -> type[Self]:
        """Return the member of that kind.

        Raises:
            InputError: if there is none; with the nearest kind.
        """
        if isinstance(kind, str) and kind not in cls._members:
            usual = "".join(part.capitalize() for part in kind.split("-"))
            for home in map(import_module, cls.homes):
                getattr(home, usual, None)  # imports that class alone, where it has that name
        if isinstance(kind, str) and kind not in cls._members:
            cls._load_homes()
            load_extensions()
        place = cls.family if cls.tag == "kind" else f"{cls.family}.{cls.tag}"
        member: type[Self] = cls._members[toml_tables.chosen(cls._members, **{place: kind})]
        return member

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the names of the fields that a record may have."""
        return tuple(_written_fields(cls))


def _place(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def plain(value: Any) -> Any:
    """Return a value of a field as a JSON value."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    return value


def _written_fields(kind: Any) -> dict[str, Field[Any]]:
    return {each.name: each for each in fields(kind) if each.init and each.compare}


def _written(instance: Any, left_out: frozenset[str]) -> dict[str, Any]:
    values = {name: getattr(instance, name) for name in _written_fields(instance)}
    return {
        name: plain(value)
        for name, value in values.items()
        if value is not None or name not in left_out
    }


def _read(kind: type[Any], what: str, record: object) -> Any:
    """Return an instance from a record, every field by its annotation."""
    known = _written_fields(kind)
    given = toml_tables.table(what, record, known)
    for name, each in known.items():
        if each.default is MISSING and each.default_factory is MISSING and name not in given:
            raise toml_tables.KeysError(f"{what} lacks the key {name!r}, which it needs.")
    readers = _readers(kind)  # type: ignore[arg-type]  # is hashable
    return kind(**{name: readers[name](value) for name, value in given.items()})


def read_field(kind: type[Any], name: str, value: object) -> Any:
    """Return the value of one field from its record, by the field's annotation.

    Raises:
        InputError: if the record has a key that its kind lacks.
    """
    return _readers(kind)[name](value)  # type: ignore[arg-type]  # is hashable


@cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    hints = type_hints(kind, include_extras=True)
    return {each.name: _reader_of(hints[each.name]) for each in fields(kind)}


def _reader_of(hint: Any) -> Callable[[Any], Any]:
    """Return what makes a field's value of a JSON value; the constructor checks it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        inner = next((_reader_of(each) for each in arguments if each is not NoneType), _as_is)
        return lambda value: None if value is None else inner(value)
    if origin is tuple and arguments[-1] is Ellipsis:
        inner = _reader_of(arguments[0])
        return lambda value: tuple(map(inner, value)) if isinstance(value, list) else value
    if isinstance(hint, type) and issubclass(hint, Kinded):
        return hint.parse
    return getattr(hint, "from_dict", _as_is)


def _as_is(value: Any) -> Any:
    return value


@cache
def _checks(kind: Any) -> tuple[tuple[str, Check], ...]:
    """Return the checked fields of a dataclass, in their order."""
    _require_whole_equality(kind)
    hints = type_hints(kind, include_extras=True)
    found = ((each.name, _check_of(hints[each.name])) for each in fields(kind) if each.init)
    return tuple((name, check) for name, check in found if check is not None)


def _require_whole_equality(kind: Any) -> None:
    """Refuse an equality that sees a part of the fields: a cache would take two for one.

    A dataclass with ``eq=False`` compares as its base does, which knows the fields of the base
    alone; where these are none, all instances would be equal.

    Raises:
        InputError: if a base compares fewer fields than the class has.
    """
    owner: Any = next(base for base in kind.__mro__ if "__eq__" in vars(base))
    if owner in (object, kind) or {each.name for each in fields(owner)} == {
        each.name for each in fields(kind)
    }:
        return
    raise InputError(
        f"{kind.__qualname__} compares as {owner.__qualname__}, which has other fields; give it an "
        "equality of its own, or bases with eq=False."
    )


def requirements(kind: type) -> dict[str, str]:
    """Return what each checked field must be, in the words of the error that says so.

    >>> from dpaudit import Laplace
    >>> requirements(Laplace)["scale"]
    'a finite number above 0'
    """
    found = {}
    for name, check in _checks(kind):
        try:
            check(name, object())
        except InputError as error:
            found[name] = str(error).partition("; it must be ")[2].removesuffix(".")
    return found


def _check_of(hint: Any) -> Check | None:
    """Return a function of a field's name and value, or None where a hint says nothing to check."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        named = next((each for each in arguments[1:] if callable(each)), None)
        return None if named is None else lambda name, value: named(**{name: value})
    if origin in (Union, UnionType):
        inner = [_check_of(each) for each in arguments if each is not NoneType]
        if len(inner) != 1 or inner[0] is None:
            return None
        return partial(_unless_none, inner[0])
    if origin is tuple and arguments[-1] is Ellipsis:
        return partial(_each, _check_of(arguments[0]))
    if not isinstance(hint, type):
        return None
    if issubclass(hint, Kinded):
        return partial(_member, hint)
    if issubclass(hint, StrEnum):
        return lambda name, value: validate.member(hint, **{name: value})
    if hint in (bool, str) or is_dataclass(hint):
        return partial(_exactly if hasattr(hint, "to_dict") else _instance, hint)
    return None


def _unless_none(check: Check, name: str, value: Any) -> Any:
    return None if value is None else check(name, value)


def _each(check: Check | None, name: str, value: Any) -> Any:
    if not isinstance(value, tuple | list):
        raise InputError(f"{name} is {validate.shown(value)}; it must be a sequence.")
    if check is None:
        return tuple(value)
    checked = tuple(check(name, each) for each in value)
    same = isinstance(value, tuple) and all(map(_identical, checked, value))
    return value if same else checked


def _identical(one: Any, other: Any) -> bool:
    return one is other


def _member(family: type[Kinded], name: str, value: Any) -> Any:
    """Give a member, of a registered class exactly: a subclass could be anything under its kind."""
    _instance(family, name, value)
    if family._members.get(value.kind) is not type(value):
        raise InputError(
            f"{name} is a {type(value).__name__}, which is not a registered {family.family}; "
            "give the class a kind of its own."
        )
    return value


def _exactly(kind: type, name: str, value: Any) -> Any:
    """Take a class exactly, or this package's: others may be written as what they are not."""
    _instance(kind, name, value)
    if type(value) is not kind and not is_own(value):
        raise InputError(f"{name} is a {type(value).__name__:.60}; it must be a {kind.__name__}.")
    return value


_WANTED = {bool: "true or false", str: "a text"}


def _instance(kind: type, name: str, value: Any) -> Any:
    if not isinstance(value, kind):
        wanted = _WANTED.get(kind, f"a {kind.__name__}")
        raise InputError(f"{name} is {validate.shown(value)}; it must be {wanted}.")
    return value
