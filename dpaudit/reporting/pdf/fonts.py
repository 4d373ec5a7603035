"""The fonts of a PDF, all from installed packages, and text that they can show."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

MONO = "DejaVu Sans Mono"
"""Family of code; for letters that it lacks, those of :func:`fonts` follow."""

_PACKAGES = (
    ("zhplot", "Noto Sans SC", "NotoSansSC-Regular.ttf"),
    ("koreanize_matplotlib", "NanumGothic", "NanumGothic.ttf"),
)
"""East Asian fonts (SIL Open Font License) that packages for matplotlib carry: package, family."""


@dataclass(frozen=True)
class Font:
    """One family of fonts.

    Attributes:
        family: its name.
        files: those that are used; all of them must have a character for the family to have it.
    """

    family: str
    files: tuple[Path, ...]

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.files[0].parent

    def characters(self) -> frozenset[int]:
        """The code points that it has a glyph for."""
        return frozenset.intersection(*map(_covered, self.files))


def _covered(file: Path) -> frozenset[int]:
    from fontTools.ttLib import TTFont

    with TTFont(file, lazy=True) as font:
        return frozenset(font.getBestCmap())


@cache
def fonts() -> tuple[Font, ...]:
    """The families in the order in which a letter is looked for.

    DejaVu, which matplotlib ships, has Latin, Greek, Cyrillic, Hebrew, Arabic and signs. The extra
    ``dpaudit[pdf]`` brings East Asian, Devanagari and Thai fonts; any further font package of
    fontpkg.org, such as ``fontpkg-noto-sans-tamil``, adds its script as soon as it is installed.
    """
    import fontpkg
    import matplotlib as mpl

    own = Path(mpl.get_data_path(), "fonts", "ttf")
    return (
        Font("DejaVu Sans", (own / "DejaVuSans.ttf", own / "DejaVuSans-Bold.ttf")),
        *(Font(family, (folder / file,)) for folder, family, file in _packaged_fonts()),
        *(
            Font(family.name, (fontpkg.path(family.name, nearest=True),))
            for _, family in sorted(fontpkg.families().items())
        ),
    )


def _packaged_fonts() -> Iterator[tuple[Path, str, str]]:
    for package, family, file in _PACKAGES:
        found = find_spec(package)  # looks for the files, and imports nothing
        if found is not None and found.origin is not None:
            yield Path(found.origin).parent / "fonts", family, file


@cache
def _first_fonts() -> Mapping[int, str]:
    """For each code point the family that shows it."""
    first: dict[int, str] = {}
    for font in reversed(fonts()):
        first |= dict.fromkeys(font.characters(), font.family)
    return first


def spelled_out(text: str) -> str:
    """The text, with every character that no font can show written as its code point.

    A mark of another font than its letter's would be lost or take the letter with it, so it is
    written out as well.

    >>> spelled_out("ε, 大安, नि, ไทย, \U0001fae8")
    'ε, 大安, नि, ไทย, ⟨U+1FAE8⟩'
    """
    unusual = {
        character
        for character in set(text)
        if not character.isspace()
        and (ord(character) not in _first_fonts() or unicodedata.category(character)[0] == "M")
    }
    return "".join(_shown(text, unusual)) if unusual else text


def _shown(text: str, unusual: set[str]) -> Iterator[str]:
    family: str | None = None
    for character in text:
        own = _first_fonts().get(ord(character))
        if character not in unusual:
            family = own
        elif own is None or own != family:
            yield f"⟨U+{ord(character):04X}⟩"
            continue
        yield character
