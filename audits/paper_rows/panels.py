"""Which curves stand in one picture, as in the papers' own panels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from audits.paper_rows.experiments import experiments
from audits.paper_rows.experiments.federated import FLAT, SCATTERED
from audits.paper_rows.experiments.joint import ALPHAS, BETAS, NON_PRIVATE, figure_label
from audits.paper_rows.experiments.local import ALL_PANELS, THETAS, label
from audits.paper_rows.experiments.outsourced import CLEAR, EXPONENTS, TABLES, certified_label
from audits.paper_rows.experiments.outsourced import label as curator_label
from audits.paper_rows.pictures import Line, drawn
from audits.paper_rows.recording import Recording
from private_bo.local.experiments.panels import Algorithm

__all__ = ["pictures_of"]

_TREND_Q = ("q = 0.15", "S = 11", "q = 0.5", "TS")
_TREND_Z = ("z = 1.5", "z = 1.2", "S = 11", "TS")
_RENAMED = {"S = 11": "S = 11, q = 0.25, z = 1", "S = 16": "S = 16, q = 0.25, z = 1"}


def _local() -> Iterator[tuple[str, Iterable[str]]]:
    for letter, panel in ALL_PANELS.items():
        figure = f"Figure 2 {letter}" if letter.islower() else f"Figure 3 {letter.lower()}"
        private = "no privacy" if panel.epsilon is None else f"ε = {panel.epsilon:g}"
        cells = [label(letter, algorithm) for algorithm in (*Algorithm, None)]
        yield f"{figure}: {panel.title}, {private}", cells


def _weibull() -> Iterator[tuple[str, Iterable[str]]]:
    for theta in THETAS:
        hows = ("at (ln t)^θ", "at t^(1/4)", "uniform play")
        yield f"Section 4.3, θ = {theta:g}", [f"{how}, θ = {theta:g}" for how in hows]


def _outsourced(name: str) -> Iterator[tuple[str, Iterable[str]]]:
    dimension, exponents = EXPONENTS[name]
    figure = {"grid": "Figure 2 a", "loans": "Figure 2 b", "properties": "Figure 2 c"}
    cells = [CLEAR, *(curator_label(exponent, dimension) for exponent in exponents)]
    title = f"{figure.get(name, 'Appendix A')}: {name}, r = {dimension}"
    yield title, [*cells, *map(certified_label, exponents[:1])]


def _joint() -> Iterator[tuple[str, Iterable[str]]]:
    for noise, of in (("paper", "Section 6.1's noise"), ("tight", "calibrated noise")):
        by_alpha = [figure_label(noise, alpha, 0.1) for alpha in ALPHAS]
        yield f"Figure 1, {of}", [*by_alpha, NON_PRIVATE, "uniform play"]
        by_beta = [figure_label(noise, 1.0, beta) for beta in BETAS]
        yield f"Figure 2, {of}", [*by_beta, NON_PRIVATE]


def _table() -> Iterator[tuple[str, Iterable[str]]]:
    for name in ("camelback", "styblinski-tang-20", "michalewicz-10"):
        tight = [f"{name}, tight noise, α = {alpha}" for alpha in ("0.1", "1", "10")]
        yield f"Table 1: {name}", [*tight, f"{name}, {NON_PRIVATE}", f"{name}, uniform play"]


def _functions(name: str) -> Iterator[tuple[str, Iterable[str]]]:
    of = "" if name == "synthetic" else ", rugged"
    own = "S = 11" if name == "synthetic" else "S = 16"
    clips = [3, 5.5, 11, 22, 44] if name == "synthetic" else [4, 8, 16, 32, 64]
    regions = ["FTS", *(f"FTS-DE, P = {p}" for p in (2, 4, 8))]
    yield f"Figure 2 a{of}", ["TS", "FTS", "FTS-DE, P = 2", "FTS-DE, P = 4"]
    yield f"Figure 2 b{of}", [f"S = {clip:g}" for clip in clips]
    yield f"Figure 2 c{of}", [own if each == "S = 11" else each for each in _TREND_Q]
    yield f"Figure 2 d{of}", [own if each == "S = 11" else each for each in _TREND_Z]
    yield f"Figure 4{of}", ["DP-FTS, P = 1", "DP-FTS-DE, P = 2", own]
    yield f"Figure 5{of}", ["FTS-DE, P = 4", FLAT, SCATTERED, "FTS"]
    yield f"Figure 6{of}", regions


def _heterogeneous() -> Iterator[tuple[str, Iterable[str]]]:
    decays = ("1/sqrt(t)", "1/t", "1/t^2")
    yield "Figure 7: little in common", ["TS", *(f"FTS-DE, 1 − p = {each}" for each in decays)]


def _tuning(name: str) -> Iterator[tuple[str, Iterable[str]]]:
    letter = {"landmines": "Figure 3 d: landmines"}.get(name, "In place of Figure 3 e, f: digits")
    yield letter, ["TS", "FTS", "FTS-DE, P = 4", "z = 1", "z = 4", "q = 0.1"]
    yield f"Figure 3, z: {name}", ["z = 1", "z = 1.6", "z = 2", "z = 3", "z = 4", "TS"]
    yield (
        f"Figures 8 to 11: {name}",
        [
            *(
                "z = 1",
                "DP-FTS, P = 1",
                "DP-FTS-DE, P = 2",
                "DP-FTS-DE, a = 5",
                "DP-FTS-DE, a = 30",
            ),
            "fixed-size sampling",
        ],
    )


def _shown(name: str) -> Iterator[tuple[str, Iterable[str]]]:
    kind, _, rest = name.partition("-")
    if name == "local-panels":
        return _local()
    if name == "local-sub-weibull":
        return _weibull()
    if kind == "outsourced":
        return _outsourced(rest)
    if kind == "joint":
        return _joint() if rest == "figures" else _table()
    if rest == "heterogeneous":
        return _heterogeneous()
    return _tuning(rest) if rest in ("landmines", "digits") else _functions(rest)


def pictures_of(records: Mapping[str, Recording], name: str) -> Iterator[str]:
    """The pictures of one experiment; none where there is no record of it."""
    record = records.get(name)
    if record is None:
        return
    known = experiments()[name]
    for title, cells in _shown(name):
        # A cell of equal settings is recorded once, under its first label.
        lines = [Line.of(_name(cell), record.cells[cell]) for cell in cells if cell in record.cells]
        if lines:
            yield drawn(title, lines, known.rounds, known.regret)
    for exponent, printed in TABLES.get(name.removeprefix("outsourced-"), {}).items():
        yield _table_of_r(record, exponent, printed)


def _name(cell: str) -> str:
    """Without the panel that all curves of a picture share."""
    return _RENAMED.get(cell, cell.split(": ", 1)[-1])


def _table_of_r(record: Recording, exponent: float, printed: Iterable[tuple[int, float]]) -> str:
    """Regret against r, with what the paper prints."""
    pairs = list(printed)
    r = np.array([float(each) for each, _ in pairs])
    found = [record.cell(curator_label(exponent, each)).regret for each, _ in pairs]
    ours = Line("ours", r, *np.array(found).T)
    paper = Line("printed", r, np.array([value for _, value in pairs]), dashed=True)
    number = [key for table in TABLES.values() for key in table].index(exponent) + 1
    return drawn(f"Table {number}: ε = e^{exponent:g}", [ours, paper], "r", "simple regret")
