"""The certificate itself: the JSON that ``dpaudit verify`` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dpaudit import _files
from dpaudit.reporting.base import Renderer

if TYPE_CHECKING:
    from dpaudit.certificate import Certificate

__all__ = ["JsonRenderer"]


class JsonRenderer(Renderer):
    """What :meth:`dpaudit.certificate.Certificate.save` writes."""

    name: ClassVar[str] = "json"
    suffix: ClassVar[str] = ".json"

    def render(self, certificate: Certificate) -> str:
        """Sorted keys, two spaces, one line break at the end."""
        return _files.pretty_json(certificate.to_dict())
