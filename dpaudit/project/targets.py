"""How what a user names is found: a subject, a plan file, or a function in a file.

Where there is none, it says what may have been meant.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cached_property, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from dpaudit.base import files
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.base.fields import Checked, read_field
from dpaudit.base.toml_tables import nearest
from dpaudit.base.validate import shown
from dpaudit.certificate import (
    Certificate,
    Claim,
    Finding,
    ReleaseRecord,
    SealRecord,
    SubjectRecord,
    certify,
)
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import Plan
from dpaudit.project.foreign import foreign, place_of
from dpaudit.project.own_files import code_hash, own_files
from dpaudit.project.plan_file import is_release, read_plan
from dpaudit.project.subject import Subject


def without_colon(name: str) -> str:
    """The end of a sentence on a name that says no object."""
    if name in Mechanism.kinds():
        return f"it is a mechanism; dpaudit list {name} shows a plan file with it."
    if Path(name).is_dir():
        inside = Path(name)
        return f"it is a folder; name a file in it, {inside}/PLAN.toml or {inside}/FILE.py:NAME."
    every = "it must be module:Object, FILE.py:object or PLAN.toml."
    return f"name an object in it, {name}:NAME." if name.endswith(".py") else every


def unknown_object(word: str, owner: Any, module: Any) -> str:
    """The end of a sentence on what a module or a class does not have."""
    if Path(module.__name__).is_dir() and getattr(module, "__file__", None) is None:
        return (
            f"{module.__name__} is a folder; name a file in it, {module.__name__}/FILE.py:{word}."
        )
    root = module.__name__.partition(".")[0]
    known = [name for name in dir(owner) if not name.startswith("_")]
    if owner is module:  # without what it imports
        known = [name for name in known if _is_of(root, getattr(owner, name))]
    return nearest(word, known) if known else "check the name."


def _is_of(root: str, found: Any) -> bool:
    """Tell whether it is of this package, or a subject of any made in it."""
    return isinstance(found, Subject) or str(getattr(found, "__module__", "")).startswith(root)


def unknown_module(name: str) -> str:
    """Return what is to be said after "No module named …"; empty where nothing is known."""
    package, _, word = name.rpartition(".")
    if package:
        inside = getattr(sys.modules.get(package), "__path__", ())
        return f"; {nearest(word, [each.name for each in pkgutil.iter_modules(inside)])}"
    place = min(Path().glob(f"*/{name}.py"), default=f"FOLDER/{name}.py")
    return f"; no file {name}.py is here, so give its place, such as {place}:NAME."


@dataclass(frozen=True)
class CodeFiles:
    """The files of a piece of code, found without importing it.

    Attributes:
        attribute: the object of it that is named.
        module: dotted name; empty where a file is named.
        file: where it stands.
        folder: that of the project: of the file, or the one from which the module is imported.
    """

    attribute: str
    module: str
    file: Path
    folder: Path

    @cached_property
    def files(self) -> frozenset[Path]:
        """All files of which the code consists; asking for them walks its imports."""
        if not self.module:
            with _siblings(self.folder, later=False):
                return frozenset(own_files(self.file.stem, self.file))
        below = (self.folder / self.module.partition(".")[0]).resolve()
        top = next(filter(self.file.is_relative_to, own_packages()), below)
        package = set(top.rglob("*.py")) if top.is_dir() else set()
        return frozenset(package | own_files(self.file.stem, self.file))

    @cached_property
    def root(self) -> Path:
        """A folder that holds all files."""
        common = Path(os.path.commonpath([self.folder, *self.files]))
        return common.parent if common.is_file() else common

    @cached_property
    def is_own(self) -> bool:
        """Whether it comes with this package, and so is read where it stands."""
        return any(map(self.file.is_relative_to, own_packages()))

    @property
    def place(self) -> Path:
        """From where its paths are seen: its folder, or the current one if it is our own."""
        return Path.cwd() if self.is_own else self.folder

    @property
    def paths(self) -> tuple[Path, ...]:
        """Folders from which is imported, below the root."""
        own = self.folder.relative_to(self.root)
        found = [Path(place).resolve() for place in sys.path if place]
        inside = [
            place.relative_to(self.root) for place in found if place.is_relative_to(self.root)
        ]
        return tuple(dict.fromkeys([own, *inside]))

    def name_in(self, copy: Path) -> str:
        """The name of the same object in a copy of the root."""
        place = copy / self.file.relative_to(self.root)
        return f"{self.module or place}:{self.attribute}"


def code_files(name: str) -> CodeFiles:
    """The files of ``FILE.py:Object`` or ``module:Object``; none of them is run.

    Raises:
        InputError: if there is no such file, or the name is none of these.
    """
    module, attribute = _module_and_object(name)
    if module.endswith(".py"):
        files.read_text(module, what="file")
        file = Path(module).resolve()
        return CodeFiles(attribute, "", file, file.parent)
    place = Path(*module.split("."))
    for folder in map(Path, dict.fromkeys([str(Path.cwd()), *sys.path])):
        for file in (folder / place.with_suffix(".py"), folder / place / "__init__.py"):
            if file.is_file():
                return CodeFiles(attribute, module, file.resolve(), folder.resolve())
    raise InputError(f"{module:.80} cannot be found; give its place, such as FOLDER/{place}.py.")


ENTRY_POINTS = "dpaudit.subjects"
FOLDERS: set[str] = set()
"""Of files that were loaded: what lies there is found by this process alone."""


@dataclass(frozen=True)
class Target:
    """A subject or a plan that is to be certified.

    Attributes:
        record: how the certificate names it.
        plan: its declared invocations.
        claim: what is stated of it.
        findings: what is known before any proof.
        not_covered: what it leaves open.
        subject: the algorithm, or None for a plan file.
        release: what a certificate says of declared queries over a table; None of anything else.
        seal: how code that ran was kept from the data; None where it was not, or none ran.
    """

    record: SubjectRecord
    plan: Plan
    claim: Claim | None
    findings: tuple[Finding, ...]
    not_covered: tuple[str, ...]
    subject: Subject | None = None
    release: ReleaseRecord | None = None
    seal: SealRecord | None = None


def certified(
    target: Target,
    delta: float | None = None,
    accountant: str = "best",
    extra: Sequence[Finding] = (),
) -> Certificate:
    """The certificate of a target, with further findings."""
    return certify(
        target.plan,
        subject=target.record,
        claim=target.claim,
        delta=delta,
        accountant=accountant,
        findings=(*target.findings, *extra),
        not_covered=target.not_covered,
        release=target.release,
        seal=target.seal,
    )


def own_packages() -> tuple[Path, ...]:
    """Folders of the packages with subjects that come with this one; none of them is imported."""
    found: dict[Path, None] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.dist is not None and entry.dist.name == "dpaudit":
            spec = importlib.util.find_spec(entry.module.partition(".")[0])
            places = [] if spec is None else spec.submodule_search_locations or []
            found |= {Path(place).resolve(): None for place in places}
    return tuple(found)


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
    return _target(name, find_subject(name, settings))


def _target(name: str, subject: Subject) -> Target:
    with foreign(name, public=True):
        stated = subject.plan(), subject.claim(), subject.findings(), subject.not_covered()
    return Target(subject_record(name, subject), *stated, _openly(name, subject))


def _openly(name: str, subject: Subject) -> Subject:
    """What runs in this process: of a subject that holds handles, one that makes them."""
    from dpaudit.project.sealed_subject import OpenSubject, SealedSubject

    if not isinstance(subject, SealedSubject):
        return subject
    return OpenSubject(subject, code_files(name).place)


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
    return _made_subject(name, _load_object(name), settings)


def _made_subject(name: str, found: Any, settings: Mapping[str, Any]) -> Subject:
    """An instance of what was loaded: a class, or an instance whose fields the settings replace."""
    if isinstance(found, Subject):
        found, settings = type(found), {**_shallow(found), **settings}
    if not is_subject(found):
        raise InputError(
            f"{name} is not a subject; it must be a dataclass that extends Subject (dpaudit audit "
            "takes any function)."
        )
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
            return kind(**{key: _as_field(kind, key, each) for key, each in settings.items()})
        except (TypeError, AttributeError, ArithmeticError) as error:
            given = shown(dict(settings))
            raise InputError(f"{name} cannot be made with {given}: {error!s:.200}.") from None


def _as_field(kind: type, name: str, value: Any) -> Any:
    """The value of a field: a tuple for a list, and what a table is a record of."""
    if isinstance(value, Mapping) and issubclass(kind, Checked):
        return read_field(kind, name, value)
    return _as_tuple(value)


def is_subject(found: Any) -> bool:
    """Tell whether it is a class of subjects, as opposed to a function or an instance."""
    return isinstance(found, type) and issubclass(found, Subject) and is_dataclass(found)


def load_function(name: str, settings: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The function of ``FILE.py:function`` or ``module:function``, or ``…:Class.method``.

    A method is that of an instance that is made with the settings as its fields. This runs the
    file.

    Raises:
        InputError: if there is no such file or function, or the file cannot be imported.
    """
    found = find_code(name, settings or {})
    if isinstance(found, Target):
        raise InputError(f"{name} is a subject; it must be a function, or a method of a class.")
    return found


def find_code(name: str, settings: Mapping[str, Any]) -> Target | Callable[..., Any]:
    """Return what a name leads to: a subject, or the function that :func:`load_function` loads.

    Raises:
        InputError: as :func:`find_target` and :func:`load_function` do.
    """
    found = _load_object(name)
    if is_subject(found) or isinstance(found, Subject):
        return _target(name, _made_subject(name, found, settings))
    if isinstance(found, _Method):
        return found.of(settings)
    if isinstance(found, type):
        raise InputError(f"{name} is a class, not a subject; give a method of it, {name}.method.")
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


def _module_and_object(name: str) -> tuple[str, str]:
    module, colon, attribute = name.rpartition(":")
    if not colon or not module or not attribute:
        raise InputError(f"subject is {shown(name)}; {without_colon(name)}")
    return module, attribute


def _load_object(name: str) -> Any:
    module_name, attribute = _module_and_object(name)
    module = _load_module(module_name)
    found = module
    for part in attribute.split("."):
        owner, found = found, getattr(found, part, None)
        if found is None:
            near = unknown_object(part, owner, module)
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
        if Path(name).is_dir():
            file = f"it is a folder; name a file in it, {Path(name)}/FILE.py."
        raise InputError(f"module is {shown(name)}, which is not a dotted name; {file}")
    return _importing(name, lambda: importlib.import_module(name))


@contextmanager
def _siblings(folder: Path, *, later: bool = True) -> Iterator[None]:
    """Let a file import those beside it: now before all others, later after them.

    Modules of that name that a file of another folder imported are forgotten. A process that runs
    nothing of the folder keeps it off its path: modules, or extensions, would be found there.
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
        if later and str(folder) not in sys.path:
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
            near = unknown_module(error.name)
        elif Path("requirements.txt").is_file():
            near = "; if that is a library, pip install -r requirements.txt."
        raise InputError(f"{name} cannot be imported: {error}{near}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything
        detail = f"{type(error).__name__}{place_of(error)}: {error}".strip()
        raise InputError(f"{name} cannot be imported: {detail:.200}.") from None


def subject_record(name: str, subject: Subject) -> SubjectRecord:
    """Tell how a certificate names a subject: configuration, hash of its code, where it stands."""
    kind = type(subject)
    code = code_hash(kind.__module__, _source_of(kind))
    return SubjectRecord(name, configuration(subject), code, location(subject))


def _source_of(kind: type) -> Path:
    return Path(inspect.getsourcefile(kind) or "")


def location(subject: Subject) -> str:
    """Where the class of a subject stands: its file below the source root, and the line."""
    kind = type(subject)
    root, _, rest = kind.__module__.partition(".")
    file = f"{root}/{rest.replace('.', '/')}.py" if rest else _source_of(kind).name
    return f"{file}:{inspect.getsourcelines(kind)[1]}"


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
