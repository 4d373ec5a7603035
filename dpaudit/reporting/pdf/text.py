"""Foreign text as markup of a PDF paragraph: escaped, and every script in a font that has it."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

from dpaudit.reporting.pdf.bidi import visual
from dpaudit.reporting.text import visible

__all__ = [
    "BOLD",
    "MONO",
    "SANS",
    "drawn",
    "line",
    "marked",
    "register_fonts",
    "shortened",
    "width",
]

SANS, BOLD, MONO = "dpaudit-sans", "dpaudit-bold", "dpaudit-mono"
_FILES = {SANS: "DejaVuSans.ttf", BOLD: "DejaVuSans-Bold.ttf", MONO: "DejaVuSansMono.ttf"}
_TIED = re.compile(r"(?<=\d) (?=%)|(?<=[εδ]) (?=[=≥] )|(?<=[εδ] [=≥]) ")
_MISSING = "missing"

# East Asian fonts (SIL Open Font License), which other distributions carry.
_HAN, _HANGUL = "dpaudit-han", "dpaudit-hangul"
_CARRIED = {
    _HAN: ("zhplot", "NotoSansSC-Regular.ttf"),
    _HANGUL: ("koreanize_matplotlib", "NanumGothic.ttf"),
}


@cache
def register_fonts() -> None:
    """Make the fonts known to reportlab: DejaVu, which matplotlib ships, for embedding."""
    folder = Path(mpl.get_data_path(), "fonts", "ttf")
    for name, file in _FILES.items():
        pdfmetrics.registerFont(TTFont(name, str(folder / file)))


@cache
def _register_carried(name: str) -> bool:
    """Make an East Asian font known, at first use, as it is large; False where it is absent."""
    distribution, file = _CARRIED[name]
    found = find_spec(distribution)  # looks for the files, and imports nothing
    if found is None or found.origin is None:
        return False
    pdfmetrics.registerFont(TTFont(name, str(Path(found.origin).parent / "fonts" / file)))
    return True


@cache
def _coverage(font: str) -> Any:
    register_fonts()
    if font in _CARRIED and not _register_carried(font):
        return {}
    return pdfmetrics.getFont(font).face.charToGlyph


def line(text: object) -> str:
    """The text on one line, hidden characters written out; no line ends inside of “ε = 1”."""
    return visible(_TIED.sub("\u00a0", " ".join(str(text).split())))


def drawn(text: object) -> str:
    """The same in the order of drawing."""
    return visual(line(text))


def shortened(text: str, most: int = 160) -> str:
    """At most so many characters; for places where the whole stands elsewhere."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def width(text: str, font: str, size: float) -> float | None:
    """Width in points; None where the font lacks a character."""
    covered = _coverage(font)
    if not all(ord(character) in covered for character in text):
        return None
    return float(pdfmetrics.stringWidth(text, font, size))


def marked(text: object, font: str = SANS) -> str:
    """Markup that shows exactly the text, whatever it contains.

    A character for which there is no font is written out as its code point.

    >>> marked("a < b & ε")
    'a &lt; b &amp; ε'
    >>> marked("大安 नि")
    '<font name="dpaudit-han">大安</font> ⟨U+0928⟩⟨U+093F⟩'
    """
    shown = drawn(text)
    covered = _coverage(font)
    if all(ord(character) in covered for character in shown):
        return escape(shown)
    return "".join(_run(name, "".join(run), font) for name, run in _runs(shown, font))


def _runs(text: str, font: str) -> groupby[str, str]:
    return groupby(text, key=lambda character: _font_of(character, font))


def _font_of(character: str, font: str) -> str:
    names = (font, SANS, MONO, *_CARRIED)
    return next((name for name in names if ord(character) in _coverage(name)), _MISSING)


def _run(name: str, text: str, font: str) -> str:
    if name == _MISSING:
        return escape("".join(f"⟨U+{ord(character):04X}⟩" for character in text))
    return escape(text) if name == font else f'<font name="{name}">{escape(text)}</font>'
