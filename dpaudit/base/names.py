"""Names of people: whether two look alike, and which would only look like another.

The book compares by it who asked and who approves.
"""

from __future__ import annotations

import re
import unicodedata

from dpaudit.base.errors import InputError

_UNSEEN = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U000e0100-\U000e01ef]"
)
"""Printable to Python, and ignorable by default in Unicode (UAX #44), or blank."""
_LOOKS = {
    int(code, 16): each[0]
    for each in (
        "a:0430,03b1,0251,1d00", "b:0432,03b2,0299", "c:0441,1d04", "d:0501,1d05",
        "e:0435,03b5,1d07", "g:0261,0262", "h:04bb,043d,0570,029c", "i:0456,03b9,0131,026a,0269",
        "j:0458,1d0a", "k:043a,03ba,1d0b", "l:04cf,01c0,029f", "m:043c,1d0d", "n:03b7,0578,0274",
        "o:043e,03bf,0585,1d0f", "p:0440,03c1,1d18", "q:051b", "r:0280", "s:0455,a731",
        "t:0442,03c4,1d1b", "u:03c5,057d,1d1c", "v:03bd,1d20", "w:051d,1d21", "x:0445,03c7",
        "y:0443,03b3,028f", "z:03b6,1d22", "-:2010,2012,2013,2014,2015,2212", "':2018,2019,02bc",
    )
    for code in each[2:].split(",")
}  # fmt: skip
"""What looks like a Latin letter, small or as a capital, or a dash: from UTS #39's confusables."""
_DIGITS = str.maketrans("01", "ol")
_CAPITALS = str.maketrans("I\u0406\u0399L", "lll\1")
"""A capital I looks like a small l, and a capital L does not."""
_GAP = re.compile(r"(?<=\d)\s+(?=\d)")
_TOGETHER = {"LATIN", "CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL"}
"""Scripts that are written together, and do not look alike."""


def same_person(one: str, other: str) -> bool:
    """Tell whether two names look like one: nobody is their own second person.

    Marks and all that is no letter or digit do not count, and Cyrillic, Greek and Armenian letters
    are those that they look like. It rather takes two people for one than one for two.
    """
    return _skeleton(one) == _skeleton(other)


def looks_alike(one: str, other: str) -> bool:
    """Tell whether two names of things look like one: digits, marks and punctuation count.

    Case does not, nor do width, spaces other than between digits, and letters that look the same.
    """
    seen = [_GAP.sub("\0", unicodedata.normalize("NFKC", each)) for each in (one, other)]
    return any(len({_letters(n.translate(way)) for n in seen}) == 1 for way in ({}, _CAPITALS))


def written_alike(one: str, other: str) -> bool:
    """Tell whether two names differ in case, width and spaces alone."""
    return _plain(one) == _plain(other)


def checked_name(**field: str) -> str:
    """Return a name whose letters are of one script, all of which can be seen.

    Raises:
        InputError: if it would only look like another.
    """
    ((what, name),) = field.items()
    letters = filter(str.isalpha, unicodedata.normalize("NFKC", name))
    scripts = {unicodedata.name(each, "?").partition(" ")[0] for each in letters}
    seen = name.isprintable() and not _UNSEEN.search(name)
    if not seen or (len(scripts) > 1 and not scripts <= _TOGETHER):
        raise InputError(
            f"{what} is {name[:60]!a}; its letters must be visible, and of one script."
        )
    return name


def _plain(name: str) -> str:
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def _letters(name: str) -> str:
    return _UNSEEN.sub("", unicodedata.normalize("NFKD", _plain(name)).translate(_LOOKS))


def _skeleton(name: str) -> str:
    letters = _letters(name).translate(_DIGITS)
    return "".join(each for each in letters if each.isalnum() or unicodedata.category(each) == "Mc")
