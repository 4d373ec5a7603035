"""Catalogues: right and wrong mechanisms with known losses, on which auditors are measured.

A catalogue is a folder with an ``__init__.py`` that defines ``ENTRIES`` and, for samplers whose
bits may leak, ``FLOATS``.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.auditing.catalogue.floats import FloatEntry
from dpaudit.auditing.distinguishing.scores import Score
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.errors import InputError
from dpaudit.fields import Checked, Natural
from dpaudit.project import AuditPair

__all__ = ["Catalogue", "Entry", "load_catalogue"]

Curve = Callable[[ArrayLike], NDArray[np.float64]]
_MODULE = "dpaudit_catalogue"


@dataclass(frozen=True)
class Entry(Checked):
    """One mechanism, what is claimed of it, and what is true.

    Attributes:
        name: what it is, and for wrong ones the mistake.
        right: whether the claim holds.
        claim: what is stated.
        x: one of two neighbours.
        x_prime: the other.
        true_epsilon: of a wrong entry the true ε at the claim's δ for this pair, or what it tends
            to with more queries or larger data; of a right one what is proved.
        runs: the budget on each side, within which a wrong entry must be refuted.
        release: ``release(data, size, rng)``, vectorised; None where only exact mode applies.
        curve: the claimed δ(ε), where more is claimed than one point.
        score: of the attack; without one it is learned.
        exact: proves or refutes the claim without samples.
        rho: claimed and true ρ, where the claim is one of zCDP.
        rare: whether the event is too rare for the few runs on which a sequential test lays out
            its bets, so that a pilot must choose it.
    """

    name: str
    right: bool
    claim: Claim
    x: Any
    x_prime: Any
    true_epsilon: float
    runs: Natural = 0
    release: Callable[[Any, int, np.random.Generator], Any] | None = None
    curve: Curve | None = None
    score: Score | None = None
    exact: Callable[[], AuditRecord] | None = None
    rho: tuple[float, float] | None = None
    rare: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.release is None) == (self.exact is None):
            raise InputError(
                f"entry {self.name!r} needs a release or an exact audit, and not both."
            )
        stated, true = self.rho or (self.claim.epsilon, self.true_epsilon)
        if self.right != (true <= stated * (1 + 1e-9)):
            raise InputError(
                f"entry {self.name!r} states {stated:g} where {true:g} is true; that does not go "
                f"with right = {self.right}."
            )

    @property
    def pair(self) -> AuditPair:
        """The two neighbours that are attacked."""
        return AuditPair(self.x, self.x_prime, self.name)


@dataclass(frozen=True)
class Catalogue:
    """What a catalogue folder holds.

    Attributes:
        entries: mechanisms.
        floats: samplers.
    """

    entries: tuple[Entry, ...]
    floats: tuple[FloatEntry, ...] = ()


def load_catalogue(directory: Path | str) -> Catalogue:
    """The content of a catalogue folder. This runs its code.

    Raises:
        InputError: if the folder is no catalogue, or fails to import.
    """
    folder = Path(directory).resolve()
    init = folder / "__init__.py"
    wanted = "it must be a folder whose __init__.py defines ENTRIES"
    if not init.is_file():
        raise InputError(f"catalogue is {str(directory)!r}; {wanted}.")
    for name in [name for name in sys.modules if name.split(".")[0] == _MODULE]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        _MODULE, init, submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"catalogue {str(directory)!r} cannot be imported ({reason}).") from error
    entries = tuple(getattr(module, "ENTRIES", ()))
    if not entries or not all(isinstance(entry, Entry) for entry in entries):
        raise InputError(f"catalogue {str(directory)!r} has no entries; {wanted}.")
    return Catalogue(entries, tuple(getattr(module, "FLOATS", ())))
