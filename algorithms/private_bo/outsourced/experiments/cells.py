"""What the tables of the outsourced setting are made of: curators and modellers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from private_bo.outsourced import (
    CertifiedCurator,
    Curator,
    Hyperparameters,
    InputModel,
    Modeller,
    RowNoise,
)

_DELTA = 1e-5
_LENGTH = 5.0
_MODEL_NOISE = 0.05  # variance that an ordinary kernel is given for the noise of its inputs
_WIDTH = 0.7


class Setting(StrEnum):
    """The data of an experiment."""

    GRID = "grid"
    PROPERTIES = "properties"
    LOANS = "loans"

    @property
    def heading(self) -> str:
        """Title of its table, with the number of rounds."""
        return {
            Setting.GRID: "Synthetic grid, S₅₀",
            Setting.PROPERTIES: "Properties in Taipei, S₁₀₀",
            Setting.LOANS: "Loans, S₅₀",
        }[self]


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Attributes:
        curator: who releases; None for the rows themselves.
        modeller: who searches.
    """

    curator: Curator | CertifiedCurator | None
    modeller: Modeller

    @property
    def curator_name(self) -> str:
        """Who releases, for the table."""
        if self.curator is None:
            return "none (rows in the clear)"
        if isinstance(self.curator, Curator):
            return f"paper (refuted), r = {self.curator.dimension}"
        return f"certified, {self.curator.mechanism.kind}"

    @property
    def epsilon_name(self) -> str:
        """ε as a power of e, for the table."""
        if self.curator is None:
            return "∞"
        exponent = round(math.log(self.curator.epsilon), 6)
        return "1" if exponent == 0 else f"e^{exponent:g}"

    @property
    def modeller_name(self) -> str:
        """Kernel and width of the modeller, for the table."""
        width = self.modeller.width_multiplier
        kernel = "" if not isinstance(self.curator, CertifiedCurator) else self.modeller.inputs
        return f"{kernel or 'ordinary'} kernel, {'theory' if width == 1 else f'{width:g} ×'} width"


def grid_cells(dimensions: Mapping[float, Sequence[int]]) -> list[Cell]:
    """All of the synthetic experiment: T = 50 after 10 initial rows.

    Args:
        dimensions: r of the paper's tables, by the exponent of ε.
    """
    given = Hyperparameters(_LENGTH)
    theory, narrow = Modeller(given), Modeller(given, width_multiplier=_WIDTH)
    cells = [Cell(None, theory), Cell(None, narrow)]
    for exponent, choices in dimensions.items():
        for r in choices:
            curator = Curator(math.exp(exponent), _DELTA, dimension=r)
            cells.append(Cell(curator, theory))
    for exponent in (0.0, 0.9, 1.1, 1.3):
        cells.extend(_certified(math.exp(exponent), theory, narrow))
    return cells


def _certified(epsilon: float, theory: Modeller, narrow: Modeller) -> Iterator[Cell]:
    """Both kinds of noise under the expected kernel, and the Gaussian under the simpler ones."""
    laplace = CertifiedCurator(epsilon, _DELTA, noise=RowNoise.LAPLACE)
    gaussian = CertifiedCurator(epsilon, _DELTA, noise=RowNoise.GAUSSIAN, rows=10_000)
    yield Cell(laplace, narrow)
    yield Cell(laplace, theory)
    yield Cell(gaussian, narrow)
    yield Cell(gaussian, theory)
    noisy = Hyperparameters(_LENGTH, noise_variance=_MODEL_NOISE)
    yield Cell(gaussian, Modeller(noisy, inputs=InputModel.DEBIASED))
    yield Cell(gaussian, Modeller(noisy, inputs=InputModel.ORDINARY))


def real_cells(setting: Setting) -> list[Cell]:
    """The real data: r = 15, hyperparameters by maximum likelihood on what was released."""
    columns, steps = (2, 100) if setting is Setting.PROPERTIES else (3, 50)
    exponents = (0.5, 1.0, 2.8) if setting is Setting.PROPERTIES else (1.0, 2.0, 2.9)
    delta = 1e-4 if setting is Setting.PROPERTIES else _DELTA
    modeller = Modeller(None, steps=steps)
    narrow = Modeller(None, steps=steps, width_multiplier=_WIDTH)
    cells = [Cell(None, modeller), Cell(None, narrow)]
    for exponent in exponents:
        epsilon = math.exp(exponent)
        cells.append(Cell(Curator(epsilon, delta, 15, columns), modeller))
        cells.append(Cell(CertifiedCurator(epsilon, delta, 15, columns), modeller))
        cells.append(Cell(CertifiedCurator(epsilon, delta, 15, columns), narrow))
    return cells
