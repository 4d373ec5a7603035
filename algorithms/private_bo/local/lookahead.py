"""A Bayesian learner for few and noisy responses, without widths: every choice looks ahead.

Where a response says little, confidence widths ask for more responses than there will be. This
learner counts instead what a choice is worth: if half, a quarter, an eighth … of the rounds that
are left ask about a point, what do these rounds earn, and what do the others, which then play what
looks best? That is a lookahead with several equal measurements (Frazier and Powell 2010, *Paradoxes
in learning and the marginal value of information*), with what is earned on the way counted (Ryzhov,
Powell and Frazier 2012, *The knowledge gradient algorithm for a general class of online learning
problems*). Nothing is fitted and nothing is to be tuned: all numbers stand before there are data.
"""

from __future__ import annotations

import math

import numpy as np

from private_bo.gp import FiniteDomain, FinitePosterior, Kernel, Storage, TableKernel
from private_bo.gp.types import Array
from private_bo.local.users import Outcome, Users

_PATIENCE = 50
"""After t responses a choice is made anew every t/50 responses: they hardly change it sooner."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def prior_covariance(domain: FiniteDomain, kernel: Kernel) -> Array:
    """Covariance (n, n) of the means, on a scale where the public range is [-1, 1].

    A mean that may be anywhere in the range has the variance 1/3. Whether the points differ from
    the middle together, as the kernel says, or each on its own, nobody knows before there are data:
    each of the three has a third of the variance.
    """
    covariance = domain.kernel_matrix(kernel)
    shape = covariance / covariance.diagonal().mean()
    return np.asarray((1.0 + shape + np.eye(domain.size)) / 9.0)


def worth(mean: Array, covariance: Array, variance: float, left: int) -> Array:
    """What all rounds that are left earn if some of them ask about a point: one value a point.

    After r responses about x, the means are mean + s Z with Z standard normal and
    s = cov(·, x)/√(var(x) + variance/r), so that the best of them earns E max(mean + s Z) a round:
    a sum over the 8 nodes of Gauss and Hermite. Of r = ⌈left/2⌉, ⌈left/4⌉, …, 1 the best counts.

    Args:
        mean: of every point, (n,).
        covariance: of the means, (n, n).
        variance: of a response given the mean.
        left: rounds, at least 1.
    """
    own = np.maximum(covariance.diagonal(), 0.0)
    earned = np.full(own.size, -np.inf)
    for halvings in range(1, left.bit_length() + 1):
        rounds = math.ceil(left / 2**halvings)
        shifts = covariance / np.sqrt(own + variance / rounds)
        best = np.zeros_like(own)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            best += weight * (mean[:, None] + node * shifts).max(axis=0)
        np.maximum(earned, rounds * mean + (left - rounds) * best, out=earned)
    return earned


def ask_ahead(users: Users, steps: int, variance: float) -> Outcome:
    """Ask ``steps`` users, each about the point that is worth most.

    Args:
        users: whom to ask; their responses are unbiased, on a scale where the range is [-1, 1].
        steps: T.
        variance: bound of the variance of a response.
    """
    problem = users.problem
    prior = TableKernel(prior_covariance(problem.domain, problem.kernel))
    points = FiniteDomain.indices(problem.domain.size)
    belief = FinitePosterior.of(points, prior, variance, Storage.COVARIANCE)
    values, choice = np.zeros(points.size), 0
    for t in range(steps):
        if t == choice:
            values = worth(belief.mean, belief.covariance, variance, steps - t)
            choice = t + max(1, t // _PATIENCE)
        x = users.choose(values)
        belief.update(x, users.ask(x))
    return users.outcome(belief.mean)
