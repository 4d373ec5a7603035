"""Ghost clipping: the loss clips, and the ledger sees that nothing else made the gradients."""

import copy

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus_trainings import attached, certified, labelled_rows, verdict
from torch import nn

from dpaudit import InputError, Ledger, Plan, PlanMismatchError, Verdict
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.training.opacus import attach

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SIZE, BATCH = 60, 10


def plan(**settings):
    base = {"noise_multiplier": 1.0, "sample_rate": BATCH / SIZE, "epochs": 1}
    return Plan.dp_sgd(**base | settings)


DECLARED = plan()


def made(mode="ghost", noise=None, plan=DECLARED, model=None, norm=1.0, **settings):
    """A training, and what ``make_private`` gave it."""
    model = model or nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    criterion = nn.CrossEntropyLoss()
    settings |= {"criterion": criterion, "grad_sample_mode": mode, "max_grad_norm": norm}
    return attached(Ledger(plan, noise=noise), model, labelled_rows(SIZE), BATCH, **settings)


def train(parts, loader=None):
    model, optimizer, *criterion, own = parts
    loss = criterion[0] if criterion else nn.CrossEntropyLoss()
    for x, y in loader or own:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_ghost_training_is_certified_as_any_other(wrapped):
    model = nn.Linear(4, 2)
    training, parts = made(model=model, wrap_model=wrapped)
    train(parts if wrapped else (model, *parts[1:]))
    assert len(training.ledger) == len(training.steps) == SIZE // BATCH
    certificate = certified(training)
    assert certificate.verdict is Verdict.CERTIFIED
    other, usual = made("hooks")
    train(usual)
    assert certificate.guarantee.epsilon == certified(other).guarantee.epsilon
    sizes = [each.actual_batch_size for each in training.steps]
    assert sizes == [each.actual_batch_size for each in other.steps]


def test_the_values_before_noise_are_those_of_clipping_by_example():
    start = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    values = []
    for mode in ("ghost", "hooks"):
        torch.manual_seed(3)
        noise = RecordingNoise(np.random.default_rng(0))
        _, parts = made(
            mode, noise, model=copy.deepcopy(start), norm=0.5, plan=plan(max_grad_norm=0.5)
        )
        train(parts)
        values.append([step.value for step in noise.steps])
    assert len(values[0]) == SIZE // BATCH
    for ghost, usual in zip(*values, strict=True):
        np.testing.assert_allclose(ghost, usual, atol=2e-5)


def test_virtual_steps_of_ghost_clipping_count_once():
    training, parts = made()
    with BatchMemoryManager(
        data_loader=parts[-1], max_physical_batch_size=4, optimizer=parts[1]
    ) as small:
        train(parts, small)
    training.ledger.check()
    assert len(training.ledger) == SIZE // BATCH
    assert max(each.physical_batches for each in training.steps) > 1
    assert verdict(training) is Verdict.CERTIFIED


def usual_loss(model, optimizer, criterion, x, y):
    nn.functional.cross_entropy(model(x), y).backward()


def added(model, optimizer, criterion, x, y):
    """A penalty, which nobody clips."""
    criterion(model(x), y).backward()
    sum(p.square().sum() for p in model.parameters()).backward()


def scaled(model, optimizer, criterion, x, y):
    criterion(model(x), y).backward()
    for p in optimizer.params:
        p.grad *= 100


def written(model, optimizer, criterion, x, y):
    """Past the counters of torch."""
    criterion(model(x), y).backward()
    for p in optimizer.params:
        p.grad.data *= 100


def replaced(model, optimizer, criterion, x, y):
    criterion(model(x), y).backward()
    optimizer.params[0].grad = x.sum() * torch.ones_like(optimizer.params[0])


def emptied(model, optimizer, criterion, x, y):
    criterion(model(x), y).backward()
    optimizer.zero_grad(set_to_none=True)


def twice(model, optimizer, criterion, x, y):
    criterion(model(x), y).backward()
    optimizer.step()


def unclipped(model, optimizer, criterion, x, y):
    model.get_clipping_coef = lambda: torch.ones(len(x))
    criterion(model(x), y).backward()


def started(model, optimizer, criterion, x, y):
    """The second pass begins with something in the gradients."""
    clean, optimizer.zero_grad = optimizer.zero_grad, lambda: None
    optimizer.params[0].grad = x.sum() * torch.ones_like(optimizer.params[0])
    criterion(model(x), y).backward()
    optimizer.zero_grad = clean


WRONG = [usual_loss, added, scaled, written, replaced, emptied, twice, unclipped, started]


@pytest.mark.parametrize("wrong", WRONG)
def test_gradients_of_another_making_are_refused_before_noise(wrong):
    training, (model, optimizer, criterion, loader) = made()
    x, y = next(iter(loader))
    before = [p.detach().clone() for p in model.parameters()]
    done = int(wrong is twice)
    optimizer.zero_grad()
    wrong(model, optimizer, criterion, x, y)
    middle = before if not done else [p.detach().clone() for p in model.parameters()]
    with pytest.raises(PlanMismatchError, match="not those that ghost clipping summed"):
        optimizer.step()
    assert len(training.ledger) == done
    assert all(map(torch.equal, middle, model.parameters()))


def penalised(model, optimizer, criterion, x, y):
    """Common code, whose penalty opacus adds to the loss of every row."""
    (criterion(model(x), y) + 0.1 * sum(p.square().sum() for p in model.parameters())).backward()


def used_again(model, optimizer, criterion, x, y):
    weight = model._module[2].weight
    criterion(model(x) + nn.functional.linear(x[:, :3], weight), y).backward()


def hooked(model, optimizer, criterion, x, y):
    optimizer.params[0].register_hook(lambda gradient: 100 * gradient)
    criterion(model(x), y).backward()


@pytest.mark.parametrize("wrong", [penalised, used_again, hooked])
def test_what_no_norm_tells_of_is_refused_before_it_is_summed(wrong):
    training, (model, optimizer, criterion, loader) = made()
    x, y = next(iter(loader))
    optimizer.zero_grad()
    with pytest.raises(PlanMismatchError, match=r"outside its layer|has a hook"):
        wrong(model, optimizer, criterion, x, y)
    with pytest.raises((PlanMismatchError, AttributeError, TypeError)):
        optimizer.step()
    assert not len(training.ledger)


def test_losses_may_be_scaled_and_added():
    training, (model, optimizer, criterion, loader) = made()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        ((2 * loss + loss / 4 - 1) * 0.5).backward()
        optimizer.step()
    assert verdict(training) is Verdict.CERTIFIED


def test_another_noise_than_that_of_the_multiplier_is_refused():
    training, parts = made()
    parts[1]._adjusted_noise_multiplier = 1e-6
    with pytest.raises(PlanMismatchError, match="another noise multiplier"):
        train(parts)
    assert not len(training.ledger)


@pytest.mark.parametrize("which", ["module", "optimizer"])
def test_loss_and_noise_have_one_norm(which):
    training, (model, optimizer, criterion, loader) = made()
    (model if which == "module" else optimizer).max_grad_norm = 2.0
    with pytest.raises(PlanMismatchError, match="clip norm"):
        train((model, optimizer, criterion, loader))
    assert not len(training.ledger)


class Branching(nn.Module):
    """Uses its second layer now and then."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.whole = nn.Linear(4, 2), nn.Linear(2, 2), True

    def forward(self, x):
        return self.second(self.first(x)) if self.whole else self.first(x)


def test_norms_of_an_earlier_batch_clip_nothing():
    model = Branching()
    _, (wrapped, optimizer, criterion, loader) = made(model=model)
    x, y = next(iter(loader))
    for whole in (True, False):
        model.whole = whole
        optimizer.zero_grad()
        loss = criterion(wrapped(x), y)
        if whole:
            loss.backward()
            optimizer.step()
        else:
            with pytest.raises(PlanMismatchError, match="norms of an earlier batch"):
                loss.backward()


def test_an_optimizer_without_its_model_is_refused():
    _, parts = made()
    model = nn.Linear(4, 2)
    _, optimizer, *_ = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=nn.CrossEntropyLoss(),
        data_loader=parts[-1],
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
    )
    with pytest.raises(InputError, match="attach the PrivacyEngine"):
        attach(optimizer, Ledger(plan()))
