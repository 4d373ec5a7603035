"""Older certificates and budgets, to compare new ones with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dpaudit.base import files, toml_tables
from dpaudit.base.errors import InputError
from dpaudit.certificate import Certificate, SubjectRecord
from dpaudit.certificate.schema import SCHEMA_VERSION
from dpaudit.project.project_file import BudgetEntry
from dpaudit.workflow.publishing import LIST
from dpaudit.workflow.verifying import load_verified


@dataclass(frozen=True)
class Baseline:
    """Older certificates by the names of their files, without the ending.

    Attributes:
        certificates: by name.
        budgets: of the project then; None where that is not known, as of a certificate alone.
    """

    certificates: Mapping[str, Certificate] = field(default_factory=dict)
    budgets: tuple[BudgetEntry, ...] | None = None

    def match(self, name: str, subject: SubjectRecord, *, alone: bool) -> str | None:
        """The older certificate of a subject, or None.

        It is the one of that file name; else the only one of the same target and fields; else the
        only one of the same target.

        Args:
            name: of the subject in its project.
            subject: what its new certificate speaks of.
            alone: whether it is the only subject of its target, without which fields must agree.
        """
        if name in self.certificates:
            return name
        same = {k: old for k, old in self.certificates.items() if old.subject.name == subject.name}
        fields = dict(subject.configuration)
        alike = [key for key, old in same.items() if dict(old.subject.configuration) == fields]
        if len(alike) == 1:
            return alike[0]
        return next(iter(same)) if alone and len(same) == 1 else None

    def without(self, matched: Collection[str], targets: Collection[str]) -> tuple[str, ...]:
        """The certificates that are neither matched nor of these targets, in alphabetical order."""
        left = self.certificates.keys() - set(matched)
        spoken = {key for key in left if self.certificates[key].subject.name in targets}
        return tuple(sorted(left - spoken))


def read_baseline(path: Path | str) -> Baseline:
    """Read a certificate, or every certificate in a folder.

    Other JSON files in a folder, such as reports for machines, are passed over.

    Raises:
        InputError: if there is none, or one does not follow its schema, its hashes or its plan; it
            names which.
    """
    with toml_tables.within("--since"):
        paths = certificate_files(Path(path))
        budgets = _budgets(Path(path) / LIST)
    return Baseline({file.stem: _load(file) for file in paths}, budgets)


def _budgets(path: Path) -> tuple[BudgetEntry, ...] | None:
    record = files.load_json(path, what="list of reports") if path.is_file() else {}
    if not isinstance(record, dict) or "budgets" not in record:
        return None
    with toml_tables.within(files.shown(path)):
        return tuple(map(BudgetEntry.from_dict, toml_tables.tables("budgets", record["budgets"])))


def certificate_files(path: Path) -> list[Path]:
    """The file itself, or the certificates of a folder, in alphabetical order.

    Raises:
        InputError: if a folder holds none.
    """
    if not path.is_dir():
        return [path]
    named = (file for file in sorted(path.glob("*.json")) if not file.name.startswith("."))
    found = [file for file in named if _is_certificate(file)]
    if not found:
        raise InputError(f"{files.shown(path)} holds no certificate; give a folder that does.")
    return found


def _is_certificate(path: Path) -> bool:
    """Tell whether a JSON file says that it is a certificate, of whatever version."""
    record = files.load_json(path, what="certificate")
    family = SCHEMA_VERSION.partition("/")[0]
    return isinstance(record, dict) and str(record.get("schema", "")).startswith(family)


def _load(path: Path) -> Certificate:
    with toml_tables.within(f"--since {files.shown(path)}"):
        return load_verified(path)
