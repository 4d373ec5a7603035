"""Adaptive clipping: one release of sum and count, of which the clip norm is made."""

import math

import numpy as np
import pytest
import torch
from opacus_trainings import attached, certified, labelled_rows
from torch import nn

from dpaudit import (
    Ledger,
    Plan,
    PlanMismatchError,
    ReplaceOne,
    UnsupportedError,
    Verdict,
    ZeroOut,
    guarantee,
)
from dpaudit.auditing.replaying.recording import RecordingNoise

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
    certificate = certified(training)
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon == guarantee(plan(), 1e-5, "rdp").epsilon
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


def test_zero_out_is_refused_and_replace_one_is_not():
    with pytest.raises(UnsupportedError, match="add-remove or replace-one"):
        made(plan(relation=ZeroOut()))
    relation = ReplaceOne()
    settings = {"noise_multiplier": 1.0, "steps": 2, "batching": "arbitrary", "relation": relation}
    training, _ = made(Plan.dp_sgd(**settings))
    assert training.ledger.plan.invocations[0].sensitivity == 2
