"""The real library, in the environment that ``make observed`` makes for it."""

import pytest

from dpaudit import AddRemove, PrivacyUnit
from dpaudit.accounting import guarantee
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.mechanisms import Gaussian, Laplace, Opaque
from dpaudit.observing import noting, plan_of, through

snsql = pytest.importorskip("snsql", exc_type=ImportError)
pd = pytest.importorskip("pandas")
USER = PrivacyUnit("user")
ROWS = [{"user": n, "city": "ab"[n % 2], "age": n} for n in range(40)]
TABLE = {
    "user": {"type": "int", "private_id": True},
    "city": {"type": "string"},
    "age": {"type": "int", "lower": 0, "upper": 100},
}


def asked(rows, query, kind="laplace", censor=False):
    about = {"max_ids": 1, "sample_max_ids": True, "censor_dims": censor}
    privacy = snsql.Privacy(epsilon=1.0, delta=1e-6)
    for stat in (snsql.Stat.count, snsql.Stat.sum_int, snsql.Stat.sum_large_int):
        privacy.mechanisms.map[stat] = snsql.Mechanism[kind]
    metadata = {"": {"": {"people": TABLE | about}}}
    reader = snsql.from_df(pd.DataFrame(rows), privacy=privacy, metadata=metadata)
    return [list(row) for row in reader.execute(query)[1:]]


def ran(query, **how):
    with noting(AddRemove(), "snsql") as notes:
        asked(ROWS, query, **how)
    return notes, plan_of(notes.noted(USER, AddRemove()))


def test_a_sum_is_noise_on_clamped_values():
    notes, plan = ran("SELECT SUM(age) AS n FROM people")
    (own,), (call,) = plan.invocations, notes.calls
    assert isinstance(own.mechanism, Laplace)
    assert own.mechanism.scale == pytest.approx(100.0, rel=1e-5)
    assert (own.sensitivity, own.count) == (100.0, 1)
    assert float(call.reading.value[0]) == sum(range(40))
    assert guarantee(plan, 0.0).epsilon == pytest.approx(1.0, rel=1e-5)
    assert notes.claim(1e-5).epsilon == pytest.approx(1.0)


def test_gaussian_noise_and_groups():
    notes, plan = ran("SELECT city, COUNT(*) AS n FROM people GROUP BY city", kind="gaussian")
    (own,) = plan.invocations
    assert isinstance(own.mechanism, Gaussian)
    assert (own.sensitivity, own.count, own.releases) == (1.0, 1, 2)
    assert [float(call.reading.value[0]) for call in notes.calls] == [20.0, 20.0]
    assert guarantee(plan, 1e-6).epsilon < 1.0


def test_which_groups_are_shown_is_its_word():
    query = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
    _, plan = ran(query, censor=True)
    (opaque,) = (each.mechanism for each in plan.invocations if isinstance(each.mechanism, Opaque))
    assert opaque.delta == 1e-6


def test_a_sum_is_replayed():
    query = "SELECT SUM(age) AS n FROM people"
    _, plan = ran(query)

    def run(data, ledger, _):
        with through(ledger, "snsql"):
            return asked(data, query)

    routine = Routine(plan, run)
    assert replay(routine, ROWS, [*ROWS, {"user": 40, "city": "a", "age": 10**6}]).clean
    (finding,) = replay(routine, ROWS, ROWS[:30]).findings
    assert finding.rule == "sensitivity-understated"
