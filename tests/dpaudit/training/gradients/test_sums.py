"""Sums of a chunk, beside those of 64 bits."""

import numpy as np
import pytest
import torch

from dpaudit.training.gradients.sums import GROUP, NARROW, ChunkSum


def chunk_of(rows, widths, seed=0):
    """Factors, and rows of length 1 at most times their factor, in parts."""
    draw = torch.Generator().manual_seed(seed)
    whole = torch.randn(rows, sum(widths), generator=draw) * 10 ** torch.randn(
        rows, 1, generator=draw
    )
    factors = (1 / whole.norm(dim=1)).clamp(max=1)
    return factors, list(whole.split(widths, 1)), factors.double() @ whole.double()


@pytest.mark.parametrize("rows", [1, 7, 8, 12, 80, NARROW])
@pytest.mark.parametrize("widths", [[1], [5, 0, 300], [5000, 3]])
def test_few_units_are_added_to_within_what_the_margin_pays_for(rows, widths):
    factors, parts, truth = chunk_of(rows, widths)
    found = ChunkSum(rows)(factors, parts, 0)
    assert np.linalg.norm(found - truth.numpy()) <= rows * GROUP * 2.0**-24


def test_the_first_units_of_a_sample_alone_are_added_with_32_bits():
    factors, parts, truth = chunk_of(80, [400])
    add = ChunkSum(80)
    exact = [
        np.allclose(add(factors, parts, start), truth.numpy(), rtol=0, atol=1e-14)
        for start in (0, NARROW - 80, NARROW - 79, NARROW, 10 * NARROW)
    ]
    assert exact == [False, False, True, True, True]


def test_numbers_of_64_bits_stay_so():
    rows = torch.randn(16, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = ChunkSum(16)(torch.ones(16, dtype=torch.float64), [rows], 0)
    assert found == pytest.approx(rows.sum(0).numpy(), rel=1e-13)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_no_setting_of_torch_rounds_a_sum(kind):
    factors, parts, _ = chunk_of(64, [500])
    before, add = torch.get_float32_matmul_precision(), ChunkSum(64)
    own = add(factors, parts, 0).tolist()
    try:
        torch.set_float32_matmul_precision("medium")
        with torch.autocast("cpu", dtype=kind):
            assert add(factors, parts, 0).tolist() == own
    finally:
        torch.set_float32_matmul_precision(before)


def test_rows_that_lie_apart_in_memory_are_added():
    rows = torch.arange(24.0).reshape(3, 8).T
    found = ChunkSum(8)(torch.ones(8), [rows, torch.ones(1).expand(8, 2)], 0)
    assert found.tolist() == [28.0, 92.0, 156.0, 8.0, 8.0]
