"""Private notes: one for each violation that nobody has published, for the authors of the library.

They stand in ``out/libraries/notes`` and are no part of the repository: who maintains a library
hears of it before anybody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from audits.libraries.verdicts import Judged
from audits.result_table import render
from dpaudit import files

PLACE = Path("out/libraries/notes")
MENDS = {
    "linear regression": "Clip X and y to their bounds also where no intercept is fitted.",
    "naive Bayes": "Ask for the classes, as the decision tree does, and do not make the noisy "
    "counts add up to the true number of rows.",
    "forest": "Assign each row to a tree by a draw of its own, which no other row can change.",
    "tree": "Say that neighbours add or remove a row, or halve ε where they replace one.",
    "k-means": "Do not keep inertia_ and labels_, or give them noise and a share of the budget.",
}
_OPEN = "; which neighbours it means, its documentation does not say"
_GENERAL = "Calibrate the noise to how far the neighbours of the command move the value."


def write(found: Iterable[Judged], place: Path | None = None) -> list[Path]:
    """Write the notes of what is unpublished, and say which.

    Args:
        found: rows with what was found.
        place: folder of the notes; ``PLACE`` where not given.
    """
    written = []
    for each in found:
        if each.unpublished:
            name = re.sub(r"\W+", "-", each.row.name).strip("-").lower()
            (place or PLACE).mkdir(parents=True, exist_ok=True)
            written.append(files.write((place or PLACE) / f"{name}.md", note(each)))
    return written


def note(judged: Judged) -> str:
    """One note, as Markdown."""
    row = judged.row
    stated = _OPEN if row.stated == "open" else f" ({row.stated})"
    mend = MENDS.get(row.kind, _GENERAL)
    template = Path(__file__).parent / "note.md.j2"
    return render(template, row=row, each=judged, stated=stated, mend=mend)
