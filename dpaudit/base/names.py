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
    for each in [
        "a:0430,03b1,0251",
        "b:0432,03b2",
        "c:0441",
        "d:0501",
        "e:0435,03b5",
        "g:0261",
        "h:04bb,043d,0570",
        "i:0456,03b9,0131",
        "j:0458",
        "k:043a,03ba",
        "l:04cf,0031",
        "m:043c",
        "n:03b7,0578",
        "o:043e,03bf,0585,0030",
        "p:0440,03c1",
        "q:051b",
        "s:0455",
        "t:0442,03c4",
        "u:03c5,057d",
        "v:03bd",
        "w:051d",
        "x:0445,03c7",
        "y:0443,03b3",
    ]
    for code in each[2:].split(",")
}
"""Letters that look like Latin ones, small or as capitals: from the confusables of UTS #39."""
_TOGETHER = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL"}


def same_person(one: str, other: str) -> bool:
    """Tell whether two names look like one: nobody is their own second person.

    Marks and all that is no letter or digit do not count, and Cyrillic, Greek and Armenian letters
    are those that they look like. It rather takes two people for one than one for two.
    """
    return _skeleton(one) == _skeleton(other)


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


def _skeleton(name: str) -> str:
    letters = unicodedata.normalize("NFKD", _plain(name)).translate(_LOOKS)
    kept = (each for each in letters if each.isalnum() or unicodedata.category(each) == "Mc")
    return _UNSEEN.sub("", "".join(kept))
