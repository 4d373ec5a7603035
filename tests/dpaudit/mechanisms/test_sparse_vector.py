import itertools
import math

import numpy as np
import pytest
from accounting_builders import plan, use
from mechanism_conformance import MechanismConformance, PlainSource, grid_delta
from scipy import stats

from dpaudit.accounting import guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Mechanism, SparseVector

QUERIES = (0.0, 1.0, 2.0, 0.5)
OTHERS = (1.0, 0.0, 1.0, 1.5)


def sparse(first: float, second: float, third: float = 0.0, **facts) -> SparseVector:
    """ε₁, ε₂ and ε₃, of a threshold of 1."""
    whole = first + second + third
    shares = {"answers_share": third / whole, "threshold_share": first / (first + second)}
    return SparseVector(whole, **{"threshold": 1.0, **shares, **facts})


def by_sum(mechanism: SparseVector, queries, flags) -> float:
    """P[flags] as a plain sum over the threshold's noise, as the algorithm is written."""
    factor = 1 if mechanism.monotonic else 2
    kept, share = mechanism.epsilon * (1 - mechanism.answers_share), mechanism.threshold_share
    first = mechanism.query_sensitivity / (kept * share)
    second = factor * mechanism.cutoff * mechanism.query_sensitivity / (kept * (1 - share))
    rho = np.linspace(-40 * first, 40 * first, 800_001)
    total = stats.laplace.pdf(rho, scale=first)
    for query, flag in zip(queries, flags, strict=True):
        below = stats.laplace.cdf(mechanism.threshold + rho - query, scale=second)
        total = total * (below if flag == 0 else 1 - below if flag == 1 else 1.0)
    return float(np.trapezoid(total, rho))


class SparseSuite(MechanismConformance):
    value = QUERIES
    neighbour = OTHERS
    attained = False
    bad_parameters = (
        {"threshold": math.inf},
        {"epsilon": 0.0},
        {"threshold_share": 1.0},
        {"answers_share": 1.0},
        {"cutoff": 0},
        {"cutoff": 1.5},
        {"query_sensitivity": 0.0},
        {"monotonic": 1},
    )
    bad_values = ([], 1.0, [[1.0]], [math.nan], [math.inf], "a", None)

    def flags_only(self):
        kept = self.mechanism.epsilon * (1 - self.mechanism.answers_share)
        facts = {"epsilon": kept, "answers_share": 0.0}
        return Mechanism.parse(self.mechanism.to_dict() | facts)

    def tails(self, released):
        return super().tails(released[:250])  # each lists all transcripts

    def mean(self):
        return by_sum(self.mechanism, QUERIES[:1], [1])

    def variance(self):
        return self.mean() * (1 - self.mean())

    def exact_delta(self, epsilon):
        both = (np.array(self.flags_only().probabilities(v)) for v in (OTHERS, QUERIES))
        return grid_delta(*map(np.log, both), epsilon)


class TestAboveThreshold(SparseSuite):
    mechanism = sparse(0.5, 0.5)
    unlike = sparse(3.0, 3.0)


class TestSparseVector(SparseSuite):
    mechanism = sparse(0.7, 2.0, cutoff=2, query_sensitivity=1.0)
    unlike = sparse(0.7, 20.0, cutoff=2)


class TestSparseVectorWithAnswers(SparseSuite):
    mechanism = sparse(0.7, 2.0, 1.0, cutoff=2, monotonic=True)
    neighbour = (1.0, 1.0, 2.5, 1.5)
    unlike = sparse(0.7, 20.0, 1.0, threshold=9.0, cutoff=2)
    released_shape = (4, 2)


@pytest.mark.parametrize(
    "mechanism",
    [
        sparse(0.5, 0.5),
        sparse(0.4, 1.1, threshold=0.7, cutoff=2, query_sensitivity=0.5, monotonic=True),
        sparse(2.0, 0.3, threshold=0.7, cutoff=3),
        sparse(0.1, 9.0, threshold=0.7),
    ],
)
def test_transcripts_have_the_probabilities_of_the_algorithm(mechanism):
    masses = dict(
        zip(
            map(tuple, mechanism.outputs(np.array(QUERIES))),
            mechanism.probabilities(QUERIES),
            strict=True,
        )
    )
    assert sum(masses.values()) == pytest.approx(1, abs=1e-12)
    for flags in itertools.islice(masses, 0, None, 2):
        assert masses[flags] == pytest.approx(by_sum(mechanism, QUERIES, flags), rel=1e-5)
    assert all(list(flags).count(1.0) <= mechanism.cutoff for flags in masses)
    impossible = mechanism.log_density([[1.0, 1.0, 1.0, 1.0], [0.0, -1.0, 0.0, 0.0]], QUERIES)
    assert impossible.tolist() == [-math.inf, -math.inf]


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("cutoff", [1, 2])
def test_no_neighbours_cost_more_than_the_pair(cutoff, monotonic):
    """Enumeration of all transcripts, also of an attack that comes near to ε."""
    mechanism = sparse(0.6, 0.9, threshold=0.0, cutoff=cutoff, monotonic=monotonic)
    pair, rng = mechanism.pair(1), np.random.default_rng(7)
    assert pair.pure_epsilon == pytest.approx(1.5)
    largest = 0.0
    moves = [(rng.uniform(-4, 4, size=5), rng.choice([-1.0, 1.0], size=5)) for _ in range(30)]
    towards = np.array([1.0] * (6 - cutoff) + [-1.0] * cutoff)
    moves.append((np.array([0.0] * (6 - cutoff) + [1.0] * cutoff), towards))
    moves.append((np.array([-9.0] * 9 + [0.0]), np.array([1.0] * 9 + [-1.0])))
    for start, move in moves:
        other = start + (np.maximum(move, 0) if monotonic else move)
        assert mechanism.distance(start, other) <= 1
        p, q = (np.array(mechanism.probabilities(v)) for v in (start, other))
        for one, two in ((p, q), (q, p)):
            for epsilon in (0.0, 0.5, 1.2):
                exact = np.maximum(one - math.exp(epsilon) * two, 0).sum()
                assert exact <= float(pair.delta(epsilon)) + 1e-12
            divergence = math.log((one**3 * two**-2.0).sum()) / 2
            assert divergence <= float(pair.renyi(3.0)) * (1 + 1e-12)
            largest = max(largest, np.log(one / two).max())
    assert 0.5 * 1.5 < largest <= 1.5 * (1 + 1e-9)


def test_declared_as_monotonic_it_refuses_queries_that_move_apart():
    both = np.zeros(2), np.array([1.0, -1.0])
    assert SparseVector(1.0, 0.0, monotonic=True).distance(*both) == 2
    assert SparseVector(1.0, 0.0, query_sensitivity=2.0).distance(*both) == 0.5


@pytest.mark.parametrize(("cutoff", "monotonic", "ratio"), [(1, False, 2 ** (2 / 3)), (8, True, 4)])
def test_the_default_share_is_that_of_the_paper(cutoff, monotonic, ratio):
    facts = {"cutoff": cutoff, "monotonic": monotonic}
    own = SparseVector(0.3, 1.0, **facts).probabilities(QUERIES)
    told = SparseVector(0.3, 1.0, **facts, threshold_share=1 / (1 + ratio))
    assert own == pytest.approx(told.probabilities(QUERIES))


def test_a_threshold_drawn_anew_composes_by_count():
    """Dwork and Roth's Algorithm 2: c uses of AboveThreshold."""
    once = sparse(0.05, 0.05)
    many = guarantee(plan(use(once, count=100)), 1e-6)
    assert many.epsilon < 0.6 * guarantee(plan(use(once, count=100)), 0.0).epsilon
    assert many.error_bound is None
    names = set(many.compared)
    assert {"pure", "zcdp", "rdp", "pld"} <= names
    assert many.epsilon == min(many.compared.values())


def test_exact_noise_is_drawn_on_one_grid_and_answers_lie_on_it():
    mechanism = sparse(1.0, 1.0, 2.0, threshold=10.0, cutoff=3)
    source = PlainSource(np.random.default_rng(2))
    released = mechanism.release_exactly([1e300, 50.0, -1e300, 50.0], 1.0, 200, source)
    assert (released[:, 0, 0] == 1).all()
    assert (released[:, 2, 0] == 0).all()
    step = source.step(1.0)
    assert (released[:, 1, 1] / step == np.rint(released[:, 1, 1] / step)).all()
    noise = released[:, 1, 1][released[:, 1, 0] > 0] - 50.0
    assert stats.kstest(noise / 1.5, stats.laplace.cdf).pvalue > 1e-6


@pytest.mark.parametrize("epsilon", [1e-300, 1e300])
def test_extremes_are_served_or_refused(epsilon):
    mechanism = SparseVector(epsilon, 0.0)
    released = mechanism.release([1e308, -1e308, 5e-324], np.random.default_rng(1))
    assert set(released) <= {-1.0, 0.0, 1.0}
    assert guarantee(plan(use(mechanism)), 0.0).epsilon >= epsilon
    with pytest.raises(InputError, match="the scale would be too large"):
        SparseVector(5e-324, 0.0).release([1.0], np.random.default_rng(1))


def test_what_cannot_be_enumerated_is_said():
    with pytest.raises(UnsupportedError, match="too many to list"):
        sparse(1.0, 1.0).probabilities(np.zeros(17))
    with pytest.raises(UnsupportedError, match="no list of outputs"):
        sparse(1.0, 1.0, 1.0).probabilities([0.0])
    with pytest.raises(UnsupportedError, match="too small compared with"):
        sparse(1.0, 1e9).probabilities([0.0])
