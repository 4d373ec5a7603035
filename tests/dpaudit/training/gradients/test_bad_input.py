"""What is wrong is one sentence, and shows no example; which layers are mapped."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from example_losses import clipped_by_loop, cross_entropy_of, direct, rows_of, small_model
from torch import nn
from torch.func import functional_call

from dpaudit import (
    AddRemove,
    DpAuditError,
    FloatNoise,
    InputError,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    TrustModel,
    UnsupportedError,
    ZeroOut,
)
from dpaudit.mechanisms import BandedToeplitz, ContinualGaussian, Gaussian
from dpaudit.plan import Contribution, CyclicPoissonSampling
from dpaudit.training import Adaptive, Trainer, fit
from dpaudit.training.gradients.clipped import MARGIN, ClippedSums
from dpaudit.training.gradients.examples import Examples

PLAN = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=2, relation=ZeroOut())
DATA = torch.eye(3)


def weights(**tensors):
    return tensors or {"w": torch.zeros(3)}


def made(loss=direct, parameters=None, data=DATA, plan=PLAN, **settings):
    ledger = Ledger(plan, noise=FloatNoise()) if isinstance(plan, Plan) else plan
    return Trainer(loss, weights() if parameters is None else parameters, data, ledger, **settings)


def sentence(error):
    text = str(error.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


ABOUT = (PrivacyUnit("row"), ZeroOut(), TrustModel.CENTRAL)


def use(mechanism, sensitivity=1.0, about=ABOUT, **facts):
    return Plan.of(Invocation(mechanism, sensitivity, *about, at="gradient", **facts))


def stream(steps=6, passes=2, apart=3):
    law = BandedToeplitz(steps, apart)
    facts = {"participations": passes, "min_separation": apart, "cyclic": True}
    return ContinualGaussian(sigma=1.0, factorization=law, **facts)


W = torch.ones(3, requires_grad=True)


def half(parameters, example):
    return (parameters["w"].half() * example.half()).sum()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"data": [1.0, 2.0]},
            "data has a float; it must be a dense tensor, or an array of numbers",
        ),
        ({"data": np.array(["a"])}, "data has a 1-dimensional array of str_; it must be a dense"),
        ({"data": torch.tensor(1.0)}, "data has a Tensor; it must be a dense tensor"),
        ({"data": torch.eye(3).to_sparse()}, "data has a Tensor; it must be a dense tensor"),
        ({"data": np.zeros(3, dtype=">f4")}, "of float32; .* numbers in this machine's byte order"),
        ({"data": torch.zeros(0, 3)}, "data has no rows"),
        ({"loss": 5}, "raised TypeError"),
        (
            {"data": (torch.zeros(2), torch.zeros(3))},
            r"data\[1\] has more rows than data\[0\]; each must have one row for each example",
        ),
        (
            {"data": {"x": torch.zeros(3), "y": torch.zeros(2)}},
            r"data\['y'\] has fewer rows than data\['x'\]",
        ),
        ({"data": ()}, "data has no tensors; give at least one"),
        ({"parameters": 5}, "parameters is a int; it must be a module, or a mapping"),
        ({"parameters": {"w": 1.0}}, "parameters has a float at 'w'; it must be a tensor"),
        ({"parameters": nn.Identity()}, "no parameter is trained"),
        ({"parameters": {"w": torch.zeros(3).half()}}, "parameters has torch.float16 at 'w'"),
        (
            {"parameters": {"w": torch.zeros(3), "v": torch.zeros(3).double()}},
            "parameters has tensors of several types or devices",
        ),
        ({"plan": 5}, "ledger is a int; it must be a Ledger or a Plan"),
        ({"at": "sums"}, "at is 'sums'; the ledger's plan declares 'gradient'"),
        ({"divisor": 0}, "divisor is 0; it must be a finite number above 0"),
        ({"chunk": 0}, "chunk is 0; it must be an integer of at least 1"),
        ({"seed": -1}, "seed is -1"),
        ({"clip_norm": 1.0}, "clip_norm and adaptive belong together"),
        ({"adaptive": Adaptive()}, "clip_norm and adaptive belong together"),
        ({"most_rows": 3}, "most_rows is given without users"),
        ({"users": ["a", "b", "c"]}, "most_rows is missing"),
        ({"users": ["a", "b"], "most_rows": 2}, "users has more or fewer names"),
        ({"users": ["a", 2, "c"], "most_rows": 2}, "units has labels of type int, str"),
        ({"loss": lambda p, e: 1.0}, "the loss of one example is a float; it must be a tensor"),
        (
            {"loss": lambda p, e: p["w"] * e},
            r"the loss of one example is a tensor of shape \(3,\) and torch.float32; it must be",
        ),
        ({"loss": lambda p, e: (p["w"] * e).sum().long()}, "shape .. and torch.int64; it must be"),
        (
            {"loss": lambda p, e: 1 / 0},
            r"the loss raised ZeroDivisionError .*; it is called as loss\(parameters, example\), "
            r"and one example has the shapes \(3,\) of torch.float32.",
        ),
        (
            {"loss": lambda x, y, z: 1.0},
            r"missing .* 'z'.*; it is called as loss\(parameters, exam",
        ),
        ({"loss": lambda x: 1.0}, r"2 were given.*; it is called as loss\(parameters, example\)"),
        ({"loss": lambda p, e: e.sum()}, "uses none of the parameters .*functional_call"),
        ({"loss": lambda p, e: (W * e).sum()}, "uses none of the parameters .*functional_call"),
        (
            {
                "data": (torch.ones(3, 3), torch.ones(3)),
                "loss": lambda p, e: nn.functional.cross_entropy(p["w"] * e[0], e[1]),
            },
            r"data\[1\] is of torch.float32, which the loss cannot take; convert it, such as by "
            r".to\(torch.int64\), or of an array by .astype\('int64'\).",
        ),
        (
            {"data": torch.ones(3, 3).double(), "loss": lambda p, e: torch.dot(p["w"], e)},
            r"data is of torch.float64, which .* by .to\(torch.float32\)",
        ),
        (
            {"loss": lambda p, e: (p["w"] * e).sum() if e[0] > 0 else e[1]},
            r"^the loss calls .item\(\) at test_bad_input.py:\d+, or branches on a value, which",
        ),
        ({"loss": lambda p, e: p["v"].sum()}, "raised KeyError"),
        ({"loss": lambda p, e: (p["w"] @ e).item()}, "cannot be|raised RuntimeError"),
        (
            {"loss": lambda p, e: DATA.mean() + p["w"] @ e},
            "loss reads the data of all units, as 'DATA'",
        ),
        ({"plan": use(Laplace(1.0))}, "laplace at 'gradient' is not a normal noise"),
        (
            {
                "plan": Plan.of(
                    Invocation.bounded(Gaussian(1.0), Contribution(1.0), *ABOUT, at="gradient")
                )
            },
            "which only the ledger's own sum bounds",
        ),
        ({"plan": use(Gaussian(1.0), 1e-13)}, "clip norm is 1e-13; it must be between"),
        ({"plan": use(Gaussian(1.0), count=2, total=6)}, "has a unit in 2 of 6 releases"),
        (
            {
                "plan": use(Gaussian(1.0), about=(ABOUT[0], AddRemove(), ABOUT[2]), total=3),
                "divisor": 1,
            },
            "a missing row moves others to other batches",
        ),
        (
            {"plan": use(Gaussian(1.0), sampling=PoissonSampling(0.5, rows=3))},
            "samples each row of a user separately",
        ),
        (
            {"plan": use(stream(), sampling=CyclicPoissonSampling(0.5, 3))},
            "declared with cyclic-poisson sampling, which a training cannot draw",
        ),
        (
            {"plan": use(stream(passes=1))},
            "declares 1 participations 3 steps apart; .* a unit has 2",
        ),
        (
            {"plan": use(Gaussian(1.0), about=(*ABOUT[:2], TrustModel.LOCAL))},
            "under local trust, but a training holds the rows of all units",
        ),
        (
            {
                "plan": Plan.of(
                    Invocation(Gaussian(1.0), 1.0, *ABOUT, at="gradient, phase 1"),
                    Invocation(Gaussian(1.0), 1.0, *ABOUT, group="b", at="gradient, phase 2"),
                )
            },
            "'gradient' has invocations of several groups",
        ),
    ],
    ids=lambda each: str(each)[:40] if isinstance(each, str) else "",
)
def test_a_wrong_argument_is_one_sentence(given, words):
    with pytest.raises(DpAuditError, match=words) as error:
        made(**given)
    sentence(error)


@pytest.mark.parametrize(
    ("optimizer", "words"),
    [
        (lambda p: 5, "optimizer is a int; it must be one of torch.optim"),
        (lambda p: torch.optim.LBFGS(p.values()), "optimizer is a LBFGS; it must be one of torch"),
        (lambda p: torch.optim.SGD([torch.zeros(3)]), "optimizer holds other parameters"),
        (lambda p: torch.optim.SGD([*p.values(), torch.zeros(3)]), "optimizer holds other param"),
    ],
)
def test_an_optimizer_has_the_parameters_that_are_trained(optimizer, words):
    parameters = weights()
    with pytest.raises(InputError, match=words):
        fit(
            direct,
            parameters,
            DATA,
            Ledger(PLAN, noise=FloatNoise()),
            optimizer=optimizer(parameters),
        )


def test_an_error_on_an_example_shows_nothing_of_it():
    table = torch.zeros(5, 1)

    def loss(parameters, example):
        return (parameters["w"] * nn.functional.embedding(example, table)).sum()

    trainer = made(loss, {"w": torch.zeros(1)}, torch.tensor([[123457]] * 4), divisor=1.0)
    with pytest.raises(DpAuditError, match="the loss raised IndexError") as error:
        for _ in trainer:
            pass
    assert "123457" not in sentence(error)


def test_exact_noise_takes_no_large_models():
    pytest.importorskip("opendp")
    trainer = made(parameters={"w": torch.zeros(20_000)}, data=torch.zeros(3, 20_000), plan=PLAN)
    trainer.ledger = Ledger(PLAN)  # exact, as where no noise is named
    with pytest.raises(UnsupportedError, match="value has 20000 entries; exact normal noise takes"):
        next(trainer)


def test_without_torch_it_is_one_sentence():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import dpaudit.training\n"
        "try:\n    dpaudit.training.fit\nexcept Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "training.fit needs torch, which is not installed; install it with pip install "
        "'dpaudit[opacus]'."
    )


# -- layers ----------------------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]


class Last(nn.Module):
    """The outputs of a recurrent layer."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


TAKEN = {
    "Linear": lambda: nn.Linear(4, 3),
    "Conv1d": lambda: nn.Conv1d(5, 3, 2),
    "Conv2d": lambda: nn.Sequential(nn.Unflatten(0, (1, 5)), nn.Conv2d(1, 3, 2)),
    "ConvTranspose1d": lambda: nn.ConvTranspose1d(5, 3, 2),
    "LayerNorm": lambda: nn.LayerNorm(4),
    "RMSNorm": lambda: nn.RMSNorm(4),
    "GroupNorm": lambda: nn.Sequential(nn.Unflatten(1, (1, 4)), nn.GroupNorm(1, 1)),
    "BatchNorm1d, evaluating": lambda: nn.BatchNorm1d(4).eval(),
    "MultiheadAttention": Attention,
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True),
    "PReLU": lambda: nn.PReLU(),
    "MaxPool1d": lambda: nn.Sequential(nn.Conv1d(5, 3, 1), nn.MaxPool1d(2)),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")  # of attention
@pytest.mark.parametrize("name", TAKEN)
def test_layers_that_are_mapped_have_the_gradients_of_a_loop(name):
    torch.manual_seed(0)
    model = TAKEN[name]().double()
    data = torch.randn(6, 5, 4, dtype=torch.float64)
    target = torch.randn(60, dtype=torch.float64)

    def loss(parameters, example):
        out = functional_call(model, parameters, (example,))
        return (out.flatten() * target[: out.numel()]).sum().square()

    parameters = dict(model.named_parameters())
    total, _ = ClippedSums(loss, parameters, Examples(data), 4).total(np.arange(6), 0.3)
    truth = clipped_by_loop(loss, parameters, (data,), range(6), 0.3 * (1 - MARGIN))
    assert total == pytest.approx(truth, abs=1e-9)


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_lstms_are_mapped_in_32_bits():
    model, data = Last(nn.LSTM(4, 3, batch_first=True)), torch.randn(6, 5, 4)
    wide = Last(nn.LSTM(4, 3, batch_first=True)).double()
    wide.load_state_dict(model.state_dict())

    def loss_of(net):
        return lambda own, row: functional_call(net, own, (row,)).sin().sum()

    parameters = dict(model.named_parameters())
    sums = ClippedSums(loss_of(model), parameters, Examples(data), 4)
    total, _ = sums.total(np.arange(6), 0.3)
    limit = 0.3 * (1 - MARGIN)
    truth = clipped_by_loop(loss_of(wide), parameters, (data,), range(6), limit)
    assert total == pytest.approx(truth, abs=1e-6)


def test_embeddings_are_mapped():
    model = nn.Embedding(9, 3).double()

    def loss(parameters, example):
        return functional_call(model, parameters, (example,)).sin().sum()

    data, parameters = torch.arange(12).reshape(4, 3) % 9, dict(model.named_parameters())
    total, _ = ClippedSums(loss, parameters, Examples(data), 4).total(np.arange(4), 0.3)
    truth = clipped_by_loop(loss, parameters, (data,), range(4), 0.3 * (1 - MARGIN))
    assert total == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("GRU", lambda: Last(nn.GRU(4, 3, batch_first=True))),
        ("RNN", lambda: Last(nn.RNN(4, 3, batch_first=True))),
        ("LSTMCell", lambda: Last(nn.LSTMCell(4, 3))),
        ("BatchNorm1d", lambda: nn.BatchNorm1d(5)),
        ("BatchNorm2d", lambda: nn.Sequential(nn.Unflatten(0, (1, 5)), nn.BatchNorm2d(5))),
    ],
)
def test_layers_that_are_not_mapped_are_named(name, layer):
    model = layer()

    def loss(parameters, example):
        return functional_call(model, parameters, (example[None],)).sum()

    with pytest.raises(UnsupportedError) as error:
        made(loss, model, torch.randn(6, 5, 4))
    assert sentence(error).startswith(
        f"the loss uses a {name}, which cannot be mapped over examples"
    )


def test_arrays_that_torch_cannot_share_are_copied():
    for data in (np.eye(3, dtype=np.float32)[::-1], np.eye(3, dtype=np.float32).T):
        data.flags.writeable = False
        assert next(made(data=data))["w"].shape == (3,)


def test_a_frozen_part_is_not_trained():
    model, data = small_model(), rows_of(8)
    for p in model[0].parameters():
        p.requires_grad_(requires_grad=False)
    trainer = made(cross_entropy_of(model), model, data)
    assert set(next(trainer)) == {"2.weight", "2.bias"}
