"""What a training does beside its ledger is refused, or found."""

import copy
from contextlib import nullcontext

import opacus_trainings
import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus_trainings import errors
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import Ledger, Plan, PlanMismatchError
from dpaudit.training.opacus import attach

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SIZE, BATCH, PASSES = 60, 10, 3
STEPS = SIZE // BATCH
WRITTEN = {"parameters-written-elsewhere"}


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


def plan(steps=PASSES * STEPS, at="gradient"):
    return Plan.dp_sgd(noise_multiplier=1.0, sample_rate=BATCH / SIZE, steps=steps, at=at)


def attached(parts, steps=PASSES * STEPS):
    return attach(parts[1], Ledger(plan(steps)), parts[2], expected_batch_size=BATCH)


def another(model, rate=0.1):
    """One more optimizer with noise on a model."""
    own = torch.optim.SGD(model.parameters(), lr=rate)
    return DPOptimizer(own, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=BATCH)


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


def test_a_step_of_the_wrapped_optimizer_needs_a_noise_of_its_own():
    parts = private()
    training = attached(parts)
    model, optimizer, loader = parts
    nn.functional.mse_loss(model(next(iter(loader))[0]).squeeze(1), torch.tensor(0.0)).backward()
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(PlanMismatchError, match="without noise"):
        optimizer.original_optimizer.step()
    assert all(map(torch.equal, before, model.parameters()))
    assert not training.steps
    optimizer.zero_grad()
    step(parts, *next(iter(loader)))
    with pytest.raises(PlanMismatchError, match="without noise"):  # one noise gives one step
        optimizer.original_optimizer.step()


@pytest.mark.parametrize("rate", [0.1, 0.0])
def test_another_ledger_on_the_model_is_found(rate):
    """Each account is of its own steps; together they cost more than either says."""
    model, optimizer, loader = first = private()
    beside = another(model, rate)
    trainings = attached(first), attached((model, beside, loader))
    for at in range(PASSES):
        for batch in loader:
            step((model, (optimizer, beside)[at % 2], loader), *batch)
    assert {each.rule for each in trainings[0].findings()} >= WRITTEN


# -- what is done before each step -------------------------------------------------------------


def by_another_optimizer(at, parts, head, generator):
    if at == 4:
        torch.optim.SGD(parts[0].parameters(), lr=0.1).step()


def by_data(at, parts, head, generator):
    for p in parts[0].parameters() if at == 4 else ():
        p.data.add_(1e-3)


def by_numpy(at, parts, head, generator):
    if at == 4:
        next(parts[0].parameters()).detach().numpy()[...] += 1e-3


def by_another_head(at, parts, head, generator):
    with torch.no_grad():
        head.add_(at == 4)


def by_another_shape(at, parts, head, generator):
    if at == 4:
        head.data = torch.zeros(3)


def swapped_and_put_back(at, parts, head, generator):
    held = copy.deepcopy(parts[0].state_dict())
    parts[0].load_state_dict({name: 2 * value for name, value in held.items()})
    parts[0].load_state_dict(held)


def averaged(at, parts, head, generator):
    average = copy.deepcopy(parts[0].state_dict())
    for name, value in parts[0].state_dict().items():
        average[name].mul_(0.9).add_(value, alpha=0.1)


def noise_seeded_alike(at, parts, head, generator):
    torch.manual_seed(7)


def noise_seeded_anew(at, parts, head, generator):
    torch.manual_seed(at)


def batches_seeded_alike(at, parts, head, generator):
    if at % STEPS == STEPS - 1:
        generator.manual_seed(3)


@pytest.mark.parametrize(
    ("deed", "found"),
    [
        (by_another_optimizer, WRITTEN),
        (by_data, WRITTEN),
        (by_numpy, WRITTEN),
        (by_another_head, WRITTEN),
        (by_another_shape, WRITTEN),
        (swapped_and_put_back, set()),
        (averaged, set()),
        (noise_seeded_alike, {"noise-repeated"}),
        (noise_seeded_anew, set()),
        (batches_seeded_alike, {"batches-repeated"}),
    ],
)
def test_what_is_done_beside_the_steps_is_found_or_harmless(deed, found):
    model, engine = nn.Linear(4, 1), PrivacyEngine()
    head = nn.Parameter(torch.zeros(1), requires_grad=False)
    model.register_parameter("head", head)
    generator = torch.Generator().manual_seed(3)
    training = attach(engine, Ledger(plan()), expected_batch_size=BATCH)
    parts = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD([model.weight, model.bias], lr=0.1),
        data_loader=DataLoader(
            TensorDataset(torch.randn(SIZE, 4), torch.randn(SIZE)), BATCH, generator=generator
        ),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    train(parts, lambda at: deed(at, parts, head, generator))
    seen = errors(training)
    assert seen == found or (deed is batches_seeded_alike and seen > found)


def engine_of(model, **settings):
    """A training whose engine, and so its model, is known."""
    engine, data = PrivacyEngine(), TensorDataset(torch.randn(SIZE, 4), torch.randn(SIZE))
    training = attach(engine, Ledger(plan()), expected_batch_size=BATCH)
    return training, engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        **settings,
    )


def test_parameters_that_are_elsewhere_while_gradients_are_made_are_found():
    """As in sharpness-aware steps, of which the first gradient is exact."""
    training, parts = engine_of(nn.Linear(4, 1))
    model, optimizer, loader = parts
    for _ in range(PASSES):
        for x, y in loader:
            held = {p: p.data for p in model.parameters()}
            for p in held:
                p.data = p.data + 0.1
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x).squeeze(1), y).backward()
            for p, value in held.items():
                p.data = value
            optimizer.step()
    assert errors(training) == WRITTEN


def test_an_average_may_be_tried_out_where_no_gradient_is_made():
    training, parts = engine_of(nn.Linear(4, 1))

    def tried(at):
        held = {p: p.data for p in parts[0].parameters()}
        for p in held:
            p.data = p.data + 0.1
        with torch.no_grad():
            parts[0](torch.zeros(2, 4))
        for p, value in held.items():
            p.data = value

    train(parts, tried)
    assert errors(training) == set()


@pytest.mark.parametrize("at", [1, PASSES * STEPS - 1])
def test_a_gradient_of_a_parameter_that_was_frozen_meanwhile_takes_no_step(at):
    training, parts = engine_of(nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1)))
    first = next(parts[0].parameters())
    batches = [batch for _ in range(PASSES) for batch in parts[2]]
    for batch in batches[:at]:
        step(parts, *batch)
    before = first.detach().clone()
    with pytest.raises(PlanMismatchError, match="a parameter was frozen after its gradient was"):
        step(parts, *batches[at], between=lambda: first.requires_grad_(requires_grad=False))
    assert torch.equal(first, before)
    assert len(training.ledger) == at


class Keeping(nn.Module):
    """Passes inputs on, and does something with its buffer."""

    def __init__(self, act, dtype=torch.long):
        super().__init__()
        self.act, self.state, self.calls = act, None, 0
        self.register_buffer("held", torch.zeros(1, dtype=dtype))

    def forward(self, x):
        self.calls += 1
        self.act(self, x)
        return x

    def get_extra_state(self):
        return self.state

    def set_extra_state(self, state):
        self.state = state


def counts_rows(module, x):
    module.held += len(x)


def counts_steps(module, x):
    module.held += 1


def counts_anew(module, x):
    module.held = module.held + 1


def counts_by_two(module, x):
    module.held += 2


def counts_positive_sums(module, x):
    module.held += int(x.sum() > 0)


def stops_counting(module, x):
    module.held += int(module.calls < 4 or x.sum() > 100)


def keeps_rows(module, x):
    module.state = {"last": x.detach().clone()}


def keeps_what_is_public(module, x):
    module.state = {"width": torch.tensor([x.shape[1]])}


def keeps_what_is_no_state(module, x):
    module.state = {"last": x.detach(), "no": lambda: 0}


def nothing(module, x):
    pass


def keeping(act, parts=None, before=nothing, **settings):
    """The errors of an honest training of a model that keeps something."""
    layer = Keeping(act, **settings)
    before(layer, torch.zeros(1, 2))
    rows, model = opacus_trainings.labelled_rows(SIZE), nn.Sequential(nn.Linear(4, 2), layer)
    made = opacus_trainings.attached(Ledger(plan()), model, rows, BATCH)
    training, (model, optimizer, loader) = made
    with parts(loader, optimizer) if parts else nullcontext(loader) as loader:
        for _ in range(PASSES):
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
    return errors(training)


@pytest.mark.parametrize("act", [counts_rows, counts_by_two, counts_positive_sums, stops_counting])
@pytest.mark.parametrize("dtype", [torch.long, torch.float32])
def test_a_buffer_that_counts_what_may_be_private_is_found(act, dtype):
    assert keeping(act, dtype=dtype) == WRITTEN


@pytest.mark.parametrize("dtype", [torch.long, torch.float32, torch.uint8])
def test_a_buffer_that_counts_steps_says_nothing_of_data(dtype):
    assert not keeping(counts_steps, dtype=dtype)


def grows(module, x):
    """Only buffers count: nobody needs a weight that grows beside the steps of its optimizer."""
    module.weight.data += 1


def begins(module, x):
    module.weight = nn.Parameter(torch.zeros(1), requires_grad=False)


def split(loader, optimizer):
    """Into as many parts as a batch is large, which nobody may know."""
    return BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=optimizer)


@pytest.mark.parametrize(
    ("act", "settings", "found"),
    [
        (grows, {"before": begins}, WRITTEN),
        (counts_steps, {"parts": split}, WRITTEN),
        (nothing, {"parts": split}, set()),
        (counts_anew, {}, WRITTEN),
        (keeps_rows, {}, WRITTEN),
        (keeps_what_is_no_state, {}, WRITTEN),
        (keeps_what_is_public, {"before": keeps_what_is_public}, set()),
    ],
)
def test_what_else_a_model_keeps_is_found_where_it_changes(act, settings, found):
    assert keeping(act, **settings) == found


def of_two():
    return Ledger(Plan.of(*plan(STEPS, "one").invocations, *plan(STEPS, "other").invocations))


def test_two_optimizers_of_one_ledger_share_a_model():
    """Each step in turn is no write elsewhere; what wrote after the last one, both would find."""
    model, optimizer, loader = private()
    beside, ledger = another(model), of_two()
    for at, each in (("one", optimizer), ("other", beside)):
        training = attach(each, ledger, loader, at=at, expected_batch_size=BATCH)
    batches = (batch for _ in range(2) for batch in loader)
    for at, batch in enumerate(batches):
        step((model, (optimizer, beside)[at % 2], loader), *batch)
    assert not WRITTEN & {each.rule for each in training.findings()}
    model._module.weight.data.add_(1e-3)
    for each in training._optimizers:
        each.writes.look(each._optimizer.params)
        assert each.writes.found


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
    assert errors(training) == WRITTEN


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
    ledger = of_two()
    for parts, at in zip(models, ("one", "other"), strict=True):
        training = attach(parts[1], ledger, parts[2], at=at, expected_batch_size=BATCH)
        torch.manual_seed(7)
        for batch in parts[2]:
            step(parts, *batch)
    assert "noise-repeated" in errors(training)


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


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ((4, 4, 4), set()),  # they end alike
        ((STEPS, STEPS, 2), set()),  # the last one is shorter
        ((3, 5, 4), {"passes-cut-unevenly"}),
        ((4, 4, 5), {"passes-cut-unevenly"}),
    ],
)
def test_passes_that_end_where_their_batches_say_are_found(ends, found):
    parts = private()
    training = attached(parts, steps=sum(ends))
    train(parts, most=lambda turn: ends[turn])
    assert errors(training) == found


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
