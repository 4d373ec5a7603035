"""A sealed subject in the process that is sealed: found by its name, declared and run as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base import files
from dpaudit.base.errors import OtherSubjectError
from dpaudit.base.fields import plain
from dpaudit.project.foreign import foreign
from dpaudit.project.sealed_subject import SealedSubject, published
from dpaudit.project.targets import configuration, find_subject, location
from dpaudit.sealed.analyst import serve
from dpaudit.sealed.handles import Rows, SealedLedger, code_of


@dataclass(frozen=True)
class Loaded:
    """A sealed subject as the analyst runs it.

    Attributes:
        name: by which it was found.
        subject: what was found.
    """

    name: str
    subject: SealedSubject

    def data(self) -> dict[str, Any]:
        """Its table, the names of public files that it reads, and its functions, as JSON."""
        with foreign(self.name, public=True):
            own = self.subject
            found = {
                "table": own.table().to_dict(),
                "files": list(map(str, own.public_files)),
                "functions": [list(code_of(each)) for each in own.functions],
            }
            return json.loads(files.canonical_json(plain(found)))  # type: ignore[no-any-return]

    def facts(self) -> dict[str, Any]:
        """What it declares beside these, as JSON."""
        with foreign(self.name, public=True):
            own = self.subject
            claim = own.claim()
            found = {
                "configuration": configuration(own),
                "location": location(own),
                "plan": own.plan().to_dict(),
                "claim": None if claim is None else claim.to_dict(),
                "findings": [each.to_dict() for each in own.findings()],
                "not_covered": list(own.not_covered()),
            }
            return json.loads(files.canonical_json(plain(found)))  # type: ignore[no-any-return]

    def run(self, data: Rows, ledger: SealedLedger, rng: np.random.Generator) -> dict[str, Any]:
        """What it published, as JSON."""
        with foreign(self.name, public=True):
            return published(self.name, self.subject.run(data, ledger, rng))


def load(name: str, settings: Mapping[str, Any]) -> Loaded:
    """A sealed subject by its name, in the process that is sealed.

    Raises:
        OtherSubjectError: if it is none of that kind.
        InputError: if there is none.
    """
    found = find_subject(name, settings)
    if not isinstance(found, SealedSubject):
        raise OtherSubjectError(f"{name} is not a SealedSubject.")
    return Loaded(name, found)


def main(descriptor: int) -> None:
    """Be the analyst of a sealed run."""
    serve(descriptor, load)
