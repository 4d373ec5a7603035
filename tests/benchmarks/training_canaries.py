"""What canaries show of a training by a loss of one example, beside what is certified.

Run ``python -m tests.benchmarks.training_canaries [canaries] [seeds]``. Each canary has a gradient
along a coordinate of its own, as long as the clip norm, as in ``python -m audits.opacus --audits``;
bounds hold at 99 %, whatever the training does, or if its curve is that of its plan at some noise.
The second lines are a control: a training with a third of the noise that it declares.
"""

from __future__ import annotations

import sys
import warnings
from statistics import median

import torch

from audits.opacus.audited import NETWORKS, Fit, Setting
from audits.opacus.audits import gradients


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
