"""Releasing a table: the declared queries of a file, run once, with results as data.

``dpaudit release`` and :func:`release_table` call it. A release goes the way of every run, but for
a rehearsal, which it does not need.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dpaudit.base import files
from dpaudit.base.chain import Durability
from dpaudit.base.errors import InputError
from dpaudit.certificate import Certificate, SubjectRecord
from dpaudit.project.declared_release import SYNTHETIC, DeclaredRelease
from dpaudit.project.targets import Target, certified, find_target
from dpaudit.tables.queries import Part
from dpaudit.tables.release import Release
from dpaudit.workflow.running import Charging, RunOptions, run_target


@dataclass(frozen=True)
class QueryCost:
    """What a query costs and how exact it is, before any data.

    Attributes:
        query: its name.
        what: the query in words.
        noise: each of its releases, in words.
        error: how far it lies from the truth, with 95 % probability.
    """

    query: str
    what: str
    noise: tuple[str, ...]
    error: str


def _release_target(release: Release | Path | str) -> tuple[Target, DeclaredRelease]:
    """The target of a release, or of a file that declares one."""
    if isinstance(release, Release):
        subject = DeclaredRelease(release)
        record = SubjectRecord(name="release")
        made = Target(record, subject.plan(), subject.claim(), (), (), subject, release.record)
        return made, subject
    target = None
    if str(release).endswith(".toml"):
        files.read_toml(release, what="release file")  # said of a plan file else
        target = find_target(str(release), {})
    else:
        files.read_text(release, what="release file")
    if target is None or not isinstance(target.subject, DeclaredRelease):
        raise InputError(
            f"{files.shown(release)} is not a release file; it must be a .toml file with [data], "
            "[privacy] and [[query]]."
        )
    return target, target.subject


def planned(release: Release | Path | str) -> tuple[Certificate, tuple[QueryCost, ...]]:
    """The certificate of a release, and what each query costs, before any data are touched.

    Args:
        release: what is to be released, or the path of its file.

    Raises:
        InputError: if the file is wrong, or no noise certifies its claim.
    """
    target, subject = _release_target(release)
    parts = subject.release.parts
    costs = tuple(
        QueryCost(
            query.name,
            query.describe(),
            tuple(_noise_of(part, query.noise_unit(part)) for part in parts[query.name]),
            query.expected_error(parts[query.name]),
        )
        for query in subject.release.queries
    )
    return certified(target), costs


def _noise_of(part: Part, unit: str) -> str:
    facts = part.mechanism.to_dict()
    kind = facts.pop("kind")
    shown = ", ".join(f"{name} {value:g}" for name, value in facts.items() if value is not None)
    shown += f", {unit}" if unit else ""
    return f"{kind} ({shown}){f' × {part.total}' if part.total > 1 else ''}"


def release_table(
    release: Release | Path | str,
    folder: Path | str,
    *,
    synthetic: int | None = None,
    seed: int | None = None,
    cluster: str | None = None,
    durability: Durability = Durability.PROCESS,
    anchor: Path | None = None,
    charging: Charging | None = None,
    witness: bool | None = None,
) -> tuple[Certificate, tuple[Path, ...]]:
    """Run the queries of a release, and write results, ledger, certificate and report.

    Args:
        release: what is released, or the path of its file.
        folder: where the files go; made if need be, and without a release in it.
        synthetic: how many made-up rows to try it on, in place of the source.
        seed: of an experiment; None draws fresh entropy.
        cluster: address of a dask scheduler whose workers work off the rows.
        durability: what a line of the ledger survives before its noise is drawn.
        anchor: file that keeps the head of the ledger.
        charging: where the release is charged, before it releases anything.
        witness: whether the independent checker proves it too; None where that is cheap.

    Returns:
        The certificate with the results, and the files; what the owner alone may see is last.

    Raises:
        InputError: if the file, the table or the folder is wrong; before anything is charged.
        BudgetExceededError: if the book has not that much left.
    """
    target, subject = _release_target(release)
    if synthetic is not None and charging is not None:
        raise InputError(
            "synthetic is given with a book, but made-up rows cost nothing; leave one of them out."
        )
    if synthetic is not None and cluster is not None:
        raise InputError(
            "synthetic is given with a cluster, but made-up rows are processed on this "
            "machine; leave the cluster out."
        )
    subject = replace(subject, cluster=cluster, seeded=seed is not None)
    options = RunOptions(
        data=None if synthetic is None else f"{SYNTHETIC}{synthetic}",
        seed=seed,
        durability=durability,
        anchor=anchor,
        charging=charging,
        witness=witness,
    )
    name = target.record.name
    return run_target(replace(target, subject=subject), name, Path(folder), options)
