"""Noise that changes: adaptive clipping, and correlated noise."""

import math

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus_trainings import attached, labelled_rows
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import (
    ContinualGaussian,
    InputError,
    Invocation,
    Ledger,
    Plan,
    PlanMismatchError,
    PrivacyUnit,
    ReplaceOne,
    Severity,
    TrustModel,
    UnsupportedError,
    Verdict,
    ZeroOut,
    guarantee,
)
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.mechanisms import BandedToeplitz, BufferedToeplitz
from dpaudit.training.opacus import FixedBatches, attach

# -- adaptive clipping: one release of sum and count, of which the clip norm is made ---------------


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SIZE, BATCH, COUNT_NOISE = 60, 10, 2.0
SETTINGS = {
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.01,
    "unclipped_num_std": COUNT_NOISE,
}


def plan(**settings):
    base = {"noise_multiplier": 1.0, "sample_rate": BATCH / SIZE, "epochs": 2}
    return Plan.dp_sgd(**base | settings)


DECLARED = plan()


def made(plan=DECLARED, noise=None, size=SIZE, **settings):
    settings = {"clipping": "adaptive"} | SETTINGS | settings
    rows = labelled_rows(size)
    return attached(Ledger(plan, noise=noise), nn.Linear(4, 2), rows, BATCH, **settings)


def train(parts, epochs=2):
    model, optimizer, loader = parts
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def test_an_adaptive_training_costs_what_its_noise_multiplier_says():
    training, parts = made()
    train(parts)
    norms = [each.max_grad_norm for each in training.steps]
    assert len(norms) == 2 * SIZE // BATCH
    assert len(set(norms)) == len(norms)
    certificate = training.certificate(1e-5)
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon == guarantee(plan(), 1e-5).epsilon
    assert training.epsilon(1e-5) == guarantee(plan(), 1e-5, "rdp").epsilon


@pytest.mark.parametrize("virtual", [False, True])
def test_value_and_release_are_sum_and_count_in_units_of_their_noise(virtual):
    noise = RecordingNoise(np.random.default_rng(0))
    _, (model, optimizer, loader) = made(noise=noise)
    share = 1 / (2 * COUNT_NOISE)
    for x, y in loader:
        norm = float(optimizer.max_grad_norm)
        optimizer.zero_grad()
        gradients = []
        for row, label in zip(x, y, strict=True):
            clean = nn.Linear(4, 2)
            clean.load_state_dict(model._module.state_dict())
            nn.functional.cross_entropy(clean(row[None]), label[None]).backward()
            gradients.append(torch.cat([p.grad.reshape(-1) for p in clean.parameters()]))
        cut = 4 if virtual and len(x) > 4 else len(x)
        for part in ((x[:cut], y[:cut], cut < len(x)), (x[cut:], y[cut:], False)):
            if not len(part[0]):
                continue
            optimizer.signal_skip_step(do_skip=part[2])
            nn.functional.cross_entropy(model(part[0]), part[1]).backward()
            optimizer.step()
            optimizer.zero_grad()
        sizes = [float(g.norm()) for g in gradients]
        unclipped = sum(norm / (size + 1e-6) >= 1 for size in sizes)
        total = sum(g * min(1, norm / (s + 1e-6)) for g, s in zip(gradients, sizes, strict=True))
        step = noise.steps[-1]
        assert step.value[-1] == pytest.approx((unclipped - len(x) / 2) * 2 * share)
        np.testing.assert_allclose(
            step.value[:-1], np.asarray(total) * math.sqrt(1 - share**2) / norm, atol=1e-5
        )
        # The next clip norm follows from what was released, and from nothing else.
        fraction = 0.5 + step.released[-1] / (2 * share) / BATCH
        assert float(optimizer.max_grad_norm) == pytest.approx(
            norm * math.exp(-0.2 * (fraction - 0.5))
        )
    assert len(noise.steps) == SIZE // BATCH


def test_the_noise_of_sum_and_count_together_is_the_declared_one():
    """All coordinates of release less value have one scale; alarms at 1e-6 by the normal tail."""
    noise = RecordingNoise(np.random.default_rng(0))
    _, parts = made(plan(epochs=20), noise)
    train(parts, 20)
    drawn = np.array([each.released - each.value for each in noise.steps])
    for rows in (drawn[:, :-1], drawn[:, -1:]):
        assert abs((rows**2).mean() - 1) < 4.9 * math.sqrt(2 / rows.size)


def test_one_unit_moves_sum_and_count_by_the_sensitivity_at_most():
    noise = [RecordingNoise(np.random.default_rng(0)) for _ in range(2)]
    values = []
    for each, present in zip(noise, (True, False), strict=True):
        torch.manual_seed(0)
        _, (model, optimizer, _) = made(plan(sample_rate=1.0, steps=1, epochs=None), each)
        x = torch.full((3 + present, 4), 0.01)
        x[3:] = 1e3
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), torch.zeros(len(x), dtype=torch.long)).backward()
        optimizer.step()
        values.append(each.steps[-1].value)
    assert np.linalg.norm(values[0] - values[1]) == pytest.approx(1, abs=1e-5)


def by_size(optimizer):
    optimizer.max_grad_norm = 1 + optimizer.sample_size


def by_rate(optimizer):
    optimizer.clipbound_learning_rate = 0.1 * optimizer.sample_size


def by_opacus(optimizer):
    optimizer.update_max_grad_norm = lambda: type(optimizer).update_max_grad_norm(optimizer)


@pytest.mark.parametrize("change", [by_size, by_rate, by_opacus])
def test_a_clip_norm_that_follows_anything_else_is_refused(change):
    """Exact sizes of batches would be the scale of the noise, and stand in the certificate."""
    training, (model, optimizer, loader) = made()
    batches = iter(loader)
    for turn in range(2):
        x, y = next(batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        if turn:
            change(optimizer)
            with pytest.raises(PlanMismatchError, match="clip norm, or the rule"):
                optimizer.step()
        else:
            optimizer.step()
    assert len(training.steps) == 1


def test_an_empty_batch_is_a_step_too():
    training, parts = made(size=12, plan=plan(sample_rate=0.5, epochs=1))
    model, optimizer, _ = parts
    optimizer.zero_grad()
    nn.functional.cross_entropy(
        model(torch.zeros(0, 4)), torch.zeros(0, dtype=torch.long)
    ).backward()
    optimizer.step()
    assert len(training.ledger) == 1
    assert math.isfinite(float(optimizer.max_grad_norm))


def test_virtual_parts_count_once():
    training, (model, optimizer, loader) = made(plan(epochs=1))
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=4, optimizer=optimizer
    ) as small:
        train((model, optimizer, small), 1)
    training.ledger.check()
    assert training.certificate(1e-5).verdict is Verdict.CERTIFIED


def test_zero_out_is_refused_and_replace_one_is_not():
    with pytest.raises(UnsupportedError, match="add-remove or replace-one"):
        made(plan(relation=ZeroOut()))
    relation = ReplaceOne()
    settings = {"noise_multiplier": 1.0, "steps": 2, "batching": "arbitrary", "relation": relation}
    training, _ = made(Plan.dp_sgd(**settings))
    assert training.ledger.plan.invocations[0].sensitivity == 2


# -- correlated noise: the ledger's stream, a fixed order of batches, and differences of its su ----


ROWS, PER_BATCH, PASSES = 40, 8, 3
STEPS = ROWS // PER_BATCH


def correlated_plan(sigma=4.0, passes=PASSES, factorization=None, sensitivity=1.0):
    mechanism = ContinualGaussian(
        sigma=sigma,
        factorization=factorization or BufferedToeplitz.fitted(PASSES * STEPS, 3),
        participations=passes,
        min_separation=STEPS,
        fixed_steps=True,
        cyclic=True,
    )
    about = (PrivacyUnit("example"), ZeroOut(), TrustModel.CENTRAL)
    return Plan.of(Invocation(mechanism, sensitivity, *about, at="gradient"))


def opened(declared):
    return Ledger(declared, rng=np.random.default_rng(0))


def private(ledger, loader=None, noise=0.0, **settings):
    data = TensorDataset(torch.randn(ROWS, 4), torch.randn(ROWS))
    model, engine = nn.Linear(4, 1), PrivacyEngine()
    training = attach(engine, ledger)
    parts = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=loader or DataLoader(data, batch_sampler=FixedBatches(ROWS, PER_BATCH)),
        noise_multiplier=noise,
        max_grad_norm=1.0,
        poisson_sampling=False,
        **settings,
    )
    return training, parts


def step(parts, x, y):
    model, optimizer, _ = parts
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x).squeeze(1), y).backward()
    optimizer.step()


def train_correlated(parts, passes=PASSES):
    for _ in range(passes):
        for batch in parts[2]:
            step(parts, *batch)


@pytest.mark.parametrize("factorization", [None, BandedToeplitz(PASSES * STEPS, 4)], ids=str)
def test_a_training_with_correlated_noise_is_certified(factorization):
    declared = correlated_plan(factorization=factorization)
    training, parts = private(opened(declared))
    train_correlated(parts)
    certificate = training.certificate(1e-5)
    errors = [each for each in certificate.findings if each.severity is Severity.ERROR]
    assert not errors
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon == guarantee(declared, 1e-5).epsilon
    assert len(training.steps) == PASSES * STEPS
    assert len(training.ledger) == 1
    assert {each.rule for each in certificate.findings} & {"noise-drawn-elsewhere"} == set()


def test_without_noise_the_training_is_the_usual_one():
    ledger = opened(correlated_plan(sigma=1e-9))
    _, parts = private(ledger)
    start = [p.detach().clone() for p in parts[0].parameters()]
    plain = nn.Linear(4, 1)
    plain.load_state_dict(parts[0]._module.state_dict())
    usual = torch.optim.SGD(plain.parameters(), lr=0.1)
    for x, y in parts[2]:
        step(parts, x, y)
        usual.zero_grad()
        rows = []
        for row, label in zip(x, y, strict=True):
            loss = nn.functional.mse_loss(plain(row[None]).squeeze(1), label[None])
            rows.append(
                torch.cat([g.flatten() for g in torch.autograd.grad(loss, plain.parameters())])
            )
        total = sum(g * min(1, 1 / (float(g.norm()) + 1e-6)) for g in rows) / PER_BATCH
        plain.weight.grad, plain.bias.grad = total[:4][None].clone(), total[4:].clone()
        usual.step()
    for p, q in zip(parts[0].parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q, atol=1e-5, rtol=1e-5)
    assert not all(map(torch.equal, start, parts[0].parameters()))


def noises(seed, declared):
    """The noise of every step of a training, shape (steps, parameters)."""
    _, parts = private(Ledger(declared, rng=np.random.default_rng(seed)))
    optimizer, drawn = parts[1], []

    def look(*_):
        noisy = torch.cat([p.grad.flatten() for p in optimizer.params]) * PER_BATCH
        drawn.append(noisy - torch.cat([p.summed_grad.flatten() for p in optimizer.params]))

    optimizer.original_optimizer.register_step_pre_hook(look)
    train_correlated(parts)
    return torch.stack(drawn).numpy()


def test_the_noise_of_the_first_steps_together_is_that_of_their_prefix_sum():
    """What a factorisation saves; by the spread of 200 normal draws, alarms below 1e-6."""
    declared = correlated_plan(sigma=4.0)
    wanted = declared.invocations[0].mechanism.factorization.error(4.0)
    sums = np.cumsum([noises(seed, declared) for seed in range(40)], axis=1)
    for steps in (1, 7, PASSES * STEPS):
        ratio = np.mean((sums[:, steps - 1] / wanted[steps - 1]) ** 2)
        assert abs(ratio - 1) < 4.9 * np.sqrt(2 / 200), steps
    assert wanted[-1] < 0.8 * 4.0 * np.sqrt(PASSES * STEPS)  # noise that is drawn anew costs more


def shuffled():
    data = TensorDataset(torch.randn(ROWS, 4), torch.randn(ROWS))
    return DataLoader(data, batch_size=PER_BATCH, shuffle=True)


def test_batches_that_are_drawn_anew_are_refused():
    with pytest.raises(InputError, match="FixedBatches"):
        private(opened(correlated_plan()), shuffled())


def test_opacus_adds_no_noise_of_its_own():
    training, parts = private(opened(correlated_plan()), noise=1.0)
    with pytest.raises(PlanMismatchError, match="noise_multiplier=0"):
        train_correlated(parts)
    assert not training.steps


def test_another_clip_norm_is_refused():
    _, parts = private(opened(correlated_plan(sensitivity=0.5)))
    with pytest.raises(PlanMismatchError, match="clip norm 1 makes it 1"):
        train_correlated(parts)


def test_one_pass_too_many_is_refused():
    declared = correlated_plan(passes=2)
    training, parts = private(opened(declared))
    train_correlated(parts, 2)
    with pytest.raises(PlanMismatchError, match="has had them"):
        train_correlated(parts, 1)
    assert len(training.steps) == 2 * STEPS


def test_a_batch_again_within_its_pass_is_refused():
    training, parts = private(opened(correlated_plan()))
    batches = list(parts[2])
    step(parts, *batches[0])
    with pytest.raises(PlanMismatchError, match="another one"):
        step(parts, *batches[0])
    assert len(training.steps) == 1


def test_a_batch_that_is_left_out_moves_no_other_in_its_turn():
    """Batches are named by their place in the pass, so the separation is that of the units."""
    _, parts = private(opened(correlated_plan()))
    for turn in range(2):
        for at, batch in enumerate(parts[2]):
            if (turn, at) == (0, 2):
                continue
            if (turn, at) == (1, 0):
                with pytest.raises(PlanMismatchError, match="has taken part"):
                    step(parts, *batch)
                return
            step(parts, *batch)


def test_batches_out_of_their_turn_are_refused():
    """Of equal size they look alike to the loader's stream, and the model has seen them before."""
    training, parts = private(opened(correlated_plan()))
    for batch in parts[2]:
        step(parts, *batch)
    batches = list(parts[2])
    with pytest.raises(PlanMismatchError, match="another one"):
        step(parts, *batches[-1])
    assert len(training.steps) == STEPS


def test_batches_of_equal_rows_are_told_apart_by_the_data():
    """The second half of the rows repeats the first one, in batches of its own."""
    loader = DataLoader(range(ROWS), batch_sampler=FixedBatches(ROWS, PER_BATCH))
    x, y = torch.zeros(ROWS, 4), torch.zeros(ROWS)
    for rows in loader.batch_sampler.batches[:3]:
        x[rows], y[rows] = (
            torch.randn(PER_BATCH, 4, generator=torch.Generator().manual_seed(0)),
            1.0,
        )
    data = TensorDataset(x, y)
    training, parts = private(
        opened(correlated_plan()),
        DataLoader(data, batch_sampler=FixedBatches(ROWS, PER_BATCH)),
    )
    train_correlated(parts)
    assert len(training.steps) == PASSES * STEPS
    assert training.certificate(1e-5).verdict is Verdict.CERTIFIED


# --  ----------------------------------------------------------------------------------------------


def test_fixed_batches_hold_every_unit_once_and_stay():
    batches = FixedBatches(10, 4, seed=3)
    first = list(batches)
    assert sorted(unit for batch in first for unit in batch) == list(range(10))
    assert list(batches) == first == list(FixedBatches(10, 4, seed=3))
    first[0].clear()
    assert len(next(iter(batches))) == 4
    for wrong in ((0, 4), (4, 0), (4, 2, -1), (2.5, 1), (4, 2, 2**70)):
        with pytest.raises(InputError):
            FixedBatches(*wrong)
