"""What a row's findings amount to: how its claim stands, whose fault it is, and what it costs.

A claim is certified, refuted or left unproven. A violation is sorted by what the library's
documentation promises of those neighbours, and by whether the code is the library's at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from audits.libraries.rows import Row
from audits.result_table import Record
from dpaudit.base import files

WORDS = files.read_toml(Path(__file__).with_suffix(".toml"), what="words of verdicts")
SHOWN: dict[str, str] = WORDS["shown"]
WORD = {"stated-by-library", "opaque-mechanism", "unproven"}
WARNS = "library-warns"


class Standing(StrEnum):
    """How a claim stands after all that was tried."""

    CERTIFIED = "certified"
    UNPROVEN = "unproven"
    REFUTED = "refuted"


class Fault(StrEnum):
    """What a violation is, seen from the library."""

    NONE = ""
    WARNED = "warned about"
    DOCUMENTED = "documented"
    OPEN = "of these neighbours, nothing is promised"
    CHECK = "to be looked at"
    OWN = "home-made"
    CONTRADICTS = "contradicts its documentation"


@dataclass(frozen=True)
class RowVerdict:
    """One row with what was found.

    Attributes:
        row: what was tried.
        found: what its commands said.
    """

    row: Row
    found: Record

    @property
    def seen(self) -> Record:
        """What observing said; empty if the row was attacked alone."""
        return self.found.get("observe", {})

    @property
    def attacked(self) -> Record:
        """What the attack said; empty if there was none."""
        return self.found.get("audit", {})

    @property
    def error(self) -> str:
        """Why it could not be run; empty if it could."""
        return str(self.found.get("error") or self.seen.get("error") or "")

    @property
    def standing(self) -> Standing:
        """Refuted by an attack; else certified, if it was rehearsed and proved; else unproven."""
        if "refuted" in (self.attacked.get("verdict"), self.seen.get("verdict")):
            return Standing.REFUTED
        if self.seen.get("verdict") == "certified":
            return Standing.CERTIFIED
        return Standing.UNPROVEN

    def rules(self, severity: str = "error") -> list[str]:
        """The rules of findings of that severity, in order, each once."""
        found = self.seen.get("findings", [])
        return list(dict.fromkeys(rule for level, rule, _ in found if level == severity))

    @property
    def shown(self) -> list[str]:
        """What the rehearsal showed on data, in words."""
        return list(dict.fromkeys(SHOWN[rule] for rule in self.rules() if rule in SHOWN))

    @property
    def accused(self) -> bool:
        """Whether anything says that the claim is broken: an attack, or a rehearsal."""
        return self.standing is Standing.REFUTED or (bool(self.shown) and not self.row.harmless)

    @property
    def warned(self) -> bool:
        """Whether the library warned in this very run."""
        return WARNS in self.rules()

    @property
    def fault(self) -> Fault:
        """What a broken claim is, seen from the library; nothing where none is broken."""
        if not self.accused:
            return Fault.NONE
        if self.warned:
            return Fault.WARNED
        if self.row.documented:
            return Fault.DOCUMENTED
        if self.row.stated == "open":
            return Fault.OPEN
        if self.row.stated == "home-made":
            return Fault.OWN
        strong = self.standing is Standing.REFUTED or set(WORDS["strong"]) & set(self.rules())
        return Fault.CONTRADICTS if strong else Fault.CHECK

    @property
    def false(self) -> bool:
        """Whether a claim that is known to hold was accused."""
        return self.row.right and self.accused

    @property
    def unpublished(self) -> bool:
        """Whether a library's claim is refuted, and nobody has said so as far as we know."""
        silent = self.row.published is None and self.row.stated != "home-made"
        return silent and not self.row.documented and self.standing is Standing.REFUTED

    @property
    def evidence(self) -> str:
        """Why, in a phrase or two."""
        parts = []
        if self.error:
            parts.append(f"not run: {self.error}")
        if self.attacked.get("verdict") == "refuted":
            lower = float(self.attacked["epsilon_lower"])
            parts.append(f"attack: ε ≥ {_down(lower)} (95 %, {self.attacked['runs']} runs a side)")
        elif self.attacked:
            parts.append(f"attack: nothing found in {self.attacked['runs']} runs a side")
        parts += self.shown
        parts += [text for rule, text in WORDS["bounds"].items() if rule in self.rules()]
        if self.warned:
            parts.append("the library warns")
        if "hidden-randomness" in self.rules():
            parts.append("it draws what cannot be replayed")
        if self.standing is Standing.CERTIFIED:
            parts.append("proved and rehearsed")
        elif self.seen and WORD & set(self.rules("warning")):
            parts.append("its noise has no theorem here")
        return "; ".join(parts)

    @property
    def cost(self) -> str:
        """What was drawn costs, beside the claim; at δ = 1e-5 too where that is less."""
        if not self.seen or self.error:
            return "–"
        at = self.seen.get("word") or self.seen.get("epsilon")
        usual = self.seen.get("usual")
        found = "no bound" if at is None else f"{at:.4g}"
        if usual is not None and (at is None or usual < 0.98 * at):
            found += f" ({usual:.4g} at δ = 1e-5)"
        return found

    @property
    def over(self) -> str:
        """By how much it is over-spent, or how much of the budget is wasted."""
        claimed = _claimed(self.row.claim)
        at = self.seen.get("word") or self.seen.get("epsilon")
        if claimed is None or at is None or self.error or claimed == 0:
            return "–"
        if at > claimed * (1 + 1e-6):
            return f"over by {100 * (at / claimed - 1):.0f} %"
        if self.accused:
            return "–"  # the bound rests on what was shown to be false
        least = min(at, self.seen.get("usual") or at)
        wasted = 100 * (1 - least / claimed)
        return f"{wasted:.0f} % wasted" if wasted >= 1 else "as claimed"


def _claimed(claim: str) -> float | None:
    """The ε of a claim that states one."""
    first = claim.partition(",")[0]
    name, _, value = first.partition("=")
    return float(value) if name.strip() == "epsilon" else None


def _down(number: float) -> str:
    return "∞" if number == float("inf") else f"{int(number * 100) / 100:g}"
