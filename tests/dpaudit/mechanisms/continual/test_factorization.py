"""Factorisations: columns, sensitivities, series, and the matrices that are fitted."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpaudit.base.errors import InputError
from dpaudit.ledger.samplers.streams import noise_stream
from dpaudit.mechanisms import (
    BandedToeplitz,
    BinaryTree,
    BufferedToeplitz,
    HonakerTree,
    Norm,
    OwnMatrix,
    OwnToeplitz,
    SquareRootToeplitz,
)
from dpaudit.mechanisms.continual import Factorization
from dpaudit.mechanisms.continual.toeplitz import (
    geometric,
    log_error,
    series_weights,
    zolotarev_rates,
)

# The laws that every factorisation obeys, against its explicit matrices


def rows_of(matrix) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row[: number + 1]) for number, row in enumerate(matrix.tolist()))


BUILDERS = {
    "binary": BinaryTree,
    "binary-root": lambda steps: BinaryTree(steps, release_root=True),
    "honaker": HonakerTree,
    "honaker-root": lambda steps: HonakerTree(steps, release_root=True),
    "square-root": SquareRootToeplitz,
    "banded-1": lambda steps: BandedToeplitz(steps, 1),
    "banded-4": lambda steps: BandedToeplitz(steps, 4),
    "buffered-1": lambda steps: BufferedToeplitz(steps, (0.4,)),
    "own": lambda steps: OwnToeplitz(steps, (2.0, 1.5, 1.5, 0.1)),
    "own-inverse": lambda steps: OwnToeplitz(steps, (0.5, -0.25, -0.0625), inverse=True),
    "own-matrix": lambda steps: OwnMatrix(rows_of(SquareRootToeplitz(steps).encoder() * 3)),
    "buffered-3": lambda steps: BufferedToeplitz(steps, (0.01, 0.2, 3.0), (0.05, 0.9)),
}
STEPS = (1, 2, 3, 4, 6, 7, 8, 12, 15, 16, 17, 33)
CASES = [
    pytest.param(build(steps), id=f"{name}-{steps}")
    for name, build in BUILDERS.items()
    for steps in STEPS
]
SMALL = [
    pytest.param(build(steps), id=f"{name}-{steps}")
    for name, build in BUILDERS.items()
    for steps in (1, 2, 5, 8, 11)
]


class UnitNoise:
    """Stands in for a generator: the i-th node drawn is σ times the i-th unit vector."""

    def __init__(self) -> None:
        self.drawn = 0

    def normal(self, scale: float, size: tuple[int, int]) -> np.ndarray:
        count, length = size
        noise = scale * np.eye(length)[self.drawn : self.drawn + count]
        self.drawn += count
        return noise


def sampled_decoder(factorization: Factorization, sigma: float = 1.0) -> np.ndarray:
    """The matrix that the stream really applies to its node noise, nodes in order of drawing."""
    nodes = factorization.encoder().shape[0]
    rng = UnitNoise()
    stream = noise_stream(factorization, (nodes,), sigma, rng)  # type: ignore[arg-type]
    rows = np.array([stream.step() for _ in range(factorization.steps)])
    assert rng.drawn == nodes
    return rows


def patterns(steps: int, count: int, gap: int):
    for number in range(1, count + 1):
        for pattern in itertools.combinations(range(steps), number):
            if all(b - a >= gap for a, b in itertools.pairwise(pattern)):
                yield list(pattern)


def brute_force(matrix: np.ndarray, count: int, gap: int, order: int) -> float:
    return max(
        np.linalg.norm(matrix[:, pattern].sum(axis=1), order)
        for pattern in patterns(matrix.shape[1], count, gap)
    )


@pytest.mark.parametrize("factorization", CASES)
def test_matrices_multiply_to_prefix_sums(factorization):
    product = factorization.decoder() @ factorization.encoder()
    np.testing.assert_allclose(product, np.tri(factorization.steps), atol=1e-12)


@pytest.mark.parametrize("factorization", CASES)
def test_stream_has_the_covariance_of_the_decoder(factorization):
    sampled = sampled_decoder(factorization, sigma=2.0)
    decoder = factorization.decoder()
    np.testing.assert_allclose(sampled @ sampled.T, 4 * decoder @ decoder.T, atol=1e-12)
    root = factorization.noise_root()
    np.testing.assert_array_equal(root, np.tril(root))
    np.testing.assert_allclose(root @ root.T, decoder @ decoder.T, atol=1e-12)


@pytest.mark.parametrize("factorization", CASES)
def test_error_is_that_of_the_stream(factorization):
    sampled = sampled_decoder(factorization)
    expected = 3 * np.linalg.norm(sampled, axis=1)
    np.testing.assert_allclose(factorization.error(3.0), expected, rtol=1e-12)
    assert factorization.max_error(3.0) == pytest.approx(expected.max(), rel=1e-12)


@pytest.mark.parametrize("factorization", CASES)
def test_what_is_published_moves_by_no_more_than_the_sensitivity(factorization):
    """From the sampled noise alone: the shift of the prefix sums in units of their covariance."""
    sampled = sampled_decoder(factorization)
    shifts = np.linalg.solve(np.linalg.cholesky(sampled @ sampled.T), np.tri(factorization.steps))
    moved = np.linalg.norm(shifts, axis=0).max()
    sensitivity = factorization.sensitivity()
    assert moved <= sensitivity * (1 + 1e-12)
    if factorization.is_square:
        assert sensitivity == pytest.approx(moved, rel=1e-12)


@pytest.mark.parametrize("factorization", SMALL)
@pytest.mark.parametrize(("count", "gap"), [(1, 1), (2, 1), (2, 3), (3, 2), (4, 1), (3, 4), (9, 1)])
def test_sensitivity_for_several_participations(factorization, count, gap):
    encoder = factorization.encoder()
    total = brute_force(encoder, count, gap, 1)
    assert total <= factorization.sensitivity(count, gap, Norm.L1) <= total * (1 + 1e-12)
    truth = brute_force(encoder, count, gap, 2)
    bound = factorization.sensitivity(count, gap)
    slack = 0.02 if isinstance(factorization, OwnMatrix) else 1e-12
    assert truth <= bound <= truth * (1 + slack)


@pytest.mark.parametrize("factorization", SMALL)
@pytest.mark.parametrize(("count", "gap"), [(1, 1), (2, 3), (3, 2), (2, 1), (3, 4), (9, 5)])
def test_sensitivity_for_a_fixed_period(factorization, count, gap):
    """Against every start, with the steps that still fit."""
    encoder, steps = factorization.encoder(), factorization.steps
    moved = [encoder[:, start::gap][:, :count].sum(axis=1) for start in range(steps)]
    for order, norm in ((1, Norm.L1), (2, Norm.L2)):
        truth = max(np.linalg.norm(one, order) for one in moved)
        found = factorization.sensitivity(count, gap, norm, cyclic=True)
        assert truth <= found <= truth * (1 + 1e-12)
        assert found <= factorization.sensitivity(count, gap, norm) * (1 + 1e-12)


@pytest.mark.parametrize("factorization", SMALL)
def test_vectors_move_the_nodes_no_further_than_numbers(factorization):
    rng = np.random.default_rng(4)
    encoder = factorization.encoder()
    bound = factorization.sensitivity(3, 2)
    for pattern in patterns(factorization.steps, 3, 2):
        directions = rng.normal(size=(len(pattern), 3))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        assert np.linalg.norm(encoder[:, pattern] @ directions) <= bound


@given(steps=st.integers(1, 70), kind=st.sampled_from(sorted(BUILDERS)), short=st.integers(1, 70))
@settings(max_examples=40, derandomize=True, deadline=None)
def test_more_contributions_cost_more_and_longer_streams_cost_more(steps, kind, short):
    factorization = BUILDERS[kind](steps)
    costs = [factorization.sensitivity(count, 3) for count in (1, 2, 5, 100)]
    assert costs == sorted(costs)
    assert factorization.sensitivity(5, 4) <= factorization.sensitivity(5, 3) * (1 + 1e-12)
    shorter = BUILDERS[kind](min(steps, short))
    assert shorter.sensitivity() <= factorization.sensitivity()


@pytest.mark.parametrize("factorization", CASES)
def test_stream_refuses_steps_beyond_the_last_before_drawing(factorization):
    rng = np.random.default_rng(1)
    stream = noise_stream(factorization, (2,), 1.0, rng)
    for _ in range(factorization.steps):
        assert stream.step().shape == (2,)
    before = rng.bit_generator.state
    with pytest.raises(InputError, match=f"steps is {factorization.steps} and all"):
        stream.step()
    assert rng.bit_generator.state == before
    assert stream.taken == factorization.steps


@pytest.mark.parametrize("factorization", CASES)
def test_noise_handed_out_is_not_the_streams_own_memory(factorization):
    def run(spoil: float) -> np.ndarray:
        stream = noise_stream(factorization, (2,), 1.0, np.random.default_rng(5))
        rows = []
        for _ in range(factorization.steps):
            noise = stream.step()
            rows.append(noise.copy())
            noise += spoil
        return np.array(rows)

    np.testing.assert_array_equal(run(0.0), run(7.0))


@pytest.mark.parametrize("factorization", CASES)
def test_record_round_trips_through_json(factorization):
    record = json.loads(json.dumps(factorization.to_dict()))
    assert Factorization.parse(record) == factorization
    assert hash(Factorization.parse(record)) == hash(factorization)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"kind": "hexagonal", "steps": 4}, "factorization is 'hexagonal'"),
        (7, "factorization is 7"),
        ({"kind": "binary-tree"}, "lacks the key 'steps'"),
        ({"kind": "binary-tree", "steps": 4, "depth": 2}, "unknown key 'depth'"),
        ({"kind": "binary-tree", "steps": 0}, "steps is 0"),
        ({"kind": "binary-tree", "steps": 4.0}, "steps is 4.0"),
        ({"kind": "binary-tree", "steps": 4, "release_root": 1}, "release_root is 1"),
        ({"kind": "buffered-toeplitz", "steps": 4, "pole_rates": [0.1, 0.2]}, "one fewer"),
        ({"kind": "buffered-toeplitz", "steps": 4, "pole_rates": 0.1}, "pole_rates is 0.1"),
        ({"kind": "buffered-toeplitz", "steps": 4, "pole_rates": []}, "one fewer"),
        ({"kind": "buffered-toeplitz", "steps": 4, "pole_rates": [-0.1]}, "pole_rates is -0.1"),
        (
            {
                "kind": "buffered-toeplitz",
                "steps": 4,
                "pole_rates": [0.1, 0.2],
                "zero_rates": [0.3],
            },
            "interlace",
        ),
    ],
)
def test_bad_records_are_refused(record, message):
    with pytest.raises(InputError, match=message):
        Factorization.parse(record)


@pytest.mark.parametrize("bands", [1, 2, 7, 64])
def test_turns_beyond_the_bands_are_orthogonal(bands):
    banded = BandedToeplitz(64, bands)
    for gap in (bands, bands + 3):
        column = np.linalg.norm(banded.encoder()[:, 0])
        count = (64 - bands) // gap  # of those that are not cut off at the end
        found = banded.sensitivity(max(count, 1), gap)
        assert found == pytest.approx(math.sqrt(max(count, 1)) * column, rel=1e-12)


def test_bad_arguments_are_refused():
    tree = BinaryTree(4)
    for arguments in ((0, 1), (1, 0), (1.5, 1)):
        with pytest.raises(InputError, match="must be an integer of at least 1"):
            tree.sensitivity(*arguments)
    with pytest.raises(InputError, match="norm is"):
        tree.sensitivity(norm=Norm.CHANGE)
    with pytest.raises(InputError, match="noise_sigma is -1"):
        tree.error(-1)
    for shape in ((3,), (2, 3)):
        with pytest.raises(InputError, match="square matrices"):
            noise_stream(tree, shape, 1.0, np.random.default_rng(0), symmetric=True)
    with pytest.raises(InputError, match="sigma is nan"):
        noise_stream(tree, (3,), math.nan, np.random.default_rng(0))


# Partial fractions against the power series of the same rational function

POLES, ZEROS = np.array([0.5, 3.0]), np.array([1.0])


def powers(numerator, denominator, length):
    """Coefficients of ∏ (1 − a x)/∏ (1 − b x), a and b being 1/(1 + rate)."""
    with mp.workdps(50):
        series = [mpf(1)] + [mpf(0)] * (length - 1)
        for rate in numerator:
            a = 1 / (1 + mpf(float(rate)))
            series = [series[k] - (a * series[k - 1] if k else 0) for k in range(length)]
        for rate in denominator:
            b = 1 / (1 + mpf(float(rate)))
            for k in range(1, length):
                series[k] += b * series[k - 1]
        return [float(each) for each in series]


def test_both_columns_are_those_of_the_products():
    encoder, decoder, fresh = series_weights(POLES, ZEROS)
    column = geometric(encoder, POLES, 30)
    np.testing.assert_allclose(column, powers(ZEROS, POLES, 30), rtol=1e-12)
    inverse = geometric(decoder, np.array([0.0, *ZEROS]), 30)
    inverse[0] += fresh
    np.testing.assert_allclose(inverse, powers(POLES, [0.0, *ZEROS], 30), rtol=1e-12)
    assert (encoder > 0).all()
    assert (decoder > 0).all()
    assert fresh > 0


def test_together_they_are_the_prefix_sum():
    encoder, decoder, fresh = series_weights(POLES, ZEROS)
    left = geometric(decoder, np.array([0.0, *ZEROS]), 40)
    left[0] += fresh
    product = np.convolve(left, geometric(encoder, POLES, 40))[:40]
    np.testing.assert_allclose(product, 1.0, rtol=1e-12)


def cost(factorization, *pattern):
    """Largest error at μ = 1."""
    return factorization.max_error(factorization.sensitivity(*pattern))


def least_possible(steps):
    """‖A‖_*/T, below the product of largest row and column norm of every factorisation.

    ‖BC‖_* ≤ ‖B‖_F ‖C‖_F; the singular values of A are 1/(2 sin((2j − 1)π/(4T + 2))).
    """
    angles = (2 * np.arange(1, steps + 1) - 1) * math.pi / (4 * steps + 2)
    return (0.5 / np.sin(angles)).sum() / steps


def test_coefficients_are_central_binomials():
    column = SquareRootToeplitz(200).encoder_column()
    exact = [math.comb(2 * k, k) / 4**k for k in range(200)]
    np.testing.assert_allclose(column, exact, rtol=1e-13)


def test_largest_error_at_1024_steps():
    root = SquareRootToeplitz(1024)
    energy = sum((math.comb(2 * k, k) / 4**k) ** 2 for k in range(1024))
    assert cost(root) == pytest.approx(energy, rel=1e-11)
    assert cost(root) <= 3.28
    assert cost(root) == pytest.approx(3.2726, abs=5e-5)
    assert least_possible(1024) == pytest.approx(2.9096, abs=5e-5)
    assert cost(BinaryTree(1024, release_root=True)) / cost(root) > 3.2


@pytest.mark.parametrize("steps", [1, 2, 10, 300])
def test_no_factorisation_is_below_the_nuclear_norm(steps):
    singular = np.linalg.svd(np.tri(steps), compute_uv=False)
    assert least_possible(steps) == pytest.approx(singular.sum() / steps, rel=1e-12)
    assert cost(SquareRootToeplitz(steps)) >= least_possible(steps) * (1 - 1e-12)


def test_square_root_stream_crosses_its_blocks_exactly():
    root = SquareRootToeplitz(150)

    class Recorded:
        def __init__(self):
            self.rng = np.random.default_rng(3)
            self.nodes = []

        def normal(self, scale, size):
            self.nodes.append(self.rng.normal(scale=scale, size=size))
            return self.nodes[-1].copy()

    recorded = Recorded()
    stream = noise_stream(root, (4,), 1.5, recorded)
    noise = np.array([stream.step() for _ in range(150)])
    np.testing.assert_allclose(noise, root.decoder() @ np.concatenate(recorded.nodes), atol=1e-11)
    assert stream.state_arrays <= 150 + 64


# Buffered Toeplitz matrices against power series, and against the square root


@pytest.mark.parametrize(("buffers", "limit"), [(4, 3.2740), (5, 3.2727), (6, 3.2726)])
def test_buffers_reach_the_square_root(buffers, limit):
    fitted = BufferedToeplitz.fitted(1024, buffers)
    assert cost(fitted) <= limit
    stream = noise_stream(fitted, (3,), 1.0, np.random.default_rng(0))
    for _ in range(50):
        stream.step()
        assert stream.state_arrays == buffers


def test_columns_are_the_power_series_of_the_rational_functions():
    poles, zeros, steps = (0.003, 0.08, 1.5), (0.02, 0.4), 60
    buffered = BufferedToeplitz(steps, poles, zeros)
    top = np.poly(1 / (1 + np.array(zeros)))
    bottom = np.poly(1 / (1 + np.array(poles)))

    def quotient(numerator, denominator):
        series = np.zeros(steps)
        padded = np.pad(numerator, (0, steps))
        for k in range(steps):
            past = sum(
                denominator[j] * series[k - j] for j in range(1, min(k + 1, len(denominator)))
            )
            series[k] = padded[k] - past
        return series

    np.testing.assert_allclose(buffered.encoder_column(), quotient(top, bottom), rtol=1e-11)
    summed = np.convolve(top, [1, -1])
    np.testing.assert_allclose(buffered.decoder_column(), quotient(bottom, summed), rtol=1e-11)
    for column in (buffered.encoder_column(), buffered.decoder_column()):
        assert (np.diff(column) < 0).all()
        assert column[-1] > 0


@pytest.mark.parametrize("buffers", [0, 17, 2.0])
def test_bad_buffers_are_refused(buffers):
    with pytest.raises(InputError, match="buffers is"):
        BufferedToeplitz.fitted(10, buffers)


# The fit of the rates, against the explicit matrices


@pytest.mark.parametrize("pattern", [(1, 1), (3, 7), (8, 25), (40, 1), (200, 1), (2, 199)])
def test_closed_form_of_the_fit_is_the_product_of_the_norms(pattern):
    poles, zeros = zolotarev_rates(200, 4)
    buffered = BufferedToeplitz(200, tuple(poles.tolist()), tuple(zeros.tolist()))
    expected = buffered.max_error(1.0) * buffered.sensitivity(*pattern)
    assert math.exp(log_error(poles, zeros, 200, *pattern)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 50, 1024, 100_000])
@pytest.mark.parametrize("buffers", [1, 2, 4, 8, 16])
def test_fit_improves_on_its_closed_form_start(steps, buffers):
    poles, zeros = zolotarev_rates(steps, buffers)
    start = BufferedToeplitz(steps, tuple(poles.tolist()), tuple(zeros.tolist()))
    fitted = BufferedToeplitz.fitted(steps, buffers)
    assert cost(fitted) <= cost(start) * (1 + 1e-6)  # rates are written with five digits
    assert BufferedToeplitz.fitted(steps, buffers) == fitted


def test_fit_to_the_participations_is_better_for_them():
    single, several = BufferedToeplitz.fitted(1024), BufferedToeplitz.fitted(1024, 5, 16, 64)
    assert cost(several, 16, 64) < 0.9 * cost(single, 16, 64)
    assert cost(several, 16, 64) < 0.9 * cost(SquareRootToeplitz(1024), 16, 64)
    assert cost(single) < cost(several)


def test_the_rates_do_not_depend_on_how_a_processor_rounds():
    """Found with other kernels of BLAS, other processors and without vector instructions.

    Only a last digit may be rounded the other way.
    """
    fitted = BufferedToeplitz.fitted(1024)
    poles, zeros = (0.00068739, 0.0089122, 0.054331, 0.34918, 5.0301), (0.0031306, 0.022311)
    assert fitted.pole_rates == pytest.approx(poles, rel=3e-5)
    assert fitted.zero_rates == pytest.approx((*zeros, 0.13419, 1.049), rel=3e-5)


# Entries of one's own: the sums of jax_privacy's sensitivity.py, and matrices by enumeration


def of_rows(matrix, count, gap):
    """The bound as Choquette-Choo et al. 2023 state it: each row's worst pattern, then that of all.

    ``get_min_sep_sensitivity_upper_bound_for_X`` of jax_privacy, by going through all patterns.
    """
    moved = np.abs(matrix.T @ matrix)
    every = list(patterns(len(moved), count, gap))
    rows = np.array([max(row[pattern].sum() for pattern in every) for row in moved])
    return math.sqrt(max(rows[pattern].sum() for pattern in every))


@pytest.mark.parametrize("seed", range(12))
def test_any_matrix_moves_no_further_than_is_said_and_less_than_by_the_usual_bound(seed):
    rng = np.random.default_rng(seed)
    steps, bands = int(rng.integers(2, 9)), int(rng.integers(1, 9))
    matrix = np.tril(rng.uniform(0, 1, (steps, steps)) * (rng.random((steps, steps)) < 0.7))
    matrix = np.tril(np.triu(matrix, 1 - bands), -1) / steps + np.diag(rng.uniform(1, 2, steps))
    own = OwnMatrix(rows_of(matrix))
    assert own.bandwidth <= bands
    for count, gap in itertools.product((1, 2, 3, 9), (1, 2, 3, 5)):
        truth, bound = brute_force(matrix, count, gap, 2), own.sensitivity(count, gap)
        assert truth <= bound <= of_rows(matrix, min(count, steps), gap) * (1 + 1e-12)
        if count == 1 or gap >= own.bandwidth:
            assert bound == pytest.approx(truth, rel=1e-12)
        cyclic = own.sensitivity(count, gap, cyclic=True)
        period = [matrix[:, start::gap][:, :count].sum(axis=1) for start in range(steps)]
        assert cyclic == pytest.approx(max(map(np.linalg.norm, period)), rel=1e-12)
        one = own.sensitivity(count, gap, Norm.L1, cyclic=True)
        assert one == pytest.approx(max(moved.sum() for moved in period), rel=1e-12)
        total = brute_force(matrix, count, gap, 1)
        assert own.sensitivity(count, gap, Norm.L1) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_an_inverse_of_any_signs_moves_no_further_than_is_said(seed):
    """Columns that rise again, as of C⁻¹ = 1 − x³, and those of random coefficients."""
    rng = np.random.default_rng(seed)
    others = -rng.dirichlet(np.ones(4)) * rng.uniform(0.2, 1) * (rng.random(4) < 0.6)
    coefficients = (1.0, 0.0, 0.0, -1.0) if seed == 0 else (1.0, *others.tolist())
    own = OwnToeplitz(9, coefficients, inverse=True)
    encoder = own.encoder()
    exact = powers_of_inverse(coefficients, 9)
    np.testing.assert_allclose(own.encoder_column(), exact, rtol=1e-13)
    for count, gap in itertools.product((1, 2, 3, 9), (1, 2, 3, 5)):
        truth = brute_force(encoder, count, gap, 2)
        assert truth <= own.sensitivity(count, gap)
        total = brute_force(encoder, count, gap, 1)
        assert own.sensitivity(count, gap, Norm.L1) == pytest.approx(total, rel=1e-12)
        if count == 1:
            assert own.sensitivity() == pytest.approx(truth, rel=1e-12)


def powers_of_inverse(coefficients, length):
    with mp.workdps(50):
        given = [mpf(each) for each in coefficients] + [mpf(0)] * length
        series = []
        for k in range(length):
            past = sum((given[j] * series[k - j] for j in range(1, k + 1)), mpf(0))
            series.append(((1 if k == 0 else 0) - past) / given[0])
        return [float(each) for each in series]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_coefficients_at_the_ends_of_their_range(scale):
    """The sensitivity scales with C, the error with its inverse; no square is lost."""
    for build in (lambda s: OwnToeplitz(30, (s, s, s * 1e-250)), lambda s: OwnMatrix(((s,),))):
        one, other = build(1.0), build(scale)
        assert other.sensitivity(2) == pytest.approx(scale * one.sensitivity(2), rel=1e-12)
        assert cost(other, 2) == pytest.approx(cost(one, 2), rel=1e-9)
    inverse = OwnToeplitz(30, (scale, -scale * 0.7), inverse=True)
    assert inverse.sensitivity() == pytest.approx(1 / scale / math.sqrt(1 - 0.49), rel=1e-3)


def test_own_entries_are_those_of_the_known_factorisations():
    banded = BandedToeplitz(40, 6)
    own = OwnToeplitz(40, tuple(banded.encoder_column()[:6].tolist()))
    matrix = OwnMatrix(rows_of(banded.encoder()))
    assert own.bandwidth == matrix.bandwidth == banded.bandwidth == 6
    for pattern in ((1, 1), (5, 6), (4, 9)):
        for each in (own, matrix):
            assert each.sensitivity(*pattern) == pytest.approx(banded.sensitivity(*pattern), 1e-12)
            assert each.error(2.0) == pytest.approx(banded.error(2.0), rel=1e-11)
    halves = tuple((-SquareRootToeplitz(41).encoder_column() / (2 * np.arange(41) - 1)).tolist())
    root = OwnToeplitz(40, halves[:40], inverse=True)
    np.testing.assert_allclose(
        root.encoder_column(), SquareRootToeplitz(40).encoder_column(), rtol=1e-12
    )
    assert cost(root) == pytest.approx(cost(SquareRootToeplitz(40)), rel=1e-10)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: OwnToeplitz(4, ()), "the first of coefficients is 0"),
        (lambda: OwnToeplitz(4, (1e-10,)), "from 1e-09 to 1e.09"),
        (lambda: OwnToeplitz(4, (1.0, 1.1)), "never increase"),
        (lambda: OwnToeplitz(4, (1.0, -0.1)), "not be negative"),
        (lambda: OwnToeplitz(4, (1.0, math.nan)), "coefficients is nan"),
        (lambda: OwnToeplitz(4, (1.0, 0.1), inverse=True), "at most 0 after the first"),
        (lambda: OwnToeplitz(4, (1.0, -0.6, -0.6), inverse=True), "add up to at least 0"),
        (lambda: OwnToeplitz(4, (1.0,) * 10_001), "at most 10000"),
        (lambda: OwnMatrix(()), "rows has 0 rows"),
        (lambda: OwnMatrix(((1.0,), (1.0,))), "row 2 of rows must have 2 numbers"),
        (lambda: OwnMatrix(((1.0,), (1.0, 0.0))), "the last of row 2 of rows is 0"),
        (lambda: OwnMatrix(((1.0,), (-1.0, 1.0))), "rows is -1"),
        (lambda: OwnMatrix(((1.0,), (1e10, 1.0))), "at most 1e.09"),
        (
            lambda: OwnMatrix(rows_of(np.tril(np.full((40, 40), 9.0), -1) + np.eye(40))),
            "too large",
        ),
        (lambda: OwnMatrix(((1.0,), 1.0)), "rows is 1.0"),
    ],
)
def test_entries_that_make_no_factorisation_are_refused(made, message):
    with pytest.raises(InputError, match=message) as caught:
        made()
    assert str(caught.value).endswith(".")
