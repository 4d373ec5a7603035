"""What others have published of OpenDP."""

from __future__ import annotations

from typing import Any

from audits.libraries.row import Attack, Published, Row

_ISSUE = "opendp/opendp issue {}"
_NULLS = "missing values that are taken for impossible are counted without noise"
_FRAMES: dict[str, Any] = {"environment": "opendp-polars"}


def _of(name: str, kind: str, offers: str, pipeline: str, **rest: Any) -> Row:
    given = {"data": "", "stated": "map"} | rest
    return Row(f"OpenDP: {name}", "opendp", offers, kind, f"opendp/{pipeline}", **given)


def _published(name: str, number: int, mended: str = "") -> Published:
    return Published(name, _ISSUE.format(number), mended)


_SCORES = {"claim": "rho = 0.5", "attack": Attack([0, 0], [1, -1], 3_000)}
_ZCDP = "noisy max in zero-concentrated privacy"
# fmt: off
ROWS = (
    _of("shown keys", "histogram", "make_laplace_threshold", "published.py:keys",
        relation="add-remove", claim="epsilon = 1, delta = 0.09894",
        attack=Attack([], ["ann"], 3_000),
        published=_published("a count that is just the threshold is shown", 2922)),
    _of("noisy max in ρ", "selection", "make_noisy_max", "published.py:loudest", **_SCORES,
        published=_published(_ZCDP, 2911)),
    _of("noisy max in ρ, 0.15", "selection", "make_noisy_max", "published.py:loudest", **_SCORES,
        environment="opendp-0.15", published=_published(_ZCDP, 2911)),
    _of("squared deviations of large floats", "variance", "make_sum_of_squared_deviations",
        "published.py:deviations",
        attack=Attack([[0.25, 1024]], [[0.5, 1], [0.25, 1023]]),
        published=_published("the mean of floats is rounded", 2923)),
    _of("count of cast numbers", "count", "make_private_lazyframe", "frames.py:cast",
        claim="epsilon = 0.01", attack=Attack([1.0] * 16, [None] + [1.0] * 15, 200), **_FRAMES,
        published=_published(f"{_NULLS}: casts", 2938)),
    _of("count of classes", "count", "make_private_lazyframe", "frames.py:cut",
        claim="epsilon = 0.01", attack=Attack([1.0] * 16, [None] + [1.0] * 15, 200), **_FRAMES,
        published=_published(f"{_NULLS}: cut", 2939)),
    _of("count of remainders", "count", "make_private_lazyframe", "frames.py:remainder",
        claim="epsilon = 0.01", attack=Attack([3] * 16, [0] + [3] * 15, 200), **_FRAMES,
        published=_published(f"{_NULLS}: division by 0", 2940)),
    _of("sum of 32-bit floats", "sum", "make_private_lazyframe", "frames.py:short_floats",
        claim="epsilon = 1.001", relation="add-remove",
        attack=Attack([1] * 4 + [-1] * 7, [1] * 3 + [-1] * 7), **_FRAMES,
        published=_published("floats of 32 bits are taken for 64", 2941)),
    _of("sum of codes", "sum", "make_private_lazyframe", "frames.py:codes",
        relation="add-remove", attack=Attack([0.5] * 50, [2.0] + [0.5] * 50, 300), **_FRAMES,
        published=_published("codes of classes depend on the other rows", 2944)),
    _of("sum of a group", "sum", "make_private_lazyframe", "frames.py:group",
        attack=Attack([10] * 3, [-10] * 3, 3_000), **_FRAMES,
        note="The claim is of sets of which all three rows differ, at distance 6.",
        published=_published("a group of k rows is taken to change by k", 2945)),
)
# fmt: on
