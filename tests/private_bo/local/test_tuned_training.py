import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from rehearsals import rules

from dpaudit import InputError, Ledger, Plan, Verdict, ZeroOut, guarantee
from dpaudit.certificate import load_certificate
from dpaudit.ledger import read_journal
from dpaudit.project.targets import configuration
from private_bo.local import tuned_training
from private_bo.local.tuned_training import TRAINING, VALIDATION, TunedTraining, tune

SMALL = TunedTraining(trials=3, epochs=1, batches=4, training_rows=80, slice_size=20, hidden=4)
DELTA = 1e-5


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def test_search_and_trainings_are_one_certificate(tmp_path):
    certificate = tune(SMALL, tmp_path / "ledger.jsonl", delta=DELTA)
    assert certificate.verdict is Verdict.CERTIFIED
    trainings = Plan.dp_sgd(
        noise_multiplier=1.5, sample_rate=1 / 4, steps=3 * 4, relation=ZeroOut()
    )
    train = guarantee(trainings, DELTA).epsilon
    assert certificate.guarantee.epsilon == pytest.approx(train, rel=1e-9)
    parts = SMALL.parts(DELTA)
    assert parts[TRAINING] == pytest.approx(train, rel=1e-9)
    # Laplace noise of scale 1/(slice ε) on a mean of the slice: pure ε, a little less at δ.
    assert parts[VALIDATION] <= SMALL.score_epsilon
    assert parts[VALIDATION] == pytest.approx(SMALL.score_epsilon, rel=1e-3)
    assert certificate.run["summary"][f"epsilon of {TRAINING}"] == parts[TRAINING]
    (stated,) = [each for each in certificate.findings if each.rule == "two-parts"]
    assert f"{parts[TRAINING]:.6g}" in stated.message
    assert f"{parts[VALIDATION]:.6g}" in stated.message

    entries = read_journal(tmp_path / "ledger.jsonl").entries
    assert [entry.unit for entry in entries if entry.at == "reward"] == [
        "slice 1",
        "slice 2",
        "slice 3",
    ]
    labels = [entry.at for entry in entries]
    assert labels == [label for t in (1, 2, 3) for label in [f"trial {t}"] * 4 + ["reward"]]
    noisy = [entry for entry in entries if entry.at != "reward"]
    assert all(entry.sampler.startswith("opacus ") for entry in noisy)
    assert all(rate in tuned_training.RATES for rate in certificate.run["series"]["learning rate"])
    saved = certificate.save(tmp_path / "certificate.json")
    assert load_certificate(saved) == certificate


def test_a_loud_search_is_what_every_row_pays():
    loud = replace(SMALL, score_epsilon=50.0)
    plan = loud.plan()
    assert guarantee(plan, DELTA).epsilon == pytest.approx(loud.parts(DELTA)[VALIDATION], rel=1e-9)
    together = Plan.of(*(replace(each, group=None) for each in plan.invocations))
    assert guarantee(together, DELTA).epsilon > guarantee(plan, DELTA).epsilon


def test_a_validation_row_moves_one_score_by_its_share():
    """Zeroing one row of a slice moves its score by at most 1/m, which the noise covers."""
    moved = 1 / SMALL.slice_size
    assert SMALL.mechanism.scale == pytest.approx(moved / SMALL.score_epsilon)
    rng = np.random.default_rng(0)
    model = tuned_training._network(64, 4, rng)
    x, y = rng.random((SMALL.slice_size, 64)), rng.integers(10, size=SMALL.slice_size)
    right = tuned_training._accuracy(model, x, y)
    found = [
        tuned_training._accuracy(model, x, np.where(np.arange(len(y)) == i, -1, y))
        for i in range(len(y))
    ]
    assert max(abs(right - each) for each in found) <= moved + 1e-12


def test_too_few_rows_and_wrong_fields():
    ledger = Ledger(SMALL.plan())
    with pytest.raises(InputError, match="at least 140 rows"):
        SMALL.run((np.zeros((100, 64)), np.zeros(100)), ledger, np.random.default_rng(0))
    assert len(ledger) == 0
    with pytest.raises(InputError, match="it must be digits"):
        SMALL.load("letters", np.random.default_rng(0))
    with pytest.raises(InputError, match="batches is 50"):
        replace(SMALL, batches=50)
    with pytest.raises(InputError, match="trials is 0"):
        replace(SMALL, trials=0)


def test_the_command_writes_ledger_and_certificate(tmp_path, capsys):
    folder = tmp_path / "out"
    assert tuned_training.main(["-o", str(folder), "--trials", "1", "--epochs", "1"]) == 0
    said = capsys.readouterr().out
    assert "every row: epsilon" in said
    assert f"epsilon of {VALIDATION}" in said
    assert json.loads((folder / "certificate.json").read_text())["verdict"] == "certified"
    assert tuned_training.main(["-o", str(folder)]) == 3  # the ledger is never overwritten
    assert "already exists" in capsys.readouterr().err


def test_a_rehearsal_finds_nothing():
    assert rules(SMALL) == set()


def test_a_rehearsal_finds_gradients_that_are_not_clipped(monkeypatch):
    """The declared clip norm, and a thousand times as much where gradients are clipped."""
    from opacus.optimizers import DPOptimizer

    summed = DPOptimizer.clip_and_accumulate

    def unclipped(optimizer):
        optimizer.max_grad_norm *= 1000
        summed(optimizer)
        optimizer.max_grad_norm /= 1000

    monkeypatch.setattr(DPOptimizer, "clip_and_accumulate", unclipped)
    assert rules(SMALL) == {"sensitivity-understated"}


def test_a_rehearsal_finds_an_accuracy_that_is_published():
    class Mistaken(TunedTraining):
        def run(self, data, ledger, rng):
            result = super().run(data, ledger, rng)
            return replace(result, summary={"classes": int(np.sum(data[1]))})

    assert rules(Mistaken(**configuration(SMALL))) == {"result-not-from-releases"}


def test_all_rows_may_score_every_trial_at_the_same_cost(monkeypatch):
    """T scores of Tm rows, each moved by 1/Tm, under the same noise: pure ε is as of one slice."""
    joint = replace(SMALL, all_rows=True)
    scores = next(each for each in joint.plan().invocations if each.at == "reward")
    assert (scores.count, scores.sensitivity) == (3, pytest.approx(1 / 60))
    assert joint.mechanism == SMALL.mechanism
    assert guarantee(Plan.of(replace(scores, group=None)), 0.0).epsilon == pytest.approx(0.25)
    seen, accuracy = [], tuned_training._accuracy
    monkeypatch.setattr(
        tuned_training,
        "_accuracy",
        lambda model, x, y: seen.append(len(y)) or accuracy(model, x, y),
    )
    assert rules(joint) == set()
    assert set(seen) == {60}
