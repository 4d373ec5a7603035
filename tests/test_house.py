"""The rules of the house: how long files are, who may import whom, and what a proof loads."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dpaudit.base.applications import APPLICATIONS

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
HOMES = {"dpaudit": ROOT, "private_bo": ROOT / "algorithms"}

LONG = {
    "dpaudit/checker": "one file that a reader takes to another machine",
}
"""Sources of more than 700 lines, and why."""

PROOF_LINES = 17_100
"""Lines of the modules that the verification of a usual certificate loads, at most: what somebody
who believes one has to have read. Of the checker alone there are 1 600."""

PROOF = ("base", "mechanisms", "plan", "accounting", "certificate", "checker")
"""Rooms that may be loaded where a certificate is verified."""


@cache
def sources() -> dict[str, Path]:
    """Every module by its path without ending, such as ``dpaudit/plan/plan``."""
    return {
        path.relative_to(home).with_suffix("").as_posix(): path
        for name, home in HOMES.items()
        for path in (home / name).rglob("*.py")
    }


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(sources()[name].read_text(encoding="utf-8"))


def test_files_are_short():
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in sources().items()}
    assert {name for name, count in lines.items() if count > 700} == set(LONG)


def imports(node: ast.AST) -> Iterator[str]:
    """The dotted names that are imported when the code runs, function bodies included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: a relative import"
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from imports(ast.Module(child.orelse, []))
        else:
            yield from imports(child)


@cache
def imported(name: str) -> tuple[str, ...]:
    return tuple(imports(tree(name)))


@cache
def module(dotted: str) -> str | None:
    """The module of ours that holds an imported name, as a key of the sources."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        place = "/".join(parts[:length])
        for name in (place, f"{place}/__init__"):
            if name in sources():
                return name
    return None


def graph() -> dict[str, set[str]]:
    """Who imports whom; what is imported brings the ``__init__`` of every package around it."""
    found: dict[str, set[str]] = {}
    for name in sources():
        edges = {target for each in imported(name) if (target := module(each))}
        for target in tuple(edges):
            around = {f"{parent.as_posix()}/__init__" for parent in Path(target).parents}
            edges |= {each for each in around & sources().keys() if not inside(name, each)}
        found[name] = edges - {name}
    return found


def inside(name: str, package: str) -> bool:
    """Whether a module stands in the package of this ``__init__``."""
    return name.startswith(package.removesuffix("__init__"))


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Each module on a circle, or between two, followed by those that lead on.

    Whatever imports nothing that is left, or is imported by nothing that is left, is on none.
    """
    left = dict(edges)
    while True:
        wanted = set().union(*left.values())
        on = {name: targets & left.keys() for name, targets in left.items() if name in wanted}
        on = {name: targets for name, targets in on.items() if targets}
        if on == left:
            return sorted([name, *sorted(targets)] for name, targets in left.items())
        left = on


def test_no_circle_of_imports_even_through_function_bodies():
    """An import within a function saves time; it may not be what keeps a circle apart."""
    assert circles(graph()) == []


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [
        ["b", "c"],
        ["c", "b"],
    ]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_no_private_name_crosses_a_module():
    """What begins with an underscore is of its own file."""
    crossing = [
        (name, each)
        for name in sources()
        for each in imported(name)
        if module(each) and any(p.startswith("_") and p[:2] != "__" for p in each.split("."))
    ]
    assert crossing == []


def test_no_private_attribute_of_an_imported_module():
    """``module._name`` is a private import by another way."""
    found = []
    for name in sources():
        nodes = list(ast.walk(tree(name)))
        modules = {
            alias.asname or alias.name
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if f"{node.module}.{alias.name}".replace(".", "/") in sources()
        }
        found += [
            (name, ast.unparse(node))
            for node in nodes
            if isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
        ]
    assert found == []


def test_the_files_that_architecture_names_are_there():
    """Of a short name some file has it; a folder ends with a stroke."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"`([\w/.-]+(?:\.(?:py|toml|json|css|md)|/))`", text))
    every = [
        f"/{path.relative_to(ROOT).as_posix()}{'/' * path.is_dir()}"
        for home in ("dpaudit", "algorithms", "audits", "tests", "docs")
        for path in (ROOT / home, *(ROOT / home).rglob("*"))
    ]
    every += [f"/{path.name}" for path in ROOT.iterdir()]
    assert {name for name in named if not any(path.endswith(f"/{name}") for path in every)} == set()


def loaded(code: str) -> set[str]:
    """The modules of the package that are loaded once the code has run in a new process."""
    ended = "print(*(name for name in sys.modules if name.partition('.')[0] == 'dpaudit'))"
    made = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{ended}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return {name for name in made.stdout.split() if name != "dpaudit"}


def test_a_certificate_is_verified_by_the_rooms_of_the_proof_alone():
    """Neither the door nor an attack nor an application is believed where a file is verified."""
    code = (
        "from dpaudit.certificate import load_certificate, verify\n"
        "verify(load_certificate('reports/curator.json'))"
    )
    names = loaded(code)
    assert {name.split(".")[1] for name in names} <= set(PROOF)
    paths = [name.replace(".", "/") for name in names]
    files = [sources().get(path) or sources()[f"{path}/__init__"] for path in paths]
    lines = sum(len(each.read_text("utf-8").splitlines()) for each in files)
    assert lines <= PROOF_LINES


@pytest.mark.parametrize("gone", APPLICATIONS)
def test_an_application_goes_with_its_folder_and_its_line(gone, tmp_path):
    package = shutil.copytree(ROOT / "dpaudit", tmp_path / "dpaudit")
    shutil.rmtree(package / gone)
    table = package / "base" / "applications.py"
    table.write_text(table.read_text("utf-8").replace(f'"{gone}", ', "").replace(f', "{gone}"', ""))
    plan = str(ROOT / "docs/examples/plan.toml")
    code = (
        "from dpaudit.cli.main import _outcome\n"
        f"assert not _outcome(['--help'])\nassert not _outcome(['certify', {plan!r}])"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert made.returncode == 0, made.stderr


REFERENCE = re.compile(r":(mod|class|func|meth|attr|data|exc):`(?:[^`<]*<)?~?([.\w]+)>?`")


def bound(node: ast.AST) -> Iterator[str]:
    """What a piece of code gives a name to."""
    for child in ast.walk(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield child.name
        elif isinstance(child, ast.Name | ast.Attribute) and isinstance(child.ctx, ast.Store):
            yield child.id if isinstance(child, ast.Name) else child.attr
        elif isinstance(child, ast.alias):
            yield (child.asname or child.name).rpartition(".")[2]


def test_docstrings_refer_to_what_there_is():
    """A module by its path, anything else by a name that something in the package has."""
    modules = {name.replace("/", ".").removesuffix(".__init__") for name in sources()}
    names = {part for each in modules for part in each.split(".")}
    names.update(*(bound(tree(name)) for name in sources()))
    lost = {}
    for name, path in sources().items():
        package = Path(name).parent.as_posix().replace("/", ".")
        for role, target in REFERENCE.findall(path.read_text("utf-8")):
            dotted = package + target if target.startswith(".") else target
            if role == "mod" and dotted.split(".")[0] in HOMES and dotted not in modules:
                lost[name] = target
            if target.rpartition(".")[2] not in names:
                lost[name] = target
    assert lost == {}


PLACEHOLDER = re.compile(r"\{\w+(\.\w+)+(![rs])?(:[^}]*)?\}|\{\w+![rs](:[^}]*)?\}")
"""Of an f-string; a template that is formatted later has plain names."""


def test_no_text_lacks_the_f_of_its_placeholders():
    """An f-string that is broken into lines needs an f on each of them."""
    raw = [
        (name, child.value)
        for name in sources()
        for child in ast.walk(tree(name))
        if isinstance(child, ast.Constant) and isinstance(child.value, str)
    ]
    programs = (">>> ", "import importlib.util")  # of a doctest, or of another process
    lost = [
        (name, text)
        for name, text in raw
        if PLACEHOLDER.search(text) and not any(each in text for each in programs)
    ]
    assert lost == []
