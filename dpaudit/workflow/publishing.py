"""Writing what a check found: certificates, reports and an index, all of them or none.

The index is one table, as HTML and as Markdown, of the short texts that the terminal shows too.
Older certificates and budgets are read here, to compare new ones with; and model cards are written.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from dpaudit.accounting import Guarantee
from dpaudit.base import files, toml_tables
from dpaudit.base.errors import InputError
from dpaudit.base.numbers import down, plain, up
from dpaudit.certificate import Certificate, Claim, Severity, SubjectRecord
from dpaudit.certificate.certificate import SCHEMA_VERSION
from dpaudit.certificate.decisions import ONLY_ASSUMED
from dpaudit.project.project_file import BudgetEntry, ProjectFile
from dpaudit.reporting import Utility, model_card, renderer_for
from dpaudit.reporting.text import escaped, markdown_table, strict_environment
from dpaudit.workflow.outcomes import NO_AUDIT, BudgetRow, ProjectOutcome, Status, SubjectRow
from dpaudit.workflow.sealing import NOT_SEALED
from dpaudit.workflow.verifying import load_verified

if TYPE_CHECKING:
    from jinja2 import Template

TITLE = "Privacy reports"


def index_html(outcome: ProjectOutcome) -> str:
    """One page without scripts; nothing is loaded from elsewhere."""
    return _template("index.html.j2").render(
        title=TITLE,
        headline=headline(outcome),
        subject_heads=SUBJECT_HEADS,
        subjects=[(row, subject_cells(row), _links(row)) for row in outcome.subjects],
        budget_heads=BUDGET_HEADS,
        budgets=[(row, budget_cells(row)) for row in outcome.budgets],
        remarks=list(remarks(outcome)),
    )


def index_markdown(outcome: ProjectOutcome) -> str:
    """The same for pull requests and job summaries."""
    return "\n".join(_markdown(outcome)).rstrip() + "\n"


def badge(outcome: ProjectOutcome) -> str:
    """The worst of all rows as a small picture, for the first lines of a README."""
    said = f"{outcome.status}, worse than before" if outcome.is_worse else str(outcome.status)
    return _template("badge.svg.j2").render(said=said, status=outcome.status)


def _markdown(outcome: ProjectOutcome) -> Iterator[str]:
    yield f"# {TITLE}\n"
    yield f"{escaped(headline(outcome))}\n"
    yield from markdown_table((*SUBJECT_HEADS, "files"), map(_subject_line, outcome.subjects))
    if outcome.budgets:
        lines = (map(escaped, budget_cells(row)) for row in outcome.budgets)
        yield from markdown_table(BUDGET_HEADS, lines)
    for name, text in remarks(outcome):
        yield f"- {escaped(name)}: {escaped(text)}"


def _subject_line(row: SubjectRow) -> Iterator[str]:
    yield from map(escaped, subject_cells(row))
    yield " ".join(f"[{ending}]({target})" for ending, target in _links(row)) or NOTHING


def _links(row: SubjectRow) -> list[tuple[str, str]]:
    """Ending and address of each file of a subject."""
    return [(file.removeprefix(f"{row.name}."), quote(file)) for file in row.files]


@cache
def _template(name: str) -> Template:
    from jinja2 import PackageLoader

    return strict_environment(PackageLoader("dpaudit.workflow")).get_template(name)


LIST = ".dpaudit-files.json"
"""Names the budgets, and the files that dpaudit wrote, and may therefore replace or remove."""


def refuse_unwritable(folder: Path, *, what: str = "reports") -> None:
    """Check, before any work, that a folder can be written or made. Makes nothing.

    Args:
        folder: that is to be written.
        what: it is for.

    Raises:
        InputError: if it cannot.
    """
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise InputError(
            f"{what} {files.shown(folder)} cannot be made: {files.shown(there)} is not a folder; "
            "give another folder."
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"{what} {files.shown(folder)} cannot be written: {files.shown(there)} is read-only; "
            "give another folder."
        )


def rendered(
    name: str, certificate: Certificate, formats: Sequence[str]
) -> Mapping[str, str | bytes]:
    """The content of every file of a subject, by file name."""
    return {
        # Chosen by the ending alone: a name such as a.sarif must not change the format.
        f"{name}{ending}": renderer_for(f"report{ending}").render(certificate)
        for ending in formats
    }


def publish(outcome: ProjectOutcome, project: ProjectFile) -> tuple[Path, ...]:
    """Write every file into the folder of the reports; what a failed subject left there goes.

    Everything is first written to a folder beside, so that a full disk changes nothing. A list in
    the folder names what was written before; what is not on it is somebody else's.

    Raises:
        InputError: if the folder cannot be written, or holds a file of somebody else in the way.
    """
    contents: dict[str, str | bytes] = {
        "index.html": index_html(outcome),
        "index.md": index_markdown(outcome),
        "badge.svg": badge(outcome),
    }
    stale: set[str] = set()
    for row in outcome.subjects:
        contents |= row.files
        if not row.files:  # an older certificate must not pass for this one's
            stale |= {f"{row.name}{ending}" for ending in project.formats}
    try:
        _write_all(project, contents, stale)
    except OSError as error:
        raise InputError(
            f"reports {files.shown(project.reports)} cannot be written: {error.strerror}; give a "
            "writable folder."
        ) from None
    return tuple(project.reports / name for name in contents)


def _write_all(project: ProjectFile, contents: Mapping[str, str | bytes], stale: set[str]) -> None:
    folder = project.reports
    folder.mkdir(parents=True, exist_ok=True)
    own = _written_before(folder)
    beside = Path(tempfile.mkdtemp(dir=folder, prefix=".new-"))
    try:
        listed = sorted((own - stale) | contents.keys())
        budgets = [each.to_dict() for each in project.budgets]
        record = {"written by": "dpaudit", "files": listed, "budgets": budgets}
        for name, content in {**contents, LIST: files.pretty_json(record)}.items():
            files.write(beside / name, content)
        _refuse_foreign([folder / name for name in contents], own)
        for name in own & stale:
            (folder / name).unlink(missing_ok=True)
        for name in (*contents, LIST):
            (beside / name).replace(folder / name)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _written_before(folder: Path) -> set[str]:
    """The names of the files that were written here before."""
    path = folder / LIST
    if not path.exists():
        return set()
    record = files.load_json(path, what="list of reports")
    names = record.get("files") if isinstance(record, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{files.shown(path)} is not a list of reports; remove it.")
    return {name for name in names if Path(name).name == name}


def _refuse_foreign(paths: Sequence[Path], own: Collection[str]) -> None:
    """No file may take the place of a folder, or of a file that somebody else put there."""
    for path in paths:
        files.refuse_special(path)
        if path.exists() and path.name not in own:
            raise InputError(
                f"report {files.shown(path)} exists but was not written by dpaudit; move it, "
                "or give another folder."
            )


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
        raise InputError(
            f"{files.shown(path)} holds no certificate; give a folder with certificates."
        )
    return found


def _is_certificate(path: Path) -> bool:
    """Tell whether a JSON file says that it is a certificate, of whatever version."""
    record = files.load_json(path, what="certificate")
    family = SCHEMA_VERSION.partition("/")[0]
    return isinstance(record, dict) and str(record.get("schema", "")).startswith(family)


def _load(path: Path) -> Certificate:
    with toml_tables.within(f"--since {files.shown(path)}"):
        return load_verified(path)


def write_card(
    path: Path,
    output: Path,
    utility: Sequence[Utility] = (),
    *,
    name: str | None = None,
    replacing: bool = False,
    allow_work: bool = False,
) -> Path:
    """Verify a certificate, and write its model card.

    Args:
        path: of the certificate.
        output: of the card; a README that is there was written by somebody.
        utility: scores of the model, as its author states them.
        name: of the model; that of the subject where not given.
        replacing: whether a file that is there is replaced.
        allow_work: as for :func:`~dpaudit.workflow.verifying.load_verified`.

    Raises:
        TamperedError: if the certificate does not follow from its plan; nothing is written then.
        InputError: if it is no certificate, a score is there twice, or the file is there.
    """
    if not replacing and (output.exists() or output.is_symlink()):
        raise InputError(
            f"output {files.shown(output)} exists already; give another file with -o, or --force "
            "to replace it."
        )
    certificate = load_verified(path, allow_work=allow_work)
    text = model_card(certificate, utility, name=name)
    with suppress(OSError):  # writing says what is wrong
        output.parent.mkdir(parents=True, exist_ok=True)
    return files.write(output, text)


SUBJECT_HEADS = ("subject", "verdict", "claimed ε", "proved ε", "at δ", "attacked: ε ≥")
BUDGET_HEADS = ("budget", "verdict", "allowed ε", "proved ε", "at δ", "of")
NOTHING = "–"


def subject_cells(row: SubjectRow) -> tuple[str, ...]:
    """One text for each of :data:`SUBJECT_HEADS`. Guarantees are rounded up, attacks down."""
    known = row.certificate
    if known is None:
        return (row.name, str(row.status), NOTHING, NOTHING, NOTHING, NOTHING)
    return (
        row.name,
        str(row.status),
        _claimed(known.claim, known.guarantee),
        *_proved(known.guarantee),
        _attacked(known),
    )


def budget_cells(row: BudgetRow) -> tuple[str, ...]:
    """One text for each of :data:`BUDGET_HEADS`."""
    verdict = "kept" if row.status is Status.CERTIFIED else str(row.status)
    proved, _ = _proved(row.guarantee)
    allowed, delta = plain(row.limit.epsilon), plain(row.limit.delta)
    return (row.name, verdict, allowed, proved, delta, ", ".join(row.subjects))


def _claimed(claim: Claim | None, proved: Guarantee | None) -> str:
    if claim is None:
        return NOTHING
    if claim.risk is not None:
        return str(claim)
    same = proved is not None and proved.delta == claim.delta
    return plain(claim.epsilon) if same else f"{plain(claim.epsilon)} (δ {plain(claim.delta)})"


def _proved(proved: Guarantee | None) -> tuple[str, str]:
    if proved is None:
        return NOTHING, NOTHING
    return (NOTHING if proved.epsilon == math.inf else up(proved.epsilon)), plain(proved.delta)


def _attacked(certificate: Certificate) -> str:
    if not certificate.audits:
        return NOTHING
    return down(max(audit.epsilon_lower or 0.0 for audit in certificate.audits))


def remarks(outcome: ProjectOutcome) -> Iterator[tuple[str, str]]:
    """Name and text of what no cell holds: errors, what is not tested, refused budgets, changes."""
    comparing = bool(outcome.gone) or any(row.since for row in outcome.subjects)
    for row in outcome.subjects:
        if row.error:
            yield row.name, row.error
        if row.unrehearsed:
            yield row.name, row.unrehearsed
        for finding in () if row.certificate is None else row.certificate.findings:
            if finding.severity is Severity.ERROR:  # it takes the ground from the proof
                yield row.name, f"{finding.rule}: {finding.message} {finding.remedy}".rstrip()
        for text in () if row.certificate is None else _untried(row.certificate):
            yield row.name, text
        for change in row.changes:
            yield row.name, str(change)
        if comparing and row.certificate is not None and not row.changes:
            yield row.name, "nothing changed." if row.since else "there is no older certificate."
    for budget in outcome.budgets:
        if budget.note:
            yield budget.name, budget.note
    for change in outcome.changes:
        yield "project", str(change)
    for name in outcome.gone:
        yield name, "there is an older certificate, but no such subject now."


def _untried(certificate: Certificate) -> Iterator[str]:
    """Return how it was sealed, what is only assumed, and why no attack was made."""
    if certificate.seal is not None:
        yield (
            f"sealed: its code ran on made-up rows ({certificate.seal.made_up}), in a process "
            "that has no access to its table."
        )
    for finding in certificate.findings:
        if finding.rule == NOT_SEALED:
            yield f"{finding.severity}, not sealed: {finding.message} {finding.remedy}"
    for each in certificate.all_findings:
        if each.rule == ONLY_ASSUMED:
            yield f"{each.severity}, {each.rule}: {each.message} {each.remedy}"
    if not certificate.audits and certificate.release is None and certificate.seal is None:
        said = (text for text in certificate.not_covered if text.startswith(NO_AUDIT))
        yield next(said, f"{NO_AUDIT}{_lacking(certificate)}")


def _lacking(certificate: Certificate) -> str:
    if certificate.subject.code_hash is None:
        return (
            'a plan file has no code; list a [[subject.audit]] with code = "FILE.py:function" and '
            "a pair, or with exact = true if there are few outputs."
        )
    if certificate.claim is None and _proved(certificate.guarantee)[0] == NOTHING:
        return "nothing is claimed or proved that could be attacked; state a claim."
    return "the project file lists none; remove audit = []."


def headline(outcome: ProjectOutcome) -> str:
    """The whole outcome in one sentence."""
    counts = {
        status: sum(row.status is status for row in outcome.subjects) for status in reversed(Status)
    }
    names = {Status.ERROR: "in error"}
    found = ", ".join(f"{n} {names.get(status, status)}" for status, n in counts.items() if n)
    over = sum(row.status is not Status.CERTIFIED for row in outcome.budgets)
    budgets = f"; {len(outcome.budgets) - over} of {len(outcome.budgets)} budgets kept"
    worse = "; worse than before" if outcome.is_worse else ""
    return f"{found}{budgets if outcome.budgets else ''}{worse}"
