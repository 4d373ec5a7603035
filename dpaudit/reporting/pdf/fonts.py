"""The fonts of a PDF, and text that they can show.

Installed packages carry the fonts, so that the same packages give the same bytes on every machine.
Only a letter that none of them has is looked for among the fonts of the system.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MONO = "DejaVu Sans Mono"
"""Family of code; for letters that it lacks, those of :func:`fonts_for` follow."""


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


@cache
def _covered(file: Path) -> frozenset[int]:
    from fontTools.ttLib import TTFont

    with TTFont(file, lazy=True, fontNumber=0) as font:
        return frozenset(font.getBestCmap() or ())


def fonts_for(text: str) -> tuple[Font, ...]:
    """Return the families for a text, in the order in which a letter is looked for.

    DejaVu, which matplotlib ships, has Latin, Greek, Cyrillic, Hebrew, Arabic and signs. The extra
    ``dpaudit[pdf]`` brings Devanagari and Thai; any further font package of fontpkg.org, such as
    ``fontpkg-noto-sans-tamil``, adds its script as soon as it is installed. Families of the system
    follow where they have a letter that is still missing, as for Chinese, Japanese and Korean.
    """
    families = packaged_fonts()
    missing = {ord(each) for each in text if not each.isspace()} - set(_first_fonts(families))
    for font in system_fonts() if missing else ():
        if missing & font.characters():
            missing -= font.characters()
            families = (*families, font)
    return families


@cache
def packaged_fonts() -> tuple[Font, ...]:
    """Return the families that installed packages carry."""
    import fontpkg
    import matplotlib as mpl

    own = Path(mpl.get_data_path(), "fonts", "ttf")
    return (
        Font("DejaVu Sans", (own / "DejaVuSans.ttf", own / "DejaVuSans-Bold.ttf")),
        *(
            Font(family.name, (fontpkg.path(family.name, nearest=True),))
            for _, family in sorted(fontpkg.families().items())
        ),
    )


@cache
def system_fonts() -> tuple[Font, ...]:
    """Return the upright families of regular weight that the system has, by name."""
    from matplotlib.font_manager import findSystemFonts

    families = {_regular_family(Path(file)): Path(file) for file in sorted(findSystemFonts())}
    families.pop(None, None)
    return tuple(Font(name, (file,)) for name, file in sorted(families.items()) if name)


def _regular_family(file: Path) -> str | None:
    """Return what a file's family is called; None where it is bold, slanted or cannot be read."""
    from fontTools.ttLib import TTFont, TTLibError

    try:
        with TTFont(file, lazy=True, fontNumber=0) as font:
            style = font["OS/2"]
            upright = style.usWeightClass == 400 and not style.fsSelection & 1
            family: str | None = font["name"].getBestFamilyName()
    except (OSError, KeyError, TTLibError):
        return None
    return family if upright else None


@cache
def _first_fonts(families: tuple[Font, ...]) -> Mapping[int, str]:
    """Return for each code point the family that shows it."""
    first: dict[int, str] = {}
    for font in reversed(families):
        first |= dict.fromkeys(font.characters(), font.family)
    return first


def spelled_out(text: str, families: tuple[Font, ...]) -> str:
    """Return the text, with every character that no family can show written as its code point.

    A mark of another font than its letter's would be lost or take the letter with it, so it is
    written out as well.

    >>> spelled_out("ε, नि, ไทย, \U0001fae8", packaged_fonts())
    'ε, नि, ไทย, ⟨U+1FAE8⟩'
    """
    first = _first_fonts(families)
    unusual = {
        character
        for character in set(text)
        if not character.isspace()
        and (ord(character) not in first or unicodedata.category(character)[0] == "M")
    }
    return "".join(_shown(text, unusual, first)) if unusual else text


def _shown(text: str, unusual: set[str], first: Mapping[int, str]) -> Iterator[str]:
    family: str | None = None
    for character in text:
        own = first.get(ord(character))
        if character not in unusual:
            family = own
        elif own is None or own != family:
            yield f"⟨U+{ord(character):04X}⟩"
            continue
        yield character
