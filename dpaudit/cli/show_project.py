"""What ``dpaudit check`` and ``dpaudit init`` print."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.table import Table

from dpaudit.base.optional_import import LIBRARIES
from dpaudit.cli import show
from dpaudit.cli.show import answered, answering, escape, say
from dpaudit.project.targets import imported_names
from dpaudit.workflow import summary
from dpaudit.workflow.outcomes import ProjectOutcome, Status


@answering()
def checked(outcome: ProjectOutcome, written: Sequence[Path]) -> None:
    """Print the table of a project, what no cell holds, and where the reports are."""
    if answered("project", outcome.to_dict() | {"files": [str(path) for path in written]}):
        return
    rows = [(row.status, summary.subject_cells(row)) for row in outcome.subjects]
    say(_table(summary.SUBJECT_HEADS, rows))
    if outcome.budgets:
        rows = [(row.status, summary.budget_cells(row)) for row in outcome.budgets]
        say(_table(summary.BUDGET_HEADS, rows))
    for name, text in summary.remarks(outcome):
        say(f"[bold]{escape(name)}[/]: {escape(text)}")
    say(summary.headline(outcome))
    index = next(path for path in written if path.name == "index.html")
    say(f"wrote {len(written)} files; begin with {escape(_relative_path(index))}", soft_wrap=True)
    if outcome.beside:
        say("the better reports stay; check without --since takes the new ones in their place")


def _relative_path(path: Path) -> str:
    """The path as seen from here, where it is below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _table(heads: Sequence[str], rows: Sequence[tuple[Status, Sequence[str]]]) -> Table:
    table = show.table(*heads)
    for status, cells in rows:
        name, verdict, *rest = map(escape, cells)
        table.add_row(name, f"[{show.COLOURS[status]}]{verdict}[/]", *rest)
    return table


@answering()
def scaffolded(name: str, written: Sequence[Path]) -> None:
    """Print what was made, and what to do next."""
    show.written(*written)
    code = [path for path in written if path.suffix == ".py" and path.parent == Path(name)]
    wanted = {each for path in code for each in imported_names(path)} - {each.stem for each in code}
    wanted |= set() if code else set(LIBRARIES["tables"])  # without code it is a release file
    first = "" if all(map(find_spec, wanted)) else "pip install -r requirements.txt && "
    then = "dpaudit check" if code else "dpaudit release visits.toml --plan && dpaudit check"
    say(f"next: cd {escape(name)} && {first}{then}", soft_wrap=True)
