import math

import pytest
import torch
from opacus import PrivacyEngine
from opacus_trainings import verdict
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from dpaudit import Ledger, Plan, UnsupportedError, Verdict
from dpaudit.training.opacus import PoissonLoader, attach

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
ROWS, LONG, STEPS = 8, 5, 8


class Own(nn.Module):
    """A layer with a parameter of its own, and an argument that is no tensor."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x, again):
        return x * self.scale if again else x


class Words(nn.Module):
    """Of one kind each: what opacus cannot take gradients of rows of."""

    def __init__(self, kind=""):
        super().__init__()
        self.kind, self.words, self.out = kind, nn.Embedding(9, 3), nn.Linear(3, 2)
        self.own = Own() if kind == "own" else None
        self.places = nn.Embedding(LONG, 3) if kind in ("alike", "bare", "unused") else None

    def forward(self, words):
        x = self.words(words)
        if self.kind == "own":
            x = self.own(x, True)
        if self.kind == "alike":  # for all rows
            x = x + self.places(torch.arange(LONG))
        if self.kind == "bare":
            x = x + self.places.weight
        return self.out(x.mean(1))


def made(model, mode="hooks", rate=0.2):
    drawing = torch.Generator().manual_seed(1)
    words = torch.randint(0, 9, (ROWS, LONG), generator=drawing)
    data = TensorDataset(words, torch.randint(0, 2, (ROWS,), generator=drawing))
    declared = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=rate, steps=STEPS)
    engine, criterion = PrivacyEngine(), nn.CrossEntropyLoss()
    training = attach(engine, Ledger(declared), expected_batch_size=2)
    parts = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=PoissonLoader(data, sample_rate=rate, steps=STEPS),
        criterion=criterion,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    return training, parts[0], parts[1], parts[2] if len(parts) == 4 else criterion, parts[-1]


def train(model, optimizer, criterion, loader, half=False):
    for words, labels in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            loss = criterion(model(words), labels)
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize(
    ("kind", "named"),
    [("own", "a Own"), ("alike", "places.weight"), ("bare", "places"), ("unused", "places.weight")],
)
def test_a_layer_without_gradients_of_rows_is_named_before_anything_is_charged(kind, named):
    torch.manual_seed(0)
    training, *parts = made(Words(kind))
    with pytest.raises(UnsupportedError, match=rf"of rows for {named}.*freeze it"):
        train(*parts)
    assert not len(training.ledger)
    model = Words(kind)
    (model.own or model.places).requires_grad_(requires_grad=False)
    training, *parts = made(model)
    train(*parts)
    assert verdict(training) is Verdict.CERTIFIED


def test_a_step_without_gradients_says_so():
    training, _, optimizer, *_ = made(Words())
    with pytest.raises(UnsupportedError, match=r"no gradients of rows for words\.weight"):
        optimizer.step()
    assert not len(training.ledger)


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_empty_batches_of_words(mode):
    torch.manual_seed(2)
    training, *parts = made(Words(), mode)
    train(*parts)
    assert 0 in [each.actual_batch_size for each in training.steps]
    assert verdict(training) is Verdict.CERTIFIED


def test_half_precision_is_clipped_to_the_clip_norm():
    """By norms that opacus rounds to eight bits, a row moves the sum by up to 1.007."""
    torch.manual_seed(0)
    _, model, optimizer, _, loader = made(Words())
    for words, labels in zip(*loader.dataset.tensors, strict=True):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = 99 * cross_entropy(model(words[None]), labels[None])
        loss.backward()
        for p in optimizer.params:
            assert p.dtype == torch.float32
        optimizer.pre_step()
        moved = math.sqrt(
            sum(float(p.summed_grad.double().square().sum()) for p in optimizer.params)
        )
        assert moved == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(("mode", "whole"), [("hooks", True), ("ghost", True), ("ghost", False)])
def test_sums_in_half_precision_are_refused(mode, whole):
    """Their rounding moves them by more than a row is clipped to."""
    torch.manual_seed(0)
    training, *parts = made(Words().bfloat16() if whole else Words(), mode, rate=1.0)
    with pytest.raises(UnsupportedError, match=r"torch\.bfloat16.*torch\.float32"):
        train(*parts, half=not whole)
    assert not len(training.ledger)
