"""What a training does beside its ledger is refused, or found."""

import copy

import opacus_trainings
import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import Ledger, Plan, PlanMismatchError, Severity, Verdict
from dpaudit.integrations.opacus import attach

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SIZE, BATCH, PASSES = 60, 10, 3
STEPS = SIZE // BATCH


def private(model=None, **loading):
    generator = torch.Generator().manual_seed(1)
    data = TensorDataset(
        torch.randn(SIZE, 4, generator=generator), torch.randn(SIZE, generator=generator)
    )
    model = model or nn.Linear(4, 1)
    return PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=BATCH, **loading),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )


def attached(parts, steps=PASSES * STEPS):
    ledger = Ledger(Plan.dp_sgd(noise_multiplier=1.0, sample_rate=BATCH / SIZE, steps=steps))
    return attach(parts[1], ledger, parts[2], expected_batch_size=BATCH)


def step(parts, x, y, between=lambda: None):
    model, optimizer, _ = parts
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x).squeeze(1), y).backward()
    between()
    optimizer.step()


def train(parts, before=lambda at: None, most=lambda turn: STEPS):
    for turn in range(PASSES):
        for at, batch in enumerate(parts[2]):
            if at == most(turn):
                break
            before(turn * STEPS + at)
            step(parts, *batch)


def errors(training):
    certificate = training.certificate(1e-5)
    found = {each.rule for each in certificate.findings if each.severity is Severity.ERROR}
    assert (certificate.verdict is Verdict.UNPROVEN) is bool(found)
    return found


def test_a_step_of_the_wrapped_optimizer_is_refused():
    parts = private()
    training = attached(parts)
    model, optimizer, loader = parts
    nn.functional.mse_loss(model(next(iter(loader))[0]).squeeze(1), torch.tensor(0.0)).backward()
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(PlanMismatchError, match="without noise"):
        optimizer.original_optimizer.step()
    assert all(map(torch.equal, before, model.parameters()))
    assert not training.steps


def test_one_noise_gives_one_step():
    parts = private()
    attached(parts)
    step(parts, *next(iter(parts[2])))
    with pytest.raises(PlanMismatchError, match="without noise"):
        parts[1].original_optimizer.step()


def test_another_optimizer_on_the_model_is_found():
    parts = private()
    training = attached(parts)
    model = parts[0]
    other = torch.optim.SGD(model.parameters(), lr=0.1)

    def trained_beside(at):
        if at == 4:
            other.step()

    train(parts, trained_beside)
    assert errors(training) == {"parameters-written-elsewhere"}


def test_another_ledger_on_the_model_is_found():
    """Each account is of its own steps; together they cost more than either says."""
    first = private()
    model, optimizer, loader = first
    beside = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        expected_batch_size=BATCH,
    )
    trainings = attached(first), attached((model, beside, loader))
    for at in range(PASSES):
        for batch in loader:
            step((model, (optimizer, beside)[at % 2], loader), *batch)
    assert "parameters-written-elsewhere" in {each.rule for each in trainings[0].findings()}


def by_data(model, head):
    for p in model.parameters():
        p.data.add_(1e-3)


def by_numpy(model, head):
    next(model.parameters()).detach().numpy()[...] += 1e-3


def by_another_head(model, head):
    with torch.no_grad():
        head.add_(1.0)


@pytest.mark.parametrize("write", [by_data, by_numpy, by_another_head])
def test_writes_that_torch_does_not_count_are_found(write):
    model = nn.Linear(4, 1)
    head = nn.Parameter(torch.zeros(1), requires_grad=False)
    model.register_parameter("head", head)
    engine = PrivacyEngine()
    ledger = Ledger(Plan.dp_sgd(noise_multiplier=1.0, sample_rate=BATCH / SIZE, epochs=PASSES))
    training = attach(engine, ledger, expected_batch_size=BATCH)
    data = TensorDataset(torch.randn(SIZE, 4), torch.randn(SIZE))
    parts = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD([model.weight, model.bias], lr=0.1),
        data_loader=DataLoader(data, batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    train(parts, lambda at: write(model, head) if at == 4 else None)
    assert errors(training) == {"parameters-written-elsewhere"}


class Counted(nn.Module):
    """Counts the rows that it sees, in integers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        self.rows += len(x)
        return x


def test_a_buffer_of_integers_that_counts_rows_is_found():
    ledger = Ledger(Plan.dp_sgd(noise_multiplier=1.0, sample_rate=BATCH / SIZE, epochs=PASSES))
    model = nn.Sequential(nn.Linear(4, 2), Counted())
    training, parts = opacus_trainings.attached(
        ledger, model, opacus_trainings.labelled_rows(SIZE), BATCH
    )
    model, optimizer, loader = parts
    for _ in range(PASSES):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert errors(training) == {"parameters-written-elsewhere"}


def test_a_step_by_hand_is_found():
    parts = private()
    training = attached(parts)
    model, optimizer, loader = parts
    for _ in range(PASSES):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x).squeeze(1), y).backward()
            optimizer.pre_step()
            with torch.no_grad():
                for p in optimizer.params:
                    p -= 0.1 * p.summed_grad
    assert errors(training) == {"parameters-written-elsewhere"}


def back_again(optimizer):
    for p in optimizer.params:
        p.grad = p.summed_grad.clone()


def test_gradients_stay_as_the_noise_left_them():
    parts = private()
    training = attached(parts)
    parts[1].attach_step_hook(back_again)
    before = [p.detach().clone() for p in parts[0].parameters()]
    with pytest.raises(PlanMismatchError, match="changed after their noise"):
        step(parts, *next(iter(parts[2])))
    assert all(map(torch.equal, before, parts[0].parameters()))
    assert len(training.steps) == 1


@pytest.mark.parametrize("how", ["between parts", "wrapped", "infinite"])
def test_sums_stay_as_they_were_clipped(how):
    parts = private()
    training = attached(parts)
    _, optimizer, loader = parts
    x, y = next(iter(loader))
    own = optimizer.clip_and_accumulate
    if how == "wrapped":

        def larger():
            own()
            for p in optimizer.params:
                p.summed_grad.data *= 100

        optimizer.clip_and_accumulate = larger
    if how == "infinite":
        x = x.clone()
        x[0] = float("inf")
    if how == "between parts":
        optimizer.signal_skip_step()
        step(parts, x[:3], y[:3])
        optimizer.zero_grad()
        for p in optimizer.params:
            p.summed_grad *= 10
        x, y = x[3:], y[3:]
    with pytest.raises(PlanMismatchError, match=r"were changed before|is not finite"):
        step(parts, x, y)
    assert not training.steps


def test_two_models_of_one_ledger_share_no_noise():
    models = [private(generator=torch.Generator().manual_seed(seed)) for seed in (3, 4)]
    one = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=BATCH / SIZE, steps=STEPS, at="one")
    other = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=BATCH / SIZE, steps=STEPS, at="other")
    ledger = Ledger(Plan.of(*one.invocations, *other.invocations))
    for parts, at in zip(models, ("one", "other"), strict=True):
        training = attach(parts[1], ledger, parts[2], at=at, expected_batch_size=BATCH)
        torch.manual_seed(7)
        for batch in parts[2]:
            step(parts, *batch)
    assert "noise-repeated" in errors(training)


def test_weights_that_are_swapped_and_put_back_are_the_same():
    parts = private()
    training = attached(parts)

    def swapped(at):
        held = copy.deepcopy(parts[0].state_dict())
        parts[0].load_state_dict({name: 2 * value for name, value in held.items()})
        parts[0].load_state_dict(held)

    train(parts, swapped)
    assert not errors(training)


def test_a_refused_step_that_is_asked_for_again_repeats_nothing():
    parts = private(generator=torch.Generator().manual_seed(3))
    training = attached(parts)
    _, optimizer, loader = parts
    for at, (x, y) in enumerate(loader):
        if at == 2:
            optimizer.noise_multiplier = 0.5
            with pytest.raises(PlanMismatchError):
                step(parts, x, y)
            optimizer.noise_multiplier = 1.0
        step(parts, x, y)
    training.ledger.close()
    assert "noise-repeated" not in errors(training)


def test_a_look_at_the_batches_cuts_no_pass():
    parts = private()
    training = attached(parts)
    next(iter(parts[2]))
    for _ in range(PASSES):
        for batch in parts[2]:
            step(parts, *batch)
        assert len(list(parts[2])) == STEPS
    assert not errors(training)


def test_a_second_training_of_a_model_begins_afresh():
    parts = private()
    train(parts)
    training = attached(parts)
    train(parts)
    assert not errors(training)


def test_reading_parameters_and_averaging_copies_is_harmless():
    parts = private()
    parts[0].load_state_dict(parts[0].state_dict())
    training = attached(parts)
    average = copy.deepcopy(parts[0].state_dict())

    def averaged(at):
        for name, value in parts[0].state_dict().items():
            average[name].mul_(0.9).add_(value, alpha=0.1)

    train(parts, averaged)
    assert not errors(training)


def test_a_reseeded_generator_of_noise_is_found():
    parts = private(generator=torch.Generator().manual_seed(3))
    training = attached(parts)
    train(parts, lambda at: torch.manual_seed(7))
    assert errors(training) == {"noise-repeated"}


def test_a_reseeded_generator_of_batches_is_found():
    generator = torch.Generator().manual_seed(3)
    parts = private(generator=generator)
    training = attached(parts)
    train(parts, lambda at: generator.manual_seed(3) if at % STEPS == STEPS - 1 else None)
    assert "batches-repeated" in errors(training)


def test_a_seed_for_every_step_is_no_repetition():
    parts = private(generator=torch.Generator().manual_seed(3))
    training = attached(parts)
    train(parts, lambda at: torch.manual_seed(at))
    assert not errors(training)


def test_passes_that_end_alike_are_sampled():
    parts = private()
    training = attached(parts, steps=PASSES * 4)
    train(parts, most=lambda turn: 4)
    assert not errors(training)


def test_the_last_pass_may_be_shorter():
    parts = private()
    training = attached(parts, steps=2 * STEPS + 2)
    train(parts, most=lambda turn: 2 if turn == PASSES - 1 else STEPS)
    assert not errors(training)


@pytest.mark.parametrize("ends", [(3, 5, 4), (4, 4, 5)])
def test_passes_that_end_where_their_batches_say_are_found(ends):
    parts = private()
    training = attached(parts, steps=sum(ends))
    train(parts, most=lambda turn: ends[turn])
    assert errors(training) == {"passes-cut-unevenly"}


@pytest.mark.parametrize("again", [True, False])
def test_a_batch_of_equal_size_used_again_is_found(again):
    """The ledger cannot tell such batches by their size, but the model saw them."""
    generator = torch.Generator().manual_seed(1)
    data = TensorDataset(
        torch.randn(SIZE, 4, generator=generator), torch.randn(SIZE, generator=generator)
    )
    plan = Plan.dp_sgd(noise_multiplier=1.0, steps=STEPS, epochs=1, batching="disjoint")
    model, engine = nn.Linear(4, 1), PrivacyEngine()
    training = attach(engine, Ledger(plan))
    parts = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
    )
    first = None
    for batch in parts[2]:
        first = first or batch
        step(parts, *(first if again else batch))
    assert errors(training) == ({"batch-not-fresh"} if again else set())
