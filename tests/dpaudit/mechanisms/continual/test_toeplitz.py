from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.mechanisms import BinaryTree, SquareRootToeplitz


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
    stream = root.sampler((4,), 1.5, recorded)
    noise = np.array([stream.step() for _ in range(150)])
    np.testing.assert_allclose(noise, root.decoder() @ np.concatenate(recorded.nodes), atol=1e-11)
    assert stream.state_arrays <= 150 + 64
