"""The rules of the house: where tests stand, how long files are, and who may import whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
HOMES = {"dpaudit": ROOT, "private_bo": ROOT / "algorithms"}

TESTED_BY = {
    # Rooms that are one command or one training: their test goes through all of them.
    "dpaudit/cli/test_commands.py": (
        "dpaudit/cli/audit_command dpaudit/cli/exits dpaudit/cli/inventory dpaudit/cli/main "
        "dpaudit/cli/options dpaudit/cli/show"
    ),
    "dpaudit/cli/test_plan_commands.py": "dpaudit/cli/show_plan",
    "dpaudit/cli/test_book_commands.py": "dpaudit/book/commands/show",
    "dpaudit/cli/test_project_commands.py": "dpaudit/cli/show_project dpaudit/workflow/summary",
    "dpaudit/workflow/test_replaying.py": "dpaudit/cli/replay_command dpaudit/cli/show_replay",
    "dpaudit/workflow/test_checking.py": (
        "dpaudit/workflow/certifying dpaudit/workflow/index dpaudit/workflow/outcomes"
    ),
    "dpaudit/workflow/test_observing.py": (
        "dpaudit/observing/commands dpaudit/observing/show dpaudit/observing/observed_plan"
    ),
    "dpaudit/integrations/test_numpy.py": (
        "dpaudit/observing/noise_array dpaudit/observing/traced"
    ),
    "dpaudit/integrations/test_pipeline_dp.py": "dpaudit/observing/keyed",
    "dpaudit/integrations/test_torch.py": "dpaudit/observing/noise_tensor",
    "dpaudit/observing/test_recorder.py": ("dpaudit/observing/calls dpaudit/observing/notes"),
    "dpaudit/training/opacus/test_attaching.py": (
        "dpaudit/training/opacus/batches dpaudit/training/opacus/findings "
        "dpaudit/training/opacus/optimizer dpaudit/training/opacus/step"
    ),
    "dpaudit/workflow/test_rechecking.py": "dpaudit/book/commands/recheck",
    "dpaudit/cli/test_people_commands.py": "dpaudit/book/people_files",
    "dpaudit/workflow/test_signing.py": "dpaudit/signing/commands",
    "dpaudit/book/server/test_application.py": (
        "dpaudit/book/server/api dpaudit/book/server/request_context dpaudit/book/server/guarding"
    ),
    "dpaudit/book/server/test_pages.py": "dpaudit/book/server/forms dpaudit/book/server/templating",
    # Parts of one public class or function, which their neighbour's test calls.
    "dpaudit/book/test_book.py": "dpaudit/book/records dpaudit/book/refunds dpaudit/book/remaining_budget "
    "dpaudit/book/state",
    "dpaudit/book/test_store.py": "dpaudit/book/databases dpaudit/book/schema",
    "dpaudit/certificate/test_certificate.py": (
        "dpaudit/certificate/claim dpaudit/certificate/proof dpaudit/certificate/records "
        "dpaudit/certificate/schema"
    ),
    "dpaudit/ledger/test_ledger.py": "dpaudit/ledger/checks dpaudit/ledger/entry",
    "dpaudit/ledger/test_account.py": "dpaudit/plan/groups",
    "dpaudit/ledger/test_bounding.py": "dpaudit/plan/contribution",
    "dpaudit/mechanisms/test_noisy_max.py": (
        "dpaudit/mechanisms/choice dpaudit/mechanisms/enumerated"
    ),
    "dpaudit/mechanisms/continual/test_gaussian.py": "dpaudit/mechanisms/continual/noise",
    "dpaudit/rehearsal/test_rehearse.py": ("dpaudit/rehearsal/constants dpaudit/rehearsal/session"),
    "extension/test_accountant.py": "dpaudit/base/extensions",
    "private_bo/gp/test_posterior.py": "private_bo/gp/types",
    "private_bo/local/test_ldp.py": "private_bo/local/one_bit",
    "private_bo/joint/experiments/test_trials.py": (
        "private_bo/joint/experiments/ablation private_bo/joint/experiments/figures "
        "private_bo/joint/experiments/table1"
    ),
}
"""Sources without a test module of their own, by the test that runs them."""

UNTESTED = {
    "dpaudit/base/errors": "exceptions without behaviour",
}
"""Sources without a test, and why."""

WITHOUT_SOURCE = {
    "dpaudit/checker/test_arithmetic.py": "exp, log and the normal law of checker.py",
    "dpaudit/checker/test_curves.py": "the rule of each law of checker.py",
    "dpaudit/checker/test_grid.py": "laws on a grid, and their products, of checker.py",
    "dpaudit/checker/test_independence.py": "plans that were edited and engines that are wrong",
    "dpaudit/test_public.py": "the package's exported names",
    "dpaudit/accounting/test_extremes.py": "all accountants at the ends of floats",
    "dpaudit/accounting/test_soundness.py": "all accountants beside an independent oracle",
    "dpaudit/accounting/test_dp_accounting_traps.py": "where dp-accounting differs",
    "dpaudit/training/opacus/test_hostile.py": "trainings that cheat",
    "dpaudit/integrations/test_mbi.py": "a library whose noise is numpy's, of numpy.py",
    "dpaudit/accounting/amplification/test_turns.py": "groups that take turns, of covered.py",
    "dpaudit/rehearsal/test_beside.py": "what runs do beside the ledger, of watching.py",
    "dpaudit/cli/test_no_value_is_printed.py": "all commands on code that fails with its data",
    "dpaudit/ledger/test_laws.py": "ledger and journal as one state machine",
    "dpaudit/ledger/test_keys.py": "counts of unknown keys, of bounding.py",
    "dpaudit/ledger/test_observing.py": "noise of other libraries, by ledger, journal and replay",
    "dpaudit/auditing/distinguishing/test_any_output.py": "code that returns anything",
    "dpaudit/rehearsal/test_published_mistakes.py": "mistakes that others found",
    "dpaudit/cli/test_answers.py": "what commands print for machines",
    "dpaudit/cli/test_bounds.py": "huge and hostile input through every command",
    "dpaudit/signing/test_forgeries.py": "what could be tried by somebody who has no key",
    "dpaudit/workflow/test_training.py": "attacks on trainings, of attacking.py",
    "dpaudit/workflow/test_valid_plans.py": "valid plans of every kind through every command",
    "dpaudit/reporting/checklists/test_dpfy.py": "dpfy.toml",
    "dpaudit/reporting/checklists/test_label.py": "label.toml",
    "dpaudit/reporting/checklists/test_nist.py": "nist.toml",
    "private_bo/federated/flower/test_main.py": "__main__.py",
    # The rows of the papers name these: an algorithm beside a transcription of its own.
    "private_bo/federated/test_agent.py": "Algorithm 2 of agents.py and algorithms.py",
    "private_bo/federated/test_server.py": "what the server of algorithms.py takes no notice of",
    "private_bo/federated/test_weights.py": "the weights of settings.py",
    "private_bo/joint/test_local_joint_parties.py": "the parties of local_joint.py",
    "private_bo/joint/test_local_joint_statistics.py": "the statistics of local_joint.py",
    "private_bo/local/test_ata.py": "Algorithm 1 of policies.py",
    "private_bo/local/test_moma.py": "Algorithm 3 of policies.py",
    "private_bo/local/test_tgp.py": "Algorithm 2 of policies.py",
}
"""Tests that mirror no single source, and what they test."""

_MOST_LINES = {"dpaudit": 400, "private_bo": 700}
"""Of a file: one concept, in ``private_bo`` an algorithm with all that is its own."""

LONG = {
    "dpaudit/checker": "one file that a reader takes to another machine",
    "dpaudit/ledger/ledger": "the one door for private data",
    "dpaudit/workflow/attacking": "one request has one answer, whoever asks",
}
"""Sources of more than 400 lines, and why."""


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


def own_modules() -> set[str]:
    return {each for each in sources() if not each.endswith(("/__init__", "/__main__"))}


def mirror(source: str) -> Path:
    return TESTS / Path(source).parent / f"test_{Path(source).name}.py"


def listed(table: dict[str, str]) -> list[str]:
    return [source for sources in table.values() for source in sources.split()]


def test_every_source_has_its_test_in_the_mirrored_place():
    exempt = [*listed(TESTED_BY), *UNTESTED]
    without = {each for each in own_modules() if not mirror(each).exists()}
    assert without - set(exempt) == set(), "write a test module, or list the one that runs it"
    assert set(exempt) - without == set(), "no longer there, or tested now: take it off the list"
    assert len(exempt) == len(set(exempt))
    assert [each for each in TESTED_BY if not (TESTS / each).exists()] == []


def test_every_test_has_its_source():
    found = {
        path.relative_to(TESTS).as_posix()
        for name in HOMES
        for path in (TESTS / name).rglob("test_*.py")
    }
    mirrored = {mirror(each).relative_to(TESTS).as_posix() for each in own_modules()}
    assert found - mirrored == set(WITHOUT_SOURCE)


def test_files_are_short():
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in sources().items()}
    assert {n for n, count in lines.items() if count > _MOST_LINES[n.split("/")[0]]} == set(LONG)


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
