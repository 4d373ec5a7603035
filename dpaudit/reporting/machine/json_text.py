"""The certificate itself: the JSON that ``dpaudit verify`` reads."""

from __future__ import annotations

from typing import ClassVar

from dpaudit.base import files
from dpaudit.certificate import Certificate
from dpaudit.reporting.base import Renderer


class JsonRenderer(Renderer):
    """What :meth:`dpaudit.certificate.Certificate.save` writes."""

    name: ClassVar[str] = "json"
    suffix: ClassVar[str] = ".json"

    def render(self, *certificates: Certificate) -> str:
        """Sorted keys, two spaces, one line break at the end; several make an array."""
        records = [certificate.to_dict() for certificate in certificates]
        return files.pretty_json(records[0] if len(records) == 1 else records)
