"""The real library: each of its noises in a plan, and mistakes that others found."""

import math
from dataclasses import replace

import numpy as np
import observed
import pytest

pytest.importorskip("diffprivlib", exc_type=ImportError)

from diffprivlib import BudgetAccountant, mechanisms, models, tools
from diffprivlib.utils import PrivacyLeakWarning

from dpaudit import AddRemove, FloatNoise, Ledger, Plan, PlanMismatchError, PrivacyUnit, ReplaceOne
from dpaudit.accounting import guarantee
from dpaudit.auditing.noise.conformance import conformance
from dpaudit.mechanisms import Opaque, StatedNoise
from dpaudit.observing import noting, plan_of, through

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
ROW = PrivacyUnit("row")
TREE = [("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 2.0)]
NUMBERS = np.linspace(3.0, 97.0, 40)
PAIRS = np.column_stack([NUMBERS, NUMBERS[::-1] / 100])
LABELS = (NUMBERS > 40).astype(int)


def ran(code, relation=None):
    """The notes of a run, and the plan that declares it."""
    near = relation or ReplaceOne()
    with noting(near, "diffprivlib") as notes:
        code()
    return notes, plan_of(notes.noted(ROW, near))


PROVED = {
    "laplace": (mechanisms.Laplace(epsilon=0.7, sensitivity=3.0), 5.5, "laplace", 0.7),
    "truncated": (
        mechanisms.LaplaceTruncated(epsilon=0.7, sensitivity=3.0, lower=0, upper=9),
        5.5,
        "laplace",
        0.7,
    ),
    "folded": (
        mechanisms.LaplaceFolded(epsilon=2.0, sensitivity=0.1, lower=0, upper=9),
        5.5,
        "laplace",
        2.0,
    ),
    "geometric": (mechanisms.Geometric(epsilon=0.5, sensitivity=2), 5, "discrete-laplace", 0.5),
    "geometric truncated": (
        mechanisms.GeometricTruncated(epsilon=0.5, sensitivity=2, lower=0, upper=9),
        5,
        "discrete-laplace",
        0.5,
    ),
    "geometric folded": (
        mechanisms.GeometricFolded(epsilon=0.5, sensitivity=2, lower=0, upper=9),
        5,
        "discrete-laplace",
        0.5,
    ),
    "staircase": (mechanisms.Staircase(epsilon=1.5, sensitivity=3.0), 5.5, "staircase", 1.5),
    "exponential": (
        mechanisms.Exponential(epsilon=1.0, sensitivity=2.0, utility=[0.0, 3.0, 1.0]),
        None,
        "exponential",
        1.0,
    ),
    "flip": (
        mechanisms.PermuteAndFlip(epsilon=1.0, sensitivity=2.0, utility=[0.0, 3.0, 1.0]),
        None,
        "permute-and-flip",
        1.0,
    ),
    "flip monotonic": (
        mechanisms.PermuteAndFlip(
            epsilon=1.0, sensitivity=2.0, utility=[0.0, 3.0, 1.0], monotonic=True
        ),
        None,
        "permute-and-flip",
        1.0,
    ),
    "binary": (
        mechanisms.Binary(epsilon=1.0, value0="no", value1="yes"),
        "no",
        "randomized-response",
        1.0,
    ),
}
"""Mechanism, value, kind in the plan, and the ε that the library was asked for."""


@pytest.mark.parametrize("name", PROVED)
def test_noise_that_has_a_theorem_costs_what_the_library_says(name):
    own, value, kind, epsilon = PROVED[name]
    _, plan = ran(lambda: own.randomise(*[] if value is None else [value]))
    (invocation,) = plan.invocations
    assert invocation.mechanism.kind == kind
    assert guarantee(plan, 0.0).epsilon == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize(
    ("kind", "epsilon", "sensitivity", "kept"),
    [
        (mechanisms.Gaussian, 0.9, 2.0, 0.95),  # the classical bound is loose
        (mechanisms.GaussianAnalytic, 1.3, 2.0, 1.0),
        (mechanisms.GaussianDiscrete, 1.3, 2, 1.0),
        (mechanisms.LaplaceBoundedNoise, 1.3, 2.0, 1.0),
    ],
)
def test_noise_of_a_delta_costs_no_more_than_the_library_says(
    kind, epsilon, sensitivity, kept, delta
):
    own = kind(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    _, plan = ran(lambda: own.randomise(5))
    proved = guarantee(plan, delta * (1 + 1e-9)).epsilon
    assert proved <= epsilon * (1 + 2e-3)  # discretised, rounded up
    assert proved == pytest.approx(epsilon, rel=2e-3) or kept < 1


@pytest.mark.parametrize(
    ("own", "value", "kind"),
    [
        (
            mechanisms.LaplaceBoundedDomain(epsilon=1.0, sensitivity=2.0, lower=0, upper=9),
            5.0,
            StatedNoise,
        ),
        (mechanisms.Snapping(epsilon=1.0, sensitivity=2.0, lower=0, upper=9), 5.0, StatedNoise),
        (mechanisms.Uniform(delta=0.2, sensitivity=2.0), 5.0, StatedNoise),
        (mechanisms.Laplace(epsilon=math.inf, sensitivity=2.0), 5.0, StatedNoise),
        (mechanisms.Laplace(epsilon=1.0, sensitivity=0.0), 5.0, StatedNoise),
        (mechanisms.Bingham(epsilon=1.0), np.eye(2), Opaque),
        (mechanisms.ExponentialCategorical(epsilon=1.0, utility_list=TREE), "b", Opaque),
        (
            mechanisms.Exponential(
                epsilon=1.0, sensitivity=1.0, utility=[0.0, 1.0], measure=[0.1, 0.9]
            ),
            None,
            Opaque,
        ),
    ],
)
def test_what_has_no_theorem_is_the_library_s_word(own, value, kind):
    notes, plan = ran(lambda: own.randomise(*[] if value is None else [value]))
    (invocation,) = plan.invocations
    assert type(invocation.mechanism) is kind
    if invocation.sensitivity:
        rules = [finding.rule for finding in notes.all_findings(notes.noted(ROW, ReplaceOne()))]
        assert rules == ["stated-by-library"]


LAWS = {
    name: own
    for name, (own, *_) in PROVED.items()
    if name in ("laplace", "truncated", "folded", "geometric", "geometric folded", "staircase")
} | {
    "gaussian": mechanisms.Gaussian(epsilon=0.9, delta=1e-3, sensitivity=2.0),
    "analytic": mechanisms.GaussianAnalytic(epsilon=1.3, delta=1e-3, sensitivity=2.0),
    "discrete": mechanisms.GaussianDiscrete(epsilon=1.3, delta=1e-3, sensitivity=2),
    "bounded": mechanisms.LaplaceBoundedNoise(epsilon=1.3, delta=1e-3, sensitivity=2.0),
}
VOTES = {"sensitivity": 1, "utility": [3, 1, 2], "candidates": ["a", "b", "c"]}
CHOICES = {
    "exponential": mechanisms.Exponential(epsilon=1.3, **VOTES),
    "permute and flip": mechanisms.PermuteAndFlip(epsilon=1.3, **VOTES),
    "binary": mechanisms.Binary(epsilon=1.3, value0="no", value1="yes"),
}


@pytest.mark.parametrize("name", [*LAWS, *CHOICES])
def test_the_library_draws_the_law_that_the_plan_names(name):
    """False alarms: 1e-6 each; noise of half or twice the scale is found."""

    own = (LAWS | CHOICES)[name]
    own._rng = np.random.RandomState(1)  # what the library takes as a seed

    def draw(_=None):
        own.randomise(*{"binary": ["yes"]}.get(name, [5] if name in LAWS else []))

    drawn = observed.routine(draw, ran(draw)[1], "diffprivlib")
    report = conformance(drawn, None, runs=200, error_rate=1e-6)
    assert report.clean, report.findings
    assert report.tested


def test_budgets_are_those_that_the_user_sees():
    budget = BudgetAccountant(slack=1e-3, delta=0.01)
    notes, _ = ran(
        lambda: [
            *(
                tools.mean(NUMBERS, epsilon=0.01, bounds=(0, 100), accountant=budget)
                for _ in range(90)
            ),
            models.PCA(
                1, epsilon=0.5, bounds=([0, 0], [100, 1]), data_norm=200, accountant=budget
            ).fit(PAIRS),
        ]
    )
    assert len(notes.charges) == 91
    total = budget.total()
    assert (notes.claim(1e-5).epsilon, notes.claim(1e-5).delta) == pytest.approx(tuple(total))


def test_a_warning_of_the_library_is_told_with_its_line():
    def code():
        tools.histogram(NUMBERS, epsilon=1.0)

    with pytest.warns(PrivacyLeakWarning):
        notes, _ = ran(code)
    (finding,) = notes.findings
    assert finding.rule == "library-warns"
    assert finding.at.startswith("test_diffprivlib.py:")


CODES = {
    "mean": lambda: tools.mean(NUMBERS, bounds=(0, 100)),
    "quantiles": lambda: tools.quantile(NUMBERS, [0.2, 0.5], bounds=(0, 100)),
    "median": lambda: tools.median(NUMBERS, bounds=(0, 100)),
    "histogram": lambda: tools.histogram2d(NUMBERS, NUMBERS, bins=3, range=[(0, 100)] * 2),
    "bayes": lambda: models.GaussianNB(bounds=([0, 0], [100, 1])).fit(PAIRS, LABELS),
    "k-means": lambda: models.KMeans(2, bounds=([0, 0], [100, 1]), random_state=0).fit(PAIRS),
    "logistic": lambda: models.LogisticRegression(data_norm=200).fit(PAIRS, LABELS),
    "forest": lambda: models.RandomForestClassifier(
        2, bounds=([0, 0], [100, 1]), classes=[0, 1], max_depth=2, random_state=0
    ).fit(PAIRS, LABELS),
    "scaler": lambda: models.StandardScaler(bounds=([0, 0], [100, 1])).fit(PAIRS),
}


@pytest.mark.parametrize("name", CODES)
def test_the_same_code_again_keeps_to_its_plan(name):
    notes, plan = ran(CODES[name], AddRemove())
    assert notes.claim(1e-5).epsilon == pytest.approx(3.0 if name == "forest" else 1.0)
    with Ledger(plan, noise=FloatNoise()) as ledger, through(ledger, "diffprivlib"):
        CODES[name]()
    assert len(ledger) == len(notes.calls)


# -- replays ---------------------------------------------------------------------------------------


def replayed(code, one, two, relation=None):
    """Rules of what differs between two neighbours, with the releases of the first."""
    _, plan = ran(lambda: code(one), relation)
    return observed.replayed(observed.routine(code, plan, "diffprivlib"), one, two)


HIGH = [100.0, *NUMBERS[1:]]
LINE = {"bounds_X": ([0], [100]), "bounds_y": (0, 1), "epsilon": 1.0}


def slope(rows, **options):
    rows = np.asarray(rows)[:, np.newaxis]
    return models.LinearRegression(**LINE, **options).fit(rows, rows[:, 0] / 100).coef_.tolist()


def test_right_code_has_no_finding():
    for code in (
        lambda rows: tools.mean(rows, bounds=(0, 100)),
        lambda rows: tools.quantile(rows, 0.5, bounds=(0, 100)),
        lambda rows: tools.var(rows, bounds=(0, 100)),
        lambda rows: tools.histogram(rows, bins=4, range=(0, 100))[0].tolist(),
    ):
        assert replayed(code, NUMBERS.tolist(), HIGH) == set()


def test_a_mean_takes_the_number_of_rows_as_public():
    def mean(rows):
        return tools.mean(rows, bounds=(0, 100))

    found = replayed(mean, NUMBERS.tolist(), NUMBERS.tolist()[1:], AddRemove())
    assert "private-parameters" in found


def test_a_quantile_of_fewer_rows_is_a_change_like_any_other():
    def median(rows):
        return tools.quantile(rows, 0.5, bounds=(0, 100))

    assert replayed(median, NUMBERS.tolist(), NUMBERS.tolist()[1:], AddRemove()) == set()


@pytest.mark.filterwarnings("ignore::diffprivlib.utils.PrivacyLeakWarning")
def test_bounds_from_the_data():
    def mean(rows):
        return tools.mean(rows)

    assert "private-parameters" in replayed(mean, NUMBERS.tolist(), HIGH)


def test_a_histogram_of_replaced_rows_moves_two_counts():
    def counts(rows):
        return tools.histogram(rows, bins=4, range=(0, 100))[0].tolist()

    notes, plan = ran(lambda: counts(NUMBERS), ReplaceOne())
    assert guarantee(plan, 0.0).epsilon == pytest.approx(2 * notes.claim(1e-5).epsilon)


def test_a_linear_regression_understates_squares_and_does_not_clip():
    """The sensitivity of Σx² is of the lower bound; without an intercept nothing is clipped."""
    for other in (HIGH, [1e6, *NUMBERS[1:]]):
        found = replayed(lambda rows: slope(rows, fit_intercept=False), NUMBERS.tolist(), other)
        assert "sensitivity-understated" in found


def test_a_linear_regression_spends_more_than_it_charges():
    """Means of X and y cost ε/(d + 1) each; the rest is charged as if there were one."""
    notes, plan = ran(lambda: slope(NUMBERS))
    assert notes.claim(1e-5).epsilon == 1.0
    assert guarantee(plan, 0.0).epsilon == pytest.approx(1.5, rel=1e-6)


def test_k_means_goes_by_whether_a_cluster_is_empty():
    def centres(rows):
        two = np.column_stack([rows, rows])
        fit = models.KMeans(2, bounds=([0, 0], [100, 100]), random_state=0).fit(two)
        return fit.cluster_centers_.tolist()

    found = replayed(centres, [3.0] * 40, [97.0, *[3.0] * 39])
    assert "private-control-flow" in found
    assert "sensitivity-understated" not in found  # which call is of which cluster is not seen


def test_a_plan_may_not_say_less_than_the_library_knows():
    def code():
        return tools.sum(NUMBERS, epsilon=1.0, bounds=(0, 100))

    _, plan = ran(code)
    (own,) = plan.invocations
    ledger = Ledger(Plan.of(replace(own, sensitivity=0.1)), noise=FloatNoise())
    with (
        through(ledger, "diffprivlib"),
        pytest.raises(PlanMismatchError, match="the library states 1"),
    ):
        code()
    assert len(ledger) == 0
