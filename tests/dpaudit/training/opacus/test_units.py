import math

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus_trainings import certified, errors, verdict
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import (
    AddRemove,
    InputError,
    Ledger,
    Plan,
    PlanMismatchError,
    UnsupportedError,
    Verdict,
    ZeroOut,
    guarantee,
)
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.training.opacus import PoissonLoader, attach, attaching

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RATE, STEPS = 0.25, 4
USERS = [n for n in range(12) for _ in range(1 + n % 4)]  # of one row up to four
NAMES = range(12)
NORM = 0.1


@pytest.fixture(autouse=True)
def _from_one_seed():
    torch.manual_seed(3)
    torch.set_num_threads(1)


def rows(size=30):
    drawing = torch.Generator().manual_seed(1)
    return TensorDataset(
        torch.randn(size, 4, generator=drawing), torch.randint(0, 2, (size,), generator=drawing)
    )


def plan(**settings):
    usual = {"noise_multiplier": 1.0, "max_grad_norm": NORM, "sample_rate": RATE, "steps": STEPS}
    return Plan.dp_sgd(**{**usual, "unit": "user"} | settings)


def made(loader, declared=None, ledger=None, **settings):
    model, engine = nn.Linear(4, 2), PrivacyEngine(accountant="rdp")
    ledger = ledger or Ledger(declared or plan())
    training = attach(engine, ledger, expected_batch_size=3)
    parts = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=NORM,
        **settings,
    )
    return training, parts[0], parts[1], parts[-1]


def train(model, optimizer, loader, change=lambda x, y: (x, y)):
    for x, y in loader:
        optimizer.zero_grad()
        x, y = change(x, y)
        cross_entropy(model(x), y).backward()
        optimizer.step()


# -- users -------------------------------------------------------------------------------------


def test_each_user_is_clipped_as_one():
    """Against gradients that autograd takes of the rows of one user alone."""
    loader = PoissonLoader(rows(), USERS, sample_rate=0.5)
    training, model, optimizer, loader = made(loader, plan(sample_rate=0.5, steps=2))
    data, owners = loader.dataset.tensors, torch.tensor(USERS)
    for x, y in loader:
        weights = [p.detach().clone().requires_grad_() for p in model.parameters()]
        total, drawn = torch.zeros(10), 0
        for name in NAMES:
            mine = owners == name
            if not len(x) or not (x[:, None] == data[0][mine][None, :1]).all(2).any():
                continue
            loss = cross_entropy(data[0][mine] @ weights[0].T + weights[1], data[1][mine])
            flat = torch.cat([g.flatten() for g in torch.autograd.grad(loss, weights)])
            total += flat * min(1.0, NORM / float(flat.norm()))
            drawn += 1
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
        found = torch.cat([p.summed_grad.flatten() for p in optimizer.params])
        assert torch.allclose(found, total, atol=1e-5)
        assert training.steps[-1].actual_batch_size == drawn
    certificate = training.certificate(1e-5, accountant="rdp")
    assert certificate.verdict is Verdict.CERTIFIED
    assert str(certificate.plan.unit) == "user"


def test_users_of_one_row_are_the_examples_of_opacus():
    """The same coins, noise and parameters, and opacus' own ε."""
    size, left = 40, []
    for own in (True, False):
        torch.manual_seed(5)
        data = rows(size)
        if own:
            loader = PoissonLoader(data, range(size), sample_rate=RATE)
        else:
            loader = DataLoader(data, batch_size=10)
        training, model, optimizer, loader = made(loader, plan(unit="user" if own else "example"))
        train(model, optimizer, loader)
        left.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
        engine = training._engines[0][0]
        theirs = engine.get_epsilon(1e-5)
        assert training.certificate(1e-5, accountant="rdp").guarantee.epsilon == pytest.approx(
            theirs, abs=1e-3
        )
    assert torch.allclose(*left, atol=1e-6)


def test_a_removed_user_moves_each_sum_by_one_clip_norm_at_most():
    """A user of thirty rows leaves; by rows these would move a sum by up to thirty clip norms."""
    declared = plan(sample_rate=0.5, relation=ZeroOut())
    drawing = np.random.default_rng(0)
    data = [(int(n), [float(v) for v in drawing.normal(size=4)]) for n in NAMES for _ in range(2)]
    data += [(0, [3.0, 3.0, 3.0, 3.0])] * 30
    gone = [row for row in data if row[0] != 0]

    def by_user(held, ledger, rng):
        x = torch.tensor([row for _, row in held])
        inner = TensorDataset(x, torch.zeros(len(x), dtype=torch.long))
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = nn.Linear(4, 2)
        coins = torch.Generator().manual_seed(int(rng.integers(2**31)))
        names = [name for name, _ in held]
        loader = PoissonLoader(
            inner, names, sample_rate=0.5, steps=STEPS, among=NAMES, generator=coins
        )
        engine = PrivacyEngine()
        attach(engine, ledger, expected_batch_size=6)
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=NORM,
        )
        train(model, optimizer, loader)

    report = replay(Routine(declared, by_user), data, gone, 1)
    assert not report.findings
    moved = [each.observed / each.declared for each in report.comparisons]
    assert len(moved) == STEPS
    assert max(moved) > 0.9  # the user was drawn, and counts as one


@pytest.mark.parametrize(
    "change",
    [
        lambda x, y: (x.flip(0), y.flip(0)),
        lambda x, y: (2 * x, y),
        lambda x, y: (x[1:], y[1:]),
        lambda x, y: (torch.cat([x, x]), torch.cat([y, y])),
    ],
    ids=["in another order", "transformed", "a row less", "twice"],
)
def test_rows_that_are_not_those_of_the_loader_are_refused(change):
    loader = PoissonLoader(rows(), USERS, sample_rate=RATE)
    training, model, optimizer, loader = made(loader)
    with pytest.raises(PlanMismatchError, match="users cannot be distinguished"):
        train(model, optimizer, loader, change)
    assert not len(training.ledger)


def test_parts_of_users_and_losses_that_clip_rows_are_refused():
    _, model, optimizer, loader = made(PoissonLoader(rows(), USERS, sample_rate=RATE))
    with (
        BatchMemoryManager(data_loader=loader, max_physical_batch_size=2, optimizer=optimizer) as b,
        pytest.raises(PlanMismatchError, match="users cannot be distinguished"),
    ):
        train(model, optimizer, b)
    x, y = next(iter(loader))
    for _ in range(2):
        cross_entropy(model(x), y).backward()
    with pytest.raises(PlanMismatchError, match="each once"):
        optimizer.step()
    _, model, optimizer, loader = made(PoissonLoader(rows(), USERS, sample_rate=RATE))
    x, y = next(iter(loader))
    with pytest.raises(PlanMismatchError, match="just drew"):
        train(model, optimizer, [(x, y), (x, y)])
    with pytest.raises(UnsupportedError, match="in the loss"):
        made(PoissonLoader(rows(), USERS, sample_rate=RATE), grad_sample_mode="ghost")
    loader = PoissonLoader(rows(), USERS, sample_rate=RATE)
    with pytest.raises(InputError, match="attach the PrivacyEngine"):
        attach(without_engine(), Ledger(plan()), loader)


def without_engine():
    """An optimizer of opacus whose engine is attached to nothing."""
    model = nn.Linear(4, 2)
    _, optimizer, _ = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=DataLoader(rows(), batch_size=4),
        noise_multiplier=1.0,
        max_grad_norm=NORM,
    )
    return optimizer


def by_sampler(drawn):
    """A plain loader of what another loader draws."""
    sampler = PoissonLoader(rows(), drawn, sample_rate=RATE).batch_sampler
    return DataLoader(rows(), batch_sampler=sampler)


@pytest.mark.parametrize(
    ("unit", "loader", "right"),
    [
        ("user", lambda: PoissonLoader(rows(), sample_rate=RATE), False),
        ("patient", lambda: DataLoader(rows(), batch_size=8), False),
        ("example", lambda: PoissonLoader(rows(), USERS, sample_rate=RATE), False),
        ("user", lambda: by_sampler(USERS), False),
        ("row", lambda: by_sampler(USERS), False),
        ("Household", lambda: PoissonLoader(rows(), USERS, sample_rate=RATE), True),
        ("Data point", lambda: PoissonLoader(rows(), sample_rate=RATE), True),
    ],
)
def test_what_is_drawn_and_clipped_is_what_the_plan_protects(unit, loader, right):
    """By rows a user moves a sum by many clip norms; by users a row moves it by two."""
    given, settings = loader(), {}
    if not isinstance(given, PoissonLoader) and given.batch_size is None:
        settings["poisson_sampling"] = False  # opacus would take another sampler
    if right:
        training, *parts = made(given, plan(unit=unit), **settings)
        train(*parts)
        drawn = certified(training).subject.configuration["gradient"]["units"]
        assert drawn == ("rows" if unit == "Data point" else "users")
        return
    ledger = Ledger(plan(unit=unit))
    with pytest.raises(PlanMismatchError, match=rf"unit is '{unit}'.*give no users"):
        made(given, ledger=ledger, **settings)
    assert not len(ledger)


def test_an_optimizer_without_its_loader_clips_rows():
    with pytest.raises(PlanMismatchError, match="clips rows"):
        attach(without_engine(), Ledger(plan(relation=ZeroOut())))


def test_several_processes_would_each_draw_a_user(monkeypatch):
    monkeypatch.setattr(attaching, "is_distributed", lambda optimizer: True)
    with pytest.raises(UnsupportedError, match="one process"):
        made(PoissonLoader(rows(), USERS, sample_rate=RATE))


def test_workers_shapes_and_empty_batches():
    inner = TensorDataset(torch.randn(3, 2, 2), torch.tensor([0, 1, 0]))
    loader = PoissonLoader(inner, list("aab"), sample_rate=0.3, steps=12, num_workers=1)
    training, model, optimizer, loader = made(loader, plan(sample_rate=0.3, steps=12))
    train(model, optimizer, loader, lambda x, y: (x.flatten(1), y))
    sizes = [each.actual_batch_size for each in training.steps]
    assert 0 in sizes
    assert max(sizes) > 0
    assert verdict(training) is Verdict.CERTIFIED


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"users": ["ann", "bob"]}, "one for each row"),
        ({"sample_rate": 0.0}, "sample_rate"),
        ({"most": 0}, "most"),
        ({"users": USERS, "among": [1]}, "among lacks a user"),
        ({"users": [*range(29), "11"]}, "users has labels"),
        ({"users": [*range(29), True]}, "users has labels"),
        ({"users": [None] * 30}, "users has labels"),
        ({"users": [11.0] * 29 + [math.nan]}, "users has labels"),
        ({"users": torch.full((30, 2), 11)}, "users is a"),
        ({"users": USERS, "among": [None]}, "among has labels"),
        ({"drop_last": True}, "drop_last is given"),
        ({"data": iter(())}, "data has no length"),
    ],
)
def test_wrong_settings_of_a_loader(settings, words):
    with pytest.raises(InputError, match=words) as said:
        PoissonLoader(**{"data": rows(), "sample_rate": 0.5} | settings)
    assert not {"11", "30"} & set(str(said.value).split())


@pytest.mark.parametrize("kind", [torch.tensor, np.array])
def test_users_of_tensors_and_arrays_are_whose_they_are(kind):
    """A tensor is equal to itself alone, so that each row would be a user of its own."""
    loader = PoissonLoader(rows(), kind(USERS), sample_rate=0.5)
    assert (
        loader.batch_sampler.groups
        == PoissonLoader(rows(), USERS, sample_rate=0.5).batch_sampler.groups
    )
    assert loader.batch_sampler.num_samples == 12


# -- at most so many ---------------------------------------------------------------------------


def cut(**settings):
    usual = {"sample_rate": RATE, "batch_size": 14, "dataset_size": 40, "batching": "truncated"}
    return plan(**{**usual, "unit": "example"} | settings)


def test_truncated_batches_are_declared_and_drawn():
    loader = PoissonLoader(rows(40), sample_rate=RATE, most=14)
    training, model, optimizer, loader = made(loader, cut())
    train(model, optimizer, loader)
    sizes = [each.actual_batch_size for each in training.steps]
    assert max(sizes) <= 14
    certificate = training.certificate(1e-5, accountant="rdp")
    assert certificate.verdict is Verdict.CERTIFIED
    whole = guarantee(plan(relation=ZeroOut()), 1e-5, "rdp").epsilon
    alone = guarantee(plan(relation=ZeroOut(), sample_rate=1.0), 1e-5, "rdp").epsilon
    assert whole < certificate.guarantee.epsilon < alone


def test_a_subset_is_drawn_uniformly():
    """Each of 8 units is in a cut batch with one rate; 1e-6 by Bernstein over 4000 batches."""
    loader = PoissonLoader(rows(8), sample_rate=0.75, most=3, steps=4000)
    batches = list(loader.batch_sampler)
    assert max(map(len, batches)) == 3
    p = sum(map(len, batches)) / 8 / 4000
    slack = math.sqrt(2 * 4000 * p * math.log(16e6)) + math.log(16e6)
    assert all(abs(sum(unit in batch for batch in batches) - 4000 * p) < slack for unit in range(8))


@pytest.mark.parametrize(
    ("declared", "most", "rule"),
    [
        (cut(batch_size=10), 14, "truncation-differs"),
        (cut(dataset_size=50), 14, "truncation-differs"),
        (cut(sample_rate=0.2), 14, "truncation-differs"),
        (cut(), None, "truncation-differs"),
        (plan(unit="example"), 14, "loader-not-poisson"),
    ],
)
def test_another_truncation_than_the_loaders_is_found(declared, most, rule):
    training, model, optimizer, loader = made(
        PoissonLoader(rows(40), sample_rate=RATE, most=most), declared
    )
    train(model, optimizer, loader)
    assert rule in errors(training)


def test_a_truncated_plan_needs_all_of_its_numbers():
    for missing in ("sample_rate", "batch_size"):
        given = {missing: None} | ({"dataset_size": None} if missing == "batch_size" else {})
        with pytest.raises(InputError, match="truncated batches need"):
            cut(**given)
    with pytest.raises(UnsupportedError, match="add-remove"):
        cut(relation=AddRemove())
