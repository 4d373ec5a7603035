"""From the project file to a folder of certificates, reports and an index, and where it changes.

Every certificate is made from the project file alone, and in the same bytes whenever it is made.
Comparison tells for each file whether only hashes of code differ, or more.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from audits.differences import ABSENT, Difference, differences
from audits.papers.attacks import attacks
from audits.papers.index import index, require_places
from audits.result_table import in_order
from dpaudit.base import files
from dpaudit.base.toml_tables import chosen
from dpaudit.certificate import Certificate
from dpaudit.project.project_file import ProjectFile, SubjectEntry, read_project_file
from dpaudit.project.targets import find_target
from dpaudit.reporting import suffixes
from dpaudit.workflow.checking import certify_entry
from dpaudit.workflow.publishing import refuse_unwritable, rendered

PROJECT = Path(__file__).parents[1] / "dpaudit.toml"
REPORTS = Path(__file__).parents[2] / "reports"


def generate(
    project: Path = PROJECT,
    folder: Path = REPORTS,
    *,
    workers: int = 1,
    progress: Callable[[str, Certificate], object] = lambda name, certificate: None,
) -> Mapping[str, Certificate]:
    """Certify, attack and report every subject of a project; write all files, or none on an error.

    Reports of subjects that are no longer listed are removed; other files stay.

    Args:
        project: the project file.
        folder: of the reports; made if need be.
        workers: processes.
        progress: told each certificate when it is done.

    Returns:
        The certificates by the subject's name.

    Raises:
        DpAuditError: if anything cannot be certified, attacked or written.
    """
    listed = read_project_file(project, suffixes())
    require_places(entry.name for entry in listed.subjects)
    refuse_unwritable(folder)
    certificates = {}
    for name, certificate in certificates_of(listed, workers=workers):
        certificates[name] = certificate
        progress(name, certificate)
    contents: dict[str, str | bytes] = {
        f"index{ending}": index(certificates, listed.formats, ending) for ending in (".html", ".md")
    }
    for name, certificate in certificates.items():
        contents |= rendered(name, certificate, listed.formats)
    folder.mkdir(parents=True, exist_ok=True)
    for path in list(_obsolete(folder, listed)):
        path.unlink(missing_ok=True)
    for name, content in contents.items():
        files.write(folder / name, content)
    return certificates


def certificates_of(
    project: ProjectFile, names: Sequence[str] = (), workers: int = 1
) -> Iterator[tuple[str, Certificate]]:
    """Certify and attack subjects, in the order of the project file.

    Args:
        project: as it was read.
        names: of the subjects; all where none is given.
        workers: processes, each with a subject at a time; the certificates do not depend on them.

    Raises:
        DpAuditError: if a name is not listed, or a subject cannot be certified or attacked.
    """
    listed = {entry.name: entry for entry in project.subjects}
    for name in names:
        chosen(listed, subject=name)
    entries = [entry for name, entry in listed.items() if not names or name in names]
    made = partial(_certificate, project=project, quiet=workers > 1)
    names = [entry.name for entry in entries]
    yield from zip(names, in_order(made, entries, workers), strict=True)


def _certificate(entry: SubjectEntry, project: ProjectFile, quiet: bool) -> Certificate:
    """What ``dpaudit check`` makes of it, after the attacks of its own; quiet in a process."""
    if quiet:
        warnings.simplefilter("ignore")
    with contextlib.chdir(project.root):
        certificate = certify_entry(entry)
        subject = find_target(entry.target, entry.settings).subject
    return certificate if subject is None else certificate.with_audits(attacks(subject))


def _obsolete(folder: Path, project: ProjectFile) -> Iterator[Path]:
    """Certificates, with their reports, that belong to no subject now."""
    names = {entry.name for entry in project.subjects}
    for path in folder.glob("*.json"):
        if path.stem not in names:
            yield from (path.with_suffix(ending) for ending in project.formats)


# -- what is shipped, and what the code makes today ------------------------------------------------


def compare(
    names: Sequence[str] = (),
    project: Path = PROJECT,
    folder: Path = REPORTS,
    *,
    workers: int = 1,
) -> Iterator[tuple[str, tuple[Difference, ...]]]:
    """Certify and attack again, and compare with what is shipped; writes nothing.

    Only certificates are compared: every other report is a rendering of one.

    Args:
        names: of the subjects; all, and what is left of former ones, where none is given.
        project: the project file.
        folder: of the reports.
        workers: processes.

    Yields:
        The name of a certificate's file, and its differences, as soon as they are known.

    Raises:
        DpAuditError: if a name is not listed, anything cannot be certified or attacked, or a
            certificate cannot be read.
    """
    listed = read_project_file(project, suffixes())
    for name, certificate in certificates_of(listed, names, workers):
        path = folder / f"{name}.json"
        old = files.load_json(path, what="certificate") if path.exists() else {}
        new = files.parse_json(files.pretty_json(certificate.to_dict()), what="certificate")
        yield path.name, differences(old, new) if old else (_whole(ABSENT, "a certificate"),)
    former = {path.stem for path in folder.glob("*.json")} - {each.name for each in listed.subjects}
    for name in sorted(former) if not names else ():
        yield f"{name}.json", (_whole("a certificate", ABSENT),)


def _whole(shipped: str, regenerated: str) -> Difference:
    return Difference("file", shipped, regenerated)
