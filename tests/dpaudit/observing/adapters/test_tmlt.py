"""The real library on Spark, in the environment that ``make observed`` makes for it."""

import os
import sys

import pytest

from dpaudit import AddRemove, PrivacyUnit
from dpaudit.accounting import guarantee
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.mechanisms import DiscreteGaussian, DiscreteLaplace, Opaque
from dpaudit.observing import noting, plan_of, through

tumult = pytest.importorskip("tmlt.analytics")
os.environ["PYSPARK_PYTHON"] = sys.executable
ROW = PrivacyUnit("row")
ROWS = [{"city": "abc"[n % 3], "age": n} for n in range(30)]
CITIES = tumult.KeySet.from_dict({"city": ["a", "b", "c"]})
PEOPLE = tumult.QueryBuilder("people")


@pytest.fixture(scope="module", autouse=True)
def spark():
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    yield session
    session.stop()


def asked(rows, *queries, budget=None):
    from pyspark.sql import SparkSession

    budget = budget or tumult.PureDPBudget(1.0)
    frame = SparkSession.builder.getOrCreate().createDataFrame(rows, "city string, age long")
    session = tumult.Session.from_dataframe(
        privacy_budget=type(budget)(len(queries)),
        source_id="people",
        dataframe=frame,
        protected_change=tumult.AddOneRow(),
    )
    answers = [session.evaluate(query, budget).collect() for query in queries]
    return [sorted(map(tuple, rows)) for rows in answers]


def ran(*queries, **how):
    with noting(AddRemove(), "tmlt") as notes:
        made = asked(ROWS, *queries, **how)
    return notes, plan_of(notes.noted(ROW, AddRemove())), made


def test_noise_on_groups_is_one_release_as_far_as_its_tree_says():
    total, count = PEOPLE.groupby(CITIES).sum("age", 0, 10), PEOPLE.count()
    notes, plan, made = ran(total, count)
    assert [(each.mechanism, each.sensitivity) for each in plan.invocations] == [
        (DiscreteLaplace(10.0), 10.0),
        (DiscreteLaplace(1.0), 1.0),
    ]
    first, second = (call.reading.value.tolist() for call in notes.calls)
    assert first == [sum(min(r["age"], 10) for r in ROWS if r["city"] == c) for c in "abc"]
    assert second == [30]
    assert [row[1] for row in made[0]] == notes.calls[0].result.tolist()
    assert guarantee(plan, 0.0).epsilon == pytest.approx(notes.claim(1e-5).epsilon) == 2.0


def test_zero_concentrated_noise_and_what_is_its_word():
    rho = tumult.RhoZCDPBudget(1.0)
    notes, plan, _ = ran(PEOPLE.groupby(CITIES).count(), budget=rho)
    (own,) = plan.invocations
    assert own.mechanism == DiscreteGaussian(0.5**0.5)
    assert notes.charges[0].rho == 1.0
    _, plan, _ = ran(PEOPLE.groupby(CITIES).median("age", 0, 100))
    (own,) = plan.invocations
    assert isinstance(own.mechanism, Opaque)
    assert own.mechanism.epsilon == 1.0


def test_a_query_is_replayed():
    query = PEOPLE.groupby(CITIES).sum("age", 0, 10)
    _, plan, _ = ran(query)

    def run(data, ledger, _):
        with through(ledger, "tmlt"):
            return asked(data, query)

    routine = Routine(plan, run)
    assert replay(routine, ROWS, [*ROWS, {"city": "b", "age": 10**6}]).clean
    rules = {each.rule for each in replay(routine, ROWS, ROWS[:20]).findings}
    assert "sensitivity-understated" in rules
