"""The laws that every factorisation obeys, against its explicit matrices."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.base.errors import InputError
from dpaudit.mechanisms import (
    BandedToeplitz,
    BinaryTree,
    BufferedToeplitz,
    HonakerTree,
    Norm,
    SquareRootToeplitz,
)
from dpaudit.mechanisms.continual import Factorization

BUILDERS = {
    "binary": BinaryTree,
    "binary-root": lambda steps: BinaryTree(steps, release_root=True),
    "honaker": HonakerTree,
    "honaker-root": lambda steps: HonakerTree(steps, release_root=True),
    "square-root": SquareRootToeplitz,
    "banded-1": lambda steps: BandedToeplitz(steps, 1),
    "banded-4": lambda steps: BandedToeplitz(steps, 4),
    "buffered-1": lambda steps: BufferedToeplitz(steps, (0.4,)),
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
    stream = factorization.sampler((nodes,), sigma, rng)  # type: ignore[arg-type]
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
    assert truth <= bound <= truth * (1 + 1e-12)


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
    stream = factorization.sampler((2,), 1.0, rng)
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
        stream = factorization.sampler((2,), 1.0, np.random.default_rng(5))
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
            tree.sampler(shape, 1.0, np.random.default_rng(0), symmetric=True)
    with pytest.raises(InputError, match="sigma is nan"):
        tree.sampler((3,), math.nan, np.random.default_rng(0))
