"""diffprivlib, by IBM: what it offers. What others found wrong stands in a module of its own."""

from __future__ import annotations

from typing import Any

from audits.libraries.row import Row

_TAKEN = "PrivacyLeakWarning: {} are taken from the data"
_NEIGHBOURS = "its documentation does not say whether neighbours replace a row or add one"


def _of(name: str, kind: str, offers: str, pipeline: str, **rest: Any) -> Row:
    return Row(
        f"diffprivlib: {name}", "diffprivlib", offers, kind, f"diffprivlib/{pipeline}", **rest
    )


_OPEN: dict[str, Any] = {"stated": "open", "note": _NEIGHBOURS}
_ADDED: dict[str, Any] = {"relation": "add-remove"}
_TRUE: dict[str, Any] = {"right": True}
_LEAVES = "an empty leaf gets a fair draw, which is what permute-and-flip gives without votes"
_TOGETHER = "Neighbours move all eigenvalues together by 2 at most: they cost less than their sum."
# fmt: off
_QUERIES = (
    _of("mean", "mean", "tools.mean", "queries.py:mean", **_TRUE),
    _of(
        "mean, no bounds",
        "mean",
        "tools.mean",
        "queries.py:mean_without_bounds",
        documented=_TAKEN.format("bounds"),
    ),
    _of("mean of columns", "mean", "tools.mean", "queries.py:mean_of_columns", queries=2, **_TRUE),
    _of("nanmean", "mean", "tools.nanmean", "queries.py:mean_of_known", **_TRUE),
    _of("sum", "sum", "tools.sum", "queries.py:total", **_TRUE),
    _of("sum, a row added", "sum", "tools.sum", "queries.py:total", **_OPEN, **_ADDED),
    _of("sum of integers", "sum", "tools.sum", "queries.py:whole_total", **_TRUE),
    _of("count", "count", "tools.count_nonzero", "queries.py:count", **_TRUE),
    _of("variance", "variance", "tools.var", "queries.py:variance", **_TRUE),
    _of("standard deviation", "variance", "tools.std", "queries.py:deviation", **_TRUE),
    _of(
        "histogram",
        "histogram",
        "tools.histogram",
        "queries.py:histogram",
        queries=5,
        **_ADDED,
        **_TRUE,
    ),
    _of(
        "histogram, a row replaced",
        "histogram",
        "tools.histogram",
        "queries.py:histogram",
        queries=5,
        **_OPEN,
    ),
    _of(
        "histogram, no range",
        "histogram",
        "tools.histogram",
        "queries.py:histogram_without_range",
        queries=5,
        documented=_TAKEN.format("ranges"),
        **_ADDED,
    ),
    _of(
        "two-way histogram",
        "histogram",
        "tools.histogram2d",
        "queries.py:two_way_histogram",
        queries=4,
        **_ADDED,
        **_TRUE,
    ),
    _of("median", "quantile", "tools.median", "queries.py:median", **_TRUE),
    _of("quartiles", "quantile", "tools.quantile", "queries.py:quartiles", queries=3, **_TRUE),
    _of("percentile", "quantile", "tools.percentile", "queries.py:percentile", **_TRUE),
)
_SEVERAL = (
    _of(
        "count, mean and spread",
        "several",
        "BudgetAccountant",
        "several.py:summary",
        queries=3,
        stated="charged",
        **_TRUE,
    ),
    _of(
        "counts and totals by region",
        "several",
        "BudgetAccountant",
        "several.py:regions",
        queries=8,
        stated="charged",
        **_TRUE,
    ),
    _of(
        "24 counts",
        "several",
        "BudgetAccountant",
        "several.py:thresholds",
        queries=24,
        stated="charged",
        **_TRUE,
    ),
    _of(
        "24 counts, with slack",
        "several",
        "BudgetAccountant",
        "several.py:with_slack",
        queries=24,
        stated="charged",
        claim="epsilon = 0.48, delta = 1e-5",
        **_TRUE,
    ),
    _of(
        "two histograms",
        "several",
        "tools.histogram",
        "several.py:tables",
        queries=8,
        stated="charged",
        **_ADDED,
        **_TRUE,
    ),
    _of(
        "scaled regression",
        "several",
        "StandardScaler, LinearRegression",
        "several.py:scaled_regression",
        queries=5,
        stated="charged",
    ),
    _of(
        "six quantiles",
        "several",
        "tools.quantile",
        "several.py:quantiles",
        queries=6,
        stated="charged",
        **_TRUE,
    ),
    _of(
        "means and variances",
        "several",
        "tools.mean, tools.var",
        "several.py:moments",
        queries=4,
        stated="charged",
        **_TRUE,
    ),
)
_MODELS = (
    _of("naive Bayes", "naive Bayes", "GaussianNB", "models.py:naive_bayes", queries=10, **_OPEN),
    _of(
        "naive Bayes, given priors",
        "naive Bayes",
        "GaussianNB",
        "models.py:naive_bayes_with_priors",
        queries=10,
        **_OPEN,
    ),
    _of("k-means", "k-means", "KMeans", "models.py:clusters", queries=18, **_OPEN),
    _of("k-means, a row added", "k-means", "KMeans", "models.py:clusters", queries=18, **_OPEN,
        **_ADDED),
    _of("linear regression around the origin", "linear regression", "LinearRegression",
        "models.py:centred_regression", queries=3),
    _of("logistic regression", "logistic regression", "LogisticRegression",
        "models.py:classifier"),
    _of("PCA", "PCA", "PCA", "models.py:components", queries=4, note=_TOGETHER),
    _of("PCA, centred", "PCA", "PCA", "models.py:centred_components", queries=3,
        note=_TOGETHER),
    _of("eigenvalues of a covariance", "covariance", "covariance_eig", "models.py:eigenvalues",
        queries=2, note=_TOGETHER),
    _of("random forest", "forest", "RandomForestClassifier", "models.py:forest", queries=3,
        **_ADDED),
    _of("random forest, a row replaced", "forest", "RandomForestClassifier", "models.py:forest",
        queries=3, **_OPEN),
    _of("decision tree", "tree", "DecisionTreeClassifier", "models.py:tree", harmless=_LEAVES,
        **_ADDED),
    _of("decision tree, no classes", "tree", "DecisionTreeClassifier",
        "models.py:tree_without_classes", documented=_TAKEN.format("classes"), **_ADDED),
    _of("standard scaler", "standard scaler", "StandardScaler", "models.py:scaler", queries=4,
        **_TRUE),
)
_NOISE = (
    _of("Laplace mechanism", "mechanism", "mechanisms.Laplace", "noise.py:laplace", **_TRUE),
    _of("Gaussian mechanism", "mechanism", "mechanisms.Gaussian", "noise.py:gaussian",
        claim="epsilon = 0.9, delta = 1e-5", **_TRUE),
    _of("Gaussian mechanism, analytic", "mechanism", "mechanisms.GaussianAnalytic",
        "noise.py:analytic", claim="epsilon = 1.000000001, delta = 1e-5", **_TRUE),
    _of("geometric mechanism", "mechanism", "mechanisms.Geometric", "noise.py:geometric", **_TRUE),
    _of("staircase mechanism", "mechanism", "mechanisms.Staircase", "noise.py:staircase", **_TRUE),
    _of("bounded Laplace noise", "mechanism", "mechanisms.LaplaceBoundedNoise",
        "noise.py:truncated", claim="epsilon = 1, delta = 0.0010000001", **_TRUE),
    _of("exponential mechanism", "selection", "mechanisms.Exponential", "noise.py:commonest",
        **_TRUE),
    _of("permute and flip", "selection", "mechanisms.PermuteAndFlip", "noise.py:flipped", **_TRUE),
    _of(
        "randomised response",
        "randomised response",
        "mechanisms.Binary",
        "noise.py:answer",
        **_TRUE,
    ),
    _of(
        "uniform mechanism",
        "mechanism",
        "mechanisms.Uniform",
        "noise.py:uniform",
        claim="epsilon = 0, delta = 0.1",
    ),
    _of("snapping mechanism", "mechanism", "mechanisms.Snapping", "noise.py:snapping"),
)
# fmt: on
ROWS = _QUERIES + _SEVERAL + _MODELS + _NOISE
