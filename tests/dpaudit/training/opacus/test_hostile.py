"""Trainings that draw or use batches otherwise than their plan says must stay unproven."""

from dataclasses import replace

import pytest
import torch
from opacus import PrivacyEngine
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from opacus_trainings import errors
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, Sampler, SubsetRandomSampler, TensorDataset

from dpaudit import AddRemove, Ledger, Plan, PoissonSampling, ReplaceOne, ZeroOut
from dpaudit.training.opacus import attach
from dpaudit.training.opacus.batches import BatchStream

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SIZE, BATCH, STEPS = 40, 8, 5
SHIFT = {"batches-shift", "expected-batch-depends-on-data"}


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
    return errors(training)


@pytest.mark.parametrize(
    ("plan", "sampled", "wrong"),
    [
        (poisson(), True, set()),
        (arbitrary(), True, set()),
        (disjoint(), False, set()),
        (disjoint(), True, {"loader-not-disjoint"}),
        (poisson(), False, {"loader-not-poisson"}),
        (poisson(sample_rate=0.1, epochs=None, steps=STEPS), True, {"sample-rate-differs"}),
        (poisson(relation=AddRemove()), True, {"expected-batch-depends-on-data"}),
        # of all units the batches are whole, or drawn by coins
        (poisson(sample_rate=1.0, epochs=None, steps=STEPS, relation=AddRemove()), False, SHIFT),
    ],
)
def test_batches_are_those_of_the_plan(plan, sampled, wrong):
    assert run(plan, sampled=sampled) == wrong


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


@pytest.mark.parametrize(
    "sampler",
    [
        SubsetRandomSampler([0] * SIZE),
        SubsetRandomSampler([*range(SIZE - 1), -SIZE]),
        RandomSampler(range(SIZE), replacement=True),
    ],
)
def test_units_that_are_drawn_again_are_repeated(sampler):
    assert run(disjoint(), sampled=False, sampler=sampler) == {"repeated-units"}


def of_copies(model, optimizer, loader):
    for x, y in loader:
        step(model, optimizer, torch.cat([x] * 5), torch.cat([y] * 5))


def twice(model, optimizer, loader):
    batches = list(loader)
    for at in (0, 0, 1, 1, 2):
        step(model, optimizer, *batches[at])


def test_a_batch_is_one_that_was_drawn():
    assert run(arbitrary(), of_copies, sampled=False) == {"batch-not-fresh"}
    assert "batch-not-fresh" in run(poisson(), twice)


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
    assert not run(arbitrary(), sampled=False, watched=False)
