"""Home-made noise: whatever way it is added, the value before it is seen."""

import copy
import math

import numpy as np
import pytest
from observed import replayed, routine
from scipy import stats

from dpaudit import AddRemove, FloatNoise, Gaussian, InputError, Laplace, Ledger, Plan, PrivacyUnit
from dpaudit.auditing.noise.conformance import conformance
from dpaudit.certificate import Severity
from dpaudit.mechanisms import DiscreteLaplace
from dpaudit.observing import noting, plan_of, through
from dpaudit.plan import Invocation, TrustModel

ROW = PrivacyUnit("row")
ROWS = [3.0, 4.0, 5.0]


def rng():
    return np.random.default_rng(1)


def in_place(rows):
    total = np.array(rows)
    total += np.random.normal(scale=2.0, size=3)  # noqa: NPY002
    return total


ADDED = {
    "after": (lambda x: sum(x) + rng().laplace(0.0, 2.0), Laplace(2.0), 12.0),
    "before": (lambda x: rng().laplace(scale=2.0) + sum(x), Laplace(2.0), 12.0),
    "minus": (lambda x: sum(x) - rng().laplace(scale=2.0), Laplace(2.0), 12.0),
    "from": (lambda x: rng().laplace(scale=2.0) - sum(x), Laplace(2.0), -12.0),
    "at": (lambda x: rng().normal(loc=sum(x), scale=2.0), Gaussian(2.0), 12.0),
    "scaled": (lambda x: np.mean(x) + 3 * rng().standard_normal() / 2, Gaussian(1.5), 4.0),
    "negative": (lambda x: np.mean(x) + -rng().standard_normal(), Gaussian(1.0), 4.0),
    "vector": (lambda x: np.array(x) + rng().laplace(size=3), Laplace(1.0), ROWS),
    "broadcast": (lambda x: 1.0 + rng().laplace(size=2), Laplace(1.0), [1.0, 1.0]),
    "part": (lambda x: x[0] + rng().laplace(size=2)[1], Laplace(1.0), 3.0),
    "module": (
        lambda x: sum(x) + np.random.laplace(scale=2.0),  # noqa: NPY002
        Laplace(2.0),
        12.0,
    ),
    "in place": (in_place, Gaussian(2.0), ROWS),
    "scipy": (lambda x: sum(x) + stats.laplace.rvs(scale=2.0), Laplace(2.0), 12.0),
    "scipy at": (lambda x: stats.norm.rvs(sum(x), 2.0), Gaussian(2.0), 12.0),
    "frozen": (
        lambda x: sum(x) + stats.norm(scale=2.0).rvs(random_state=rng()),
        Gaussian(2.0),
        12.0,
    ),
    "integers": (lambda x: len(x) + stats.dlaplace.rvs(0.5), DiscreteLaplace(2.0), 3),
    "a list": (lambda x: [x[0] + each for each in rng().laplace(size=1)], Laplace(1.0), 3.0),
}


def ran(code):
    with noting(AddRemove(), "numpy") as notes:
        made = code(ROWS)
    return notes, made


@pytest.mark.parametrize("name", ADDED)
def test_noise_meets_its_value(name):
    code, mechanism, value = ADDED[name]
    notes, made = ran(code)
    (call,) = notes.calls
    assert call.reading.mechanism == mechanism
    assert np.array_equal(call.reading.value, value)
    assert type(made[0] if isinstance(made, list) else made).__name__ != "Noise"
    rules = [finding.rule for finding in notes.all_findings(notes.noted(ROW, AddRemove()))]
    assert "unknown-sensitivity" in rules
    assert "noise-shown" not in rules


def test_the_numbers_are_those_that_numpy_draws():
    for law in ("laplace", "normal"):
        plain = 5.0 + getattr(rng(), law)(scale=2.0, size=3)
        _, made = ran(lambda _, law=law: 5.0 + getattr(rng(), law)(scale=2.0, size=3))
        assert np.array_equal(plain, made)
        assert type(made) is np.ndarray


@pytest.mark.parametrize(
    "code",
    [
        lambda x: np.abs(rng().laplace(size=4)),
        lambda x: rng().laplace(size=4) * np.array([1.0, 2.0, 3.0, 4.0]),
        lambda x: rng().laplace(size=4) ** 2,
        lambda x: float(rng().laplace(size=4).sum()) + 1.0,
    ],
)
def test_noise_that_meets_no_value_is_told(code):
    with noting(AddRemove(), "numpy") as notes:
        code(ROWS)
        assert np.isfinite(1.0 + np.random.normal())  # noqa: NPY002
    found = notes.all_findings(notes.noted(ROW, AddRemove()))
    (left,) = [finding for finding in found if finding.rule == "noise-without-value"]
    assert "4 draws of laplace" in left.message


def beside(tell):
    """The sum, and something of the noise that hides it."""

    def code(rows):
        noise = rng().laplace(0.0, 2.0)
        return sum(rows) + noise, tell(noise)

    return code


def chosen(pick):
    """A noise that was picked among many."""

    def code(rows):
        noise = rng().laplace(size=30)
        return sum(rows) + pick(noise)

    return code


SHOWN = [
    *(
        beside(each)
        for each in (float, str, abs, np.abs, bool, lambda n: n > 0, lambda n: n.item())
    ),
    *(beside(each) for each in (lambda n: f"{n:.3f}", lambda n: n.tolist(), lambda n: n**2)),
    lambda x: float(sum(x) + (n := rng().laplace())) - float(n),
    lambda x: (sum(x) + (n := rng().laplace()), np.asarray(n)),
    lambda x: (sum(x) + (n := rng().laplace()), np.array([n, 1.0])),
    lambda x: (sum(x) + (n := rng().laplace()), math.exp(n)),
    lambda x: (sum(x) + (n := rng().laplace()), np.concatenate([np.atleast_1d(n), x])),
    lambda x: (sum(x) + (n := rng().laplace()), copy.deepcopy(n)),
    chosen(lambda n: n[np.argmin(np.abs(n))]),
    chosen(lambda n: n[n.argmin()]),
    chosen(lambda n: np.sort(n)[15]),
    chosen(lambda n: min(n, key=abs)),
]


@pytest.mark.parametrize("number", range(len(SHOWN)))
def test_noise_that_hides_a_value_and_is_shown_is_an_error(number):
    notes, _ = ran(SHOWN[number])
    found = notes.all_findings(notes.noted(ROW, AddRemove()))
    assert [each.severity for each in found if each.rule == "noise-shown"] == [Severity.ERROR]


TWICE = [
    lambda x: (sum(x) + (n := rng().laplace()), len(x) + n),
    lambda x: np.array(x) + rng().laplace(),
    lambda x: [x[0] + (n := rng().laplace(size=2))[0], x[1] + n[0], x[2] + n[0]],
]


@pytest.mark.parametrize("code", TWICE)
def test_a_draw_that_hides_several_values_is_an_error(code):
    notes, _ = ran(code)
    found = notes.all_findings(notes.noted(ROW, AddRemove()))
    assert "noise-shared" in {each.rule for each in found}


def changed(rows):
    """Noise of which a part is no noise any more."""
    noise = rng().laplace(size=3)
    noise[noise > 0] = 0
    return np.array(rows) + noise


def test_noise_that_is_changed_is_no_noise():
    notes, _ = ran(changed)
    found = notes.all_findings(notes.noted(ROW, AddRemove()))
    assert "noise-shown" in {each.rule for each in found}


def test_noise_goes_where_arrays_go():
    """Whoever takes arrays takes noise, and it is said that it was looked at."""
    with noting(AddRemove(), "numpy"):
        noise = rng().normal(size=4)
        plain = rng().normal(size=4)
    known = np.random.default_rng(1).normal(size=4)
    assert np.array_equal(np.asarray(noise), known)
    assert np.array_equal(noise.reshape(2, 2).T.ravel(), known.reshape(2, 2).T.ravel())
    assert np.array_equal(np.reshape(plain, (2, 2)), known.reshape(2, 2))
    assert np.linalg.norm(noise) == np.linalg.norm(known)
    assert list(noise) == known.tolist()
    assert (noise.shape, noise.ndim, len(noise), noise.dtype) == ((4,), 1, 4, np.float64)
    noise *= 2
    assert np.array_equal(noise, 2 * known)
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = noise.colour


def test_frames_of_pandas_take_noise():
    pd = pytest.importorskip("pandas")

    def code(rows):
        frame = pd.DataFrame({"a": rows, "b": rows})
        frame["a"] += rng().laplace(size=3)
        return pd.Series(rows) - rng().laplace(size=3), frame + rng().laplace(size=(3, 2)), frame

    notes, (series, both, frame) = ran(code)
    assert type(series) is pd.Series
    assert type(both) is type(frame) is pd.DataFrame
    assert [call.at for call in notes.calls] == [
        "code: laplace",
        "code: laplace 2",
        "code: laplace 2",
    ]
    assert np.array_equal(notes.calls[1].reading.value, ROWS)
    assert not any(notes.loose.values())


def test_code_whose_noise_was_all_looked_at_says_so():
    with noting(AddRemove(), "numpy") as notes:
        float(rng().laplace()) + sum(ROWS)
    with pytest.raises(InputError, match="1 draws of laplace at"):
        notes.noted(ROW, AddRemove())


def test_draws_that_hide_nothing_may_be_looked_at():
    def code(rows):
        start = rng().normal(size=3)
        return float(start.sum()), sum(rows) + rng().laplace()

    notes, _ = ran(code)
    found = notes.all_findings(notes.noted(ROW, AddRemove()))
    assert "noise-shown" not in {each.rule for each in found}


def test_what_is_no_noise_is_left_alone():
    def code(rows):
        generator = rng()
        generator.shuffle(rows := list(rows))
        return generator.integers(5), generator.choice(rows), stats.gamma.rvs(2.0)

    with noting(AddRemove(), "numpy") as notes:
        code(ROWS)
    assert not notes.calls
    assert not notes.loose


def noisy(rows):
    return np.clip(rows, 0, 10).sum() + np.random.default_rng().laplace(scale=20.0)


def careless(rows):
    return np.sum(rows) + np.random.default_rng().laplace(scale=20.0)


def declared(code):
    about = (ROW, AddRemove(), TrustModel.CENTRAL)
    plan = Plan.of(Invocation(Laplace(20.0), 10.0, *about, at=f"{code.__name__}: laplace"))
    return routine(code, plan, "numpy")


def test_a_declared_sensitivity_is_compared():
    assert replayed(declared(noisy), ROWS, [*ROWS, 99.0]) == set()
    assert replayed(declared(careless), ROWS, [*ROWS, 99.0]) == {"sensitivity-understated"}
    assert conformance(declared(noisy), ROWS, runs=200, error_rate=1e-6).clean


def test_the_plan_of_a_run_proves_nothing_until_somebody_says_how_far_values_move():
    with noting(AddRemove(), "numpy") as notes:
        noisy(ROWS)
    own = plan_of(notes.noted(ROW, AddRemove()))
    with Ledger(own, noise=FloatNoise()) as ledger, through(ledger, "numpy"):
        noisy(ROWS)
    assert own.invocations[0].mechanism.kind == "stated-noise"
