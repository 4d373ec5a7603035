"""Two processes train one model: one ledger, one certificate, and nobody steps alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit import Plan, guarantee

SIZE, BATCH = 60, 12
SCRIPT = f"""
import json, sys, warnings
import numpy as np, torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as Together
from dpaudit import DpAuditError, Ledger, Plan
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.training.opacus import attach

warnings.simplefilter("ignore")
torch.set_num_threads(1)
rank = int(sys.argv[1])
distributed.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
generator = torch.Generator().manual_seed(1)
DATA = TensorDataset(torch.randn({SIZE}, 4, generator=generator),
                     torch.randint(0, 2, ({SIZE},), generator=generator))
PLAN = Plan.dp_sgd(noise_multiplier=1.0, sample_rate={BATCH / SIZE}, epochs=1)
told = {{}}

def made(mode="hooks", seed=lambda rank: rank, norm=1.0, noise=None):
    torch.manual_seed(0)
    model = Together(nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)))
    engine = PrivacyEngine(accountant="rdp")
    ledger = None if rank else Ledger(PLAN, **({{}} if noise is None else {{"noise": noise}}))
    training = attach(engine, ledger, expected_batch_size={BATCH})
    parts = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=nn.CrossEntropyLoss(), noise_multiplier=1.0, max_grad_norm=norm,
        data_loader=DataLoader(DATA, batch_size={BATCH}), grad_sample_mode=mode)
    torch.manual_seed(seed(rank))
    return training, parts

def step(parts, x, y):
    model, optimizer, *criterion, _ = parts
    optimizer.zero_grad()
    (criterion[0] if criterion else nn.CrossEntropyLoss())(model(x), y).backward()
    optimizer.step()

def train(parts):
    for x, y in parts[-1]:
        step(parts, x, y)

def sentence(call):
    try:
        call()
    except DpAuditError as error:
        return type(error).__name__ + ": " + str(error)
    return "nothing"

for mode in ("hooks", "ghost"):
    training, parts = made(mode)
    train(parts)
    certificate = training.certificate(1e-5, accountant="rdp")
    told[mode] = [str(certificate.verdict), certificate.guarantee.epsilon, len(training.ledger),
                  [each.actual_batch_size for each in training.steps],
                  [p.detach().flatten().tolist() for p in parts[0].parameters()],
                  training.steps[0].expected_batch_size]

training, parts = made(seed=lambda rank: 0)
train(parts)
certificate = training.certificate(1e-5, accountant="rdp")
told["alike"] = [str(certificate.verdict), [each.rule for each in certificate.findings]]

training, parts = made(norm=1.0 + rank)
told["norms"] = sentence(lambda: train(parts)), len(training.steps)

training, parts = made()
if rank:
    parts[1].max_grad_norm = 3.0
told["one refuses"] = sentence(lambda: train(parts)), len(training.steps)

training, parts = made()
if not rank:
    training.ledger.close()
before = [p.detach().clone() for p in parts[0].parameters()]
told["closed"] = (sentence(lambda: train(parts)), len(training.steps),
                  all(map(torch.equal, before, parts[0].parameters())))

training, parts = made()
parts[-1].batch_sampler.shuffle_seed = rank
told["shards"] = sentence(lambda: train(parts)), len(training.steps)

training, parts = made()
told["too early"] = sentence(lambda: training.certificate(1e-5, accountant="rdp"))

training, parts = made()
parts[-1].batch_sampler.sample_rate = 0.01  # most batches of a shard are empty now
sizes = [len(x) for x, _ in parts[-1]]
told["empty"] = sizes

told["second ledger"] = "nothing"
engine = PrivacyEngine(accountant="rdp")
attach(engine, Ledger(PLAN))
model = Together(nn.Linear(4, 2))
told["second ledger"] = sentence(lambda: engine.make_private(
    module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.0,
    max_grad_norm=1.0, data_loader=DataLoader(DATA, batch_size={BATCH})))
print(json.dumps(told), flush=True)
distributed.barrier()
distributed.destroy_process_group()
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each process said of each case."""
    folder = tmp_path_factory.mktemp("processes")
    script = folder / "train.py"
    script.write_text(SCRIPT)
    root = Path(__file__).parents[4]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    started = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(folder / "meeting")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
        )
        for rank in range(2)
    ]
    try:
        ended = [each.communicate(timeout=240) for each in started]
    finally:
        for each in started:
            each.kill()
    for each, (_, errors) in zip(started, ended, strict=True):
        assert each.returncode == 0, errors
    return [json.loads(output) for output, _ in ended]


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_all_processes_get_one_certificate_of_one_ledger(told, mode):
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=BATCH / SIZE, epochs=1)
    first, second = (each[mode] for each in told)
    assert first[:2] == second[:2] == ["certified", guarantee(plan, 1e-5, "rdp").epsilon]
    assert (first[2], second[2]) == (SIZE // BATCH, 0)
    assert len(first[3]) == len(second[3]) == SIZE // BATCH
    assert first[3] != second[3]
    assert first[4] == second[4]
    assert first[5] == second[5] == BATCH / 2  # each process divides by its share


def test_processes_that_draw_alike_prove_nothing(told):
    for verdict, rules in (each["alike"] for each in told):
        assert verdict == "unproven"
        assert "processes-draw-alike" in rules


def test_a_step_that_one_process_refuses_is_nobodys(told):
    for each in told:
        for case in ("norms", "one refuses", "closed", "shards"):
            assert each[case][1] == 0, case
    first, second = told
    assert "differ in" in first["shards"][0]
    assert first["shards"] == second["shards"]
    assert "another process refused" in first["one refuses"][0]
    assert "PlanMismatchError: the plan declares" in second["one refuses"][0]
    assert first["closed"][0].startswith("ClosedLedgerError")
    assert "process 0 refused" in second["closed"][0]
    assert first["closed"][2]
    assert second["closed"][2]


def test_a_certificate_that_is_refused_is_refused_everywhere(told):
    for each in told:
        assert each["too early"].startswith("PlanMismatchError")
        assert "ran 0 times" in each["too early"]


def test_an_empty_batch_of_a_shard_is_a_batch(told):
    for each in told:
        assert len(each["empty"]) == SIZE // BATCH
        assert 0 in each["empty"]


def test_only_the_first_process_has_a_ledger(told):
    assert told[0]["second ledger"] == "nothing"
    assert "give None" in told[1]["second ledger"]
