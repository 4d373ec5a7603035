"""The interface of every renderer, and their choice by file ending."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dpaudit import files
from dpaudit.errors import InputError

if TYPE_CHECKING:
    from dpaudit.certificate import Certificate

__all__ = ["Renderer", "render_to", "renderer_for", "suffixes"]


class Renderer(ABC):
    """A view of one certificate, or of several side by side.

    A renderer shows every fact of its certificates and nothing that does not follow from them,
    gives the same bytes for the same certificates, and treats every text in them as hostile.

    Attributes:
        name: short name of the format.
        suffix: ending of its files, with the dot; it may be compound, such as ``.sarif.json``.
    """

    name: ClassVar[str] = ""
    suffix: ClassVar[str] = ""
    _by_suffix: ClassVar[dict[str, type[Renderer]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__dict__.get("suffix"):
            Renderer._by_suffix[cls.suffix] = cls

    @abstractmethod
    def render(self, *certificates: Certificate) -> str | bytes:
        """The whole content of the file.

        Args:
            certificates: at least one; shown in this order.
        """


def suffixes() -> tuple[str, ...]:
    """The file endings that there is a renderer for, in alphabetical order."""
    return tuple(sorted(Renderer._by_suffix))


def renderer_for(path: Path | str) -> Renderer:
    """The renderer for a file of that name: the one of the longest ending that fits.

    Raises:
        InputError: if the ending is none of :func:`suffixes`.
    """
    name = Path(path).name.lower()
    fitting = [s for s in Renderer._by_suffix if name.endswith(s) and len(name) > len(s)]
    if not fitting:
        raise InputError(
            f"output {str(path)!r:.200} has the ending {Path(path).suffix!r:.40}; "
            f"it must end in one of {', '.join(suffixes())}."
        )
    return Renderer._by_suffix[max(fitting, key=len)]()


def render_to(certificates: Certificate | Sequence[Certificate], path: Path | str) -> Path:
    """Render one certificate, or several side by side, into a file, whole or not at all.

    Args:
        certificates: what to show, in this order.
        path: the file; its ending chooses the format.

    Raises:
        InputError: if there is no certificate, the ending is unknown or the file cannot be
            written.
    """
    several = certificates if isinstance(certificates, Sequence) else (certificates,)
    if not several:
        raise InputError("certificates is empty; give at least one to render.")
    return files.write(path, renderer_for(path).render(*several))
