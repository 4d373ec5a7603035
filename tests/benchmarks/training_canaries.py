"""What canaries show of a training by a loss of one example, beside what is certified.

Run ``python -m tests.benchmarks.training_canaries [canaries] [seeds]``. Each canary has a gradient
along a coordinate of its own, as long as the clip norm, as in ``python -m audits.opacus --audits``;
bounds hold at 99 %, whatever the training does, or if its curve is that of its plan at some noise.
The second lines are a control: a training with a third of the noise that it declares.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.func import functional_call

from audits.opacus.audited import NETWORKS, ROWS, Losses, Marked, Setting
from audits.opacus.audits import gradients
from dpaudit import FloatNoise, Ledger
from dpaudit.training import Trainer


class Less(FloatNoise):
    """A part of the noise."""

    part = 1.0

    def release(self, entry: Any, value: Any) -> Any:
        return value + self.part * (super().release(entry, value) - value)


@dataclass(frozen=True)
class Fit:
    """A way to train, as those of :mod:`audits.opacus.audited`.

    Attributes:
        name: of it.
        part: of the declared noise that is drawn.
    """

    name: str = "fit"
    part: float = 1.0

    def train(
        self, setting: Setting, network: Any, data: Any, canaries: int, seed: int
    ) -> tuple[Any, Any]:
        """The model, and what the canaries' coordinates moved by in every step."""
        model = Marked(network, canaries)
        expected, criterion = ROWS / setting.batches, Losses()

        def loss(parameters: Any, example: Any) -> Any:
            x, y = example
            return criterion(functional_call(model, parameters, (x[None],)), y[None])

        noise = Less(np.random.default_rng(seed))
        noise.part = self.part
        ledger = Ledger(setting.plan, noise=noise)
        moved = []
        for step in Trainer(loss, model, data.tensors, ledger, divisor=expected):
            moved.append(step["marks.weight"][:canaries, 0] * expected)
            with torch.no_grad():
                for name, each in model.named_parameters():
                    each -= setting.rate * step[name]
        return model.network, torch.stack(moved, dim=1).double().numpy()


def main(canaries: int, seeds: int) -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    setting, wrong = Setting(), 0
    print(f"certified ε = {setting.certified:.2f} at δ = {setting.delta:g}; {canaries} canaries")
    for name, network in NETWORKS.items():
        for way in (Fit(), Fit("fit, a third of the noise", 1 / 3)):
            found = [gradients(way, network, setting, canaries, seed) for seed in range(seeds)]
            free, family = median(one.free for one in found), median(one.family for one in found)
            exceeded = max(free, family) > setting.certified
            wrong += exceeded != (way.part < 1)
            print(f"  {name:12} {way.name:26} ε ≥ {free:.2f}, of its family {family:.2f}")
    return int(wrong > 0)


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*given, *(4000, 3)[len(given) :]))
