import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.base.errors import InputError
from private_bo.federated import Weights
from private_bo.federated.settings import contrasts, region_of_agent, region_of_point, splits


def test_the_schedule_is_the_one_of_the_landmine_experiment() -> None:
    """Logits a_t against 1: 16 for 10 rounds, to 1 within 30, then 1."""
    logits = np.concatenate([np.full(10, 16.0), np.linspace(16, 1, 30), np.ones(20)])
    own = np.arange(29) % 4 == np.arange(4)[:, None]
    expected = np.exp(np.where(own, logits[:, None, None], 1.0))
    expected /= expected.sum(axis=2, keepdims=True)
    contrast = contrasts(60, contrast=15.0, sharp=10, fading=30)
    found = Weights.softmax(contrast, agents=29, regions=4)
    assert np.allclose(found.values, expected, rtol=1e-12, atol=0)
    assert found.values.shape == (60, 4, 29)


def test_the_contrast_is_the_papers_softmax_at_a_temperature() -> None:
    """exp((a 1 + 1)/T) over its sum (Section 3.2), here at T = 3."""
    own = np.arange(7) % 2 == np.arange(2)[:, None]
    expected = np.exp((15 * own + 1) / 3.0)
    expected /= expected.sum(axis=1, keepdims=True)
    found = Weights.softmax(np.array([15 / 3.0]), agents=7, regions=2).values[0]
    assert np.allclose(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("rounds", [1, 3, 10, 40])
def test_a_schedule_has_one_contrast_a_round(rounds: int) -> None:
    found = contrasts(rounds, contrast=2.0, sharp=3, fading=0)
    assert found.tolist() == [2.0 if t < 3 else 0.0 for t in range(rounds)]


def test_huge_contrasts_do_not_overflow() -> None:
    found = Weights.softmax(np.array([1e308]), agents=4, regions=2).values[0]
    assert found.tolist() == [[0.5, 0.0, 0.5, 0.0], [0.0, 0.5, 0.0, 0.5]]


@given(
    st.integers(1, 4), st.integers(1, 6), st.floats(0.01, 20), st.floats(0.1, 1), st.integers(0, 99)
)
def test_true_sensitivity_is_what_the_worst_agent_moves(
    regions: int, agents: int, clip: float, rate: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.dirichlet(np.full(agents, 0.5), size=(2, regions))
    weights = Weights(values)
    true, paper = (weights.true_sensitivity(clip, rate), weights.paper_sensitivity(clip, rate))
    direction = rng.normal(size=5)
    vector = direction / np.linalg.norm(direction) * clip / math.sqrt(regions)
    for t in range(2):
        moved = [
            np.linalg.norm(
                np.concatenate([values[t, i, n] / rate * vector for i in range(regions)])
            )
            for n in range(agents)
        ]
        assert true[t] == pytest.approx(max(moved), rel=1e-9)
        assert true[t] >= max(moved)
    assert (true <= paper * (1 + 1e-12)).all()
    assert (true * math.sqrt(regions) >= paper * (1 - 1e-12)).all()


def test_sharp_weights_gain_the_root_of_the_regions() -> None:
    weights = Weights.softmax(np.array([15.0, 0.0]), agents=28, regions=4)
    gain = weights.true_sensitivity(22.0, 0.35) / weights.paper_sensitivity(22.0, 0.35)
    assert gain == pytest.approx([0.5, 1.0], rel=1e-6)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.5, 0.5]], "shape"),
        (np.full((1, 2, 2), 0.6), "sum to 1.2"),
        ([[[1.5, -0.5]]], "-0.5"),
        ([[[np.nan, 1.0]]], "NaN"),
        (np.zeros((0, 1, 1)), "shape"),
    ],
)
def test_wrong_weights_are_refused(values: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Weights(values)  # type: ignore[arg-type]


def test_weights_are_kept_as_a_copy() -> None:
    values = np.full((1, 1, 2), 0.5)
    kept = Weights(values)
    values[:] = 7.0
    assert kept.values.max() == 0.5
    with pytest.raises(ValueError, match="read-only"):
        kept.values[:] = 1.0


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("regions", [1, 2, 3, 4, 6, 8])
def test_sub_regions_are_equal_boxes(regions: int, dimension: int) -> None:
    assert math.prod(splits(regions, dimension)) == regions
    axis = (np.arange(24) + 0.5) / 24
    grid = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1)
    found = region_of_point(grid.reshape(-1, dimension), regions)
    assert set(np.bincount(found, minlength=regions)) == {24**dimension // regions}
    for region in range(regions):  # each is a box: it holds all that is between its corners
        inside = grid.reshape(-1, dimension)[found == region]
        low, high = inside.min(axis=0), inside.max(axis=0)
        between = ((grid >= low) & (grid <= high)).all(axis=-1)
        assert between.sum() == len(inside)


def test_the_rim_belongs_to_a_sub_region() -> None:
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert sorted(region_of_point(corners, 4).tolist()) == [0, 1, 2, 3]
    assert region_of_agent(5, 2).tolist() == [0, 1, 0, 1, 0]
