"""Correlated noise: the ledger's stream, a fixed order of batches, and differences of its sums."""

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus_trainings import verdict
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import (
    ContinualGaussian,
    FloatNoise,
    InputError,
    Invocation,
    Ledger,
    Plan,
    PlanMismatchError,
    PrivacyUnit,
    TrustModel,
    Verdict,
    ZeroOut,
    guarantee,
)
from dpaudit.mechanisms import BandedToeplitz, BufferedToeplitz
from dpaudit.training.opacus import FixedBatches, attach

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SIZE, BATCH, PASSES = 40, 8, 3
STEPS = SIZE // BATCH


def plan(sigma=4.0, passes=PASSES, factorization=None, sensitivity=1.0):
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
    data = TensorDataset(torch.randn(SIZE, 4), torch.randn(SIZE))
    model, engine = nn.Linear(4, 1), PrivacyEngine()
    training = attach(engine, ledger)
    parts = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=loader or DataLoader(data, batch_sampler=FixedBatches(SIZE, BATCH)),
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


def train(parts, passes=PASSES):
    for _ in range(passes):
        for batch in parts[2]:
            step(parts, *batch)


@pytest.mark.parametrize("factorization", [None, BandedToeplitz(PASSES * STEPS, 4)], ids=str)
def test_a_training_with_correlated_noise_is_certified(factorization):
    declared = plan(factorization=factorization)
    training, parts = private(opened(declared))
    train(parts)
    certificate = training.certificate(1e-5)
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon == guarantee(declared, 1e-5).epsilon
    assert len(training.steps) == PASSES * STEPS
    assert len(training.ledger) == 1
    found = {each.rule for each in certificate.findings}
    assert "noise-drawn-elsewhere" not in found
    assert "training-seeded" in found  # whoever knows it gets every clipped gradient
    assert certificate.run["summary"]["sampler"].endswith(", seeded")


def test_a_stream_of_an_earlier_process_was_not_seen(tmp_path):
    path, declared = tmp_path / "ledger.jsonl", plan()
    first = Ledger(declared, noise=FloatNoise(), journal=path)
    train(private(first)[1], 1)
    first.journal.release()
    ledger = Ledger.resume(path, plan=declared, noise=FloatNoise())
    training, _ = private(ledger)
    ledger.close()
    found = {each.rule for each in training.certificate(1e-5).findings}
    assert "resumed-steps-not-observed" in found


def test_without_noise_the_training_is_the_usual_one():
    ledger = opened(plan(sigma=1e-9))
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
        total = sum(g * min(1, 1 / (float(g.norm()) + 1e-6)) for g in rows) / BATCH
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
        noisy = torch.cat([p.grad.flatten() for p in optimizer.params]) * BATCH
        drawn.append(noisy - torch.cat([p.summed_grad.flatten() for p in optimizer.params]))

    optimizer.original_optimizer.register_step_pre_hook(look)
    train(parts)
    return torch.stack(drawn).numpy()


def test_the_noise_of_the_first_steps_together_is_that_of_their_prefix_sum():
    """What a factorisation saves; by the spread of 200 normal draws, alarms below 1e-6."""
    declared = plan(sigma=4.0)
    wanted = declared.invocations[0].mechanism.factorization.error(4.0)
    sums = np.cumsum([noises(seed, declared) for seed in range(40)], axis=1)
    for steps in (1, 7, PASSES * STEPS):
        ratio = np.mean((sums[:, steps - 1] / wanted[steps - 1]) ** 2)
        assert abs(ratio - 1) < 4.9 * np.sqrt(2 / 200), steps
    assert wanted[-1] < 0.8 * 4.0 * np.sqrt(PASSES * STEPS)  # noise that is drawn anew costs more


def shuffled():
    data = TensorDataset(torch.randn(SIZE, 4), torch.randn(SIZE))
    return DataLoader(data, batch_size=BATCH, shuffle=True)


def test_batches_that_are_drawn_anew_are_refused():
    with pytest.raises(InputError, match="FixedBatches"):
        private(opened(plan()), shuffled())


def test_opacus_adds_no_noise_of_its_own():
    training, parts = private(opened(plan()), noise=1.0)
    with pytest.raises(PlanMismatchError, match="noise_multiplier=0"):
        train(parts)
    assert not training.steps


def test_another_clip_norm_is_refused():
    _, parts = private(opened(plan(sensitivity=0.5)))
    with pytest.raises(PlanMismatchError, match="clip norm 1 makes it 1"):
        train(parts)


def test_one_pass_too_many_is_refused():
    declared = plan(passes=2)
    training, parts = private(opened(declared))
    train(parts, 2)
    with pytest.raises(PlanMismatchError, match="has used all of them"):
        train(parts, 1)
    assert len(training.steps) == 2 * STEPS


def test_a_batch_again_within_its_pass_is_refused():
    training, parts = private(opened(plan()))
    batches = list(parts[2])
    step(parts, *batches[0])
    with pytest.raises(PlanMismatchError, match="another batch"):
        step(parts, *batches[0])
    assert len(training.steps) == 1


def test_a_batch_that_is_left_out_moves_no_other_in_its_turn():
    """Batches are named by their place in the pass, so the separation is that of the units."""
    _, parts = private(opened(plan()))
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
    training, parts = private(opened(plan()))
    for batch in parts[2]:
        step(parts, *batch)
    batches = list(parts[2])
    with pytest.raises(PlanMismatchError, match="another batch"):
        step(parts, *batches[-1])
    assert len(training.steps) == STEPS


def test_batches_of_equal_rows_are_told_apart_by_the_data():
    """The second half of the rows repeats the first one, in batches of its own."""
    loader = DataLoader(range(SIZE), batch_sampler=FixedBatches(SIZE, BATCH))
    x, y = torch.zeros(SIZE, 4), torch.zeros(SIZE)
    for rows in loader.batch_sampler.batches[:3]:
        x[rows], y[rows] = torch.randn(BATCH, 4, generator=torch.Generator().manual_seed(0)), 1.0
    data = TensorDataset(x, y)
    training, parts = private(
        opened(plan()), DataLoader(data, batch_sampler=FixedBatches(SIZE, BATCH))
    )
    train(parts)
    assert len(training.steps) == PASSES * STEPS
    assert verdict(training) is Verdict.CERTIFIED
