"""The table of a catalogue as a page of Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .measuring import Row
from .measuring_floats import FloatRow
from .summary import Summary

HEAD = """\
# How the auditors do on mechanisms of known loss

`{command}` makes this page.

- {found}.
- {alarms}.
- {above}.

Intervals are Clopper and Pearson's. A wrong mechanism is audited sequentially, within the runs on
each side that its row states, and its row fails where fewer than 95 % of the audits refute it;
*runs* is the median that they took. A right one is audited with the runs given, and an audit
refutes it with a chance of 5 % at most. *bound* is the median lower bound on ε; where an audit
stops at a refutation, it is little above the claim. The true ε is that of the attacked pair at the
claim's δ; where a ≤ stands before it, the pair's own may be less, and a bound between the two is
not counted as above it. Exact rows rest on no samples.

*Stable histogram, threshold 3* stated 5000 runs before: 57 of 60 audits refuted it there, twice, as
its smaller pilot now and then prefers boosted trees, which smear a rare event. It states 8000 now.
*Truncated Laplace, called pure* had δ = 0.001 before, and 28 of 60 audits of 200 000 runs refuted
it: the values that give it away lie just beyond all others. It has δ = 0.01 now.
"""


def markdown(rows: Sequence[Row], floats: Sequence[FloatRow], command: str) -> str:
    """The page.

    Args:
        rows: of the table.
        floats: of the table of samplers.
        command: that made them.
    """
    found, alarms, above = (each[0].upper() + each[1:] for each in Summary.of(rows).lines)
    parts = [HEAD.format(command=command, found=found, alarms=alarms, above=above)]
    for title, right in (("Wrong mechanisms", False), ("Right mechanisms", True)):
        chosen = [row for row in rows if row.entry.right == right]
        if chosen:
            parts.append(_table(title, chosen))
    if floats:
        parts.append(_floats(floats))
    return "\n".join(parts)


def _table(title: str, rows: Sequence[Row]) -> str:
    head = ["mechanism", "claim", "true ε", "stated runs", "runs", "refuted", "bound"]
    lines = [_line(head), _line(["---", "---", *["---:"] * 5])]
    for row in rows:
        entry = row.entry
        name = entry.name + ("" if row.as_expected else " **(unexpected)**")
        true = ("≤ " if entry.limit else "") + number(entry.true_epsilon)
        runs = [f"{entry.runs}", f"{row.runs}"] if row.sampled else ["exact", "exact"]
        claim = f"({entry.claim.epsilon:.4g}, {entry.claim.delta:g})"
        counts = f"{row.refuted} of {row.audits}"
        lines.append(_line([name, claim, true, *runs, counts, number(row.epsilon_lower)]))
    return f"## {title}\n\n" + "\n".join(lines) + "\n"


def _floats(rows: Sequence[FloatRow]) -> str:
    lines = [_line(["sampler", "finding", "draws"]), _line(["---", "---", "---:"])]
    for row in rows:
        found = ", ".join(row.rules) or "none"
        name = row.entry.name + ("" if row.as_expected else " **(unexpected)**")
        lines.append(_line([name, found, f"{row.draws}"]))
    return "## Samplers whose last bits are looked at\n\n" + "\n".join(lines) + "\n"


def number(value: float) -> str:
    """Four digits, or ∞."""
    return "∞" if value == math.inf else f"{value:.4g}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
