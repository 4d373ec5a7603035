"""Trainings by noisy gradients alone: what is drawn, charged, handed out and certified."""

import json
import math
from collections import Counter
from itertools import chain

import numpy as np
import pytest
import torch
from example_losses import cross_entropy_of, direct, rows_of, small_model
from scipy import stats

from dpaudit import (
    BudgetExceededError,
    ContinualGaussian,
    Contribution,
    FloatNoise,
    Gaussian,
    InputError,
    Invocation,
    Ledger,
    Plan,
    PlanMismatchError,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
    Verdict,
    ZeroOut,
)
from dpaudit.accounting.budgets import RenyiFilter
from dpaudit.base.errors import ClosedLedgerError, TamperedError
from dpaudit.certificate import FilterRecord, SubjectRecord, certify, verify
from dpaudit.ledger import with_ledger
from dpaudit.ledger.units import DistinctNames
from dpaudit.mechanisms import BandedToeplitz
from dpaudit.training import Adaptive, Trainer, fit
from dpaudit.training.declared import invocations_at
from dpaudit.training.gradients.batches import batches
from dpaudit.training.gradients.clipped import MARGIN
from dpaudit.workflow.verifying import is_journal, verify_file

pytestmark = pytest.mark.filterwarnings("ignore:.* steps are charged, and .* are lost")

LIMIT = 1 - MARGIN
POISSON = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.25, steps=6, relation=ZeroOut())


class Silent(FloatNoise):
    """A source whose noise is 0, so that a test sees the value; samples are drawn as ever."""

    def release(self, entry, value):
        self.seen = getattr(self, "seen", 0) + 1
        return np.array(value)


def weights(width=3):
    return {"w": torch.zeros(width, requires_grad=True)}


def trainer(plan, data=None, noise=None, **settings):
    data = torch.eye(3) if data is None else data
    ledger = Ledger(plan, noise=noise or FloatNoise(np.random.default_rng(0)))
    return Trainer(direct, weights(data.shape[1]), data, ledger, **settings)


def sums(plan, data=None, **settings):
    """The sums of clipped gradients, as they come to the noise."""
    made = trainer(plan, data, Silent(np.random.default_rng(1)), divisor=1.0, **settings)
    return [step["w"].numpy().copy() for step in made]


# -- steps -----------------------------------------------------------------------------------------


def test_every_declared_step_is_made_and_no_other():
    made = trainer(POISSON)
    assert [set(step) for step in made] == [{"w"}] * 6
    assert list(made) == []
    assert len(made) == made.taken == len(made.ledger) == 6
    made.ledger.check()


def test_gradients_are_with_the_parameters_too():
    made = trainer(POISSON)
    step = next(made)
    assert made.parameters["w"].grad is step["w"]


def test_the_noise_is_of_the_declared_law():
    """Kolmogorov-Smirnov at 1e-6, on fixed seeds: z C over the divisor, whatever the value."""
    plan = Plan.dp_sgd(
        noise_multiplier=1.7, max_grad_norm=0.5, sample_rate=1.0, steps=4, relation=ZeroOut()
    )
    data = torch.zeros(2, 40_000)
    drawn = np.concatenate([step["w"].numpy() for step in trainer(plan, data, divisor=4.0)])
    assert stats.kstest(drawn * 4 / (1.7 * 0.5), "norm").pvalue > 1e-6
    assert stats.kstest(drawn * 4 / (1.7 * 0.5) * 1.05, "norm").pvalue < 1e-6  # 5 % would show


def test_noise_of_two_steps_is_fresh():
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=1.0, steps=2, relation=ZeroOut())
    one, two = (step["w"].numpy().copy() for step in trainer(plan, torch.zeros(1, 4000)))
    assert abs(np.corrcoef(one, two)[0, 1]) < 5 / math.sqrt(4000)


def test_a_clip_norm_that_does_not_follow_is_the_plans_whatever_is_said():
    made = trainer(POISSON, torch.eye(3) * 50, Silent(np.random.default_rng(1)), divisor=1.0)
    made.clip_norm = 20.0
    assert max(abs(float(each)) for step in made for each in step["w"]) == pytest.approx(LIMIT)


@pytest.mark.parametrize("bad", [np.nan, 0.0, -1.0, 1e300, "1"])
def test_a_clip_norm_that_follows_stays_a_number(bad):
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=1.0, steps=2)
    made = trainer(plan, divisor=1.0, adaptive=Adaptive(), clip_norm=1.0)
    made.clip_norm = bad
    with pytest.raises(InputError, match=r"clip.norm is"):
        next(made)
    assert len(made.ledger) == 0


def test_noise_that_asks_for_any_clip_norm_gets_the_largest_or_the_smallest():
    plan = Plan.dp_sgd(noise_multiplier=1e5, sample_rate=1.0, steps=4)
    made = trainer(plan, divisor=1.0, adaptive=Adaptive(), clip_norm=1.0)
    assert len(list(made)) == 4
    assert made.clip_norm in (1e-12, 1e12)


def test_parameters_that_are_halved_take_no_further_step():
    model = small_model()
    made = Trainer(cross_entropy_of(model), model, rows_of(8), Ledger(POISSON, noise=FloatNoise()))
    next(made)
    model.half()
    with pytest.raises(InputError, match="parameters have other types, sizes or devices than"):
        next(made)
    assert len(made.ledger) == 1


def test_dropout_repeats_where_the_noise_does_and_is_secret_elsewhere():
    def loss(parameters, example):
        return (parameters["w"] * torch.nn.functional.dropout(example, 0.5)).sum()

    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=1.0, steps=1, relation=ZeroOut())
    seen = []
    for noise in (np.random.default_rng(1), np.random.default_rng(1), None, None):
        torch.manual_seed(0)
        ledger = Ledger(plan, noise=Silent(noise))
        made = Trainer(loss, {"w": torch.zeros(40)}, torch.ones(9, 40) * 1e-3, ledger)
        seen.append(next(made)["w"].tolist())
    assert seen[0] == seen[1]
    assert seen[2] != seen[3]


# -- who takes part --------------------------------------------------------------------------------


def shares(plan, units=40):
    """How often each unit takes part in each step: rows are axes, far below the clip norm."""
    made = sums(plan, torch.eye(units) * 1e-3)
    return np.rint(np.array(made) * 1e3).astype(int)


def test_poisson_samples_are_of_the_declared_rate():
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.25, steps=500, relation=ZeroOut())
    taken = shares(plan)
    assert set(np.unique(taken)) == {0, 1}
    assert stats.binomtest(int(taken.sum()), taken.size, 0.25).pvalue > 1e-6
    sizes = taken.sum(axis=1)
    assert stats.chisquare(*_sizes(sizes, 40, 0.25)).pvalue > 1e-6
    assert (
        stats.binomtest(int((taken[:-1] & taken[1:]).sum()), taken[1:].size, 1 / 16).pvalue > 1e-6
    )


def _sizes(sizes, units, rate):
    """Observed and expected numbers of samples of each size, the tails together."""
    edges = [-1, *range(6, 15), units]
    seen = np.histogram(sizes, np.array(edges) + 0.5)[0]
    expected = np.diff(stats.binom.cdf(edges, units, rate)) * len(sizes)
    return seen, expected


def test_truncated_samples_are_no_larger_than_declared():
    plan = Plan.dp_sgd(
        noise_multiplier=1.0,
        batching="truncated",
        sample_rate=0.25,
        batch_size=8,
        dataset_size=40,
        steps=300,
    )
    taken = shares(plan)
    assert taken.sum(axis=1).max() == 8
    full = stats.binom.sf(7, 40, 0.25)
    assert stats.binomtest(int((taken.sum(axis=1) == 8).sum()), 300, full).pvalue > 1e-6


def test_samples_of_fixed_size():
    plan = Plan.dp_sgd(
        noise_multiplier=1.0, batching="subsets", batch_size=10, dataset_size=40, steps=300
    )
    taken = shares(plan)
    assert set(taken.sum(axis=1)) == {10}
    assert stats.chisquare(taken.sum(axis=0)).pvalue > 1e-6


def test_disjoint_batches_have_each_unit_once_an_epoch():
    plan = Plan.dp_sgd(noise_multiplier=1.0, batching="disjoint", steps=12, epochs=3)
    taken = shares(plan).reshape(3, 4, 40)
    assert (taken.sum(axis=1) == 1).all()
    assert (taken[0] != taken[1]).any()
    assert (shares(plan) == taken.reshape(12, 40)).all()  # their order is public


def test_without_sampling_all_take_part():
    plan = Plan.dp_sgd(noise_multiplier=1.0, batching="arbitrary", steps=2)
    assert (shares(plan) == 1).all()


def test_phases_run_in_their_order():
    plan = Plan.dp_sgd(
        noise_multiplier=[1.0, 2.0],
        max_grad_norm=[1.0, 0.5],
        sample_rate=1.0,
        steps=[2, 1],
        relation=ZeroOut(),
    )
    lengths = [np.linalg.norm(step) for step in sums(plan, torch.tensor([[9.0, 0.0]]))]
    assert lengths == pytest.approx([LIMIT, LIMIT, 0.5 * LIMIT])


def test_a_replaced_unit_moves_a_sum_by_what_is_declared():
    """The sensitivity is 2C under replace-one; clipped is to C."""
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=1.0, steps=1, relation=ReplaceOne())
    (one,), (other,) = sums(plan, torch.tensor([[9.0]])), sums(plan, torch.tensor([[-9.0]]))
    assert plan.invocations[0].sensitivity == 2.0
    assert one - other == pytest.approx(2 * LIMIT)


def test_users_are_drawn_with_all_their_rows():
    plan = Plan.dp_sgd(
        noise_multiplier=1.0, sample_rate=0.5, steps=50, unit="user", relation=ZeroOut()
    )
    data, users = torch.eye(4) * 1e-3, ["a", "b", "a", "b"]
    made = np.rint(np.array(sums(plan, data, users=users, most_rows=2)) * 2e3)
    assert {tuple(step) for step in made.tolist()} == {
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 0.0, 1.0, 0.0),
        (0.0, 1.0, 0.0, 1.0),
        (1.0, 1.0, 1.0, 1.0),
    }


def test_an_empty_sample_is_a_step_of_noise():
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=1e-12, steps=3, relation=ZeroOut())
    assert all(np.abs(step["w"].numpy()).max() > 0 for step in trainer(plan, divisor=1.0))
    assert np.array(sums(plan)).tolist() == [[0.0] * 3] * 3


# -- divisor ---------------------------------------------------------------------------------------


def test_the_divisor_is_public():
    assert trainer(POISSON, torch.eye(40)).divisor == 10.0
    protected = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.25, steps=1)
    assert trainer(protected, divisor=8).divisor == 8.0
    with pytest.raises(Exception, match="divisor is missing; the number of units is prot"):
        trainer(protected)


# -- budgets, journals, checkpoints ----------------------------------------------------------------


def budgeted(steps=400):
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.25, steps=steps, relation=ZeroOut())
    return Ledger(plan, noise=FloatNoise(), budget=RenyiFilter(epsilon=6.0, delta=1e-5))


def test_the_checker_proves_nearly_what_a_certificate_states():
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.25, steps=20, relation=ZeroOut())
    made = Trainer(direct, weights(), torch.eye(3), Ledger(plan, noise=FloatNoise()))
    for _ in made:
        pass
    certificate = made.certificate(1e-5)
    assert certificate.checked.epsilon <= 1.05 * certificate.guarantee.epsilon
    assert made.certificate(1e-5, witness=False).witness is None


def test_a_budget_ends_it():
    made = Trainer(direct, weights(), torch.eye(3), budgeted())
    taken = sum(1 for _ in made)
    assert 1 < taken < 400
    assert made.exceeded
    assert list(made) == []
    certificate = made.certificate(1e-5)
    assert certificate.guarantee.epsilon <= 6.0
    assert certificate.verdict is Verdict.CERTIFIED
    verify(certificate)
    with pytest.raises(BudgetExceededError):
        made.ledger.release(Gaussian(1.0), np.zeros(3))


def test_a_filter_of_a_certificate_is_that_of_the_journal(tmp_path):
    """A limit that was chosen after the results is none that any release passed."""
    journal, saved = tmp_path / "steps.jsonl", tmp_path / "certificate.json"
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.25, steps=9, relation=ZeroOut())
    filters = RenyiFilter(epsilon=6.0, delta=1e-5), RenyiFilter(epsilon=6.1, delta=1e-5)
    ledger = Ledger(plan, noise=FloatNoise(), journal=journal, budget=filters[0])
    made = Trainer(direct, weights(), torch.eye(3), ledger)
    steps = len(list(made))
    ledger.close()
    made.certificate(1e-5).save(saved)
    verify_file(saved, ledger=journal)
    renamed = journal.rename(tmp_path / "steps.log")
    assert is_journal(renamed)

    def stated(budget, admitted):
        record = FilterRecord.of(budget, {"gradient": admitted})
        about = {"subject": SubjectRecord("x"), "delta": 1e-5, "filtered": record}
        with_ledger(certify(plan, **about), ledger, {"summary": {}}).save(saved)

    stated(filters[0], steps)
    verify_file(saved, ledger=renamed)
    stated(filters[1], steps)
    with pytest.raises(TamperedError, match="differ in filter"):
        verify_file(saved, ledger=renamed)
    stated(filters[0], 1)
    with pytest.raises(TamperedError, match=r"filtered.admitted is not as much as the ledger"):
        verify_file(saved)


def test_fit_closes_what_its_budget_ended():
    parameters = weights()
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1)
    made = fit(direct, parameters, torch.eye(3), budgeted(), optimizer=optimizer)
    assert made.ledger.closed
    assert made.certificate(1e-5).guarantee.epsilon <= 6.0


def test_a_training_goes_on_from_its_journal_and_its_checkpoint(tmp_path):
    journal, file = tmp_path / "steps.jsonl", tmp_path / "kept.pt"
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.25, steps=10, relation=ZeroOut())
    model, data = small_model(), rows_of(12)
    calls = Counter()

    def scheduled(optimizer):
        return torch.optim.lr_scheduler.StepLR(optimizer, 3)

    class Stopped(torch.optim.SGD):
        def step(self, *given):
            calls["steps"] += 1
            if calls["steps"] == 7:
                raise KeyboardInterrupt
            return super().step(*given)

    ledger = Ledger(plan, noise=FloatNoise(), journal=journal)
    optimizer = Stopped(model.parameters(), lr=0.1, momentum=0.9)
    settings = {"checkpoint": file, "every": 2}
    loss, rate = cross_entropy_of(model), scheduled(optimizer)
    with pytest.raises(KeyboardInterrupt), ledger:
        fit(loss, model, data, ledger, optimizer=optimizer, scheduler=rate, **settings)
    assert verify_file(journal).remarks == (
        "the ledger was not closed: lines at its end may be missing.",
    )
    lines = [json.loads(each) for each in journal.read_text().splitlines()]
    kept = torch.load(file, weights_only=True)
    assert [each["hash"] for each in lines].index(kept["after"]) == 6  # the first line is the plan

    ledger = Ledger.resume(journal, noise=FloatNoise())
    fresh = small_model()
    optimizer = torch.optim.SGD(fresh.parameters(), lr=0.1, momentum=0.9)
    rate = scheduled(optimizer)
    loss = cross_entropy_of(fresh)
    begun = Trainer(loss, fresh, data, ledger)
    assert begun.charged == 7
    with pytest.warns(UserWarning, match=r"7 steps are charged, and 1 of them are lost"):
        made = fit(loss, fresh, data, ledger, optimizer=optimizer, scheduler=rate, **settings)
    assert (made.taken, made.lost, made.charged) == (3, 1, 10)
    assert rate.last_epoch == 9  # of the steps that the model has: 6 and 3
    ledger.close()
    certificate = made.certificate(1e-5)
    assert "training" not in certificate.run  # of the earlier steps nobody knows
    before = next(each for each in certificate.findings if each.rule == "steps-before")
    assert "7 steps that this trainer did not finish, of which 1 are not in" in before.message
    certificate.save(tmp_path / "certificate.json")
    verify_file(tmp_path / "certificate.json", ledger=journal)
    assert certificate.run["ledger"]["entries"] == 10  # the step too that was cut off


def test_a_training_that_ended_with_an_error_is_certified_by_whoever_closes_it(tmp_path):
    cut_off(tmp_path)
    with Ledger.resume(tmp_path / "steps.jsonl", noise=FloatNoise()) as ledger:
        made = Trainer(direct, weights(), torch.eye(3), ledger, divisor=1.0)
        with pytest.raises(PlanMismatchError, match="declared 8 times and ran 5 times"):
            made.certificate(1e-5)
        ledger.close()
    certificate = made.certificate(1e-5)
    assert "training-ended-early" in {each.rule for each in certificate.findings}
    certificate.save(tmp_path / "certificate.json")
    verify_file(tmp_path / "certificate.json", ledger=tmp_path / "steps.jsonl")


def test_what_is_no_checkpoint_is_refused(tmp_path):
    cut_off(tmp_path)
    (tmp_path / "kept.pt").write_bytes(b"no checkpoint")
    with pytest.raises(InputError, match=r"kept.pt' is not as fit wrote it; restore the file, or"):
        gone_on(tmp_path)


def test_a_checkpoint_goes_on_with_its_own_journal_alone(tmp_path):
    """By that of another training of one plan, or of a copy, steps would be released uncharged."""
    one, other, copy = (tmp_path / name for name in ("one", "other", "copy"))
    for folder in (one, other, copy):
        folder.mkdir()
    cut_off(one)
    cut_off(other)
    for name in ("steps.jsonl", "kept.pt"):
        (copy / name).write_bytes((one / name).read_bytes())
    gone_on(one)
    for folder in (other, copy):  # that of the copy was once the same journal
        own = (folder / "kept.pt").read_bytes()
        (folder / "kept.pt").write_bytes((one / "kept.pt").read_bytes())
        with pytest.raises(InputError, match="the end of this one is missing"):
            gone_on(folder)
        (folder / "kept.pt").write_bytes(own)
        assert gone_on(folder).charged == 8


def test_a_checkpoint_is_newer_than_a_journal_that_lost_its_end(tmp_path):
    cut_off(tmp_path)
    journal = tmp_path / "steps.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:4]))
    with pytest.raises(InputError, match="the end of this one is missing"):
        gone_on(tmp_path)


def test_an_older_checkpoint_goes_on_and_what_is_charged_stays(tmp_path):
    cut_off(tmp_path)
    old = (tmp_path / "kept.pt").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        gone_on(tmp_path, kind=stopped(1), every=1)
    (tmp_path / "kept.pt").write_bytes(old)
    made = gone_on(tmp_path)
    assert (made.taken, made.lost, made.charged) == (1, 3, 8)
    assert torch.load(tmp_path / "kept.pt", weights_only=True)["steps"] == 5
    assert gone_on(tmp_path).lost == 3  # of the whole training


def test_a_checkpoint_without_a_journal_is_refused(tmp_path):
    parameters = weights()
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1)
    given = {"optimizer": optimizer, "checkpoint": tmp_path / "kept.pt"}
    for ledger in (POISSON, Ledger(POISSON, noise=FloatNoise())):
        with pytest.raises(InputError, match="checkpoint is given for a ledger without a journal"):
            fit(direct, parameters, torch.eye(3), ledger, **given)


@pytest.mark.parametrize("rate", [np.float64(0.1), lambda: 0.1])
def test_a_state_that_nobody_could_read_again_is_refused_before_a_step(tmp_path, rate):
    parameters = weights()
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1)
    optimizer.param_groups[0]["lr"] = rate
    ledger = Ledger(POISSON, noise=FloatNoise(), journal=tmp_path / "steps.jsonl")
    given = {"optimizer": optimizer, "checkpoint": tmp_path / "kept.pt"}
    with pytest.raises(InputError, match="cannot hold the state of this optimizer or scheduler"):
        fit(direct, parameters, torch.eye(3), ledger, **given)
    assert len(ledger) == 0
    assert not (tmp_path / "kept.pt").exists()


def cut_off(folder, kind=None, **settings):
    """A training that was cut off after four steps, and its checkpoint."""
    (folder / "steps.jsonl").unlink(missing_ok=True)
    (folder / "kept.pt").unlink(missing_ok=True)
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=8)
    parameters = weights()
    ledger = Ledger(plan, noise=FloatNoise(), journal=folder / "steps.jsonl")
    optimizer = stopped(4)(parameters.values(), lr=0.1, momentum=0.9)
    if kind is not None:
        settings["scheduler"] = kind(optimizer)
    with pytest.raises(KeyboardInterrupt), ledger:
        fit(direct, parameters, 50 * torch.eye(3), ledger, **kept(folder, optimizer, settings))


def stopped(after):
    """A kind of optimizer that somebody interrupts after so many steps."""
    left = iter(range(after))

    class Stopped(torch.optim.SGD):
        def step(self, *given):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return super().step(*given)

    return Stopped


def kept(folder, optimizer, settings):
    files = {"checkpoint": folder / "kept.pt", "every": 2}
    return {"optimizer": optimizer, "divisor": 1.0} | files | settings


def gone_on(folder, noise=None, kind=torch.optim.SGD, **settings):
    parameters = weights()
    ledger = Ledger.resume(folder / "steps.jsonl", noise=noise or FloatNoise())
    try:
        more = {"momentum": 0.9} if issubclass(kind, torch.optim.SGD) else {}
        optimizer = kind(parameters.values(), lr=0.1, **more)
        given = kept(folder, optimizer, settings)
        return fit(direct, parameters, 50 * torch.eye(3), ledger, **given)
    finally:
        ledger.journal.release()


FOLLOWS = {"adaptive": Adaptive(), "clip_norm": 5.0}


@pytest.mark.parametrize(("before", "after"), [(FOLLOWS, {}), ({}, FOLLOWS)])
def test_a_checkpoint_of_another_way_to_clip_is_refused(tmp_path, before, after):
    """The norm that it holds would stand in place of the plan's."""
    cut_off(tmp_path, **before)
    with pytest.raises(InputError, match="is of a training with another clip norm, one that"):
        gone_on(tmp_path, **after)
    assert gone_on(tmp_path, **before).taken == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clip_norm", 0.0),
        ("after", "0" * 64),
        ("parameters", {"w": torch.ones(3)}),
        ("optimizer", {}),
        ("state", {0: {"momentum_buffer": "x"}}),
        ("state", {0: {"momentum_buffer": torch.zeros(7)}}),
        ("param_groups", [{"params": [0], "lr": None}]),
    ],
)
def test_an_edited_checkpoint_is_refused_before_a_step_is_charged(tmp_path, name, value):
    """An optimizer takes any state, and would fail within a step that is charged already."""
    cut_off(tmp_path)
    whole = (tmp_path / "kept.pt").read_bytes()
    held = torch.load(tmp_path / "kept.pt", weights_only=True)
    (held if name in held else held["optimizer"])[name] = value
    torch.save(held, tmp_path / "kept.pt")
    edited = (tmp_path / "kept.pt").read_bytes()
    for content in (edited, edited + whole[-8:], whole[:-1], whole[1:], b""):
        (tmp_path / "kept.pt").write_bytes(content)
        with pytest.raises(InputError, match=r"kept.pt' is not as fit wrote it; restore the file"):
            gone_on(tmp_path)
    (tmp_path / "kept.pt").write_bytes(whole)
    made = gone_on(tmp_path)
    assert (made.taken, made.charged) == (3, 8)


def test_a_checkpoint_of_another_scheduler_is_refused_before_a_step_is_charged(tmp_path):
    """Its optimizer lacks what this one's writes into it."""
    cut_off(tmp_path, kind=torch.optim.lr_scheduler.ConstantLR)
    parameters = weights()
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1, momentum=0.9)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=9)
    with Ledger.resume(tmp_path / "steps.jsonl", noise=FloatNoise()) as ledger:
        given = kept(tmp_path, optimizer, {"scheduler": rate})
        with pytest.raises(InputError, match=r"does not belong to this training \(KeyError\)"):
            fit(direct, parameters, 50 * torch.eye(3), ledger, **given)
        assert len(ledger) == 5
        ledger.close()


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    cut_off(tmp_path)
    with Ledger.resume(tmp_path / "steps.jsonl", noise=FloatNoise()) as ledger:
        parameters = weights(4)
        optimizer = torch.optim.SGD(parameters.values(), lr=0.1, momentum=0.9)
        with pytest.raises(InputError, match="holds other parameters; give another file"):
            fit(direct, parameters, torch.eye(4), ledger, **kept(tmp_path, optimizer, {}))
        ledger.close()


def test_a_checkpoint_that_cannot_be_read_is_one_sentence(tmp_path):
    cut_off(tmp_path)
    (tmp_path / "kept.pt").unlink()
    (tmp_path / "kept.pt").mkdir()
    with pytest.raises(InputError, match=r"does not belong to this training \(IsADirectoryError\)"):
        gone_on(tmp_path)


def test_a_checkpoint_of_another_optimizer_is_refused(tmp_path):
    cut_off(tmp_path)
    with pytest.raises(InputError, match="does not belong to this training"):
        gone_on(tmp_path, kind=torch.optim.Adam)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"checkpoint": 5}, "checkpoint is a int; it must be a path"),
        (
            {"checkpoint": "no/folder/kept.pt"},
            "'no/folder/kept.pt' cannot be written: No such file",
        ),
        ({"scheduler": 5}, "scheduler is a int; it must be one of torch.optim"),
        (
            {"scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau},
            "scheduler is a ReduceLROnPlateau; it must be one of torch.optim whose step takes no",
        ),
    ],
)
def test_what_fit_cannot_use_is_refused_before_a_step_is_charged(tmp_path, settings, words):
    parameters = weights()
    ledger = Ledger(POISSON, noise=FloatNoise(), journal=tmp_path / "steps.jsonl")
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1)
    settings = {k: v(optimizer) if isinstance(v, type) else v for k, v in settings.items()}
    with pytest.raises(InputError, match=words):
        fit(direct, parameters, torch.eye(3), ledger, optimizer=optimizer, **settings)
    assert len(ledger) == 0


def test_a_step_that_was_cut_off_is_not_made_again():
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=1.0, steps=3, relation=ZeroOut())
    data = torch.tensor([[1.0], [2.0]])

    def loss(parameters, example):
        if fails:
            raise KeyboardInterrupt
        return (parameters["w"] * example).sum()

    fails = False
    made = Trainer(loss, weights(1), data, Ledger(plan, noise=FloatNoise()))
    next(made)
    fails = True
    with pytest.raises(KeyboardInterrupt):
        next(made)
    fails = False
    with pytest.raises(ClosedLedgerError, match="a step was interrupted before its noise"):
        next(made)
    assert len(made.ledger) == 1


def test_one_training_beside_another_of_one_label_makes_no_step_too_many():
    ledger = Ledger(POISSON, noise=FloatNoise())
    one, two = (Trainer(direct, weights(), torch.eye(3), ledger) for _ in range(2))
    for _ in range(3):
        next(one)
        next(two)
    with pytest.raises(PlanMismatchError):
        next(one)


DISJOINT = Plan.dp_sgd(noise_multiplier=1.0, batching="disjoint", steps=6, epochs=2)


def test_one_order_of_batches_for_all_who_go_on():
    """Of two orders a unit might be in two batches of one epoch."""
    ledger = Ledger(DISJOINT, noise=FloatNoise())
    next(Trainer(direct, weights(), torch.eye(3), ledger, seed=1))
    with pytest.raises(InputError, match=r"began with 'batch 1 \(order of seed 1"):
        next(Trainer(direct, weights(), torch.eye(3), ledger, seed=2))
    assert len(list(Trainer(direct, weights(), torch.eye(3), ledger, seed=1))) == 5


def test_an_epoch_has_one_order_whichever_others_are_trained_with_it():
    """In another order, a unit might take part twice in an epoch that was begun."""
    names = DistinctNames.of([str(n) for n in range(12)])

    def second(at):
        ledger = Ledger(DISJOINT, noise=FloatNoise())
        steps = batches(ledger, invocations_at(ledger, at), names, 0)
        return [each.places.tolist() for each in steps if each.invocation.at.endswith("epoch 2")]

    assert second("gradient, epoch 2") == second("gradient")


def test_steps_of_another_trainer_are_told_also_where_it_began_later():
    ledger = Ledger(DISJOINT, noise=FloatNoise())
    one, two = (Trainer(direct, weights(), torch.eye(3), ledger) for _ in range(2))
    next(one)
    assert len(list(two)) == 5
    ledger.close()
    for trainer, others in ((one, 5), (two, 1)):
        certificate = trainer.certificate(delta=1e-5)
        told = next(each for each in certificate.findings if each.rule == "steps-before")
        assert f"{others} steps that this trainer did not finish." in told.message
        assert certificate.run["summary"]["noisy_steps"] == 6


def steps_before(made):
    """Where steps of others are told, and what is said of them."""
    found = made.certificate(delta=1e-5).findings
    return {each.at: each.message for each in found if each.rule == "steps-before"}


@pytest.mark.parametrize("kind", ["disjoint", "poisson"])
def test_steps_of_another_trainer_at_another_label_are_told(kind):
    settings = {"batching": "disjoint"} if kind == "disjoint" else {"sample_rate": 0.5}
    epochs = {"epochs": 1} if kind == "disjoint" else {}
    one, two = (
        Plan.dp_sgd(noise_multiplier=1.0, steps=3, at=at, unit="row", **epochs, **settings)
        for at in "ab"
    )
    about = (PrivacyUnit("row"), one.invocations[0].relation, TrustModel.CENTRAL)
    other = Invocation(Gaussian(5.0), 1.0, *about, at="mean")
    count = Invocation.bounded(Gaussian(5.0), Contribution(1.0), *about, at="count")
    ledger = Ledger(Plan.of(*one.invocations, *two.invocations, other, count), noise=FloatNoise())
    ledger.count(3, at="count")
    ledger.release(Gaussian(5.0), 1.0, at="mean")
    first = Trainer(direct, weights(), torch.eye(3), ledger, at="a", divisor=1)
    second = Trainer(direct, weights(), torch.eye(3), ledger, at="b", divisor=1)
    assert len(list(first)) == 3
    next(second)
    ledger.close()
    assert list(steps_before(first)) == ["b"]
    told = steps_before(second)
    assert list(told) == ["a"]
    assert told["a"].startswith("The ledger counts 3 releases on batches that this training did")


def test_a_step_that_failed_in_its_noise_is_told_as_one_that_was_not_finished(monkeypatch):
    ledger = Ledger(POISSON, noise=FloatNoise())
    made = Trainer(direct, weights(), torch.eye(3), ledger)
    next(made)

    def broken(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(ledger.noise, "release", broken, raising=False)
        with pytest.raises(MemoryError):
            next(made)
    ledger.close()
    (told,) = steps_before(made).values()
    assert told.startswith("The ledger counts 1 steps that this trainer did not finish. If another")


def test_a_checkpoint_has_the_steps_of_its_own_trainer_alone(tmp_path):
    journal, kept = tmp_path / "steps.jsonl", tmp_path / "kept.pt"
    ledger = Ledger(POISSON, noise=FloatNoise(), journal=journal)
    beside = Trainer(direct, weights(), torch.eye(3), ledger)

    class Beside(torch.optim.SGD):
        taken = 0

        def step(self, *given):
            super().step(*given)
            self.taken += 1
            if self.taken == 3:
                raise KeyboardInterrupt
            next(beside)

    w = weights()
    given = {"checkpoint": kept, "every": 1}
    with pytest.raises(KeyboardInterrupt), ledger:
        fit(direct, w, torch.eye(3), ledger, optimizer=Beside(w.values(), lr=1.0), **given)
    ledger = Ledger.resume(journal, noise=FloatNoise())
    w = weights()
    optimizer = torch.optim.SGD(w.values(), lr=1.0)
    with pytest.warns(UserWarning, match="5 steps are charged, and 3 of them are lost"):
        made = fit(direct, w, torch.eye(3), ledger, optimizer=optimizer, **given)
    assert (made.taken, made.lost) == (1, 3)  # the third own one, and two of the other trainer


def test_a_checkpoint_is_there_once_steps_are_charged_and_of_the_same_label(tmp_path):
    journal, kept = tmp_path / "steps.jsonl", tmp_path / "kept.pt"
    plan = Plan.of(
        *Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=2, at="a").invocations,
        *Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=2, at="b").invocations,
    )
    ledger = Ledger(plan, noise=FloatNoise(), journal=journal)

    def train(at, path):
        w = weights()
        optimizer = torch.optim.SGD(w.values(), lr=1.0)
        fit(direct, w, torch.eye(3), ledger, at=at, divisor=1, optimizer=optimizer, checkpoint=path)

    train("a", kept)
    with pytest.raises(InputError, match="is of another label"):
        train("b", kept)
    with pytest.raises(InputError, match="2 steps are charged already"):
        train("a", tmp_path / "moved.pt")
    assert len(ledger) == 2


@pytest.mark.parametrize(("seed", "rows"), [(1, 6), (0, 9)])
def test_the_order_of_batches_is_in_the_journal(tmp_path, seed, rows):
    journal = tmp_path / "steps.jsonl"
    ledger = Ledger(DISJOINT, noise=FloatNoise(), journal=journal)
    next(Trainer(direct, weights(), torch.ones(6, 3), ledger))
    ledger.journal.release()
    ledger = Ledger.resume(journal, noise=FloatNoise())
    with pytest.raises(InputError, match="so keep the seed, the units and the version"):
        next(Trainer(direct, weights(), torch.ones(rows, 3), ledger, seed=seed))
    assert len(ledger) == 1
    assert len(list(Trainer(direct, weights(), torch.ones(6, 3), ledger))) == 5


@pytest.mark.parametrize("law", ["disjoint", "correlated"])
def test_a_user_whose_rows_come_later_moves_nobody_else_to_another_batch(law):
    """In a log the first row of one decides on the places of all users that come after it."""
    user = {"unit": PrivacyUnit("user"), "relation": ReplaceOne()}
    plan = {
        "disjoint": Plan.dp_sgd(
            noise_multiplier=1.0, batching="disjoint", steps=6, epochs=2, unit="user"
        ),
        "correlated": correlated(**user),
    }[law]
    names = [f"user {n}" for n in range(30)]

    def taken(users):
        rows = torch.eye(30)[[names.index(each) for each in users]]
        ledger = Ledger(plan, noise=FloatNoise(np.random.default_rng(0)))
        made = Trainer(
            direct, weights(30), rows, ledger, users=users, most_rows=1, divisor=1.0, chunk=8
        )
        places, total = [], made._sums.total
        made._sums.total = lambda own, *_, **__: (places.append(own), total(own, 1.0))[1]
        list(made)
        return [{users[place] for place in own} for own in places]

    one, other = taken(names), taken([*names[1:], names[0]])
    assert one == other
    assert sorted(chain(*one)) == sorted(2 * names)  # each user once in each pass
    assert max(map(len, one)) < 30


# -- correlated noise, adaptive clipping -----------------------------------------------------------


def correlated(steps=6, apart=3, passes=2, **changes):
    law = ContinualGaussian(
        sigma=2.0,
        factorization=BandedToeplitz(steps, 3),
        participations=passes,
        min_separation=apart,
        cyclic=True,
    )
    facts = {"unit": PrivacyUnit("row"), "relation": ZeroOut(), "trust": TrustModel.CENTRAL}
    return Plan.of(Invocation(law, 1.0, **(facts | changes), at="gradient"))


def test_correlated_noise_is_that_of_the_ledgers_stream():
    """The differences of noisy prefix sums, from one seed, are what the trainer hands out."""
    data = torch.tensor(np.random.default_rng(0).normal(size=(9, 4)), dtype=torch.float64) * 0.1
    ledger = Ledger(correlated(), noise=FloatNoise(np.random.default_rng(5)))
    parameters = {"w": torch.zeros(4, dtype=torch.float64)}
    made = [
        step["w"].numpy() for step in Trainer(direct, parameters, data, ledger, divisor=1.0, seed=7)
    ]
    parts = np.array_split(np.random.default_rng([7]).permutation(9), 3)
    law = ledger.plan.invocations[0].mechanism
    stream = law.start((4,), np.random.default_rng(5))
    prefix = [stream.add(data[parts[step % 3]].sum(dim=0).numpy()) for step in range(6)]
    assert np.cumsum(made, axis=0) == pytest.approx(np.array(prefix), abs=1e-12)
    assert len(ledger) == 1


def test_a_stream_cannot_go_on(tmp_path):
    ledger = Ledger(correlated(), noise=FloatNoise(), journal=tmp_path / "steps.jsonl")
    next(Trainer(direct, weights(), torch.eye(3), ledger))
    ledger.journal.release()
    resumed = Ledger.resume(tmp_path / "steps.jsonl", noise=FloatNoise())
    with pytest.raises(Exception, match="already begun, and no journal keeps its noise"):
        next(Trainer(direct, weights(), torch.eye(3), resumed))


def test_adaptive_sum_and_count_are_one_release_of_length_one():
    rule = Adaptive(quantile=0.5, rate=0.5, share=0.3)
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=1.0, steps=4)
    noise = Silent(np.random.default_rng(0))
    seen = []
    noise.release = lambda entry, value: seen.append(np.array(value)) or np.array(value)
    ledger = Ledger(plan, noise=noise)
    for size in (0.1, 50.0):
        seen.clear()
        made = Trainer(
            direct,
            weights(1),
            torch.tensor([[size]]),
            ledger,
            divisor=1.0,
            adaptive=rule,
            clip_norm=2.0,
        )
        next(made)
        assert np.linalg.norm(seen[0]) <= 1.0
        clipped = min(size, 2.0)
        assert made.parameters["w"].grad.item() == pytest.approx(clipped, rel=2e-3)
        # All of one unit were, or were not, clipped: Andrew et al. 2021, Algorithm 1.
        unclipped = float(size < 2)
        assert made.clip_norm == pytest.approx(2 * math.exp(-0.5 * (unclipped - 0.5)), rel=1e-6)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (POISSON, "also counts units that add no gradient"),
        (correlated(), "adaptive is given, but correlated noise"),
    ],
)
def test_where_the_clip_norm_cannot_follow(plan, words):
    with pytest.raises(Exception, match=words):
        trainer(plan, adaptive=Adaptive(), clip_norm=1.0)


# -- certificates ----------------------------------------------------------------------------------


def test_a_training_is_certified_as_its_plan():
    made = trainer(POISSON, noise=FloatNoise())
    with pytest.raises(PlanMismatchError, match="declared 6 times and ran 0 times"):
        made.certificate(1e-5)
    for _ in made:
        pass
    certificate = made.certificate(1e-5)
    verify(certificate)
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.plan == POISSON
    standing = {str(each.premise): str(each.standing) for each in certificate.assumptions}
    alone = {str(each.premise): str(each.alone) for each in certificate.assumptions}
    for premise in ("values within the sensitivity", "sampling as declared and secret"):
        assert (alone[premise], standing[premise]) == ("enforced", "assumed")
    assert standing["each value from its own unit's data alone"] == "assumed"
    assert standing["control flow from public facts and releases"] == "assumed"
    assert standing["noise of the declared law, fresh and secret"] == "enforced"
    assert any("reads nothing but its parameters" in each for each in certificate.not_covered)


def test_exact_noise_is_told(tmp_path):
    pytest.importorskip("opendp")
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=3, relation=ZeroOut())
    ledger = Ledger(plan, journal=tmp_path / "steps.jsonl")
    made = Trainer(direct, weights(), torch.eye(3), ledger)
    for _ in made:
        pass
    ledger.close()
    certificate = made.certificate(1e-5)
    verify(certificate)
    assert not {"float-noise", "float-sampler"} & {each.rule for each in certificate.findings}
    assert certificate.run["ledger"]["head"] == ledger.journal.head


def test_a_seed_is_told():
    made = trainer(POISSON)
    for _ in made:
        pass
    certificate = made.certificate(1e-5)
    assert "training" not in certificate.run
    verify(certificate)
    assert "training-seeded" in {each.rule for each in certificate.findings}


def test_epsilon_grows_with_the_steps():
    made = trainer(POISSON)
    seen = [made.epsilon(1e-5)] + [made.epsilon(1e-5) for _ in made]
    assert seen[0] == 0.0
    assert seen == sorted(seen)


def test_units_that_are_protected_are_those_that_are_clipped():
    users = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=1, unit="user")
    with pytest.raises(PlanMismatchError, match=r"unit is 'user', .* clips rows"):
        trainer(users, divisor=1.0)
    with pytest.raises(PlanMismatchError, match=r"unit is 'example', .* clips users"):
        trainer(POISSON, users=["a", "b", "c"], most_rows=1)


def test_what_code_says_of_itself_lifts_no_premise(tmp_path):
    """A result that calls itself a training's is none."""
    from dpaudit.workflow.running import run_subject

    (tmp_path / "posing.py").write_text(POSING, "utf-8")
    with pytest.MonkeyPatch.context() as patching:
        patching.syspath_prepend(tmp_path)
        certificate, _ = run_subject("posing:Posing", [], None, 1, tmp_path / "out", rehearse=False)
    assert "training" not in certificate.run


POSING = """
from dataclasses import dataclass

from examples import Answers


class Result:
    def to_dict(self):
        return {"summary": {}, "series": {}, "training": {"labels": ["answer"]}}


@dataclass(frozen=True)
class Posing(Answers):
    default_data = "numbers"

    def run(self, data, ledger, rng):
        Answers.run(self, data, ledger, rng)
        return Result()
"""
