"""What others have published of diffprivlib, and what nobody has yet, as far as we know."""

from __future__ import annotations

from typing import Any

from audits.libraries.row import Attack, Published, Row

_ISSUE = "IBM/differential-privacy-library issue {}"
_CEBERE = "Cebere et al., PETS 2026, arXiv 2602.17454"


def _of(name: str, kind: str, offers: str, function: str, **rest: Any) -> Row:
    file = f"diffprivlib/published.py:{function}"
    return Row(f"diffprivlib: {name}", "diffprivlib", offers, kind, file, **{"data": ""} | rest)


def _rows(**columns: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Rows of these columns, each of which has a value for each row."""
    common = {"age": 50, "income": 50, "smokes": 0, "group": 0}
    return [
        common | dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]


_HALVES = tuple(number % 2 for number in range(10))
_CASUALTY = "Casacuberta, Shoemate, Vadhan and Wagaman, CCS 2022, arXiv 2207.10635"
# fmt: off
ROWS = (
    _of("linear regression from 0 on", "linear regression", "LinearRegression", "slope",
        data="people.csv", queries=3,
        attack=Attack(_rows(age=(0,), income=(0,)), _rows(age=(100,), income=(100,)), 100),
        published=Published("the sensitivity of X'X from the lower bounds alone",
                            f"{_CEBERE}; {_ISSUE.format('105, and 104')}")),
    Row("diffprivlib: linear regression with an intercept", "diffprivlib", "LinearRegression",
        "linear regression", "diffprivlib/models.py:regression", queries=5,
        published=Published("the offsets of X and of y paid for once", _ISSUE.format(104))),
    _of("linear regression without an intercept, beyond the bounds", "linear regression",
        "LinearRegression", "unclipped_slope", data="people.csv", queries=3,
        attack=Attack(_rows(age=(0,), income=(0,)), _rows(age=(9000,), income=(9000,)), 200)),
    _of("labels of a logistic regression", "logistic regression", "LogisticRegression", "labels",
        data="people.csv",
        attack=Attack(_rows(group=(0, 1, 1)), _rows(group=(0, 1, 2)), 100),
        published=Published("labels taken from the data", f"{_CEBERE}; {_ISSUE.format(106)}")),
    _of("labels of naive Bayes", "naive Bayes", "GaussianNB", "classes",
        attack=Attack(_rows(group=(0, 1, 1)), _rows(group=(0, 1, 2)), 200),
        published=Published("labels taken from the data, in another model",
                            f"{_CEBERE}; {_ISSUE.format(106)}, of logistic regression")),
    _of("class counts of naive Bayes", "naive Bayes", "GaussianNB", "class_counts",
        relation="add-remove", stated="open",
        attack=Attack(_rows(group=(0, 1, 1)), _rows(group=(0, 1, 1, 1)), 200)),
    _of("median with a missing number", "quantile", "tools.median", "median",
        documented="a to-do in its source names issue 80",
        attack=Attack(_rows(age=(20, 30)), _rows(age=(20, None)), 200),
        published=Published("NaN passes into a quantile", _ISSUE.format(80))),
    _of("mean with a missing number", "mean", "tools.mean", "mean",
        attack=Attack(_rows(age=(20, 30)), _rows(age=(20, None)), 200),
        published=Published("NaN passes a clip", f"{_CEBERE}, Section 4.3.9")),
    _of("median of a crowd", "quantile", "tools.median", "crowded_median",
        attack=Attack([[50, 2982]], [[20, 1], [50, 2981]], 100),
        published=Published("a quantile fails where one value is very common",
                            f"{_ISSUE.format(107)}, as a crash")),
    _of("sum of large floats", "sum", "tools.sum", "far_total",
        attack=Attack([[1, 1024]], [[0, 1], [1, 1023]], 300),
        published=Published("sums of floats are rounded", _CASUALTY)),
    _of("sum of 8-bit integers", "sum", "tools.sum", "small_total",
        attack=Attack(_rows(age=(100, 27)), _rows(age=(100, 100)), 2_000),
        published=Published("sums of integers wrap around", _CASUALTY)),
    _of("votes of a forest", "forest", "RandomForestClassifier", "votes", relation="add-remove",
        stated="open", queries=10,
        attack=Attack(_rows(smokes=_HALVES), _rows(smokes=(*_HALVES, 0)), 300),
        note="Rows go to trees by their place and number, so that one more row moves many."),
    _of("vote of a tree", "tree", "DecisionTreeClassifier", "vote", stated="open",
        attack=Attack(_rows(smokes=(0,)), _rows(smokes=(1,)), 3_000)),
    _of("inertia of k-means", "k-means", "KMeans", "inertia", stated="open",
        attack=Attack(_rows(age=(50,) * 8), _rows(age=(50,) * 7 + (100,)), 200),
        note="The model's inertia_ and labels_ have no noise."),
)
# fmt: on
