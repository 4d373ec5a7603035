"""What a loss draws of torch, as dropout does: from a generator whose seed nobody knows.

Which entry of a mask an example gets depends on who else is in its chunk. That reveals nothing
while the masks are fresh and secret. If they follow from a seed that a script has given torch, one
unit that joins gives all others the masks of their neighbours, and moves the sum by many clip
norms; and the state that is left behind shows how many chunks there were.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


def secret_seed() -> int:
    """A seed from the system's entropy."""
    return secrets.randbits(63)


def public_seed() -> int:
    """A seed by torch's own generator, for a run that is to be repeated; one number of it."""
    return int(torch.randint(2**62, ()))


@contextmanager
def drawn_by(seed: int, device: Any) -> Iterator[None]:
    """Yield with torch's generators seeded; afterwards they are as they were before.

    Args:
        seed: of all that is drawn meanwhile.
        device: that is computed on, beside the processor.
    """
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)
        for each in cuda:
            with torch.cuda.device(each):
                torch.cuda.manual_seed(seed)
        with _of_other(device, seed):
            yield


@contextmanager
def _of_other(device: Any, seed: int) -> Iterator[None]:
    """Yield with the generator of mps, xpu, … seeded, each of which has one of its own."""
    if device.type in ("cpu", "cuda"):
        yield
        return
    own = getattr(torch, device.type)
    state = own.get_rng_state()
    own.manual_seed(seed)
    try:
        yield
    finally:
        own.set_rng_state(state)
