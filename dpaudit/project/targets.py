"""Finding what the user names: a subject, a plan file, or a function in a file."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from dpaudit.base import files
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.base.validate import shown
from dpaudit.certificate import Claim, Finding, ReleaseRecord, SubjectRecord
from dpaudit.plan import Plan
from dpaudit.project import hints
from dpaudit.project.foreign import foreign
from dpaudit.project.plan_file import is_release, read_plan
from dpaudit.project.sources import code_hash
from dpaudit.project.subject import Subject

ENTRY_POINTS = "dpaudit.subjects"
FOLDERS: set[str] = set()
"""Of files that were loaded: what lies there is found by this process alone."""


@dataclass(frozen=True)
class Target:
    """What is to be certified.

    Attributes:
        record: how the certificate names it.
        plan: its declared invocations.
        claim: what is stated of it.
        findings: what is known before any proof.
        not_covered: what it leaves open.
        subject: the algorithm, or None for a plan file.
        release: what a certificate says of declared queries over a table; None of anything else.
    """

    record: SubjectRecord
    plan: Plan
    claim: Claim | None
    findings: tuple[Finding, ...]
    not_covered: tuple[str, ...]
    subject: Subject | None = None
    release: ReleaseRecord | None = None


def registered_subjects() -> dict[str, type[Subject]]:
    """The subjects that installed packages offer, by ``package:object``, in order of name.

    An entry point of the group ``dpaudit.subjects`` is a sequence of subject classes.
    """
    found: dict[str, type[Subject]] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        for subject in entry.load():
            found[f"{_public_home(subject)}:{subject.__qualname__}"] = subject
    return dict(sorted(found.items()))


def _public_home(subject: type[Subject]) -> str:
    """The package that hands the subject on, or else the module that defines it."""
    package = subject.__module__.rpartition(".")[0]
    handed_on = getattr(sys.modules.get(package), subject.__name__, None)
    return package if handed_on is subject else subject.__module__


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """``key=value`` texts; a value is JSON, or a table of a plan file, else text.

    Raises:
        InputError: if one has no ``=``, or a key comes twice.
    """
    return {key: _value(text) for key, text in _by_key("--set", settings).items()}


def parse_arguments(arguments: Sequence[str]) -> dict[str, Any]:
    """``NAME=JSON`` texts for the parameters of a function.

    Raises:
        InputError: if one has no ``=`` or is no JSON, or a name comes twice.
    """
    return {
        name: files.parse_json(text, what=f"--arg {name}")
        for name, text in _by_key("--arg", arguments).items()
    }


def _by_key(option: str, texts: Sequence[str]) -> dict[str, str]:
    parsed: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"{option} is {shown(text)}; it must be of the form key=value.")
        if key in parsed:
            raise InputError(f"{option} {key} is given twice; keep one of them.")
        parsed[key] = value
    return parsed


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=float)
    except ValueError:
        pass
    try:
        (read,) = tomllib.loads(f"value = {text}").values()
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return text
    return read if isinstance(read, dict | list) else text


def parse_claim(text: str | None) -> Claim | None:
    """A claim as it is written in a plan file, on one line; None where there is no text.

    >>> print(parse_claim("tpr = 0.1, fpr = 0.01"))
    TPR ≤ 0.1 at FPR 0.01

    Raises:
        InputError: if it cannot be read, or is no claim.
    """
    if text is None:
        return None
    examples = "advantage = 0.1' or 'epsilon = 1, delta = 1e-5"
    return Claim.from_dict(parse_table("--claim", text, examples))


def parse_table(option: str, text: str, example: str) -> dict[str, Any]:
    """A table of a plan file on one line, without its braces.

    Raises:
        InputError: if it is none.
    """
    try:
        read = tomllib.loads(f"table = {{ {text} }}")
    except (tomllib.TOMLDecodeError, RecursionError):
        read = {}
    if read.keys() != {"table"}:
        raise InputError(
            f"{option} is {shown(text)}; it must be as in a plan file, such as '{example}'."
        )
    return dict(read["table"])


def find_target(name: str, settings: Mapping[str, Any]) -> Target:
    """A plan file or a release file (by its ending), or a subject.

    Raises:
        InputError: if it does not exist or is not valid.
    """
    if name.endswith(".toml"):
        if settings:
            raise InputError("--set is given for a plan file; edit the file instead.")
        tables = files.read_toml(name, what="plan file")
        if is_release(tables):
            return _release_target(name, tables)
        content = read_plan(tables)
        record = SubjectRecord(name=Path(name).name)
        return Target(record, content.plan, content.claim, content.findings, ())
    subject = find_subject(name, settings)
    with foreign(name, public=True):
        stated = subject.plan(), subject.claim(), subject.findings(), subject.not_covered()
    return Target(subject_record(name, subject), *stated, subject)


def _release_target(name: str, tables: Mapping[str, Any]) -> Target:
    """A release file: its plan has the least noise for its claim."""
    from dpaudit.project.declared_release import DeclaredRelease

    subject = DeclaredRelease.read(tables, Path(name).parent)
    record = SubjectRecord(name=Path(name).name)
    return Target(record, subject.plan(), subject.claim(), (), (), subject, subject.release.record)


def find_subject(name: str, settings: Mapping[str, Any]) -> Subject:
    """An instance of the subject ``module:object`` with these settings over its defaults.

    Raises:
        InputError: if the module or object does not exist, is no subject, or a setting is wrong.
    """
    found: Any = _load_object(name)
    if isinstance(found, Subject):
        found, settings = type(found), {**_shallow(found), **settings}
    if not is_subject(found):
        raise InputError(f"{name} is no subject; it must be a dataclass that extends Subject.")
    subject: Subject = _made(name, found, settings)
    return subject


def _made(name: str, kind: type, settings: Mapping[str, Any]) -> Any:
    """An instance with these fields over its defaults; without any, of any class."""
    known = {}
    if is_dataclass(kind):
        known = {field.name: field for field in fields(kind) if field.init}
    for key in settings.keys() - known.keys():
        shown_fields = ", ".join(known) or "none"
        raise InputError(f"{name} has no field {shown(key)}; its fields are {shown_fields}.")
    for key, field in known.items():
        if field.default is MISSING and field.default_factory is MISSING and key not in settings:
            raise InputError(f"{name} needs the field {shown(key)}; give it with --set {key}=….")
    with foreign(name, public=True):
        try:
            return kind(**{key: _as_tuple(value) for key, value in settings.items()})
        except (TypeError, AttributeError, ArithmeticError) as error:
            given = shown(dict(settings))
            raise InputError(f"{name} cannot be made with {given}: {error!s:.200}.") from None


def is_subject(found: Any) -> bool:
    """Whether it is a class of subjects, as opposed to a function or an instance."""
    return isinstance(found, type) and issubclass(found, Subject) and is_dataclass(found)


def load_function(name: str, settings: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The function of ``FILE.py:function`` or ``module:function``, or ``…:Class.method``.

    A method is that of an instance that is made with the settings as its fields. This runs the
    file.

    Raises:
        InputError: if there is no such file or function, or the file cannot be imported.
    """
    function = find_function(name, settings or {})
    if function is None:
        raise InputError(f"{name} is a subject; it must be a function, or a method of a class.")
    return function


def find_function(name: str, settings: Mapping[str, Any]) -> Callable[..., Any] | None:
    """What :func:`load_function` loads; None where the name is that of a subject.

    Raises:
        InputError: as it does.
    """
    found = _load_object(name)
    if is_subject(found) or isinstance(found, Subject):
        return None
    if isinstance(found, _Method):
        return found.of(settings)
    if isinstance(found, type):
        raise InputError(f"{name} is a class and no subject; give a method of it, {name}.method.")
    if not callable(found):
        raise InputError(f"{name} is a {type(found).__name__}; it must be a function.")
    if settings:
        raise InputError(f"--set is given for the function {name}; give --arg NAME=JSON.")
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Method:
    """A method that needs an instance."""

    name: str
    kind: type

    def of(self, settings: Mapping[str, Any]) -> Callable[..., Any]:
        path, _, method = self.name.rpartition(".")
        return getattr(_made(path, self.kind, settings), method)  # type: ignore[no-any-return]


def _load_object(name: str) -> Any:
    module_name, colon, attribute = name.rpartition(":")
    if not colon or not module_name or not attribute:
        raise InputError(f"subject is {shown(name)}; {hints.without_colon(name)}")
    module = _load_module(module_name)
    found = module
    for part in attribute.split("."):
        owner, found = found, getattr(found, part, None)
        if found is None:
            near = hints.unknown_object(part, owner, module)
            raise InputError(f"{module_name} has no {shown(attribute)}; {near}")
    if isinstance(owner, type) and inspect.isfunction(inspect.getattr_static(owner, part)):
        return _Method(name, owner)
    return found


def _load_module(name: str) -> Any:
    """A module by its name, seen from the current folder, or by the path of its file."""
    if name.endswith(".py"):
        files.read_text(name, what="file")
        path = Path(name).resolve()
        known_as = _module_name(path)
        spec = importlib.util.spec_from_file_location(known_as, path)
        if spec is None or spec.loader is None:
            raise InputError(f"file {shown(name)} cannot be imported; it must be Python code.")
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(known_as, module)
        with _siblings(path.parent):
            _importing(name, partial(spec.loader.exec_module, module))
        return module
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    if not all(part.isidentifier() for part in name.split(".")):
        file = f"did you mean {name}.py?" if Path(f"{name}.py").is_file() else "give a .py file."
        raise InputError(f"module is {shown(name)}, which is no dotted name; {file}")
    return _importing(name, lambda: importlib.import_module(name))


@contextmanager
def _siblings(folder: Path) -> Iterator[None]:
    """Let a file import those beside it: now before all others, later after them.

    Modules of that name that a file of another folder imported are forgotten.
    """
    for other in folder.glob("*.py"):
        place = getattr(sys.modules.get(other.stem), "__file__", None)
        if place and Path(place).parent != folder and str(Path(place).parent) in FOLDERS:
            del sys.modules[other.stem]
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        if str(folder) not in sys.path:
            FOLDERS.add(str(folder))
            sys.path.append(str(folder))


def _module_name(path: Path) -> str:
    """The file's stem, unless another module has that name: two files may share theirs."""
    other = getattr(sys.modules.get(path.stem), "__file__", None)
    if path.stem not in sys.modules or other == str(path):
        return path.stem
    return f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def _importing(name: str, load: Callable[[], Any]) -> Any:
    """Import foreign code; whatever it raises becomes one sentence."""
    try:
        return load()
    except DpAuditError as error:
        raise error.with_traceback(None) from None  # as of code that has seen no data
    except ModuleNotFoundError as error:
        near = "."
        if error.name and f"{name}.".startswith(f"{error.name}."):
            near = hints.unknown_module(error.name)
        elif Path("requirements.txt").is_file():
            near = "; if that is a library, pip install -r requirements.txt."
        raise InputError(f"{name} cannot be imported: {error}{near}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything
        detail = f"{type(error).__name__}: {error}".strip()
        raise InputError(f"{name} cannot be imported: {detail:.200}.") from None


def subject_record(name: str, subject: Subject) -> SubjectRecord:
    """How a certificate names a subject: configuration, hash of its code, where it stands."""
    kind = type(subject)
    file = Path(inspect.getsourcefile(kind) or "")
    return SubjectRecord(
        name=name,
        configuration=configuration(subject),
        code_hash=code_hash(kind.__module__, file),
        location=f"{_module_path(kind, file)}:{inspect.getsourcelines(kind)[1]}",
    )


def _module_path(kind: type, file: Path) -> str:
    """The file below its source root."""
    root, _, rest = kind.__module__.partition(".")
    return f"{root}/{rest.replace('.', '/')}.py" if rest else file.name


def configuration(subject: Any) -> dict[str, Any]:
    """The public fields as JSON values."""
    return {name: _plain(value) for name, value in _shallow(subject).items()}


def _shallow(subject: Any) -> dict[str, Any]:
    return {field.name: getattr(subject, field.name) for field in fields(subject) if field.init}


def _plain(value: Any) -> Any:
    """A JSON value for a field; what has none is shown by its name."""
    if value is None or isinstance(value, bool | int | str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        return value if abs(value) != float("inf") and value == value else repr(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        plain = {name: _plain(item) for name, item in _shallow(value).items()}
        return {"type": type(value).__name__} | plain
    return repr(value)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
