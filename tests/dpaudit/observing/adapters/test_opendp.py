"""The real library: chains taken apart, exact curves where the map allows, queries of a context."""

import pytest
from observed import replayed, routine

from dpaudit import AddRemove, FloatNoise, Ledger, PrivacyUnit, ReplaceOne, UnsupportedError
from dpaudit.accounting import guarantee
from dpaudit.auditing.noise.conformance import conformance
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Opaque
from dpaudit.observing import noting, plan_of, through

dp = pytest.importorskip("opendp.prelude")
dp.enable_features("contrib", "honest-but-curious")

ROWS = [float(each) for each in range(50)]
FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False))
SPACE = FLOATS, dp.symmetric_distance()
ROW = PrivacyUnit("row")
CLAMPED = SPACE >> dp.t.then_clamp((0.0, 10.0)) >> dp.t.then_sum()
COUNT = SPACE >> dp.t.then_count()


def ran(code, relation=None):
    near = relation or AddRemove()
    with noting(near, "opendp") as notes:
        code(ROWS)
    return notes, plan_of(notes.noted(ROW, near))


@pytest.mark.parametrize(
    ("chain", "mechanism", "sensitivity", "value"),
    [
        (CLAMPED >> dp.m.then_laplace(scale=5.0), Laplace(5.0), 10, sum(ROWS[:10]) + 400),
        (CLAMPED >> dp.m.then_gaussian(scale=5.0), Gaussian(5.0), 10, sum(ROWS[:10]) + 400),
        (COUNT >> dp.m.then_laplace(scale=2.0), DiscreteLaplace(2.0), 1, 50),
        (COUNT >> dp.m.then_geometric(scale=2.0), DiscreteLaplace(2.0), 1, 50),
        (COUNT >> dp.m.then_gaussian(scale=2.0), DiscreteGaussian(2.0), 1, 50),
        (COUNT >> dp.m.then_laplace(scale=2.0) >> float, DiscreteLaplace(2.0), 1, 50),
    ],
)
@pytest.mark.parametrize("relation", [AddRemove(), ReplaceOne()])
def test_a_chain_is_the_mechanism_at_its_end(chain, mechanism, sensitivity, value, relation):
    notes, plan = ran(lambda rows: chain(rows), relation)
    (invocation,), (call,) = plan.invocations, notes.calls
    steps = 2 if isinstance(relation, ReplaceOne) else 1
    assert invocation.mechanism == mechanism
    assert invocation.sensitivity == pytest.approx(steps * sensitivity, rel=1e-7)
    assert float(call.reading.value) == pytest.approx(value)
    charged = notes.charges[0]
    if charged.rho:
        assert charged.rho == pytest.approx((invocation.sensitivity / mechanism.sigma) ** 2 / 2)
    else:
        assert guarantee(plan, 0.0).epsilon == pytest.approx(charged.epsilon, rel=1e-9)


def test_a_map_that_states_more_is_taken_at_its_word():
    """Noise on a coarse grid rounds the value too, which the map counts."""
    coarse = CLAMPED >> dp.m.then_laplace(scale=5.0, k=3)
    notes, plan = ran(lambda rows: coarse(rows))
    (invocation,) = plan.invocations
    assert isinstance(invocation.mechanism, Opaque)
    assert invocation.mechanism.epsilon == notes.charges[0].epsilon > 2.0


def test_randomised_response():
    coin = dp.m.make_randomized_response_bool(prob=0.75)
    poll = dp.m.make_randomized_response(categories=["a", "b", "c"], prob=0.75)
    for code, one in ((coin, True), (poll, "b")):
        with noting(ReplaceOne(), "opendp") as notes:
            code(one)
        plan = plan_of(notes.noted(ROW, ReplaceOne()))
        assert guarantee(plan, 0.0).epsilon == pytest.approx(code.map(1), rel=1e-9)
        assert float(notes.calls[0].reading.value) == 1


def queries(rows):
    context = dp.Context.compositor(
        data=rows,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=4,
        domain=FLOATS,
    )
    total = context.query().clamp((0.0, 10.0)).sum().laplace().release()
    return total, context.query().count().laplace().release()


def test_a_context_charges_all_and_costs_its_queries():
    notes, plan = ran(queries)
    assert [each.mechanism.kind for each in plan.invocations] == ["laplace", "discrete-laplace"]
    assert notes.claim(1e-5).epsilon == 1.0
    assert guarantee(plan, 0.0).epsilon == pytest.approx(0.5, rel=1e-6)
    with Ledger(plan, noise=FloatNoise()) as ledger, through(ledger, "opendp"):
        queries(ROWS)
    assert len(ledger) == 2


def test_a_unit_of_privacy_states_the_relation_where_nobody_else_does():
    """A row that comes or goes costs what is charged; under replace-one it would cost more."""
    with noting(None, "opendp") as notes:
        queries(ROWS)
    assert notes.relation == AddRemove()
    plan = plan_of(notes.noted(ROW, notes.relation))
    assert guarantee(plan, 0.0).epsilon == pytest.approx(0.5, rel=1e-6)
    assert not notes.findings
    with noting(ReplaceOne(), "opendp") as notes:
        queries(ROWS)
    assert notes.relation is None
    assert [each.rule for each in notes.findings] == ["charges-nothing"]


def nested(rows):
    about = {"split_evenly_over": 2}
    context = dp.Context.compositor(
        data=rows,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        domain=FLOATS,
        **about,
    )
    total = context.query().clamp((0.0, 10.0)).sum().laplace().release()
    inner = context.query().compositor(**about).release()
    return total, inner.query().count().laplace().release()


def test_a_query_that_gives_a_compositor_is_what_is_asked_of_that():
    notes, plan = ran(nested)
    scales = [each.mechanism.scale for each in plan.invocations]
    assert scales == pytest.approx([20.0, 4.0], rel=1e-6)
    assert notes.claim(1e-5).epsilon == 1.0
    assert guarantee(plan, 0.0).epsilon == pytest.approx(0.75, rel=1e-6)
    assert replayed(routine(nested, plan, "opendp"), ROWS, ROWS[1:]) == set()


def test_neighbours_of_which_a_map_says_nothing_are_told():
    for relation, silent in ((AddRemove(), False), (ReplaceOne(), True)):
        notes, plan = ran(queries, relation)
        rules = {each.rule for each in notes.findings}
        assert ("charges-nothing" in rules) is silent
        assert (notes.claim(1e-5) is None) is silent
    assert guarantee(plan, 0.0).epsilon == pytest.approx(1.0, rel=1e-6)


POLL = dp.m.make_randomized_response(categories=["a", "b", "c"], prob=0.75)


def polled(rows):
    return [POLL(each) for each in rows]


def test_answers_that_are_texts_are_replayed():
    with noting(ReplaceOne(), "opendp") as notes:
        assert set(polled(["b", "of no category"])) <= {"a", "b", "c"}
    plan = plan_of(notes.noted(ROW, ReplaceOne()))
    asked = routine(polled, plan, "opendp")
    assert replayed(asked, ["b", "a"], ["c", "a"]) == set()
    assert conformance(asked, ["b", "c"], runs=100).clean


def test_a_value_from_outside_has_no_known_sensitivity():
    noise = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=2.0)
    notes, plan = ran(lambda rows: noise(len(rows)))
    assert isinstance(plan.invocations[0].mechanism, Opaque)
    (finding,) = notes.all_findings(notes.noted(ROW, AddRemove()))
    assert finding.rule == "unknown-sensitivity"


def test_a_domain_of_data_states_whether_they_hold_nan():
    notes, _ = ran(lambda rows: (CLAMPED >> dp.m.then_laplace(scale=5.0))(rows))
    assert notes.excludes_nan
    any_number = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
    count = any_number >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    notes, _ = ran(lambda rows: [(COUNT >> dp.m.then_laplace(scale=1.0))(rows), count(rows)])
    assert not notes.excludes_nan
    one = dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=2.0
    )
    notes, _ = ran(lambda rows: one(float(len(rows))))
    assert not notes.excludes_nan  # it speaks of a value that is made of data


def test_rows_that_change_are_one_step_of_replace_one_and_none_of_add_remove():
    sized = dp.vector_domain(dp.atom_domain((0.0, 10.0), nan=False), size=50)
    clipped = [min(each, 10.0) for each in ROWS]
    chain = (
        (sized, dp.change_one_distance())
        >> dp.t.then_metric_unbounded()
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=5.0)
    )
    _, plan = ran(lambda _: chain(clipped), ReplaceOne())
    assert plan.invocations[0].sensitivity == pytest.approx(10, rel=1e-6)
    with noting(AddRemove(), "opendp"), pytest.raises(InputError, match="state the relation"):
        chain(clipped)


def test_an_odometer_is_refused():
    odometer = dp.c.make_fully_adaptive_composition(*SPACE, dp.max_divergence())
    with noting(AddRemove(), "opendp"), pytest.raises(UnsupportedError, match="odometer"):
        odometer(ROWS)


def test_replays():
    noisy = CLAMPED >> dp.m.then_laplace(scale=50.0)

    def total(rows):
        return noisy(rows)

    def mean(rows):
        return noisy(rows) / len(rows)

    def found(code, two):
        return replayed(routine(code, ran(code)[1], "opendp"), ROWS, two)

    assert found(total, ROWS[1:]) == found(queries, ROWS[:-1]) == set()
    assert found(mean, ROWS[1:]) == {"result-not-from-releases"}


def test_the_library_draws_the_law_that_the_plan_names():
    """False alarms: 1e-6 each."""
    bins = SPACE >> dp.t.then_find_bin(edges=[10.0, 20.0])
    counts = {"categories": [0, 1, 2], "null_category": False, "TOA": int}
    for chain in (
        bins >> dp.t.then_count_by_categories(**counts) >> dp.m.then_laplace(scale=2.0),
        CLAMPED >> dp.m.then_laplace(scale=5.0),
        COUNT >> dp.m.then_laplace(scale=2.0),
        COUNT >> dp.m.then_gaussian(scale=2.0),
    ):

        def code(rows, chain=chain):
            return chain(rows)

        own = routine(code, ran(code)[1], "opendp")
        report = conformance(own, ROWS, runs=200, error_rate=1e-6)
        assert report.clean, report.findings
        assert report.tested
