"""What ``dpaudit observe`` prints; parameters of libraries may depend on private data.

Texts of the code are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpaudit.cli import show
from dpaudit.cli.show import escape
from dpaudit.observing import Noted

if TYPE_CHECKING:
    from dpaudit.observing.observed_code import Observation

_TIMES = 1e-3


def print_observation(seen: Observation, files: Sequence[Path] = ()) -> None:
    """Print what was drawn, what it costs, what was charged, the certificate, its files."""
    _calls(seen)
    show.certificate(seen.certificate, files=files)


@show.answering()
def _calls(seen: Observation) -> None:
    rows = show.table("drawn", "as", "times", "line")
    for each in seen.noted:
        rows.add_row(
            *map(escape, (each.invocation.at, _noise(each), _times(each), each.calls[0].line))
        )
    show.say(rows)
    show.say("")
    facts = show.grid()
    if seen.charged is not None:
        facts.add_row("charged", escape(f"{seen.charged} ({seen.charged.source})"))
    word = " if what the libraries state is true" if _rests_on_words(seen) else ""
    if seen.at_its_word is not None and seen.charged is not None:
        facts.add_row(
            "cost", escape(f"ε = {seen.at_its_word:.4g}, δ = {seen.charged.delta:g}{word}")
        )
    if seen.usual is not None:
        facts.add_row("cost", escape(f"ε = {seen.usual:.4g}, δ = 1e-05{word}{_wasted(seen)}"))
    show.say(facts)


def _rests_on_words(seen: Observation) -> bool:
    rules = {finding.rule for finding in seen.certificate.findings}
    return "stated-by-library" in rules


def _wasted(seen: Observation) -> str:
    charged = seen.charged
    if charged is None or charged.risk is not None or seen.usual is None or not seen.usual:
        return ""
    times = charged.epsilon / seen.usual
    return f": the charge is {times:.2f} times that" if times > 1 + _TIMES else ""


def _noise(noted: Noted) -> str:
    own = noted.invocation.mechanism if noted.known else noted.calls[0].reading.mechanism
    named = {k: v for k, v in own.to_dict().items() if k not in ("kind", "label") and v is not None}
    given = ", ".join(
        f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in named.items()
    )
    moved = f"sensitivity {noted.invocation.sensitivity:g}" if noted.known else "sensitivity ?"
    return f"{own.kind}: {given}; {moved}"


def _times(noted: Noted) -> str:
    own = noted.invocation
    return str(own.releases) if own.count == own.releases else f"{own.count} of {own.releases}"
