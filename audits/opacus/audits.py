"""How far the certified ε of trainings lies above what audits show of them, and what that costs.

Attacks range from one threshold on the losses of canaries to the likelihood ratio of whole
gradients, and from many trainings to a single one. A line of the table gives the bounds of several
seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path as Folder
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

from audits.opacus.audited import (
    CLASSES,
    NETWORKS,
    PATHS,
    PIXELS,
    PLAIN,
    JaxPath,
    Path,
    Setting,
    digits,
    rows,
)
from audits.opacus.reachable import chance
from audits.result_table import render
from dpaudit import privacy_curve
from dpaudit.auditing.distinguishing.design import pilot_size
from dpaudit.auditing.evidence.events import Event, expected_lower_bound
from dpaudit.auditing.evidence.two_counts import joint_lower_bound
from dpaudit.training.membership import audit_scores

Floats = NDArray[np.float64]
_GRID = np.linspace(0.01, 12.0, 240)
_NOISES = np.geomspace(0.5, 8.0, 70)
"""Of the declared noise; each is 4 % above the one before."""


@dataclass(frozen=True)
class LowerBounds:
    """Lower bounds on ε, each at the stated confidence.

    Attributes:
        free: whatever the training does.
        family: if its curve is that of its plan with noise of some scale.
    """

    free: float
    family: float


def lower_bounds(
    members: Floats, others: Floats, setting: Setting, *, confidence: float = 0.95
) -> LowerBounds:
    """Of scores (n,) of canaries that were in the data, and of as many that were not.

    The plan's own law chooses the threshold of the first bound, so that all scores test it; for the
    second one a tenth of them does.
    """
    free = _event(members, others, setting, confidence)
    return LowerBounds(free, _noise(members, others, setting, confidence))


def _event(members: Floats, others: Floats, setting: Setting, confidence: float) -> float:
    """From an event of large scores, for which a high bound is expected in nearly each audit."""
    likelier, other = _expected(setting)
    thresholds = np.quantile(likelier, np.linspace(0.02, 0.999, 400))
    p, q = (
        (np.searchsorted(np.sort(-side), -thresholds, side="right") + 0.5) / (side.size + 1)
        for side in (likelier, other)
    )
    margin = -2 * float(ndtri(1 - confidence)) * members.size**-0.5
    best = int(expected_lower_bound(p, q, setting.delta, margin).argmax())
    event = Event(lower=float(thresholds[best]))
    return joint_lower_bound(event.count(members, others), setting.delta, confidence)


@cache
def _expected(setting: Setting) -> tuple[Floats, Floats]:
    """Scores of members and of others, drawn by the plan's own law."""
    drawing, shape = np.random.default_rng(0), (100_000, setting.batches * setting.epochs)
    drawn = drawing.random(shape) < 1 / setting.batches
    noise = (drawing.normal(0, setting.noise, shape) for _ in range(2))
    return setting.likelihood(drawn + next(noise)), setting.likelihood(next(noise))


def _noise(members: Floats, others: Floats, setting: Setting, confidence: float) -> float:
    """ε of the plan at the largest noise that one threshold does not contradict.

    At most TPR ≤ e^ε FPR + δ(ε) for every ε, with Clopper-Pearson ends of both rates.
    """
    cut = pilot_size(members.size)
    places = np.sort(np.concatenate([members[:cut], others[:cut]]))
    gains = np.searchsorted(np.sort(others[:cut]), places) - np.searchsorted(
        np.sort(members[:cut]), places
    )
    threshold = places[int(gains.argmax())]
    n, error = members.size - cut, (1 - confidence) / 2
    hits, alarms = (int((side[cut:] >= threshold).sum()) for side in (members, others))
    least = float(beta.ppf(error, hits, n - hits + 1)) if hits else 0.0
    most = float(beta.isf(error, alarms + 1, n - alarms)) if alarms < n else 1.0

    low, high = 0, len(_NOISES)
    while low < high:  # the first noise that is contradicted
        middle = (low + high) // 2
        deltas = _curve(setting, middle)
        free = bool((least <= np.exp(_GRID) * most + deltas).all())
        low, high = (middle + 1, high) if free else (low, middle)
    return 0.0 if high == len(_NOISES) else _at(setting, high).certified


def _at(setting: Setting, place: int) -> Setting:
    return replace(setting, noise=setting.noise * float(_NOISES[place]))


@cache
def _curve(setting: Setting, place: int) -> Floats:
    curve: Floats = privacy_curve(_at(setting, place).plan)(_GRID)
    return curve


AT_ONCE = 2500
"""Canaries of one training; further ones are in further trainings."""
LONG = Setting(epochs=100)
"""Long enough to remember rows by heart, where nothing is private."""


@dataclass(frozen=True)
class Row:
    """One line of the table; bounds on ε of several seeds.

    Attributes:
        training: what was trained, and how.
        certified: ε of its plan; None where nothing is private.
        audit: which one.
        free: what was shown, whatever the training does.
        family: what was shown if its curve is that of its plan at some noise; empty of none.
        seconds: of one seed.
    """

    training: str
    certified: float | None
    audit: str
    free: tuple[float, ...]
    family: tuple[float, ...]
    seconds: float


def gradients(
    path: Any, network: Callable[[], Any], setting: Setting, canaries: int, seed: int
) -> LowerBounds:
    """What canaries of one coordinate each show of a training, half of them members."""
    sides = []
    for members in (True, False):
        found = []
        for start in range(0, canaries, AT_ONCE):
            mask = np.full(min(AT_ONCE, canaries - start), members)
            found.append(_likelihoods(path, network, setting, mask, (seed, start, members)))
        sides.append(np.concatenate(found))
    return lower_bounds(*sides, setting)


def _likelihoods(
    path: Any, network: Callable[[], Any], setting: Setting, members: Any, seed: Sequence[int]
) -> Any:
    """Of each canary of one training, of which those of a mask are members."""
    own = crc32(f"{path.name} {seed}".encode())  # no two trainings have the same noise
    torch.manual_seed(own)
    data = rows(*digits(), members)
    return setting.likelihood(path.train(setting, network(), data, members.size, own)[1])


def one_run_gradients(
    path: Path, network: Callable[[], Any], setting: Setting, canaries: int, seed: int
) -> float:
    """What one training shows by the coordinates of canaries, a random half of them members."""
    members = np.random.default_rng([seed, canaries]).random(canaries) < 0.5
    scores = _likelihoods(path, network, setting, members, (seed,))
    return _told(scores, members, setting, seed)


def one_run(
    path: Path, network: Callable[[], Any], setting: Setting, canaries: int, seed: int
) -> float:
    """What one training shows by its losses on random pictures with random labels."""
    drawing = np.random.default_rng([seed, canaries])
    x = torch.tensor(drawing.random((canaries, PIXELS)), dtype=torch.float32)
    y = torch.tensor(drawing.integers(0, CLASSES, canaries))
    members = drawing.random(canaries) < 0.5
    own = digits()
    pixels, labels = torch.cat([own[0], x[members]]), torch.cat([own[1], y[members]])
    data = rows(pixels, labels, np.zeros(0, dtype=bool))
    noise = crc32(f"{path.name} {seed}".encode())
    torch.manual_seed(noise)
    model, _ = path.train(setting, network(), data, 0, noise)
    with torch.no_grad():
        losses = torch.nn.functional.cross_entropy(model(x), y, reduction="none")
    return _told(-losses.double().numpy(), members, setting, seed)


def _told(scores: Any, members: Any, setting: Setting, seed: int) -> float:
    """The bound of one run, which supposes nothing of the training."""
    about = {"epsilon": setting.certified, "delta": setting.delta}
    return audit_scores(scores, members, seed=seed, **about).epsilon_lower


def measure_trainings(*, seeds: int, canaries: int, guesses: int) -> Iterator[Row]:
    """All lines of the table.

    Args:
        seeds: of each.
        canaries: with and without, of the audit by gradients.
        guesses: canaries of the audit by losses.
    """
    setting = Setting()
    paths = (*PATHS, *([JaxPath()] if find_spec("jax_privacy") else []), PLAIN)
    for name, network in NETWORKS.items():
        for path in paths:
            if isinstance(path, JaxPath) and name != "CNN":
                continue
            certified = setting.certified if path is not PLAIN else None
            begin = time.perf_counter()
            found = [gradients(path, network, setting, canaries, seed) for seed in range(seeds)]
            each = (time.perf_counter() - begin) / seeds
            family = tuple(one.family for one in found) if certified else ()
            said = f"{name}, {path.name}"
            free = tuple(one.free for one in found)
            kind = f"gradients, {canaries} in, {canaries} out"
            yield Row(said, certified, kind, free, family, each)
            if isinstance(path, JaxPath):
                continue
            runs = [("losses", one_run, setting if certified else LONG)]
            runs.append(("gradients", one_run_gradients, setting))
            for kind, run, of in runs:
                begin = time.perf_counter()
                lows = tuple(run(path, network, of, guesses, seed) for seed in range(seeds))
                each = (time.perf_counter() - begin) / seeds
                yield Row(said, certified, f"one run, {guesses} {kind}", lows, (), each)


def table(found: Sequence[Row], seeds: int) -> str:
    """The page, but for what could be shown at all."""
    return render(Folder(__file__).parent / "trainings.md.j2", _bounds, rows=found, seeds=seeds)


def reach(setting: Setting, runs: int) -> str:
    """What audits of so many runs a side, and of more, can show at all."""

    def says(share: float, times: int = 1) -> str:
        return f"{share:.0%} in at most {chance(setting, share, times * runs):.1%}"

    some = ", ".join(says(share) for share in (0.4, 0.45, 0.5, 0.55))
    return (
        "\nNo audit can show more with so many runs. This follows from the law of the scores and "
        "the test of Neyman and Pearson against the nearest mechanism of that ε "
        f"(`audits/opacus/reachable.py`): a valid *free* bound from {runs} runs on each side "
        f"reaches this share of the certified ε in at most this share of audits: {some}. So no "
        f"audit reaches half of it every time. With {2 * runs} runs a bound reaches "
        f"{says(0.5, 2)}, and with {5 * runs} runs {says(0.5, 5)}.\n"
    )


def _bounds(bounds: tuple[float, ...], certified: float | None) -> str:
    """The least, the median and the largest, and how many times the certified ε is above."""
    if not bounds:
        return " | "
    least, middle, most = min(bounds), float(np.median(bounds)), max(bounds)
    times = f"{certified / least:.1f}" if certified and least > 0 else ""
    return f"{least:.2f} · {middle:.2f} · {most:.2f} | {times}"
