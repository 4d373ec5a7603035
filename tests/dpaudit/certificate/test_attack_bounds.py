"""Bounds on attacks, against mechanisms whose whole trade-off curve is known."""

import pytest
from accounting_builders import plan, use
from scipy.stats import laplace, norm

from dpaudit.accounting import compose
from dpaudit.accounting.closed_forms.gaussian import GaussianComposition
from dpaudit.certificate.attack_bounds import advantage, bayes_success, true_positive_rate
from dpaudit.mechanisms import Laplace, RandomizedResponse


def normal_tpr(mu, fpr):
    """Dong, Roth and Su 2022, Equation (6)."""
    return norm.cdf(mu - norm.isf(fpr))


def laplace_tpr(epsilon, fpr):
    return laplace.sf(laplace.isf(fpr) - epsilon)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("fpr", [1e-9, 1e-3, 0.1, 0.5, 0.95])
def test_a_gaussian_leaves_what_its_closed_form_says(mu, fpr):
    whole = GaussianComposition(mu)
    assert advantage(whole) == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-9)
    found = true_positive_rate(whole, fpr)
    assert normal_tpr(mu, fpr) * (1 - 1e-12) <= found <= normal_tpr(mu, fpr) + 1e-6 * found


@pytest.mark.parametrize("fpr", [0.001, 0.2, 0.6])
def test_laplace_noise_leaves_what_its_law_says(fpr):
    found = true_positive_rate(compose(plan(use(Laplace(2.0)))), fpr)
    assert laplace_tpr(0.5, fpr) * (1 - 1e-12) <= found <= laplace_tpr(0.5, fpr) * (1 + 1e-3)


@pytest.mark.parametrize("prior", [0.5, 0.3, 0.7, 0.99, 1e-6])
def test_the_best_guess_of_randomised_response(prior):
    """Bayes' rule on two answers."""
    truth = 0.8  # p = 0.4 over two answers
    whole = compose(plan(use(RandomizedResponse(0.4))))
    best = max(prior * truth, (1 - prior) * (1 - truth)) + max(
        prior * (1 - truth), (1 - prior) * truth
    )
    assert best * (1 - 1e-12) <= bayes_success(whole, prior) <= best * (1 + 1e-9)
