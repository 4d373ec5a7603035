"""All rows: what libraries offer, noise that people write themselves, and what others published.

What others have found wrong stands apart from what a library offers. Of noise that is home-made, a
plan says the sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from audits.libraries.row import Attack, Published, Row, unique


def _of(
    library: str, prefix: str, folder: str, *, plans: str = "", **given: Any
) -> Callable[..., Row]:
    """What makes the rows of one library: they share its name, their folder, and these fields."""

    def row(name: str, kind: str, offers: str, function: str, **rest: Any) -> Row:
        own = given | rest
        if plans and own.get("data") != "":
            own = {"plan": f"{plans}_{function}.toml"} | own
        return Row(f"{prefix}: {name}", library, offers, kind, f"{folder}{function}", **own)

    return row


_ADDED: dict[str, Any] = {"relation": "add-remove"}
_REPLACED: dict[str, Any] = {"relation": "replace-one"}
_TRUE: dict[str, Any] = {"right": True}
_WORD = "What it costs is the library's word: no theorem here speaks of it."
_CEBERE = "Cebere et al., PETS 2026, arXiv 2602.17454"
_LAPLACE, _NORMAL = "Generator.laplace", "Generator.normal"
# fmt: off

# -- diffprivlib, by IBM ---------------------------------------------------------------------------

_ibm = _of("diffprivlib", "diffprivlib", "diffprivlib/")
_TAKEN = "PrivacyLeakWarning: {} are taken from the data"
_NEIGHBOURS = "its documentation does not say whether neighbours replace a row or add one"
_OPEN: dict[str, Any] = {"stated": "open", "note": _NEIGHBOURS}
_LEAVES = "an empty leaf gets a fair draw, which is what permute-and-flip gives without votes"
_TOGETHER = "Neighbours move all eigenvalues together by 2 at most: they cost less than their sum."
_IBM = (
    _ibm("mean", "mean", "tools.mean", "queries.py:mean", **_TRUE),
    _ibm("mean, no bounds", "mean", "tools.mean", "queries.py:mean_without_bounds",
        documented=_TAKEN.format("bounds")),
    _ibm("mean of columns", "mean", "tools.mean", "queries.py:mean_of_columns", queries=2, **_TRUE),
    _ibm("nanmean", "mean", "tools.nanmean", "queries.py:mean_of_known", **_TRUE),
    _ibm("sum", "sum", "tools.sum", "queries.py:total", **_TRUE),
    _ibm("sum, a row added", "sum", "tools.sum", "queries.py:total", **_OPEN, **_ADDED),
    _ibm("sum of integers", "sum", "tools.sum", "queries.py:whole_total", **_TRUE),
    _ibm("count", "count", "tools.count_nonzero", "queries.py:count", **_TRUE),
    _ibm("variance", "variance", "tools.var", "queries.py:variance", **_TRUE),
    _ibm("standard deviation", "variance", "tools.std", "queries.py:deviation", **_TRUE),
    _ibm("histogram", "histogram", "tools.histogram", "queries.py:histogram", queries=5, **_ADDED,
        **_TRUE),
    _ibm("histogram, a row replaced", "histogram", "tools.histogram", "queries.py:histogram",
        queries=5, **_OPEN),
    _ibm("histogram, no range", "histogram", "tools.histogram",
        "queries.py:histogram_without_range", queries=5, documented=_TAKEN.format("ranges"),
        **_ADDED),
    _ibm("two-way histogram", "histogram", "tools.histogram2d", "queries.py:two_way_histogram",
        queries=4, **_ADDED, **_TRUE),
    _ibm("median", "quantile", "tools.median", "queries.py:median", **_TRUE),
    _ibm("quartiles", "quantile", "tools.quantile", "queries.py:quartiles", queries=3, **_TRUE),
    _ibm("percentile", "quantile", "tools.percentile", "queries.py:percentile", **_TRUE),
    _ibm("count, mean and spread", "several", "BudgetAccountant", "several.py:summary", queries=3,
        stated="charged", **_TRUE),
    _ibm("counts and totals by region", "several", "BudgetAccountant", "several.py:regions",
        queries=8, stated="charged", **_TRUE),
    _ibm("24 counts", "several", "BudgetAccountant", "several.py:thresholds", queries=24,
        stated="charged", **_TRUE),
    _ibm("24 counts, with slack", "several", "BudgetAccountant", "several.py:with_slack",
        queries=24, stated="charged", claim="epsilon = 0.48, delta = 1e-5", **_TRUE),
    _ibm("two histograms", "several", "tools.histogram", "several.py:tables", queries=8,
        stated="charged", **_ADDED, **_TRUE),
    _ibm("scaled regression", "several", "StandardScaler, LinearRegression",
        "several.py:scaled_regression", queries=5, stated="charged"),
    _ibm("six quantiles", "several", "tools.quantile", "several.py:quantiles", queries=6,
        stated="charged", **_TRUE),
    _ibm("means and variances", "several", "tools.mean, tools.var", "several.py:moments", queries=4,
        stated="charged", **_TRUE),
    _ibm("naive Bayes", "naive Bayes", "GaussianNB", "models.py:naive_bayes", queries=10, **_OPEN),
    _ibm("naive Bayes, given priors", "naive Bayes", "GaussianNB",
        "models.py:naive_bayes_with_priors", queries=10, **_OPEN),
    _ibm("k-means", "k-means", "KMeans", "models.py:clusters", queries=18, **_OPEN),
    _ibm("k-means, a row added", "k-means", "KMeans", "models.py:clusters", queries=18, **_OPEN,
        **_ADDED),
    _ibm("linear regression around the origin", "linear regression", "LinearRegression",
        "models.py:centred_regression", queries=3),
    _ibm("logistic regression", "logistic regression", "LogisticRegression",
        "models.py:classifier"),
    _ibm("PCA", "PCA", "PCA", "models.py:components", queries=4, note=_TOGETHER),
    _ibm("PCA, centred", "PCA", "PCA", "models.py:centred_components", queries=3, note=_TOGETHER),
    _ibm("eigenvalues of a covariance", "covariance", "covariance_eig", "models.py:eigenvalues",
        queries=2, note=_TOGETHER),
    _ibm("random forest", "forest", "RandomForestClassifier", "models.py:forest", queries=3,
        **_ADDED),
    _ibm("random forest, a row replaced", "forest", "RandomForestClassifier", "models.py:forest",
        queries=3, **_OPEN),
    _ibm("decision tree", "tree", "DecisionTreeClassifier", "models.py:tree", harmless=_LEAVES,
        **_ADDED),
    _ibm("decision tree, no classes", "tree", "DecisionTreeClassifier",
        "models.py:tree_without_classes", documented=_TAKEN.format("classes"), **_ADDED),
    _ibm("standard scaler", "standard scaler", "StandardScaler", "models.py:scaler", queries=4,
        **_TRUE),
    _ibm("Laplace mechanism", "mechanism", "mechanisms.Laplace", "noise.py:laplace", **_TRUE),
    _ibm("Gaussian mechanism", "mechanism", "mechanisms.Gaussian", "noise.py:gaussian",
        claim="epsilon = 0.9, delta = 1e-5", **_TRUE),
    _ibm("Gaussian mechanism, analytic", "mechanism", "mechanisms.GaussianAnalytic",
        "noise.py:analytic", claim="epsilon = 1.000000001, delta = 1e-5", **_TRUE),
    _ibm("geometric mechanism", "mechanism", "mechanisms.Geometric", "noise.py:geometric", **_TRUE),
    _ibm("staircase mechanism", "mechanism", "mechanisms.Staircase", "noise.py:staircase", **_TRUE),
    _ibm("bounded Laplace noise", "mechanism", "mechanisms.LaplaceBoundedNoise",
        "noise.py:truncated", claim="epsilon = 1, delta = 0.0010000001", **_TRUE),
    _ibm("exponential mechanism", "selection", "mechanisms.Exponential", "noise.py:commonest",
        **_TRUE),
    _ibm("permute and flip", "selection", "mechanisms.PermuteAndFlip", "noise.py:flipped", **_TRUE),
    _ibm("randomised response", "randomised response", "mechanisms.Binary", "noise.py:answer",
        **_TRUE),
    _ibm("uniform mechanism", "mechanism", "mechanisms.Uniform", "noise.py:uniform",
        claim="epsilon = 0, delta = 0.1"),
    _ibm("snapping mechanism", "mechanism", "mechanisms.Snapping", "noise.py:snapping"),
)

# -- mbi (Private-PGM): estimates from noisy marginals, whose noise is numpy's ---------------------

_mbi = _of("mbi", "mbi", "mbi/marginals.py:", plans="mbi", stated="home-made", environment="mbi",
           **_ADDED)
_SIXTH, _DESCENT = {"claim": "epsilon = 0.1667"}, "estimation.MirrorDescent"
_MBI = (
    _mbi("one marginal", "marginal", _DESCENT, "one_marginal", **_SIXTH, **_TRUE),
    _mbi("three marginals", "several", _DESCENT, "three_marginals", queries=3,
        claim="epsilon = 0.5", **_TRUE),
    _mbi("three marginals, Gaussian", "several", _DESCENT, "gaussian_marginals", queries=3,
        claim="mu = 0.4331", **_TRUE),
    _mbi("marginal and number of rows", "several", _DESCENT, "total_too", queries=2,
        claim="epsilon = 0.6667", **_TRUE),
    _mbi("synthetic table", "synthesis", _DESCENT, "synthetic", **_SIXTH, **_TRUE),
    _mbi("marginal, scaled to the exact number of rows", "marginal", _DESCENT,
        "exact_total", **_SIXTH),
)

# -- noise of numpy and scipy, home-made -----------------------------------------------------------

_numpy = _of("numpy", "home-made", "numpy/simple.py:", plans="numpy", stated="home-made")
_MU = "mu = {}"


def _smoking(*smokes: int) -> list[dict[str, Any]]:
    return [{"age": 50, "smokes": each, "region": "east"} for each in smokes]
_NUMPY = (
    _numpy("sum", "sum", _LAPLACE, "total", **_ADDED, **_TRUE),
    _numpy("sum that clips nothing", "sum", _LAPLACE, "unclipped_total", **_ADDED,
        attack=Attack([{"age": 50}], [{"age": 50}, {"age": 1000}])),
    _numpy("mean", "mean", _LAPLACE, "mean", claim="epsilon = 1.0000001", **_TRUE),
    _numpy("mean, noise by the largest value", "mean", _LAPLACE, "mean_of_range",
        claim="epsilon = 1.13", attack=Attack([{"age": 1}] * 3, [{"age": 1}] * 2 + [{"age": 100}])),
    _numpy("histogram", "histogram", _LAPLACE, "histogram", queries=4, **_ADDED, **_TRUE),
    _numpy("two means", "several", _NORMAL, "means", queries=2, claim=_MU.format(0.375), **_TRUE),
    _numpy("sum and squares", "several", _LAPLACE, "moments", queries=2, **_TRUE),
    _numpy("twenty thresholds", "several", _LAPLACE, "thresholds", queries=20, **_TRUE),
    _numpy("running counts", "several", _LAPLACE, "running", queries=6, **_TRUE),
    _numpy("twenty thresholds for one", "several", _LAPLACE, "cheap_thresholds", queries=20,
        attack=Attack([{"age": 0}], [{"age": 100}])),
    _numpy("sum of gradients", "training", _NORMAL, "gradient", claim=_MU.format(0.5), **_TRUE),
    _numpy("five steps of gradients", "training", _NORMAL, "steps", queries=5,
        claim=_MU.format(0.5), **_TRUE),
    _numpy("count, scipy.stats.laplace", "count", "stats.laplace", "frozen", **_TRUE),
    _numpy("count, scipy.stats.dlaplace", "count", "stats.dlaplace", "whole", **_TRUE),
    _numpy("largest of four, and its size", "selection", _LAPLACE, "loudest", queries=5,
        claim="epsilon = 2", **_ADDED, **_TRUE),
    _numpy("randomised response", "randomised response", "Generator.random", "answer", data="",
        attack=Attack(_smoking(0), _smoking(1), 5_000), **_TRUE),
    _numpy("noisy max", "selection", "Generator.exponential", "one_sided", data="",
        attack=Attack(_smoking(0), _smoking(0, 0), 5_000), **_ADDED, **_TRUE),
    _numpy("two counts, one draw", "several", _LAPLACE, "reused", queries=2, data="",
        attack=Attack(_smoking(0), _smoking(1))),
    _numpy("lowest bits of a count", "mechanism", _LAPLACE, "lowest_bits", data="",
        attack=Attack(_smoking(0), _smoking(1), 10_000),
        note="The pipeline looks at the bits, as the source does; the attack is any other's.",
        published=Published("the lowest bits of floats", "Mironov, CCS 2012")),
)

# -- opacus, attacked from outside; its accountants have their own table ---------------------------

_STEP = "opacus/training.py"
_OPACUS = (
    Row("opacus: batch from the number of rows", "opacus", "PrivacyEngine.make_private", "training",
        f"{_STEP}:step", claim="epsilon = 0.8, delta = 1e-5", data="", relation="add-remove",
        attack=Attack([0.0] * 4, [0.0] * 5, 300),
        published=Published("the expected batch follows from the size of the data", _CEBERE)),
    Row("opacus: one step on all rows", "opacus", "PrivacyEngine.make_private", "training",
        f"{_STEP}:whole", claim="epsilon = 1.8, delta = 1e-5", data="",
        attack=Attack([1.0] * 4, [1.0] * 3 + [-1.0]), right=True),
)

# -- OpenDP ----------------------------------------------------------------------------------------

_opendp = _of("opendp", "OpenDP", "opendp/", stated="map", right=True, **_ADDED)
_EAST = [{"region": "east"}, {"region": "west"}]
_OPENDP = (
    _opendp("count", "count", "then_count, then_laplace", "chains.py:count"),
    _opendp("count, Gaussian", "count", "then_gaussian", "chains.py:gaussian_count",
        claim="rho = 0.5"),
    _opendp("distinct values", "count", "then_count_distinct", "chains.py:distinct"),
    _opendp("sum", "sum", "then_clamp, then_sum", "chains.py:total"),
    _opendp("sum of floats", "sum", "then_sum of a sized domain", "chains.py:real_total",
        **_REPLACED),
    _opendp("mean", "mean", "then_mean", "chains.py:mean", **_REPLACED),
    _opendp("variance", "variance", "then_variance", "chains.py:variance", **_REPLACED),
    _opendp("histogram", "histogram", "then_count_by_categories", "chains.py:histogram", queries=4),
    _opendp("histogram, a row replaced", "histogram", "then_count_by_categories",
        "chains.py:histogram", queries=4, claim="epsilon = 2", **_REPLACED),
    _opendp("histogram, Gaussian", "histogram", "then_count_by_categories, then_gaussian",
        "chains.py:gaussian_histogram", queries=4, claim="rho = 0.5"),
    _opendp("histogram of unknown keys", "histogram", "then_laplace_threshold",
        "chains.py:known_keys", queries=4, claim="epsilon = 1, delta = 1e-5"),
    _opendp("median", "quantile", "then_quantile_score_candidates, then_noisy_max",
        "chains.py:median"),
    _opendp("noisy max", "selection", "make_noisy_max", "chains.py:commonest", data="",
        attack=Attack(_EAST, [*_EAST, _EAST[0]], 5_000)),
    _opendp("binary tree", "histogram", "then_b_ary_tree", "chains.py:tree", queries=7),
    _opendp("randomised response", "randomised response", "make_randomized_response_bool",
        "chains.py:answer", **_REPLACED),
    _opendp("randomised response of four", "randomised response", "make_randomized_response",
        "chains.py:word", **_REPLACED),
    _opendp("context of two", "several", "Context", "contexts.py:pair", queries=2),
    _opendp("context of four", "several", "Context", "contexts.py:four", queries=4),
    _opendp("context of two, Gaussian", "several", "Context", "contexts.py:gaussian_pair",
        queries=2, claim="rho = 0.5"),
    _opendp("context that adapts", "several", "Context", "contexts.py:adaptive", queries=2),
    _opendp("composition of twenty", "several", "make_composition", "contexts.py:thresholds",
        queries=20),
    _opendp("compositor of twenty", "several", "make_adaptive_composition",
        "contexts.py:compositor", queries=20),
    _opendp("compositor of twenty, Gaussian", "several", "make_adaptive_composition",
        "contexts.py:gaussian_compositor", queries=20, claim="rho = 0.5"),
    _opendp("three responses", "several", "make_randomized_response_bool", "contexts.py:responses",
        queries=3, **_REPLACED),
)

# -- PipelineDP on its local backend ---------------------------------------------------------------

_pipeline = _of("pipeline-dp", "PipelineDP", "pipeline_dp/aggregates.py:",
                claim="epsilon = 1, delta = 1e-6", stated="charged", **_ADDED)
_PIPELINE_DP = (
    _pipeline("sums", "sum", "Metrics.SUM", "total", queries=4, **_TRUE),
    _pipeline("counts", "count", "Metrics.COUNT", "count", queries=4, **_TRUE),
    _pipeline("numbers of people", "count", "Metrics.PRIVACY_ID_COUNT", "people", queries=4,
        **_TRUE),
    _pipeline("means", "mean", "Metrics.MEAN", "mean", queries=8, **_TRUE),
    _pipeline("variances", "variance", "Metrics.VARIANCE", "variance", queries=12, **_TRUE),
    _pipeline("three metrics", "several", "AggregateParams.metrics", "several", queries=12,
        **_TRUE),
    _pipeline("Gaussian noise", "several", "NoiseKind.GAUSSIAN", "gaussian", queries=8, **_TRUE),
    _pipeline("medians", "quantile", "Metrics.PERCENTILE", "medians", queries=4, note=_WORD,
        **_TRUE),
    _pipeline("private partitions", "selection", "public_partitions=None", "private_regions",
        note=_WORD, **_TRUE),
)

# -- what others have published of diffprivlib, and what nobody has yet, as far as we know ---------

_ibm_published = _of("diffprivlib", "diffprivlib", "diffprivlib/published.py:", data="")
_ISSUE = "IBM/differential-privacy-library issue {}"
_CASUALTY = "Casacuberta, Shoemate, Vadhan and Wagaman, CCS 2022, arXiv 2207.10635"
_HALVES = tuple(number % 2 for number in range(10))


def _rows(**columns: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Rows of these columns, each of which has a value for each row."""
    common = {"age": 50, "income": 50, "smokes": 0, "group": 0}
    return [
        common | dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]
_IBM_PUBLISHED = (
    _ibm_published("linear regression from 0 on", "linear regression", "LinearRegression", "slope",
        data="people.csv", queries=3,
        attack=Attack(_rows(age=(0,), income=(0,)), _rows(age=(100,), income=(100,)), 100),
        published=Published("the sensitivity of X'X from the lower bounds alone",
                            f"{_CEBERE}; {_ISSUE.format('105, and 104')}")),
    Row("diffprivlib: linear regression with an intercept", "diffprivlib", "LinearRegression",
        "linear regression", "diffprivlib/models.py:regression", queries=5,
        published=Published("the offsets of X and of y paid for once", _ISSUE.format(104))),
    _ibm_published("linear regression without an intercept, beyond the bounds", "linear regression",
        "LinearRegression", "unclipped_slope", data="people.csv", queries=3,
        attack=Attack(_rows(age=(0,), income=(0,)), _rows(age=(9000,), income=(9000,)), 200)),
    _ibm_published("labels of a logistic regression", "logistic regression", "LogisticRegression",
        "labels", data="people.csv",
        attack=Attack(_rows(group=(0, 1, 1)), _rows(group=(0, 1, 2)), 100),
        published=Published("labels taken from the data", f"{_CEBERE}; {_ISSUE.format(106)}")),
    _ibm_published("labels of naive Bayes", "naive Bayes", "GaussianNB", "classes",
        attack=Attack(_rows(group=(0, 1, 1)), _rows(group=(0, 1, 2)), 200),
        published=Published("labels taken from the data, in another model",
                            f"{_CEBERE}; {_ISSUE.format(106)}, of logistic regression")),
    _ibm_published("class counts of naive Bayes", "naive Bayes", "GaussianNB", "class_counts",
        relation="add-remove", stated="open",
        attack=Attack(_rows(group=(0, 1, 1)), _rows(group=(0, 1, 1, 1)), 200)),
    _ibm_published("median with a missing number", "quantile", "tools.median", "median",
        documented="a to-do in its source names issue 80",
        attack=Attack(_rows(age=(20, 30)), _rows(age=(20, None)), 200),
        published=Published("NaN passes into a quantile", _ISSUE.format(80))),
    _ibm_published("mean with a missing number", "mean", "tools.mean", "mean",
        attack=Attack(_rows(age=(20, 30)), _rows(age=(20, None)), 200),
        published=Published("NaN passes a clip", f"{_CEBERE}, Section 4.3.9")),
    _ibm_published("median of a crowd", "quantile", "tools.median", "crowded_median",
        attack=Attack([[50, 2982]], [[20, 1], [50, 2981]], 100),
        published=Published("a quantile fails where one value is very common",
                            f"{_ISSUE.format(107)}, as a crash")),
    _ibm_published("sum of large floats", "sum", "tools.sum", "far_total",
        attack=Attack([[1, 1024]], [[0, 1], [1, 1023]], 300),
        published=Published("sums of floats are rounded", _CASUALTY)),
    _ibm_published("sum of 8-bit integers", "sum", "tools.sum", "small_total",
        attack=Attack(_rows(age=(100, 27)), _rows(age=(100, 100)), 2_000),
        published=Published("sums of integers wrap around", _CASUALTY)),
    _ibm_published("votes of a forest", "forest", "RandomForestClassifier", "votes",
        relation="add-remove", stated="open", queries=10,
        attack=Attack(_rows(smokes=_HALVES), _rows(smokes=(*_HALVES, 0)), 300),
        note="Rows go to trees by their place and number, so that one more row moves many."),
    _ibm_published("vote of a tree", "tree", "DecisionTreeClassifier", "vote", stated="open",
        attack=Attack(_rows(smokes=(0,)), _rows(smokes=(1,)), 3_000)),
    _ibm_published("inertia of k-means", "k-means", "KMeans", "inertia", stated="open",
        attack=Attack(_rows(age=(50,) * 8), _rows(age=(50,) * 7 + (100,)), 200),
        note="The model's inertia_ and labels_ have no noise."),
)

# -- what others have published of OpenDP ----------------------------------------------------------

_opendp_published = _of("opendp", "OpenDP", "opendp/", data="", stated="map")
_NULLS = "missing values that are taken for impossible are counted without noise"
_FRAMES: dict[str, Any] = {"environment": "opendp-polars"}
_SCORES: dict[str, Any] = {"claim": "rho = 0.5", "attack": Attack([0, 0], [1, -1], 3_000)}
_ZCDP = "noisy max in zero-concentrated privacy"


def _published(name: str, number: int) -> Published:
    return Published(name, f"opendp/opendp issue {number}")
_OPENDP_PUBLISHED = (
    _opendp_published("shown keys", "histogram", "make_laplace_threshold", "published.py:keys",
        relation="add-remove", claim="epsilon = 1, delta = 0.09894",
        attack=Attack([], ["ann"], 3_000),
        published=_published("a count that is just the threshold is shown", 2922)),
    _opendp_published("noisy max in ρ", "selection", "make_noisy_max", "published.py:loudest",
        **_SCORES, published=_published(_ZCDP, 2911)),
    _opendp_published("noisy max in ρ, 0.15", "selection", "make_noisy_max", "published.py:loudest",
        **_SCORES, environment="opendp-0.15", published=_published(_ZCDP, 2911)),
    _opendp_published("squared deviations of large floats", "variance",
        "make_sum_of_squared_deviations", "published.py:deviations",
        attack=Attack([[0.25, 1024]], [[0.5, 1], [0.25, 1023]]),
        published=_published("the mean of floats is rounded", 2923)),
    _opendp_published("count of cast numbers", "count", "make_private_lazyframe", "frames.py:cast",
        claim="epsilon = 0.01", attack=Attack([1.0] * 16, [None] + [1.0] * 15, 200), **_FRAMES,
        published=_published(f"{_NULLS}: casts", 2938)),
    _opendp_published("count of classes", "count", "make_private_lazyframe", "frames.py:cut",
        claim="epsilon = 0.01", attack=Attack([1.0] * 16, [None] + [1.0] * 15, 200), **_FRAMES,
        published=_published(f"{_NULLS}: cut", 2939)),
    _opendp_published("count of remainders", "count", "make_private_lazyframe",
        "frames.py:remainder", claim="epsilon = 0.01", attack=Attack([3] * 16, [0] + [3] * 15, 200),
        **_FRAMES, published=_published(f"{_NULLS}: division by 0", 2940)),
    _opendp_published("sum of 32-bit floats", "sum", "make_private_lazyframe",
        "frames.py:short_floats", claim="epsilon = 1.001", relation="add-remove",
        attack=Attack([1] * 4 + [-1] * 7, [1] * 3 + [-1] * 7), **_FRAMES,
        published=_published("floats of 32 bits are taken for 64", 2941)),
    _opendp_published("sum of codes", "sum", "make_private_lazyframe", "frames.py:codes",
        relation="add-remove", attack=Attack([0.5] * 50, [2.0] + [0.5] * 50, 300), **_FRAMES,
        published=_published("codes of classes depend on the other rows", 2944)),
    _opendp_published("sum of a group", "sum", "make_private_lazyframe", "frames.py:group",
        attack=Attack([10] * 3, [-10] * 3, 3_000), **_FRAMES,
        note="The claim is of sets of which all three rows differ, at distance 6.",
        published=_published("a group of k rows is taken to change by k", 2945)),
)

# -- SmartNoise SQL, which needs an OpenDP of its own ----------------------------------------------

_SQUARES = Published("noise of a sum of squares follows the bounds of the values",
                     "smartnoise-sdk issue 203 on GitHub (2020)", "1.0.10 at the latest")


def _sql(name: str, kind: str, offers: str, function: str, cost: int = 1, **rest: Any) -> Row:
    own = _of("smartnoise-sql", "SmartNoise SQL", "snsql/queries.py:", stated="charged",
              claim=f"epsilon = {cost}, delta = 1e-5", environment="smartnoise-sql", **_ADDED)
    return own(name, kind, offers, function, **rest)
_SQL = (
    _sql("count", "count", "COUNT", "count", **_TRUE),
    _sql("sum", "sum", "SUM", "total", **_TRUE),
    _sql("mean", "mean", "AVG", "mean", 2, queries=2, **_TRUE),
    _sql("variance", "variance", "VAR", "variance", 3, queries=3, published=_SQUARES, **_TRUE),
    _sql("three numbers", "several", "SELECT", "several", 3, queries=3, **_TRUE),
    _sql("Gaussian noise", "several", "Mechanism.gaussian", "gaussian", 2, queries=2, **_TRUE),
    _sql("two queries", "several", "PrivateReader.execute", "two_queries", 2, queries=2, **_TRUE),
    _sql("groups", "histogram", "GROUP BY", "by_region", queries=4,
        documented="censor_dims: False shows groups that one unit may make"),
    _sql("groups, rare ones hidden", "histogram", "censor_dims", "hidden_regions", 2, queries=4,
        note="How many groups there are is private: a rehearsal cannot compare them one by one."),
)

# -- Tumult Analytics on Spark, which needs Java; its runs are not rehearsed -----------------------

_tumult = _of("tmlt.analytics", "Tumult", "tmlt/queries.py:", stated="charged",
              environment="tumult", rehearsed=False, right=True, **_ADDED)
_TUMULT = (
    _tumult("count", "count", "QueryBuilder.count", "count"),
    _tumult("sum", "sum", "QueryBuilder.sum", "total"),
    _tumult("mean", "mean", "QueryBuilder.average", "average", queries=2),
    _tumult("variance", "variance", "QueryBuilder.variance", "variance", queries=3),
    _tumult("counts by region", "histogram", "QueryBuilder.groupby", "counts", queries=4),
    _tumult("sums and counts", "several", "Session.evaluate", "totals_and_counts", queries=8,
        claim="epsilon = 2"),
    _tumult("medians", "quantile", "QueryBuilder.median", "medians", queries=4, note=_WORD),
    _tumult("sums, concentrated", "sum", "RhoZCDPBudget", "concentrated", queries=4,
        claim="rho = 0.5, delta = 1e-5"),
)

# -- noise of torch, home-made ---------------------------------------------------------------------

_torch = _of("torch", "home-made, torch", "torch/simple.py:", plans="torch", stated="home-made")
_DRAWN = "distributions.Laplace"
_TORCH = (
    _torch("sum", "sum", _DRAWN, "total", **_ADDED, **_TRUE),
    _torch("mean", "mean", "normal", "mean", claim="mu = 0.278", **_TRUE),
    _torch("two means", "several", "randn", "both", queries=2, claim="mu = 0.375", **_TRUE),
    _torch("five steps", "training", "Tensor.normal_", "steps", queries=5, claim="mu = 0.25",
        **_ADDED, **_TRUE),
    _torch("histogram", "histogram", _DRAWN, "histogram", queries=4, **_ADDED, **_TRUE),
    _torch("two means, one noise", "several", "randn", "one_noise", queries=2, claim="mu = 0.4"),
    _torch("sum that clips nothing", "sum", _DRAWN, "unclipped", **_ADDED,
        attack=Attack([{"age": 50}], [{"age": 50}, {"age": 1000}])),
)

ROWS = unique(
    (*_IBM, *_MBI, *_NUMPY, *_OPACUS, *_OPENDP, *_PIPELINE_DP, *_IBM_PUBLISHED,
     *_OPENDP_PUBLISHED, *_SQL, *_TUMULT, *_TORCH)
)
# fmt: on
