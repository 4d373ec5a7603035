"""The real library on its local backend: partitions, what one unit moves, and what is charged."""

import pytest

from dpaudit import AddRemove, PlanMismatchError, PrivacyUnit
from dpaudit.accounting import guarantee
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.mechanisms import Gaussian, Laplace, Opaque
from dpaudit.observing import noting, plan_of, through
from dpaudit.observing.observed_code import seeded

pipeline_dp = pytest.importorskip("pipeline_dp")
Metrics = pipeline_dp.Metrics
USER = PrivacyUnit("user")
ROWS = [(n, "abc"[n % 3], float(n)) for n in range(30)]
EXTRACT = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)


def aggregated(rows, *metrics, partitions=2, kind="LAPLACE", public=("a", "b", "c"), **bounds):
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
    values = {"min_value": 0.0, "max_value": 10.0, "max_contributions_per_partition": 1}
    params = pipeline_dp.AggregateParams(
        metrics=list(metrics),
        noise_kind=pipeline_dp.NoiseKind[kind],
        max_partitions_contributed=partitions,
        **values | bounds,
    )
    made = engine.aggregate(rows, params, EXTRACT, public_partitions=public and list(public))
    budget.compute_budgets()
    return {key: tuple(map(float, values)) for key, values in sorted(made)}


def ran(*metrics, **how):
    with noting(AddRemove(), "pipeline_dp") as notes:
        made = aggregated(ROWS, *metrics, **how)
    return notes, plan_of(notes.noted(USER, AddRemove())), made


def test_a_partition_is_a_release_of_which_one_unit_moves_some():
    notes, plan, made = ran(Metrics.SUM)
    (own,) = plan.invocations
    assert own.mechanism == Laplace(20.0)
    assert (own.sensitivity, own.count, own.releases) == (10.0, 2, 3)
    assert [float(call.reading.value) for call in notes.calls] == [
        sum(min(row[2], 10.0) for row in ROWS if row[1] == name) for name in "abc"
    ]
    assert made["a"] == (notes.calls[0].result,)
    assert notes.claim(1e-5).epsilon == 1.0
    assert guarantee(plan, 0.0).epsilon == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(
    ("metrics", "releases"),
    [
        ((Metrics.COUNT, Metrics.SUM, Metrics.PRIVACY_ID_COUNT), 9),
        ((Metrics.MEAN,), 6),
        ((Metrics.VARIANCE,), 9),
    ],
)
@pytest.mark.parametrize("kind", ["LAPLACE", "GAUSSIAN"])
def test_all_numbers_of_an_aggregation_cost_what_it_charges(metrics, releases, kind):
    """Independent truth: the split of its budget composes to no more, and to no less at δ = 0."""
    notes, plan, _ = ran(*metrics, kind=kind)
    assert len(notes.calls) == releases
    assert sum(each.count for each in plan.invocations) == 2 * releases / 3
    delta = 0.0 if kind == "LAPLACE" else 1e-6
    proved = guarantee(plan, delta).epsilon
    assert proved < 1 + 1e-9
    assert kind == "GAUSSIAN" or proved > 1 - 1e-3


def test_gaussian_noise_has_the_spread_of_all_partitions():
    _, plan, _ = ran(Metrics.COUNT, kind="GAUSSIAN")
    (own,) = plan.invocations
    assert isinstance(own.mechanism, Gaussian)
    known = pipeline_dp.dp_computations.compute_sigma(1.0, 1e-6, 2**0.5)
    assert own.mechanism.sigma == pytest.approx(known)


def test_quantiles_and_private_partitions_are_its_word():
    _, plan, made = ran(Metrics.PERCENTILE(50), Metrics.COUNT, public=None, partitions=1)
    opaque = [each for each in plan.invocations if isinstance(each.mechanism, Opaque)]
    assert {each.mechanism.label for each in opaque} <= {
        "selection of partitions",
        "quantiles of a tree",
    }
    assert opaque
    assert set(made) <= set("abc")


def routine(plan, **how):
    def run(data, ledger, _):
        with through(ledger, "pipeline_dp"), seeded(0):  # its samples are drawn by numpy
            return aggregated(data, Metrics.SUM, **how)

    return Routine(plan, run)


def test_neighbours_are_compared_partition_by_partition():
    """In whatever order their rows come, and whoever else is sampled."""
    _, plan, _ = ran(Metrics.SUM, partitions=1)
    many = [*ROWS, (0, "b", 3.0), (0, "c", 3.0)]  # of whom one is sampled
    for without in (0, 1, 29):
        neighbour = [row for row in many if row[0] != without]
        assert replay(routine(plan, partitions=1), many, neighbour).clean
    low = routine(plan, partitions=1, max_contributions_per_partition=1)
    assert replay(low, ROWS, [*ROWS, (99, "a", 1e9)]).clean


def test_what_is_not_declared_is_refused():
    _, plan, _ = ran(Metrics.SUM)
    with pytest.raises(PlanMismatchError, match="one with another scale ran"):
        replay(routine(plan, max_value=20.0), ROWS, ROWS[1:])
