import gc
import hashlib
import json
import math
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.optimizers import optimizer as opacus_optimizer
from opacus.schedulers import ExponentialNoise, StepGradClip
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.validators.errors import UnsupportedModuleError
from opacus_trainings import certified, verdict
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import (
    AddRemove,
    BudgetExceededError,
    ClosedLedgerError,
    Contribution,
    FloatNoise,
    Gaussian,
    InputError,
    Invocation,
    Ledger,
    Plan,
    PlanMismatchError,
    PrivacyUnit,
    Severity,
    TamperedError,
    TrustModel,
    Verdict,
    ZeroOut,
    guarantee,
)
from dpaudit.accounting.budgets import RenyiFilter
from dpaudit.accounting.orders import ORDERS
from dpaudit.certificate import load_certificate, verify
from dpaudit.ledger import read_journal
from dpaudit.training import Trainer
from dpaudit.training.opacus import attach
from dpaudit.training.opacus.batches import BatchStream
from dpaudit.workflow.verifying import require_journal

pytestmark = [
    pytest.mark.filterwarnings("ignore:Secure RNG turned off:UserWarning"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning"),
    pytest.mark.filterwarnings("ignore:Optimal order is the:UserWarning"),
]
SIZE, BATCH = 60, 10
STEPS = SIZE // BATCH


def rows(size=SIZE):
    generator = torch.Generator().manual_seed(1)
    return TensorDataset(
        torch.randn(size, 4, generator=generator),
        torch.randint(0, 2, (size,), generator=generator),
    )


def parts(batch=BATCH, size=SIZE, **settings):
    model = nn.Linear(4, 2)
    loader = DataLoader(rows(size), batch_size=batch, shuffle=True, **settings)
    return {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "data_loader": loader,
        "noise_multiplier": 1.0,
        "max_grad_norm": 1.0,
    }


def private(engine=None, batch=BATCH, **settings):
    made = parts(batch) | settings
    return (engine or PrivacyEngine(accountant="rdp")).make_private(**made)


def plan(**settings):
    return Plan.dp_sgd(
        **{"noise_multiplier": 1.0, "sample_rate": 1 / STEPS, "epochs": 1} | settings
    )


def disjoint_plan(epochs=1, steps=STEPS, **settings):
    return Plan.dp_sgd(
        noise_multiplier=1.0, epochs=epochs, steps=epochs * steps, batching="disjoint", **settings
    )


def backward(model, batch):
    cross_entropy(model(batch[0]), batch[1]).backward()


def step(model, optimizer, batch):
    optimizer.zero_grad()
    backward(model, batch)
    optimizer.step()


def train(model, optimizer, loader, epochs=1):
    for _ in range(epochs):
        for batch in loader:
            step(model, optimizer, batch)


def rules(training):
    return {each.rule for each in training.findings()}


@pytest.fixture
def draws(monkeypatch):
    """How often opacus drew noise for a first parameter: the truth that the ledger must tell."""
    drawn = []
    original = opacus_optimizer._generate_noise

    def counted(std, reference, **settings):
        if reference.ndim == 2:
            drawn.append(std)
        return original(std, reference, **settings)

    monkeypatch.setattr(opacus_optimizer, "_generate_noise", counted)
    return drawn


# -- three lines -------------------------------------------------------------------------------


def test_three_epochs_on_digits_agree_with_opacus(tmp_path):
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    engine = PrivacyEngine(accountant="rdp")

    ledger = Ledger(
        Plan.dp_sgd(noise_multiplier=1.1, sample_rate=1 / len(loader), epochs=3),
        journal=tmp_path / "ledger.jsonl",
    )
    training = attach(engine, ledger, expected_batch_size=64)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=loader,
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )
    train(model, optimizer, loader, epochs=3)
    certificate = certified(training)

    theirs = engine.get_epsilon(1e-5)
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon == pytest.approx(theirs, abs=1e-3)
    orders = [float(order) for order in ORDERS if 1.05 < order < 65]
    same_orders = engine.accountant.get_epsilon(1e-5, alphas=orders)
    assert certificate.guarantee.epsilon == pytest.approx(same_orders, abs=1e-9)
    best = training.certificate(1e-5).guarantee.epsilon
    assert best < training.certificate(1e-5, accountant="pld").guarantee.epsilon + 1e-12
    assert best < theirs - 0.1

    ledger.close()
    content = read_journal(tmp_path / "ledger.jsonl")
    assert content.closed
    assert len(content.entries) == 87 == len(training.steps)
    assert {entry.sampler for entry in content.entries} == {"opacus 1.6.0"}
    assert all(entry.source.startswith(f"{__name__}:") for entry in content.entries)
    written = (tmp_path / "ledger.jsonl").read_text()
    assert "batch" not in written  # actual sizes are private
    saved = certificate.save(tmp_path / "certificate.json")
    assert load_certificate(saved) == certificate
    assert any(
        each.rule == "noise-drawn-elsewhere" and "opacus 1.6.0" in each.message
        for each in certificate.findings
    )


def test_core_and_package_import_without_torch():
    code = (
        "import sys, dpaudit, dpaudit.training.membership, private_bo;"
        "dpaudit.Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.1, steps=1);"
        "sys.exit(', '.join({'torch', 'opacus'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- every noisy step that really happened -----------------------------------------------------


def test_virtual_steps_count_once(draws):
    engine = PrivacyEngine(accountant="rdp")
    ledger = Ledger(plan(epochs=2))
    training = attach(engine, ledger, expected_batch_size=BATCH)
    model, optimizer, loader = private(engine)
    for _ in range(2):
        with BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=4, optimizer=optimizer
        ) as small:
            train(model, optimizer, small)
    ledger.check()
    assert len(draws) == len(ledger) == 2 * STEPS == len(training.steps)
    assert max(each.physical_batches for each in training.steps) > 1
    assert {each.epoch for each in training.steps} == {1, 2}
    sizes = [each.actual_batch_size for each in training.steps]
    assert all(
        math.ceil(size / 4) == each.physical_batches
        for size, each in zip(sizes, training.steps, strict=True)
        if size
    )
    assert not {"batch-not-fresh", "batches-not-poisson"} & rules(training)
    assert verdict(training) is Verdict.CERTIFIED


def test_actual_batches_are_those_that_were_drawn():
    ledger = Ledger(plan(epochs=3))
    model, optimizer, loader = private()
    training = attach(optimizer, ledger, loader)
    seen = []
    for _ in range(3):
        for batch in loader:
            seen.append(len(batch[0]))
            step(model, optimizer, batch)
    assert [each.actual_batch_size for each in training.steps] == seen
    assert len(set(seen)) > 2
    assert rules(training) == {"noise-not-secure", "expected-batch-depends-on-data"}


def test_accumulated_disjoint_batches_are_one_step(draws):
    model, optimizer, loader = private(poisson_sampling=False)
    ledger = Ledger(disjoint_plan(steps=STEPS // 2))
    training = attach(optimizer, ledger, loader)
    for turn, batch in enumerate(loader):
        backward(model, batch)
        if turn % 2:
            optimizer.step()
            optimizer.zero_grad()
    ledger.check()
    assert len(draws) == 3
    assert [each.actual_batch_size for each in training.steps] == [2 * BATCH] * 3
    assert [each.unit for each in training.steps] == ["batch 1", "batch 2", "batch 3"]
    assert verdict(training) is Verdict.CERTIFIED


@pytest.mark.parametrize("declared", [plan(), disjoint_plan(epochs=2)])
def test_accumulation_across_samples_or_epochs_is_refused_before_noise(draws, declared):
    model, optimizer, loader = private(poisson_sampling=False)
    ledger = Ledger(declared)
    attach(optimizer, ledger, loader)
    backward(model, next(iter(loader)))
    backward(model, next(iter(loader)))
    with pytest.raises(PlanMismatchError, match="accumulates 2 batches"):
        optimizer.step()
    assert not draws
    assert len(ledger) == 0


def test_declared_schedules_of_noise_and_clip(draws):
    noise, norms = [1.0, 0.9, 0.9**2], [1.0, 1.0, 0.5]
    declared = plan(noise_multiplier=noise, max_grad_norm=norms, epochs=3)
    model, optimizer, loader = private()
    ledger = Ledger(declared)
    training = attach(optimizer, ledger, loader)
    noises = ExponentialNoise(optimizer, gamma=0.9)
    clips = StepGradClip(optimizer, step_size=2, gamma=0.5)
    for _ in range(3):
        train(model, optimizer, loader)
        noises.step()
        clips.step()
    ledger.check()
    assert [each.noise_multiplier for each in training.steps[::STEPS]] == pytest.approx(noise)
    assert [each.max_grad_norm for each in training.steps[::STEPS]] == norms
    assert draws == pytest.approx(
        [z * c for z, c in zip(noise, norms, strict=True) for _ in range(STEPS)]
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"noise_multiplier": 0.5}, "another sigma ran"),
        ({"noise_multiplier": 0.0}, "noise multiplier 0"),
        ({"noise_multiplier": 0.5, "max_grad_norm": 2.0}, "clip norm 2 makes it 2"),
        ({"noise_multiplier": 1 - 1e-6}, "another sigma ran"),
    ],
)
def test_undeclared_noise_is_refused_before_it_is_drawn(change, sentence, draws):
    model, optimizer, loader = private()
    ledger = Ledger(plan())
    attach(optimizer, ledger, loader)
    for name, value in change.items():
        setattr(optimizer, name, value)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(PlanMismatchError, match=sentence):
        step(model, optimizer, next(iter(loader)))
    assert not draws
    assert len(ledger) == 0
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))


def test_more_steps_than_declared_are_refused(draws):
    model, optimizer, loader = private()
    ledger = Ledger(plan())
    attach(optimizer, ledger, loader)
    with pytest.raises(PlanMismatchError, match="declared 6 times"):
        train(model, optimizer, loader, epochs=2)
    assert len(draws) == STEPS == len(ledger)


def test_several_optimizers_of_one_engine():
    declared = Plan.of(*plan(at="a").invocations, *plan(at="b", epochs=2).invocations)
    ledger = Ledger(declared)
    engine = PrivacyEngine(accountant="rdp")
    training = attach(engine, ledger, at=["a", "b"], expected_batch_size=BATCH)
    made = parts()
    one = engine.make_private(**made)
    two = engine.make_private(**parts() | {"data_loader": made["data_loader"]})
    with pytest.raises(InputError, match="more optimizers"):
        engine.make_private(**parts() | {"data_loader": made["data_loader"]})
    train(*one)
    train(*two, epochs=2)
    training.check()
    assert [each.at for each in training.steps] == ["a"] * STEPS + ["b"] * 2 * STEPS
    certificate = certified(training)
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon == guarantee(plan(epochs=3), 1e-5, "rdp").epsilon
    assert set(certificate.subject.configuration) == {"a", "b"}


def test_two_optimizers_on_one_batch_are_not_two_samples():
    ledger = Ledger(Plan.of(*plan(at="a").invocations, *plan(at="b").invocations))
    first, optimizer, loader = private()
    second, other, _ = private()
    training = attach(optimizer, ledger, loader, at="a")
    assert attach(other, ledger, loader, at="b") is training
    for batch in loader:
        step(first, optimizer, batch)
        step(second, other, batch)
    found = [each for each in training.findings() if each.rule == "batch-not-fresh"]
    assert found
    assert verdict(training) is Verdict.UNPROVEN


def test_skipped_steps_and_failures_are_no_invocations(draws, monkeypatch):
    model, optimizer, loader = private()
    ledger = Ledger(plan())
    training = attach(optimizer, ledger, loader)
    batches = list(loader)
    optimizer.signal_skip_step()
    step(model, optimizer, batches[0])
    assert len(ledger) == 0

    class BrokenError(Exception):
        pass

    def broken(*_, **__):
        raise BrokenError

    with monkeypatch.context() as patch:
        patch.setattr(opacus_optimizer, "_generate_noise", broken)
        with pytest.raises(BrokenError):
            step(model, optimizer, batches[1])
    with monkeypatch.context() as patch:
        patch.setattr(opacus_optimizer, "_check_processed_flag", broken)
        with pytest.raises(BrokenError):
            step(model, optimizer, batches[1])
    with pytest.raises(BrokenError):
        optimizer.step(broken)
    # The one that failed while drawing was charged before; nobody knows how far it came.
    assert (len(ledger), len(training.steps), len(draws)) == (1, 0, 0)
    optimizer._is_last_step_skipped = False
    step(model, optimizer, batches[2])
    assert (len(ledger), len(draws)) == (2, 1)
    assert training.steps[0].actual_batch_size == len(batches[2][0])

    optimizer.attach_step_hook(broken)  # after the noise: the noisy gradient exists
    with pytest.raises(BrokenError):
        step(model, optimizer, batches[3])
    assert (len(ledger), len(draws)) == (3, 2)


def test_the_step_hook_stays_free():
    engine = PrivacyEngine(accountant="rdp")
    ledger = Ledger(plan())
    training = attach(engine, ledger)
    made = private(engine)
    train(*made)
    assert engine.accountant.history == [(1.0, 1 / STEPS, STEPS)]
    assert len(training.steps) == STEPS


# -- plan = run --------------------------------------------------------------------------------


def test_a_step_without_the_ledger_is_refused():
    """Noise that was drawn past the ledger gives the wrapped optimizer no step."""
    training = attach((made := private())[1], Ledger(plan()), made[2])
    model, optimizer, loader = made
    before = [p.detach().clone() for p in model.parameters()]
    optimizer.add_noise = lambda: DPOptimizer.add_noise(optimizer)
    with pytest.raises(PlanMismatchError, match="without noise"):
        step(model, optimizer, next(iter(loader)))
    assert all(map(torch.equal, before, model.parameters()))
    assert not training.steps


def test_a_step_that_opacus_alone_accounted_is_found_at_the_end():
    engine = PrivacyEngine(accountant="rdp")
    training = attach(engine, Ledger(plan()))
    train(*private(engine))
    training.check()
    engine.accountant.step(noise_multiplier=1.0, sample_rate=1 / STEPS)
    with pytest.raises(PlanMismatchError, match="opacus accounted for 7 steps"):
        training.certificate(1e-5)


def test_a_ledger_closed_early_stops_the_training(draws):
    model, optimizer, loader = private()
    ledger = Ledger(plan())
    attach(optimizer, ledger, loader)
    batches = list(loader)
    step(model, optimizer, batches[0])
    ledger.close()
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(ClosedLedgerError):
        step(model, optimizer, batches[1])
    assert len(draws) == 1 == len(ledger)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))


def test_a_training_that_ends_early_keeps_the_certificate_of_what_was_declared():
    model, optimizer, loader = private()
    with Ledger(plan()) as ledger:
        training = attach(optimizer, ledger, loader)
        step(model, optimizer, next(iter(loader)))
        with pytest.raises(PlanMismatchError, match="declared 6 times and ran 1 times"):
            training.certificate(1e-5)
        ledger.close()
    certificate = certified(training)
    assert certificate.guarantee.epsilon == guarantee(plan(), 1e-5, "rdp").epsilon
    (found,) = [each for each in certificate.findings if each.rule == "training-ended-early"]
    assert "declared 6 times and ran 1 times" in found.message


def test_a_running_epsilon_is_that_of_the_steps_so_far():
    training = attach((made := private())[1], Ledger(plan()), made[2])
    model, optimizer, loader = made
    assert training.epsilon(1e-5) == 0
    for steps, batch in enumerate(loader, start=1):
        step(model, optimizer, batch)
        so_far = plan(epochs=None, steps=steps)
        assert training.epsilon(1e-5) == guarantee(so_far, 1e-5, "rdp").epsilon
        assert training.epsilon(1e-5, "pld") == guarantee(so_far, 1e-5, "pld").epsilon
    for wrong in (-0.1, 2, "1e-5", math.nan):
        with pytest.raises(InputError, match="delta"):
            training.epsilon(wrong)


def test_a_budget_ends_the_training_before_its_noise(draws):
    model, optimizer, loader = private()
    whole = plan(epochs=50)
    budget = RenyiFilter(epsilon=8.0, delta=1e-5)
    ledger = Ledger(whole, budget=budget)
    training = attach(optimizer, ledger, loader)
    with ledger:
        with pytest.raises(BudgetExceededError):
            train(model, optimizer, loader, epochs=50)
        ledger.close()
    assert 0 < len(ledger) == len(draws) < 50 * STEPS
    assert training.epsilon(1e-5) <= 8
    certificate = certified(training)
    assert "training-ended-early" in {each.rule for each in certificate.findings}
    assert certificate.guarantee.epsilon == 8.0 < guarantee(whole, 1e-5, "rdp").epsilon
    assert certificate.filtered.admitted == {"gradient": len(ledger)}


def test_a_certificate_names_its_journal_and_who_drew(tmp_path):
    paths = [tmp_path / "ledger.jsonl", tmp_path / "other.jsonl"]
    for path in paths:
        model, optimizer, loader = private()
        with Ledger(plan(), journal=path) as ledger:
            training = attach(optimizer, ledger, loader)
            train(model, optimizer, loader)
    certificate = certified(training)
    assert certificate.run["ledger"]["external"] == {"opacus 1.6.0": STEPS}
    verify(certificate)
    assert require_journal(certificate, path, None).releases == STEPS
    with pytest.raises(TamperedError, match="differ in head"):
        require_journal(certificate, paths[0], None)


@pytest.mark.parametrize("declared", [plan(epochs=2), disjoint_plan(epochs=2)])
def test_a_resumed_training_goes_on_with_its_ledger(tmp_path, declared):
    path = tmp_path / "ledger.jsonl"
    poisson = declared.invocations[0].sampling is not None
    model, optimizer, loader = private(poisson_sampling=poisson)
    first = Ledger(declared, journal=path)
    attach(optimizer, first, loader)
    train(model, optimizer, loader)
    checkpoint = model.state_dict(), optimizer.state_dict()
    first.journal.release()  # the process ends without closing the ledger

    with path.open("a") as file:
        file.write('{"at": "grad')  # and was cut off while writing
    model, optimizer, loader = private(poisson_sampling=poisson)
    model.load_state_dict(checkpoint[0])
    optimizer.load_state_dict(checkpoint[1])
    ledger = Ledger.resume(path)
    training = attach(optimizer, ledger, loader)
    assert len(ledger) == STEPS
    with pytest.raises(PlanMismatchError):
        train(model, optimizer, loader, epochs=2)
    training.check()
    ledger.close()
    content = read_journal(path)
    assert content.closed
    assert content.plan == declared
    assert len(content.entries) == 2 * STEPS
    assert certified(training).guarantee == guarantee(declared, 1e-5, "rdp")
    with pytest.raises(InputError, match="is closed"):
        Ledger.resume(path)


def test_a_checkpoint_of_opacus_brings_its_account_along(tmp_path):
    """Its steps are in the ledger already; how their batches were drawn, nobody saw."""
    path, declared = tmp_path / "ledger.jsonl", plan(epochs=2)
    engine = PrivacyEngine(accountant="rdp")
    first = attach(engine, Ledger(declared, journal=path), expected_batch_size=BATCH)
    model, optimizer, loader = private(engine)
    train(model, optimizer, loader)
    assert "resumed-steps-not-observed" not in rules(first)
    engine.save_checkpoint(path=tmp_path / "checkpoint.pt", module=model, optimizer=optimizer)
    first.ledger.journal.release()

    engine = PrivacyEngine(accountant="rdp")
    ledger = Ledger.resume(path)
    training = attach(engine, ledger, expected_batch_size=BATCH)
    model, optimizer, loader = private(engine)
    engine.load_checkpoint(path=tmp_path / "checkpoint.pt", module=model, optimizer=optimizer)
    train(model, optimizer, loader)
    ledger.close()
    assert verdict(training) is Verdict.UNPROVEN
    assert "resumed-steps-not-observed" in rules(training)


@pytest.mark.parametrize(
    ("declared", "poisson", "severity"),
    [
        (plan(epochs=2), True, Severity.ERROR),
        (disjoint_plan(epochs=2), False, Severity.ERROR),
        (plan(sample_rate=1.0, epochs=None, steps=2 * STEPS), True, Severity.WARNING),
    ],
)
@pytest.mark.parametrize("goes_on", [True, False])
def test_steps_that_this_process_did_not_see_are_a_loader_that_nobody_saw(
    tmp_path, declared, poisson, severity, goes_on
):
    """Here they had other batches than the declared ones."""
    path, batch = tmp_path / "ledger.jsonl", BATCH if severity is Severity.ERROR else SIZE
    model, optimizer, loader = private(batch=batch, poisson_sampling=not poisson)
    first = Ledger(declared, journal=path)
    attach(optimizer, first)
    for _ in range(STEPS):
        step(model, optimizer, next(iter(loader)))
    first.journal.release()

    model, optimizer, loader = private(batch=batch, poisson_sampling=poisson)
    ledger = Ledger.resume(path)
    training = attach(optimizer, ledger, loader, expected_batch_size=BATCH)
    if goes_on:
        step(model, optimizer, next(iter(loader)))
    ledger.close()
    certificate = certified(training)
    (told,) = [x for x in certificate.findings if x.rule == "resumed-steps-not-observed"]
    assert (told.severity, told.at) == (severity, "gradient")
    unproven = severity is Severity.ERROR
    assert certificate.verdict is (Verdict.UNPROVEN if unproven else Verdict.CERTIFIED)
    assert "proved-instead" not in {each.rule for each in certificate.findings}
    verify(certificate)


def two_labels(**settings):
    first, second = (plan(epochs=1, at=at, **settings) for at in "ab")
    return Plan.of(*first.invocations, *second.invocations)


@pytest.mark.parametrize("resumed", [True, False])
@pytest.mark.parametrize("poisson", [True, False])
def test_steps_at_a_label_that_nobody_attached_are_not_observed(tmp_path, resumed, poisson):
    path = tmp_path / "ledger.jsonl"
    model, optimizer, loader = private(poisson_sampling=False)
    ledger = Ledger(two_labels(), journal=path)
    attach(optimizer, ledger, loader, at="a")
    train(model, optimizer, loader)
    if resumed:
        ledger.journal.release()
        ledger = Ledger.resume(path)
        model, optimizer, loader = private(poisson_sampling=poisson)
        training = attach(optimizer, ledger, loader, at="b", expected_batch_size=BATCH)
        step(model, optimizer, next(iter(loader)))
    else:
        data, model = rows(), nn.Linear(4, 2)

        def loss(parameters, example):
            x, y = example
            return cross_entropy(torch.func.functional_call(model, parameters, (x,)), y)

        training = Trainer(loss, model, data, ledger, at="b", divisor=BATCH)
        next(training)
    ledger.close()
    certificate = certified(training)
    (told,) = [x for x in certificate.findings if x.rule == "resumed-steps-not-observed"]
    assert (told.severity, told.at) == (Severity.ERROR, "a")
    assert f"{STEPS} steps that opacus took" in told.message
    assert certificate.verdict is Verdict.UNPROVEN
    assert "proved-instead" not in {each.rule for each in certificate.findings}


def test_one_training_of_two_labels_and_a_query_tells_of_no_others():
    about = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    count = Invocation.bounded(Gaussian(5.0), Contribution(1.0), *about, at="count")
    declared = Plan.of(*two_labels(unit="row").invocations, count)
    ledger = Ledger(declared, noise=FloatNoise())
    ledger.count(3, at="count")
    for at in "ab":
        model, optimizer, loader = private()
        training = attach(optimizer, ledger, loader, at=at, expected_batch_size=BATCH)
        train(model, optimizer, loader)
    found = {each.rule for each in certified(training).findings}
    assert not {"resumed-steps-not-observed", "steps-before"} & found


def test_steps_of_a_trainer_beside_opacus_are_told():
    ledger = Ledger(two_labels(), noise=FloatNoise())
    model, optimizer, loader = private()
    training = attach(optimizer, ledger, loader, at="b", expected_batch_size=BATCH)
    train(model, optimizer, loader)
    w = {"w": torch.zeros(4, requires_grad=True)}
    data = rows().tensors[0]
    assert len(list(Trainer(lambda p, x: p["w"] @ x, w, data, ledger, at="a", divisor=1))) == STEPS
    certificate = certified(training)
    (told,) = [x for x in certificate.findings if x.rule == "steps-before"]
    assert (told.severity, told.at) == (Severity.NOTE, "a")
    assert certificate.verdict is Verdict.CERTIFIED


def test_steps_that_opacus_took_before_a_trainer_at_its_label_are_not_observed():
    ledger = Ledger(plan(), noise=FloatNoise())
    model, optimizer, loader = private(poisson_sampling=False)
    attach(optimizer, ledger, loader)
    step(model, optimizer, next(iter(loader)))
    w = {"w": torch.zeros(4, requires_grad=True)}
    training = Trainer(lambda p, x: p["w"] @ x, w, rows().tensors[0], ledger, divisor=1)
    assert len(list(training)) == STEPS - 1
    certificate = certified(training)
    found = {each.rule: each.severity for each in certificate.findings}
    assert found["resumed-steps-not-observed"] is Severity.ERROR
    assert certificate.verdict is Verdict.UNPROVEN


def test_a_step_that_fails_in_its_noise_was_observed(monkeypatch):
    def broken(*_, **__):
        raise MemoryError

    model, optimizer, loader = private()
    ledger = Ledger(plan())
    training = attach(optimizer, ledger, loader, expected_batch_size=BATCH)
    for number, batch in enumerate(loader, start=1):
        if number < STEPS:
            step(model, optimizer, batch)
            continue
        with monkeypatch.context() as patch:
            patch.setattr(opacus_optimizer, "_generate_noise", broken)
            with pytest.raises(MemoryError):
                step(model, optimizer, batch)
    assert (len(ledger), len(training.steps)) == (STEPS, STEPS - 1)
    with pytest.raises(PlanMismatchError):  # it was refused, and failed in no noise
        step(model, optimizer, batch)
    assert verdict(training) is Verdict.CERTIFIED
    assert "resumed-steps-not-observed" not in rules(training)


def test_what_is_proved_instead_leaves_no_step_of_an_earlier_process_out(tmp_path):
    path = tmp_path / "ledger.jsonl"
    for start in (partial(Ledger, plan(epochs=2), journal=path), partial(Ledger.resume, path)):
        model, optimizer, loader = private(poisson_sampling=False)
        training = attach(optimizer, ledger := start(), loader, expected_batch_size=BATCH)
        train(model, optimizer, loader)
        if len(ledger) == STEPS:
            ledger.journal.release()  # the process ends
    ledger.close()
    found = {each.rule for each in certified(training).findings}
    assert "loader-not-poisson" in found
    assert "proved-instead" not in found


# -- how batches were drawn --------------------------------------------------------------------


def test_shuffled_batches_under_a_claim_of_amplification_are_unproven():
    model, optimizer, loader = private(poisson_sampling=False)
    ledger = Ledger(plan(epochs=4))
    training = attach(optimizer, ledger, loader)
    train(model, optimizer, loader, epochs=4)
    certificate = certified(training)
    assert certificate.verdict is Verdict.UNPROVEN
    verify(certificate)
    assert {"loader-not-poisson", "proved-instead"} <= {x.rule for x in certificate.findings}
    (instead,) = [x for x in certificate.findings if x.rule == "proved-instead"]
    proved = guarantee(disjoint_plan(epochs=4), 1e-5).epsilon
    assert f"ε = {proved:.4g}" in instead.message
    assert proved > certificate.guarantee.epsilon


def test_an_epoch_that_is_cut_short_is_an_epoch():
    model, optimizer, loader = private(poisson_sampling=False)
    ledger = Ledger(disjoint_plan(epochs=2))
    attach(optimizer, ledger, loader)
    for _ in range(2):
        for batch, _ in zip(loader, range(3), strict=False):
            step(model, optimizer, batch)
    with pytest.raises(PlanMismatchError, match="last epoch that the plan declares"):
        train(model, optimizer, loader)
    # A unit may have been in both halves.
    assert guarantee(ledger.spent(), 1e-5, "rdp") == guarantee(ledger.plan, 1e-5, "rdp")
    with pytest.raises(PlanMismatchError, match="ran 3 times"):
        ledger.check()


def test_expected_batch_size_can_be_made_public():
    engine = PrivacyEngine(accountant="rdp")
    training = attach(engine, Ledger(plan()), expected_batch_size=8)
    model, optimizer, loader = private(engine)
    assert optimizer.expected_batch_size == 8
    train(model, optimizer, loader)
    assert "expected-batch-depends-on-data" not in rules(training)
    configuration = certified(training).subject.configuration["gradient"]
    assert configuration["expected_batch_size"] == 8


@pytest.mark.parametrize("settings", [{"relation": ZeroOut()}, {}])
def test_expected_batch_size_of_opacus_is_a_finding_where_the_size_is_private(settings):
    model, optimizer, loader = private()
    training = attach(optimizer, Ledger(plan(**settings)), loader)
    train(model, optimizer, loader)
    assert ("expected-batch-depends-on-data" in rules(training)) is (not settings)
    shown = certified(training).subject.configuration["gradient"]
    assert ("expected_batch_size" in shown) is bool(settings)


def test_equal_batches_are_not_poisson():
    padded = BatchStream(None, rate=0.1, population=100)
    for _ in range(20):
        padded.draw(10)
        padded.use(10, 1)
    assert padded.p_value < 1e-6
    rng = np.random.default_rng(0)
    for _ in range(50):
        honest = BatchStream(None, rate=0.1, population=100)
        for size in rng.binomial(100, 0.1, 200):
            honest.draw(size)
            honest.use(size, 1)
        assert honest.p_value > 1e-6


def test_p_value_bounds_the_exact_probability():
    from itertools import product

    from scipy.stats import binom

    mass, total = binom.pmf(range(4), 3, 0.4), 4
    for same in (3, 4):
        exact = sum(
            float(np.prod(mass[list(sizes)]))
            for sizes in product(range(4), repeat=total)
            if max(map(sizes.count, sizes)) >= same
        )
        stream = BatchStream(None, rate=0.4, population=3)
        stream.used.update([1] * same + [2] * (total - same))
        assert exact <= stream.p_value


# -- other optimizers, and what is refused -----------------------------------------------------


def test_per_layer_clipping():
    made = private(clipping="per_layer", max_grad_norm=[0.6, 0.8])
    ledger = Ledger(plan())
    training = attach(made[1], ledger, made[2])
    train(*made)
    ledger.check()
    assert training.steps[0].max_grad_norm == pytest.approx(1.0)


def test_the_norms_of_all_layers_count():
    made = private(clipping="per_layer", max_grad_norm=[0.6, 0.8])
    attach(made[1], Ledger(plan()), made[2])
    made[1].max_grad_norms = [60.0, 80.0]
    with pytest.raises(PlanMismatchError, match="clip norm 100"):
        train(*made)


def test_parts_of_a_step_are_clipped_alike():
    model, optimizer, loader = private()
    ledger = Ledger(plan())
    attach(optimizer, ledger, loader)
    x, y = next(iter(loader))
    for norm, skipped in ((100.0, True), (1.0, False)):
        optimizer.max_grad_norm = norm
        optimizer.signal_skip_step(skipped)
        cross_entropy(model(x), y).backward()
        if skipped:
            optimizer.step()
            optimizer.zero_grad()
        else:
            with pytest.raises(PlanMismatchError, match="keep it for all parts"):
                optimizer.step()
    assert len(ledger) == 0


def test_the_public_divisor_stays():
    model, optimizer, loader = private()
    attach(optimizer, Ledger(plan()), loader, expected_batch_size=8)
    optimizer.expected_batch_size = 5
    with pytest.raises(PlanMismatchError, match="public expected_batch_size 8"):
        train(model, optimizer, loader)


def test_a_failure_within_the_noise_leaves_no_noisy_gradient(monkeypatch):
    model, optimizer, loader = private()
    ledger = Ledger(plan())
    attach(optimizer, ledger, loader)
    calls = []
    real = opacus_optimizer._generate_noise

    def failing(*arguments, **settings):
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError
        return real(*arguments, **settings)

    monkeypatch.setattr(opacus_optimizer, "_generate_noise", failing)
    with pytest.raises(RuntimeError):
        train(model, optimizer, loader)
    assert len(ledger) == 1
    assert all(p.grad is None for p in model.parameters())


def test_no_attachment_is_forgotten_with_its_result():
    _, optimizer, loader = private(poisson_sampling=False)
    ledger = Ledger(plan())
    attach(optimizer, ledger, loader)
    gc.collect()
    again = attach(private()[1], Ledger(plan(at="other")), at="other")
    assert again.ledger is not ledger
    with pytest.raises(InputError, match="which another optimizer has"):
        attach(private()[1], ledger, loader)


def test_a_failed_make_private_keeps_the_label():
    engine = PrivacyEngine(accountant="rdp")
    attach(engine, Ledger(plan()))
    model = nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(UnsupportedModuleError):
        private(engine, module=model, optimizer=optimizer)
    assert private(engine)


def test_attaching_twice_is_refused():
    engine = PrivacyEngine(accountant="rdp")
    ledger = Ledger(plan())
    attach(engine, ledger)
    with pytest.raises(InputError, match="engine is already attached"):
        attach(engine, Ledger(plan()))
    _, optimizer, _ = private(engine)
    with pytest.raises(InputError, match="optimizer is already attached"):
        attach(optimizer, Ledger(plan()))
    _, other, _ = private()
    with pytest.raises(InputError, match="which another optimizer has"):
        attach(other, ledger)


def test_attach_names_what_is_wrong():
    engine = PrivacyEngine(accountant="rdp")
    _, optimizer, loader = private(engine)
    ledger = Ledger(plan())
    with pytest.raises(InputError, match="before make_private"):
        attach(engine, ledger)
    with pytest.raises(InputError, match="optimizer is"):
        attach(torch.optim.SGD([nn.Parameter(torch.zeros(1))]), ledger)
    with pytest.raises(InputError, match="ledger is"):
        attach(optimizer, ledger.plan)
    with pytest.raises(InputError, match="the ledger's plan declares 'gradient'"):
        attach(optimizer, ledger, loader, at="gradients")
    with pytest.raises(InputError, match="give one label for one optimizer"):
        attach(optimizer, ledger, loader, at=["gradient"])
    with pytest.raises(InputError, match="data_loader is"):
        attach(optimizer, ledger, [1, 2])
    with pytest.raises(InputError, match="leave it out"):
        attach(PrivacyEngine(accountant="rdp"), ledger, loader)
    for labels in (3, None, [], ["gradient", "gradient"]):
        with pytest.raises(InputError, match="one for each optimizer"):
            attach(PrivacyEngine(accountant="rdp"), ledger, at=labels)
    flat = private(max_grad_norm=[0.5] * 2)
    attach(flat[1], ledger, flat[2])
    with pytest.raises(InputError, match="one number"):
        train(*flat)
    ledger = Ledger(plan())
    with pytest.raises(InputError, match="expected_batch_size is 0"):
        attach(optimizer, ledger, loader, expected_batch_size=0)
    attach(optimizer, ledger, loader)  # none of these left anything behind


def test_secure_mode_and_labels_are_recorded():
    _, optimizer, _ = private()
    optimizer.secure_mode = True
    training = attach(optimizer, Ledger(plan()))
    (watched,) = training._optimizers
    assert json.dumps(watched.configuration())
    assert watched.configuration()["secure_mode"] is True
    assert "noise-not-secure" not in rules(training)


# -- code ------------------------------------------------------------------------------------------

SCRIPT = """
import sys

import helper

from dpaudit import FloatNoise, Ledger, Plan

plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.25, steps=4)
training = helper.attached(Ledger(plan, noise=FloatNoise()))
for x, in training.loader:
    training.optimizer.zero_grad()
    training.model(x).sum().backward()
    training.optimizer.step()
training.certificate(1e-5).save(sys.argv[1])
"""
HELPER = """
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpaudit.training.opacus import attach


def attached(ledger):
    model, engine = nn.Linear(3, 2), PrivacyEngine()
    training = attach(engine, ledger, expected_batch_size=4)
    training.model, training.optimizer, training.loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(torch.randn(16, 3)), batch_size=4),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    return training
"""


def test_the_code_is_that_of_the_loop_and_of_what_it_imports(tmp_path):
    """By hand: SHA-256 of the SHA-256 of both files, in the order of their paths."""
    written = {"helper.py": HELPER, "script.py": SCRIPT}
    for name, text in written.items():
        (tmp_path / name).write_text(text, "utf-8")
    out = tmp_path / "certificate.json"
    words = [sys.executable, tmp_path / "script.py", out]
    subprocess.run(words, check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    certificate = load_certificate(out)
    verify(certificate)
    digests = [hashlib.sha256(text.encode()).digest() for text in written.values()]
    assert certificate.subject.code_hash == hashlib.sha256(b"".join(digests)).hexdigest()
    assert certificate.subject.location == "helper.py:12"
    standing = {str(each.premise): str(each.standing) for each in certificate.assumptions}
    assert standing["control flow from public facts and releases"] == "assumed"
    assert "only-assumed" in {each.rule for each in certificate.all_findings}
