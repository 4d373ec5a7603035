"""Loops that go around the ledger, and trainings that break off."""

import math
from dataclasses import replace

import pytest
import torch
from opacus import PrivacyEngine
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Sampler, SubsetRandomSampler, TensorDataset

from dpaudit import (
    Ledger,
    Plan,
    PoissonSampling,
    ReplaceOne,
    Severity,
    UnsupportedError,
    Verdict,
    ZeroOut,
)
from dpaudit.training.opacus import PoissonLoader, attach
from dpaudit.training.opacus.batches import BatchStream

# -- trainings that draw or use batches otherwise than their plan says must stay unproven ----------


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SIZE, BATCH, STEPS = 40, 8, 5


def poisson(**settings):
    base = {"noise_multiplier": 1.0, "sample_rate": 0.2, "epochs": 1, "relation": ZeroOut()}
    return Plan.dp_sgd(**base | settings)


def disjoint():
    return Plan.dp_sgd(noise_multiplier=1.0, epochs=1, steps=STEPS, batching="disjoint")


def arbitrary():
    return Plan.dp_sgd(noise_multiplier=1.0, steps=STEPS, batching="arbitrary", relation=ZeroOut())


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x).squeeze(1), y).backward()
    optimizer.step()


def every(model, optimizer, loader):
    for batch in loader:
        step(model, optimizer, *batch)


def run(plan, train=every, *, watched=True, size=SIZE, batch=BATCH, sampled=True, **loading):
    model = nn.Linear(4, 1)
    data = TensorDataset(torch.randn(size, 4), torch.randn(size))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, **{"batch_size": batch} | loading),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=sampled,
    )
    training = attach(optimizer, Ledger(plan), loader if watched else None)
    train(model, optimizer, loader)
    certificate = training.certificate(1e-5)
    errors = {each.rule for each in certificate.findings if each.severity is Severity.ERROR}
    assert (certificate.verdict is Verdict.UNPROVEN) is bool(errors)
    return errors


@pytest.mark.parametrize("plan", [poisson(), arbitrary()])
def test_honest_trainings_are_certified(plan):
    assert not run(plan)


@pytest.mark.parametrize("sampled", [True, False])
def test_no_loader_draws_fresh_subsets(sampled):
    plan = Plan.dp_sgd(
        noise_multiplier=1.0,
        steps=STEPS,
        batching="subsets",
        batch_size=BATCH,
        dataset_size=1_000_000,
        relation=ReplaceOne(),
    )
    assert run(plan, sampled=sampled) == {"sampling-differs"}


def repeatedly(wanted, steps):
    def train(model, optimizer, loader):
        done = 0
        while done < steps:
            for x, y in loader:
                if done < steps and wanted(x, loader):
                    step(model, optimizer, x, y)
                    done += 1

    return train


def test_empty_batches_may_not_be_skipped():
    plan = poisson(sample_rate=0.05, epochs=None, steps=100)
    train = repeatedly(lambda x, _: len(x) > 0, 100)
    assert run(plan, train, size=20, batch=1) >= {"batches-left-out"}


def test_batches_may_not_be_chosen():
    def holds_the_first(x, loader):
        return bool((x[:, 0] == loader.dataset.tensors[0][0, 0]).any())

    train = repeatedly(holds_the_first, 20)
    assert run(poisson(epochs=None, steps=20), train) >= {"batches-left-out"}


def test_a_sampler_that_pads_its_batches_is_found(monkeypatch):
    def padded(sampler):
        for _ in range(sampler.steps):
            yield torch.randperm(sampler.num_samples)[:BATCH].tolist()

    train = repeatedly(lambda x, _: True, 30)
    plan = poisson(epochs=None, steps=30)
    assert not run(plan, train)
    monkeypatch.setattr(UniformWithReplacementSampler, "__iter__", padded)
    assert run(plan, train) == {"batches-not-poisson"}


def test_to_stop_early_or_to_begin_again_leaves_nothing_out():
    def train(model, optimizer, loader):
        for _ in range(2):
            for batch in list(loader)[:3]:
                step(model, optimizer, *batch)

    assert not run(poisson(epochs=None, steps=6), train)


def test_however_many_batches_wait_those_before_the_one_used_are_left_out():
    stream = BatchStream(None)
    for size in range(5003):
        stream.draw(size)
    stream.use(3, 1)
    assert stream.left_out == 3


def test_every_phase_is_compared_with_the_loader():
    phases = poisson(epochs=None, steps=[1, 4], noise_multiplier=[1.0, 1.0]).invocations
    assert len(phases) == 2
    second = replace(phases[1], sampling=PoissonSampling(1e-4))
    assert run(Plan.of(phases[0], second)) == {"sample-rate-differs"}


@pytest.mark.parametrize("indices", [[0] * SIZE, [*range(SIZE - 1), -SIZE]])
def test_repeated_indices_are_repeated_units(indices):
    sampler = SubsetRandomSampler(indices)
    assert run(disjoint(), sampled=False, sampler=sampler) == {"repeated-units"}


def test_a_batch_of_copies_is_no_drawn_batch():
    def train(model, optimizer, loader):
        for x, y in loader:
            step(model, optimizer, torch.cat([x] * 5), torch.cat([y] * 5))

    assert run(arbitrary(), train, sampled=False) == {"batch-not-fresh"}


@pytest.mark.parametrize("before", [True, False])
def test_the_rate_may_not_change_later(before):
    def train(model, optimizer, loader):
        if before:
            loader.batch_sampler.sample_rate = 0.95
        for batch in loader:
            step(model, optimizer, *batch)
            loader.batch_sampler.sample_rate = 0.95

    assert run(poisson(), train) == {"loader-changed"}


def test_the_number_of_units_may_not_change_later():
    def train(model, optimizer, loader):
        loader.batch_sampler.num_samples = SIZE // 2
        every(model, optimizer, loader)

    assert run(poisson(), train) == {"loader-changed"}


class Unknown(Sampler):
    def __iter__(self):
        return iter(range(SIZE))

    def __len__(self):
        return SIZE


@pytest.mark.parametrize(
    ("plan", "wrong"),
    [(poisson(), {"sampling-not-observed"}), (disjoint(), {"sampling-not-observed"})],
)
def test_an_unknown_sampler_proves_no_claim(plan, wrong):
    assert run(plan, sampled=False, sampler=Unknown()) == wrong
    assert run(plan, sampled=False, watched=False) == wrong


def test_an_unknown_sampler_suffices_where_nothing_is_claimed():
    assert not run(arbitrary(), sampled=False, sampler=Unknown())


# --  ----------------------------------------------------------------------------------------------


ROWS, LONG, PLANNED = 8, 5, 8


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
    declared = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=rate, steps=PLANNED)
    engine, criterion = PrivacyEngine(), nn.CrossEntropyLoss()
    training = attach(engine, Ledger(declared), expected_batch_size=2)
    parts = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=PoissonLoader(data, sample_rate=rate, steps=PLANNED),
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
    assert training.certificate(1e-5).verdict is Verdict.CERTIFIED


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
    assert training.certificate(1e-5).verdict is Verdict.CERTIFIED


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
