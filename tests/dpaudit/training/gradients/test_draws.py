"""What a loss draws is secret on each kind of device, and the generators are put back."""

from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch

from dpaudit.training.gradients.draws import drawn_by


class OwnGenerator:
    """As ``torch.mps`` has one."""

    def __init__(self):
        self.state = "of the script"

    def get_rng_state(self):
        return self.state

    def set_rng_state(self, state):
        self.state = state

    def manual_seed(self, seed):
        self.state = seed


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_devices_with_a_generator_of_their_own_are_seeded_too(kind, monkeypatch):
    """A script that seeds torch seeds these; masks that follow from it move with who joins."""
    own = OwnGenerator()
    monkeypatch.setattr(torch, kind, own)
    with suppress(ZeroDivisionError), drawn_by(5, SimpleNamespace(type=kind)):
        assert own.state == 5
        assert torch.initial_seed() == 5
        raise ZeroDivisionError
    assert own.state == "of the script"


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_torch_has_what_these_devices_are_seeded_by(kind):
    own = getattr(torch, kind)
    assert all(map(callable, (own.get_rng_state, own.set_rng_state, own.manual_seed)))


def test_the_generator_of_the_processor_is_as_it_was():
    torch.manual_seed(3)
    with drawn_by(5, torch.device("cpu")):
        assert torch.initial_seed() == 5
        torch.rand(7)
    assert torch.initial_seed() == 3
