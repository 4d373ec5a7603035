"""What was compared and what missed, in eighty columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from tests.benchmarks.soundness.verdict import Verdict

_SHORT, _WIDTHS = ("unsnd", "lower", "crash", "NaN", "slow"), (6, 6, 6, 4, 5)
MISSES = ("unsound", "lower end", "crash", "NaN", "slow")


def shown(number: int, one: Verdict, full: bool = False) -> str:
    """One verdict, with both intervals."""
    head = f"plan {number}: {one.case.name}, {one.case.relation}, δ = {one.case.delta:g}"
    found = [head, *(f"{kind}: {text}" for kind, text in (one.misses if full else one.misses[:2]))]
    if len(one.misses) > 2 and not full:
        found.append(f"and {len(one.misses) - 2} more")
    if one.refused:
        found.append(f"refused: {one.refused}")
    if one.failed:
        found.append(f"the oracle failed: {one.failed}")
    found.append(
        f"proved {_interval(one.proved)}, truth {_interval(one.truth)} by {one.method or 'none'}, "
        f"{one.seconds:.2f} s"
    )
    return "\n".join(
        textwrap.fill(text, 80, initial_indent="  " if at else "", subsequent_indent="    ")
        for at, text in enumerate(found)
    )


def _interval(ends: tuple[float | None, float] | None) -> str:
    if ends is None:
        return "none"
    return f"[{'none' if ends[0] is None else f'{ends[0]:.10g}'}, {ends[1]:.10g}]"


def lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The table, by kind of plan."""
    kinds = sorted({_kind(one) for one in verdicts})
    head = [f"{'kind':27}", *(f"{word:>6}" for word in ("plans", "comp.", "refus."))]
    head += [f"{word:>{width}}" for word, width in zip(_SHORT, _WIDTHS, strict=True)]
    yield "".join(head) + f"{'× truth':>8}"
    for kind in [*kinds, ""]:
        own = [one for one in verdicts if not kind or _kind(one) == kind]
        missed = [
            sum(any(name == miss for name, _ in one.misses) for one in own) for miss in MISSES
        ]
        compared = sum(one.truth is not None for one in own)
        refused = sum(bool(one.refused) for one in own)
        ratios = [one.ratio for one in own if math.isfinite(one.ratio)]
        worst = f"{max(ratios):.3g}" if ratios else ""
        numbers = [f"{number:6}" for number in (len(own), compared, refused)]
        numbers += [f"{n or '·':>{width}}" for n, width in zip(missed, _WIDTHS, strict=True)]
        yield f"{kind or 'all':27.27}" + "".join(numbers) + f"{worst:>8}"
    failed = sum(bool(one.failed) for one in verdicts)
    yield f"oracle failed: {failed}; slowest proof {max(one.seconds for one in verdicts):.1f} s"


def _kind(one: Verdict) -> str:
    return "known" if one.case.name.startswith("known") else one.case.name
