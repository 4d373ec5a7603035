"""The interface of every renderer, and their choice by file ending."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dpaudit import _files
from dpaudit.errors import InputError

if TYPE_CHECKING:
    from dpaudit.certificate import Certificate

__all__ = ["Renderer", "render_to", "renderer_for", "suffixes"]


class Renderer(ABC):
    """A view of a certificate.

    A renderer shows every fact of the certificate and nothing that does not follow from it, gives
    the same bytes for the same certificate, and treats every text in it as hostile.

    Attributes:
        name: short name of the format.
        suffix: ending of its files, with the dot.
    """

    name: ClassVar[str] = ""
    suffix: ClassVar[str] = ""
    _by_suffix: ClassVar[dict[str, type[Renderer]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__dict__.get("suffix"):
            Renderer._by_suffix[cls.suffix] = cls

    @abstractmethod
    def render(self, certificate: Certificate) -> str | bytes:
        """The whole content of the file."""


def suffixes() -> tuple[str, ...]:
    """The file endings that there is a renderer for, in alphabetical order."""
    return tuple(sorted(Renderer._by_suffix))


def renderer_for(path: Path | str) -> Renderer:
    """The renderer for a file of that name.

    Raises:
        InputError: if the ending is none of :func:`suffixes`.
    """
    kind = Renderer._by_suffix.get(Path(path).suffix.lower())
    if kind is None:
        raise InputError(
            f"output {str(path)!r:.200} has the ending {Path(path).suffix!r:.40}; "
            f"it must end in one of {', '.join(suffixes())}."
        )
    return kind()


def render_to(certificate: Certificate, path: Path | str) -> Path:
    """Render a certificate into a file, whole or not at all.

    Args:
        certificate: what to show.
        path: the file; its ending chooses the format.

    Raises:
        InputError: if the ending is unknown or the file cannot be written.
    """
    return _files.write(path, renderer_for(path).render(certificate))
