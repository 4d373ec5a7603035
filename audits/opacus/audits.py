"""How far the certified ε of trainings lies above what audits show of them, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path as Folder
from typing import Any
from zlib import crc32

import numpy as np
import torch

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
from audits.opacus.shown import Shown, shown
from audits.result_table import render
from dpaudit.training.membership import audit_scores

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
) -> Shown:
    """What canaries of one coordinate each show of a training, half of them members."""
    sides = []
    for members in (True, False):
        found = []
        for start in range(0, canaries, AT_ONCE):
            mask = np.full(min(AT_ONCE, canaries - start), members)
            found.append(_likelihoods(path, network, setting, mask, (seed, start, members)))
        sides.append(np.concatenate(found))
    return shown(*sides, setting)


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


def measured(
    *, seeds: int, canaries: int, guesses: int, paths: Sequence[Any] | None = None
) -> Iterator[Row]:
    """All lines of the table.

    Args:
        seeds: of each.
        canaries: with and without, of the audit by gradients.
        guesses: canaries of the audit by losses.
        paths: private ways to train; all that are installed where not given.
    """
    setting = Setting()
    if paths is None:
        paths = (*PATHS, *([JaxPath()] if find_spec("jax_privacy") else []))
    for name, network in NETWORKS.items():
        for path in (*paths, PLAIN):
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
        return f"{share:.0%} of it in at most {chance(setting, share, times * runs):.1%}"

    some = ", ".join(says(share) for share in (0.4, 0.45, 0.5, 0.55))
    return (
        "\nMore than that cannot be had of so many runs, whatever an audit computes: by the law of "
        "the scores, and the test of Neyman and Pearson against the nearest mechanism of that ε "
        f"(`audits/opacus/reachable.py`), a valid *free* bound of {runs} runs a side shows of the "
        f"certified ε {some} of audits; half of it in every one is out of reach. With "
        f"{2 * runs} runs {says(0.5, 2)}, with {5 * runs} runs {says(0.5, 5)}.\n"
    )


def _bounds(bounds: tuple[float, ...], certified: float | None) -> str:
    """The least, the median and the largest, and how many times the certified ε is above."""
    if not bounds:
        return " | "
    least, middle, most = min(bounds), float(np.median(bounds)), max(bounds)
    times = f"{certified / least:.1f}" if certified and least > 0 else ""
    return f"{least:.2f} · {middle:.2f} · {most:.2f} | {times}"
