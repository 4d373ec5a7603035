"""Random operators and numbers of the kernel, changed one at a time: do the tests notice?

Run ``python -m tests.benchmarks.operator_mutants [--seed 0] [--count 30] [--file WORD]``. A mutant
is one comparison, sum, product, junction or number of a law, a proof or the door, changed in a copy
of the sources; then the tests of its room are run there, and those that import what its module
defines, until one fails. Some mutants change nothing that could be seen (an order of evaluation, a
bound that is not reached): each that survives is printed with its line, to be judged.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.benchmarks.ledger_mutants import ROOT, Mutant, copied, failing

ROOMS = ("base", "mechanisms", "plan", "accounting", "certificate", "ledger", "checker.py")
SECONDS = 900
"""Of the tests of one mutant; one that takes longer has no end."""
OTHER: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""What comes in the place of an operator."""


def kernel() -> list[Path]:
    """The sources of the kernel's laws, proofs and door."""
    places = (ROOT / "dpaudit" / room for room in ROOMS)
    return sorted(
        each for place in places for each in ([place] if place.suffix else place.rglob("*.py"))
    )


def running(node: ast.AST) -> Iterator[ast.AST]:
    """What runs of it: neither annotations nor texts."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from running(child)


def changes(node: ast.AST) -> Iterator[ast.expr]:
    """An expression with one thing changed, in each way."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[place] = OTHER[type(operator)]()
            yield changed
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OTHER:
        changed = copy.deepcopy(node)
        changed.op = OTHER[type(node.op)]()
        yield changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield from (ast.Constant(node.value + step) for step in (1, -1))


def changed_source(source: str, node: ast.expr, other: ast.expr) -> str:
    """The source with one expression in place of another."""
    lines = source.encode().splitlines(keepends=True)
    begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: (node.end_lineno or node.lineno) - 1])) + (node.end_col_offset or 0)
    whole = source.encode()
    return (whole[:begin] + f"({ast.unparse(other)})".encode() + whole[end:]).decode()


def drawn(count: int, rng: random.Random, word: str) -> Iterator[Mutant]:
    """Mutants of different lines, each line of the kernel as likely as any other."""
    sites = []
    for path in kernel():
        source = path.read_text("utf-8")
        found = [
            (path, source, node, other)
            for node in running(ast.parse(source))
            for other in changes(node)
        ]
        sites += found if word in str(path) else []
    rng.shuffle(sites)
    seen = set()
    for path, source, node, other in sites:
        if (path, node.lineno) in seen or len(seen) == count:
            continue
        seen.add((path, node.lineno))
        place = path.relative_to(ROOT / "dpaudit").as_posix()
        name = f"{place}:{node.lineno}: {ast.unparse(node)} -> {ast.unparse(other)}"
        yield Mutant(
            name, place, source, changed_source(source, node, other), " ".join(tests_of(path))
        )


@cache
def imports() -> dict[str, set[str]]:
    """The dotted names of this package that each test file imports."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        nodes = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        ours = (node for node in nodes if (node.module or "").startswith("dpaudit"))
        names = {f"{node.module}.{each.name}" for node in ours for each in node.names}
        found[path.relative_to(ROOT).as_posix()] = names
    return found


def tests_of(path: Path) -> list[str]:
    """Files of tests, those of the room first, then those that import what the module defines."""
    relative = path.relative_to(ROOT / "dpaudit")
    room = ROOT / "tests/dpaudit" / relative.parts[0].removesuffix(".py")
    near = [each for each in imports() if (ROOT / each).is_relative_to(room)]
    tree = ast.parse(path.read_text("utf-8"))
    module = path.relative_to(ROOT).with_suffix("").parts
    places = [".".join(module[:length]) for length in range(min(len(module), 2), len(module) + 1)]
    if len(module) > 2:
        places.append(module[0])
    kinds = ast.ClassDef | ast.FunctionDef
    defined = {
        f"{at}.{each.name}" for each in tree.body if isinstance(each, kinds) for at in places
    }
    defined.add(".".join(module))
    close = {each for each, names in imports().items() if names & defined}
    return [*sorted(near, key=lambda each: each not in close), *sorted(close - {*near})]


def main() -> None:
    """Print a line for each mutant, and how many survived."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--file", default="", help="a part of the path of the sources")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    arguments = parser.parse_args()
    os.environ["PYTEST_ADDOPTS"] = '-m "not pages"'
    survivors, total = [], 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "tree"
        if not arguments.list:
            copied(folder)
        for mutant in drawn(arguments.count, random.Random(arguments.seed), arguments.file):
            if arguments.list:
                print(f"{mutant.name} ({len(mutant.tests.split())} files of tests)")
                continue
            found, total = failing(folder, mutant, SECONDS), total + 1
            if not found:
                survivors.append(mutant.name)
            told = "could not be run" if found is None else ", ".join(found) or "SURVIVED"
            print(f"{mutant.name:90} {told}", flush=True)
    print(f"{len(survivors)} of {total} survived", *survivors, sep="\n  ")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
