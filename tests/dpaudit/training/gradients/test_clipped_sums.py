"""Sums of clipped gradients, beside a loop over examples."""

import io

import numpy as np
import pytest
import torch
from example_losses import clipped_by_loop, cross_entropy_of, direct, rows_of, small_model
from torch import nn

from dpaudit.training.gradients.clipped import MARGIN, ClippedSums
from dpaudit.training.gradients.examples import Examples
from dpaudit.training.gradients.sums import ChunkSum

LIMIT = 1 - MARGIN


def places(*which):
    return np.array(which, dtype=np.int64)


def direct_sums(rows, chunk=4, dtype=torch.float32):
    """Sums of rows that are themselves the gradients."""
    data = torch.tensor(rows, dtype=dtype)
    parameters = {"w": torch.zeros(data.shape[1:], dtype=dtype)}
    return ClippedSums(direct, parameters, Examples(data), chunk)


@pytest.mark.parametrize("norm", [0.05, 1.0, 100.0])
@pytest.mark.parametrize("chunk", [1, 7, 16, 64])
def test_the_sum_is_that_of_a_loop_over_examples(norm, chunk):
    model, data = small_model(), rows_of(40)
    parameters, loss = dict(model.named_parameters()), cross_entropy_of(model)
    who = np.random.default_rng(2).permutation(40)[:33]
    total, _ = ClippedSums(loss, parameters, Examples(data), chunk).total(who, norm)
    truth = clipped_by_loop(loss, parameters, data, who, norm * LIMIT)
    assert np.abs(total - truth).max() <= 2e-6 * norm + 2e-6 * np.abs(truth).max()


def test_of_nobody_the_sum_is_zero():
    total, balance = direct_sums(np.ones((3, 5))).total(places(), 1.0)
    assert total.tolist() == [0.0] * 5
    assert balance == 0


@pytest.mark.parametrize("real", [1, 3, 5])
def test_what_fills_a_chunk_adds_exactly_nothing(real):
    rows = np.random.default_rng(0).normal(size=(8, 300))
    alone, _ = direct_sums(rows, chunk=8).total(np.arange(real), 1.0)
    direct_ = torch.tensor(rows[:real], dtype=torch.float32)
    factors = (LIMIT / direct_.norm(dim=1)).clamp(max=1)
    full = torch.zeros(8, 300)
    full[:real] = direct_
    factors = torch.cat([factors, torch.zeros(8 - real)])
    assert alone.tolist() == ChunkSum(8)(factors, [full], 0).tolist()


def test_a_unit_twice_in_the_data_counts_twice_and_no_more():
    rows = [[3.0, 4.0], [3.0, 4.0]]
    one, _ = direct_sums(rows).total(places(0), 1.0)
    two, _ = direct_sums(rows).total(places(0, 1), 1.0)
    assert two.tolist() == (2 * one).tolist()
    assert np.linalg.norm(one) == pytest.approx(LIMIT, rel=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_no_number_counts_as_none(bad):
    rows = np.random.default_rng(0).normal(size=(5, 6))
    without, fewer = direct_sums(np.delete(rows, 2, axis=0), chunk=5).total(np.arange(4), 1.0)
    rows[2, 3] = bad
    total, balance = direct_sums(rows, chunk=5).total(np.arange(5), 1.0)
    assert total == pytest.approx(without, rel=1e-6)
    assert balance == fewer + 1  # as one of length 0, which is not clipped


@pytest.mark.parametrize("size", [1e19, 1e30, 3e38])
def test_a_huge_gradient_is_as_long_as_the_clip_norm(size):
    rows = np.array([[size, -size, size / 4, 0.0], [0.1, 0.0, 0.0, 0.0]])
    total, balance = direct_sums(rows).total(places(0), 2.0)
    direction = rows[0] / size / np.linalg.norm(rows[0] / size)
    assert total == pytest.approx(2 * LIMIT * direction, rel=1e-6)
    assert balance == -1
    both, _ = direct_sums(rows).total(places(0, 1), 2.0)
    assert both - total == pytest.approx(rows[1], abs=1e-6)


@pytest.mark.parametrize("norm", [1e-12, 1e-7, 1e-4, 1e12])
@pytest.mark.parametrize("chunk", [1, 8])
def test_one_huge_number_is_no_longer_than_a_small_clip_norm(norm, chunk):
    """Of one entry the norm is no root of a square, which would be infinite."""
    sizes = 10.0 ** np.random.default_rng(0).uniform(15, 38.5, size=200)
    found = direct_sums(sizes[:, None], chunk)
    added = [float(found.total(places(row), norm)[0][0]) for row in range(200)]
    assert added == pytest.approx([norm * LIMIT] * 200, rel=1e-6, abs=0)


def test_huge_numbers_of_64_bits_too():
    rows = np.array([[1e300, 1e300], [1e-320, 0.0]])
    total, _ = direct_sums(rows, dtype=torch.float64).total(places(0, 1), 1.0)
    assert total == pytest.approx(LIMIT * np.array([0.5, 0.5]) ** 0.5, rel=1e-9)


def test_the_smallest_numbers_stay_as_they_are():
    rows = np.array([[1e-40, -1e-44], [0.0, 0.0]])
    total, balance = direct_sums(rows).total(places(0, 1), 1.0)
    assert total.tolist() == np.float32(rows[0]).astype(float).tolist()
    assert balance == 2


@pytest.mark.parametrize("width", [1000, 1024, 1025, 5000, 200_000])
def test_no_part_is_longer_than_the_clip_norm_whatever_its_size(width):
    """In floats too: the exact norm of what one unit adds, over many scales."""
    random = np.random.default_rng(width)
    for scale in (1e-3, 1.0, 1e6):
        rows = random.normal(size=(2, width)) * scale * np.exp(random.normal(size=width) * 3)
        total, _ = direct_sums(rows, chunk=2).total(places(0), 0.7)
        assert np.linalg.norm(total) <= 0.7
        long = np.linalg.norm(rows[0]) > 0.7
        assert not long or np.linalg.norm(total) >= 0.7 * (1 - 2 * MARGIN)


def test_without_the_margin_a_part_may_be_too_long(monkeypatch):
    """What the margin is for: 32-bit norms are sometimes too small."""
    monkeypatch.setattr("dpaudit.training.gradients.clipped.MARGIN", 0.0)
    random, longest = np.random.default_rng(0), 0.0
    for _ in range(40):
        total, _ = direct_sums(random.normal(size=(1, 3000)), chunk=1).total(places(0), 0.7)
        longest = max(longest, np.linalg.norm(total))
    assert longest > 0.7


def test_one_unit_moves_a_sum_by_no_more_than_the_clip_norm():
    model, data = small_model(), rows_of(80)
    parameters, loss = dict(model.named_parameters()), cross_entropy_of(model)
    sums, norm = ClippedSums(loss, parameters, Examples(data), 80), 0.3
    whole, _ = sums.total(np.arange(80), norm)
    for gone in range(0, 80, 7):
        rest, _ = sums.total(np.delete(np.arange(80), gone), norm)
        assert np.linalg.norm(whole - rest) <= norm


def test_places_decide_last_bits_alone():
    """The float finding: the same units in another order, or with others, to 1e-5 of the norm."""
    model, data = small_model(), rows_of(64)
    parameters, loss = dict(model.named_parameters()), cross_entropy_of(model)
    sums = ClippedSums(loss, parameters, Examples(data), 64)
    ordered, _ = sums.total(np.arange(64), 1.0)
    mixed, _ = sums.total(np.random.default_rng(0).permutation(64), 1.0)
    assert np.linalg.norm(ordered - mixed) <= 1e-5


def test_a_model_is_tried_on_zeros_alone():
    seen = io.StringIO()

    def loss(parameters, example):
        print(example, file=seen)
        return (parameters["w"] * example).sum()

    ClippedSums(loss, {"w": torch.zeros(2)}, Examples(torch.ones(3, 2)), 4)
    assert "0." in seen.getvalue()
    assert "1." not in seen.getvalue()


@pytest.mark.parametrize("way", [lambda w: w, lambda w: w.data])
def test_what_a_loss_writes_to_its_parameters_is_gone(way):
    """Else the parameters would tell how many chunks there were."""
    weights = torch.zeros(2)

    def loss(parameters, example):
        with torch.no_grad():
            way(parameters["w"]).add_(1.0)
        return (parameters["w"] * example).sum()

    ClippedSums(loss, {"w": weights}, Examples(torch.ones(9, 2)), 4).total(np.arange(9), 1.0)
    assert weights.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_a_loop_under_autocast_rounds_no_sum(kind):
    """Half precision moves a sum of 200 rows by more than the margin."""
    rows = np.abs(np.random.default_rng(0).normal(size=(200, 50)))
    sums = direct_sums(rows, chunk=256)
    whole, _ = sums.total(np.arange(200), 1.0)
    with torch.autocast("cpu", dtype=kind):
        here, _ = sums.total(np.arange(200), 1.0)
    assert here.tolist() == whole.tolist()


def test_a_long_sum_is_rounded_by_no_length():
    """4096 rows in one chunk: in 32 bits the sum is off by 1e-4 and more."""
    rows = np.full((4096, 2), 0.123456789)
    total, _ = direct_sums(rows, chunk=4096).total(np.arange(4096), 1.0)
    assert total == pytest.approx(4096 * np.float64(np.float32(0.123456789)), rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, 1e30])
def test_a_parameter_without_entries_is_no_trouble_whatever_a_gradient_is(bad):
    def loss(parameters, example):
        return direct(parameters, example) + parameters["none"].sum()

    parameters = {"w": torch.zeros(2), "none": torch.zeros(0, 3)}
    sums = ClippedSums(loss, parameters, Examples(torch.tensor([[bad, 0.0], [0.0, 0.5]])), 4)
    total, _ = sums.total(places(0, 1), 1.0)
    assert total == pytest.approx([LIMIT if bad == 1e30 else 0.0, 0.5], rel=1e-6)


# -- users -----------------------------------------------------------------------------------------


def user_sums(rows, users, most, chunk=4):
    data = torch.tensor(rows, dtype=torch.float64)
    parameters = {"w": torch.zeros(data.shape[1:], dtype=torch.float64)}
    return ClippedSums(direct, parameters, Examples(data, users, most=most), chunk)


def test_a_user_adds_the_clipped_mean_of_its_rows():
    rows = np.random.default_rng(0).normal(size=(7, 3))
    users = ["a", "b", "a", "c", "a", "b", "a"]
    total, _ = user_sums(rows, users, most=4).total(places(0, 1, 2), 0.8)
    truth = np.zeros(3)
    for user in "abc":
        mean = rows[[own == user for own in users]].mean(axis=0)
        truth += mean * min(1.0, 0.8 * LIMIT / np.linalg.norm(mean))
    assert total == pytest.approx(truth, rel=1e-12)


def test_of_more_rows_the_first_ones_count():
    rows = np.eye(3)
    total, _ = user_sums(rows, [5, 5, 5], most=2).total(places(0), 10.0)
    assert total.tolist() == [0.5, 0.5, 0.0]


def test_a_row_that_is_no_number_is_its_own_users_alone():
    rows = np.array([[0.1, 0.0], [np.nan, 0.0], [0.0, 0.2]])
    total, _ = user_sums(rows, ["a", "a", "b"], most=2).total(places(0, 1), 1.0)
    assert total.tolist() == [0.0, 0.2]


def test_users_are_mapped_as_a_loop_does():
    model, (x, y) = small_model(torch.float64), rows_of(30, dtype=torch.float64)
    parameters, loss = dict(model.named_parameters()), cross_entropy_of(model)
    users = [f"user {row % 7}" for row in range(30)]
    sums = ClippedSums(loss, parameters, Examples((x, y), users, most=5), 3)
    total, _ = sums.total(np.arange(7), 0.4)
    truth = np.zeros(sums.size)
    for user in range(7):
        own = {name: p.detach().clone().requires_grad_() for name, p in parameters.items()}
        rows = [row for row in range(30) if row % 7 == user][:5]
        (sum(loss(own, (x[row], y[row])) for row in rows) / len(rows)).backward()
        gradient = np.concatenate([p.grad.numpy().ravel() for p in own.values()])
        truth += gradient * min(1.0, 0.4 * LIMIT / np.linalg.norm(gradient))
    assert total == pytest.approx(truth, rel=1e-10)


# -- data in other forms ---------------------------------------------------------------------------


def test_data_are_trees_of_tensors_and_arrays():
    x = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)

    def loss(parameters, example):
        return (parameters["w"] * example["x"]).sum() * example["weight"][0]

    data = {"x": x, "weight": [torch.arange(4.0)]}
    sums = ClippedSums(loss, {"w": torch.zeros(2)}, Examples(data), 4)
    total, _ = sums.total(np.arange(4), 1e6)
    assert total == pytest.approx((x * np.arange(4)[:, None]).sum(axis=0), rel=1e-5)


def test_dropout_is_each_examples_own():
    layer = nn.Dropout(0.5)

    def loss(parameters, example):
        return (parameters["w"] * layer(example)).sum()

    data = Examples(torch.ones(64, 1))
    total, _ = ClippedSums(loss, {"w": torch.zeros(1)}, data, 64).total(np.arange(64), 1e6)
    assert 0 < total[0] < 128  # were the mask shared, it would be one of these


def drop(parameters, example):
    return (parameters["w"] * nn.functional.dropout(example, 0.5)).sum()


def test_masks_follow_from_no_seed_that_a_script_has_given_torch():
    """From a public one a unit that joins moves the masks of all others, and the sum with them."""
    sums = ClippedSums(drop, {"w": torch.zeros(50)}, Examples(torch.ones(20, 50)), 8)
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        found.append(sums.total(np.arange(20), 1e6)[0].tolist())
    assert found[0] != found[1]
    assert sums.total(np.arange(20), 1e6, seed=3)[0].tolist() == (
        sums.total(np.arange(20), 1e6, seed=3)[0].tolist()
    )


def test_what_torch_draws_next_says_nothing_of_who_took_part():
    sums = ClippedSums(drop, {"w": torch.zeros(5)}, Examples(torch.ones(20, 5)), 4)
    state = torch.get_rng_state()
    for size in (0, 3, 20):
        sums.total(np.arange(size), 1.0)
        assert torch.equal(torch.get_rng_state(), state)
