"""Right-to-left text in the order in which a PDF draws it, and Arabic letters in joined form.

A paragraph of a PDF is drawn from left to right, glyph by glyph. The order follows the Unicode
bidirectional algorithm (UAX #9) for text without explicit embeddings, which reports never contain:
strong letters, numbers with their separators, and neutrals between them. Paragraphs are ordered as
a whole, before they are broken into lines.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import groupby

__all__ = ["visual"]

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_MIRRORED = dict(zip("()[]{}<>«»⟨⟩", ")(][}{><»«⟩⟨", strict=True))
_JOINER, _NON_JOINER = "\u200d", "\u200c"
_LAM = "\u0644"


def visual(text: str) -> str:
    """The characters from left to right; text without right-to-left letters stays as it is.

    >>> visual("ab אבג 12 (x)") == "ab 12 גבא (x)"
    True
    """
    if not _RIGHT_TO_LEFT.search(text):
        return text
    clusters = _clusters(_joined(text))
    levels = _levels([_direction(cluster) for cluster in clusters])
    order = list(range(len(clusters)))
    for level in range(max(levels), 0, -1):
        reordered: list[int] = []
        for high, group in groupby(order, key=lambda at: levels[at] >= level):
            run = list(group)
            reordered += run[::-1] if high else run
        order = reordered
    return "".join(
        _MIRRORED.get(clusters[at], clusters[at]) if levels[at] % 2 else clusters[at]
        for at in order
    )


def _clusters(text: str) -> list[str]:
    """Every character with the marks that stand on it."""
    found: list[str] = []
    for character in text:
        if character in (_JOINER, _NON_JOINER):
            continue
        if found and unicodedata.bidirectional(character) == "NSM":
            found[-1] += character
        else:
            found.append(character)
    return found


def _direction(cluster: str) -> str:
    """L, R, N for digits, S for what separates them, T for what ends them, or O for all else."""
    kind = unicodedata.bidirectional(cluster[0])
    known = {"L": "L", "R": "R", "AL": "R", "EN": "N", "AN": "N", "ES": "S", "CS": "S", "ET": "T"}
    return known.get(kind, "O")


def _levels(kinds: list[str]) -> list[int]:
    """Embedding levels: even ones run from left to right (UAX #9, rules P2 to I2)."""
    base = 1 if next((kind for kind in kinds if kind in "LR"), "L") == "R" else 0
    kinds = _with_numbers(kinds)
    levels = []
    strong = "R" if base else "L"
    for at, kind in enumerate(kinds):
        if kind in "LR":
            strong = kind
        if kind == "N":
            levels.append(2 if strong == "R" else 0)
        elif kind == "O":
            after = next((other for other in kinds[at:] if other != "O"), "")
            following = strong if after == "N" else after or "LR"[base]
            same = strong == following
            levels.append(_level(strong if same else "LR"[base], base))
        else:
            levels.append(_level(kind, base))
    return levels


def _level(direction: str, base: int) -> int:
    return 1 if direction == "R" else 2 * base


def _with_numbers(kinds: list[str]) -> list[str]:
    """A separator between digits, and a percent sign beside one, belong to the number (W4, W5)."""
    resolved = list(kinds)
    for at, kind in enumerate(kinds):
        if kind in "ST":
            digits = kinds[max(at - 1, 0) : at + 2].count("N")
            resolved[at] = "N" if digits >= (2 if kind == "S" else 1) else "O"
    return resolved


def _joined(text: str) -> str:
    """Arabic letters in the form that their neighbours ask for, as presentation forms."""
    forms = _presentation_forms()
    letters = list(text)
    shown: list[str] = []
    at = 0
    while at < len(letters):
        letter, width = letters[at], 1
        before = _neighbour(letters, at, -1)
        ligature = letter + _next(letters, at)
        if letter == _LAM and ligature in forms:
            letter, width = ligature, 2
        after = _neighbour(letters, at + width - 1, 1)
        own = forms.get(letter, {})
        to_before = "initial" in forms.get(before, {}) or before == _JOINER
        to_before = to_before and "final" in own
        to_after = ("final" in forms.get(after, {}) or after == _JOINER) and "initial" in own
        wanted = ("isolated", "initial", "final", "medial")[to_after + 2 * to_before]
        shown.append(own.get(wanted, letter))
        at += width
    return "".join(shown)


def _next(letters: list[str], at: int) -> str:
    return letters[at + 1] if at + 1 < len(letters) else ""


def _neighbour(letters: list[str], at: int, step: int) -> str:
    """The next letter on that side, over the marks between; empty at the end."""
    at += step
    while 0 <= at < len(letters) and unicodedata.bidirectional(letters[at]) == "NSM":
        at += step
    return letters[at] if 0 <= at < len(letters) else ""


@cache
def _presentation_forms() -> dict[str, dict[str, str]]:
    """By letter, or pair of letters, its forms (Unicode blocks Arabic Presentation Forms A, B)."""
    forms: dict[str, dict[str, str]] = {}
    for code in (*range(0xFB50, 0xFC00), *range(0xFE70, 0xFEFD)):
        kind, *parts = unicodedata.decomposition(chr(code)).split() or [""]
        base = "".join(chr(int(part, 16)) for part in parts)
        single = len(base) == 1 or (len(base) == 2 and base[0] == _LAM)
        if single and not base.startswith(" "):
            forms.setdefault(base, {}).setdefault(kind.strip("<>"), chr(code))
    return forms
