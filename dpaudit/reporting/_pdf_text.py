"""Foreign text as markup of a PDF paragraph: escaped, and every script in a font that has it."""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont

from dpaudit.reporting._pdf_bidi import visual
from dpaudit.reporting._text import visible

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
_FALLBACKS = (SANS, MONO)
_MISSING = "missing"

# Fonts that every PDF reader knows by name; those for what a character set of theirs encodes.
_KANA, _HANGUL = (
    re.compile("[\u3040-\u30ff\u31f0-\u31ff]"),
    re.compile("[\u1100-\u11ff\uac00-\ud7a3]"),
)
_JAPANESE, _KOREAN = ("HeiseiKakuGo-W5", "cp932"), ("HYSMyeongJo-Medium", "cp949")
_CHINESE = ("STSong-Light", "gbk")  # reportlab names a wrong encoding for the font of Taiwan


@cache
def register_fonts() -> None:
    """Make the fonts known to reportlab: DejaVu, which matplotlib ships, for embedding."""
    folder = Path(mpl.get_data_path(), "fonts", "ttf")
    for name, file in _FILES.items():
        pdfmetrics.registerFont(TTFont(name, str(folder / file)))
    for name, _ in (_CHINESE, _JAPANESE, _KOREAN):
        pdfmetrics.registerFont(UnicodeCIDFont(name))


@cache
def _coverage(font: str) -> Any:
    register_fonts()
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
    '<font name="STSong-Light">大安</font> ⟨U+0928⟩⟨U+093F⟩'
    """
    shown = drawn(text)
    covered = _coverage(font)
    if all(ord(character) in covered for character in shown):
        return escape(shown)
    return "".join(_run(name, "".join(run), font) for name, run in _runs(shown, font))


def _runs(text: str, font: str) -> groupby[str, str]:
    others = _east_asian(text)
    return groupby(text, key=lambda character: _font_of(character, font, others))


def _font_of(character: str, font: str, others: tuple[tuple[str, str], ...]) -> str:
    for name in (font, *_FALLBACKS):
        if ord(character) in _coverage(name):
            return name
    for name, charset in others:
        if _encodes(charset, character):
            return name
    return _MISSING


def _east_asian(text: str) -> tuple[tuple[str, str], ...]:
    """Fonts for East Asian text, the one of its language first.

    Han characters are shared between languages; kana and Hangul beside them tell which it is.
    """
    if _KANA.search(text):
        return (_JAPANESE, _CHINESE, _KOREAN)
    if _HANGUL.search(text):
        return (_KOREAN, _CHINESE, _JAPANESE)
    return (_CHINESE, _JAPANESE, _KOREAN)


def _encodes(charset: str, character: str) -> bool:
    try:
        character.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


def _run(name: str, text: str, font: str) -> str:
    if name == _MISSING:
        return escape("".join(f"⟨U+{ord(character):04X}⟩" for character in text))
    return escape(text) if name == font else f'<font name="{name}">{escape(text)}</font>'
