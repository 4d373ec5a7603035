"""A bound that is read when the module is imported, as code that is to be sealed."""

from __future__ import annotations

from dataclasses import dataclass

import caps

CAP = caps.largest()


@dataclass(frozen=True)
class CapAtImport(caps.CapTyped):
    """Revenue with that bound, a SealedSubject."""

    bound: float = CAP
