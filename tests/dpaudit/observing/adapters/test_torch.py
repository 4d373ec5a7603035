"""Home-made noise of torch: whatever way it is added, the value before it is seen."""

import numpy as np
import pytest
from observed import replayed, routine

from dpaudit import AddRemove, Gaussian, Laplace, Plan, PrivacyUnit
from dpaudit.auditing.noise.conformance import conformance
from dpaudit.observing import noting
from dpaudit.plan import Invocation, TrustModel

torch = pytest.importorskip("torch")
ROW = PrivacyUnit("row")
ROWS = [3.0, 4.0, 5.0]


def in_place(x):
    total = torch.tensor(x)
    total += 2 * torch.randn(3)
    return total


def filled(x):
    return torch.tensor(x).add_(torch.empty(3).normal_(std=2.0))


def laplace(loc, scale):
    return torch.distributions.Laplace(loc, scale).sample()


ADDED = {
    "after": (lambda x: sum(x) + torch.randn(()), Gaussian(1.0), 12.0),
    "before": (lambda x: 2 * torch.randn(1)[0] + torch.tensor(x).sum(), Gaussian(2.0), 12.0),
    "minus": (lambda x: torch.tensor(x) - torch.normal(0.0, 2.0, (3,)), Gaussian(2.0), ROWS),
    "from": (lambda x: torch.randn(()) - sum(x), Gaussian(1.0), -12.0),
    "turned": (lambda x: sum(x) - torch.randn(()), Gaussian(1.0), 12.0),
    "at": (lambda x: torch.normal(torch.tensor(x), 2.0), Gaussian(2.0), ROWS),
    "scaled": (lambda x: torch.tensor(x) + -torch.randn(3) * 3 / 2, Gaussian(1.5), ROWS),
    "like": (lambda x: (y := torch.tensor(x)) + torch.randn_like(y), Gaussian(1.0), ROWS),
    "in place": (in_place, Gaussian(2.0), ROWS),
    "filled": (filled, Gaussian(2.0), ROWS),
    "laplace": (lambda x: sum(x) + laplace(0.0, 2.0), Laplace(2.0), 12.0),
    "laplace at": (lambda x: laplace(torch.tensor(x), 2.0), Laplace(2.0), ROWS),
    "reparametrised": (
        lambda x: sum(x) + torch.distributions.Normal(0.0, 2.0).rsample(),
        Gaussian(2.0),
        12.0,
    ),
    "parts": (
        lambda x: torch.stack([x[0] + each for each in torch.randn(1)]),
        Gaussian(1.0),
        3.0,
    ),
    "shaped": (
        lambda x: torch.tensor(x) + torch.randn(3, 1).T.squeeze(0).double(),
        Gaussian(1.0),
        ROWS,
    ),
}


def ran(code):
    with noting(AddRemove(), "torch") as notes:
        made = code(ROWS)
    return notes, made


@pytest.mark.parametrize("name", ADDED)
def test_noise_meets_its_value(name):
    code, mechanism, value = ADDED[name]
    notes, made = ran(code)
    (call,) = notes.calls
    assert call.reading.mechanism == mechanism
    assert np.allclose(call.reading.value, value)
    assert type(made) is torch.Tensor
    assert not any(notes.loose.values())
    assert not notes.findings


def test_the_numbers_are_those_that_torch_draws():
    torch.manual_seed(0)
    plain = torch.tensor(ROWS) + torch.normal(0.0, 2.0, (3,))
    torch.manual_seed(0)
    _, made = ran(lambda x: torch.tensor(x) + torch.normal(0.0, 2.0, (3,)))
    assert torch.equal(plain, made)


def into(noise):
    held = torch.zeros(1)
    held[0] = noise
    return held


SHOWN = [float, str, abs, bool, torch.exp, into, np.asarray]
SHOWN += [lambda n: n > 0, lambda n: n.item(), lambda n: n.numpy(), lambda n: torch.stack([n, n])]
SHOWN += [lambda n: torch.as_tensor(n), lambda n: torch.zeros(()).copy_(n)]
SHOWN += [lambda n: torch.lerp(torch.zeros(()), torch.ones(()), n)]


@pytest.mark.parametrize("number", range(len(SHOWN)))
def test_noise_that_hides_a_value_and_is_shown_is_an_error(number):
    notes, _ = ran(lambda x: (sum(x) + (n := torch.randn(())), SHOWN[number](n)))
    assert {each.rule for each in notes.findings} == {"noise-shown"}


def test_noise_for_several_values_and_noise_for_none_are_told():
    notes, _ = ran(lambda x: torch.tensor(x) + torch.randn(1))
    assert {each.rule for each in notes.findings} == {"noise-shared"}
    notes, _ = ran(lambda x: torch.relu(torch.randn(4)))
    assert notes.loose == {"normal": 4}


def noisy(rows):
    return float(torch.tensor(rows).clamp(0, 10).sum() + torch.randn(()) * 20)


def careless(rows):
    return float(torch.tensor(rows).sum() + torch.randn(()) * 20)


def declared(code):
    about = (ROW, AddRemove(), TrustModel.CENTRAL)
    plan = Plan.of(Invocation(Gaussian(20.0), 10.0, *about, at=f"{code.__name__}: normal"))
    return routine(code, plan, "torch")


def test_a_declared_sensitivity_is_compared():
    assert replayed(declared(noisy), ROWS, [*ROWS, 99.0]) == set()
    assert replayed(declared(careless), ROWS, [*ROWS, 99.0]) == {"sensitivity-understated"}
    assert conformance(declared(noisy), ROWS, runs=200, error_rate=1e-6).clean
