"""Encoders keep their bounds exactly, are what plain Python finds, and refuse without rows."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import examples
from sealed_tables import Texts, held

from dpaudit import (
    AddRemove,
    Contribution,
    Gaussian,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
)
from dpaudit.base.errors import InputError
from dpaudit.plan import Relation
from dpaudit.sealed.encoders import clip, outer, regression

PAGE = Path(__file__).parents[3] / "docs" / "sealed.md"
LARGEST = 2**53
COLUMNS: dict[str, Any] = {
    name: {"type": "integer", "range": [-LARGEST, LARGEST]} for name in ("a", "b", "c")
}


def plan_of(mechanism: Any, bound: float, relation: Relation | None = None) -> Plan:
    about = (PrivacyUnit("person"), relation or AddRemove(), TrustModel.CENTRAL)
    return Plan.of(Invocation.bounded(mechanism, Contribution(bound, rows=1), *about, at="moments"))


def arrays(rng: random.Random, d: int, largest: int) -> list[list[int]]:
    """Of many sizes, some at the ends."""

    def entry(most: int) -> int:
        return rng.choice([0, -most, most, rng.randint(-most, most)])

    sizes = [rng.choice([1, 5, 1000, largest]) for _ in range(40)]
    return [[entry(min(size, largest)) for _ in range(d)] for size in sizes]


def box(d: int, largest: int) -> Any:
    return np.array([[-largest, largest]] * d, dtype=object)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(examples(20, 400)))
def test_a_clip_is_the_scaled_array_rounded_towards_zero(seed: int, power: int) -> None:
    rng = random.Random(seed)
    d, largest = rng.choice([1, 2, 7]), rng.choice([10, 10**6, LARGEST])
    step = rng.choice([Fraction(1), Fraction(1, 100), Fraction(3), Fraction(1, 64)])
    bound = rng.choice([3, 3.7, 5.0, 1000, 2**26 + 0.5, float(LARGEST)])
    given = arrays(rng, d, largest)
    made = clip(box(d, largest), step, bound, f"l{power}")
    found = made.of(np.array(given, dtype=np.int64))
    limit = (Fraction(bound) / step) ** power
    for old, new in zip(given, found.tolist(), strict=True):
        size = sum(abs(each) ** power for each in old)
        assert sum(abs(each) ** power for each in new) <= limit
        assert all(low <= each <= high for each, (low, high) in zip(new, made.ends, strict=True))
        if size <= limit:
            assert new == old
            continue
        for one, other in zip(old, new, strict=True):  # |other| <= |one| L / size < |other| + 1
            assert one * other >= 0
            exact = abs(one) ** power * limit
            assert abs(other) ** power * size <= exact < (abs(other) + 1) ** power * size
    for old, new in zip(given, found, strict=True):  # the same bits alone
        alone = made.of(np.array([old], dtype=np.int64))
        assert alone.tobytes() == new.tobytes()


def test_a_clip_sees_the_last_bit() -> None:
    made = clip(box(2, LARGEST), Fraction(1), LARGEST)
    given = np.array([[LARGEST, 0], [LARGEST, 1], [-LARGEST, -1]])
    assert made.of(given).tolist() == [[LARGEST, 0], [LARGEST - 1, 0], [1 - LARGEST, 0]]


@pytest.mark.parametrize("seed", range(examples(20, 200)))
def test_products_have_the_squared_norm_and_stay_within_their_ends(seed: int) -> None:
    rng = random.Random(seed)
    d, largest = rng.choice([1, 2, 5]), rng.choice([3, 10**6, 94_906_265])
    ends = np.array([[-rng.randint(0, largest), largest] for _ in range(d)], dtype=object)
    given = [
        [max(low, each) for each, (low, _) in zip(row, ends.tolist(), strict=True)]
        for row in arrays(rng, d, largest)
    ]
    made = outer(ends, Fraction(1, 4))
    assert made.step == Fraction(1, 16)
    low, high = made.ends.T.tolist()
    for x, found in zip(given, made.of(np.array(given)).tolist(), strict=True):
        assert found == [a * b for a in x for b in x]
        assert sum(each**2 for each in found) == sum(each**2 for each in x) ** 2
        assert sum(map(abs, found)) == sum(map(abs, x)) ** 2
        assert all(a <= b <= c for a, b, c in zip(low, found, high, strict=True))
    corner = max(range(d), key=lambda n: -ends[n, 0])
    assert high[corner * d + corner] == largest**2
    assert low == [
        0 if i == j else min(ends[i, 0] * ends[j, 1], ends[i, 1] * ends[j, 0])
        for i in range(d)
        for j in range(d)
    ]


def table(rows: list[list[int]]) -> list[Texts]:
    names = [*COLUMNS]
    return [
        {"who": f"p{n}"} | dict(zip(names, map(str, row), strict=True))
        for n, row in enumerate(rows)
    ]


def clipped(row: list[int], bound: int) -> list[int]:
    """By search: the longest entries that are no longer than the scaled ones."""
    size = sum(each**2 for each in row)
    if size <= bound**2:
        return row
    found = []
    for each in row:
        low, high = 0, bound
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (
                (middle, high) if middle**2 * size <= (each * bound) ** 2 else (low, middle - 1)
            )
        found.append(low if each > 0 else -low)
    return found


@pytest.mark.parametrize("bound", [1, 60, 8191])
@pytest.mark.parametrize("seed", range(examples(3, 40)))
def test_clipped_products_are_summed_as_they_are_and_move_by_the_bound_squared(
    seed: int, bound: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    rows = arrays(rng, 3, LARGEST)[:12]
    other = [*rows[:-1], arrays(rng, 3, LARGEST)[0]]

    def total(given: list[list[int]], relation: Relation) -> list[int]:
        plan = plan_of(Gaussian(1.0), float(bound**2), relation)
        with held(tmp_path, table(given), plan, columns=COLUMNS) as asked:
            vectors = asked.data.vector(["a", "b", "c"]).encode("clip", bound=bound)
            asked.ledger.sum(vectors.encode("outer"), at="moments")
            found = asked.steps[0].value.tolist()
        ours = [clipped(row, bound) for row in given]
        assert found == [sum(x[i] * x[j] for x in ours) for i in range(3) for j in range(3)]
        return [int(each) for each in found]

    def squared(one: list[int], two: list[int]) -> int:
        return sum((a - b) ** 2 for a, b in zip(one, two, strict=True))

    whole = total(rows, AddRemove())
    assert squared(whole, total(rows[:-1], AddRemove())) <= bound**4
    # under replace-one sqrt(2) would do, as products of arrays have no negative product
    assert squared(whole, total(other, ReplaceOne())) <= 2 * bound**4


def test_a_l1_clip_bounds_a_laplace_sum(tmp_path: Path) -> None:
    rows = [[3, -4, 0], [LARGEST, -LARGEST, 1], [10, 0, 0], [-2, 3, 5]]
    with held(tmp_path, table(rows), plan_of(Laplace(1.0), 100.0), columns=COLUMNS) as asked:
        arrays_ = asked.data.vector(["a", "b", "c"]).encode("clip", bound=10, norm="l1")
        asked.ledger.sum(arrays_.encode("outer"), at="moments")
        ours = [[3, -4, 0], [4, -4, 0], [10, 0, 0], [-2, 3, 5]]  # 2^53 * 10 / (2^54 + 1) < 5
        wanted = [sum(x[i] * x[j] for x in ours) for i in range(3) for j in range(3)]
        assert asked.steps[0].value.tolist() == wanted


def test_products_of_up_to_2_to_the_53_are_exact_and_others_refused(tmp_path: Path) -> None:
    plan = plan_of(Laplace(1.0), 1.0)
    most = 94_906_265
    assert most**2 <= LARGEST < (most + 1) ** 2
    rows = [[LARGEST, 0, 0], [-LARGEST, 1, 0], [LARGEST, LARGEST, LARGEST]]
    with held(tmp_path, table(rows), plan, columns=COLUMNS) as asked:
        data = asked.data.vector(["a", "b", "c"])
        with pytest.raises(InputError, match="at most 2\\^53"):
            data.encode("outer")
        with pytest.raises(InputError, match="at most 2\\^53"):
            data.encode("clip", bound=most + 1).encode("outer")
        vectors = data.encode("clip", bound=most).encode("outer")
        assert vectors.ranges[:2] == ((0, most**2), (-(most**2), most**2))
        _, found = asked.operations.real.store.values(asked.operations._handles[vectors._number])
        third = clipped(rows[2], most)[0]
        corner = [clipped(row, most)[0] ** 2 for row in rows]
        assert sorted(found[:, 0].tolist()) == sorted(corner)
        assert found[:, 0].max() == most**2
        assert [third**2] * 9 in found.tolist()


def test_what_is_no_encoding_is_refused(tmp_path: Path) -> None:
    plan = plan_of(Laplace(1.0), 1.0)
    with held(tmp_path, [], plan, columns=COLUMNS) as asked:
        vectors = asked.data.vector(["a * 0.5", "b % 9"])
        for by, options, words in (
            ("gram", {}, "must be one of clip, outer"),
            ("linear", {"matrix": [[1, 2]]}, "must be one of clip, outer"),
            ("clip", {}, "it takes "),
            ("clip", {"bound": 1, "step": 1}, "it takes "),
            ("outer", {"bound": 1}, "it takes "),
            ("clip", {"bound": 0}, "above 0"),
            ("clip", {"bound": True}, "above 0"),
            ("clip", {"bound": 0.4}, "one step"),
            ("clip", {"bound": 2.0**54}, "one step to 2\\^53"),
            ("clip", {"bound": 1, "norm": "change"}, "'l1' or 'l2'"),
            ("outer", {}, "at most 2\\^53"),
        ):
            with pytest.raises(InputError, match=words):
                vectors.encode(by, **options)
        with pytest.raises(InputError, match="101\\^2 entries"):
            asked.data.vector(["a % 2"] * 101).encode("outer")
        small = asked.data.vector("a % 4")
        assert (small.encode("outer").shape, small.encode("outer").ranges) == ((), ((0, 9),))
        for _ in range(200):
            small = small.encode("clip", bound=2)
        with pytest.raises(InputError, match="too many steps"):
            small.encode("clip", bound=2)


def test_the_regression_of_the_page(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(arrays = .*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    rng = random.Random(1)
    ages = [rng.randint(0, 100) for _ in range(200)]
    rows = [{"who": f"p{n}", "age": str(x), "cost": str(500 + 10 * x)} for n, x in enumerate(ages)]
    with held(tmp_path, rows, plan_of(Gaussian(0.01), 4.0)) as asked:
        names = {"data": asked.data, "ledger": asked.ledger, "np": np}
        exec(example, names)
        (step,) = asked.steps
    features = [np.array([1.0, x / 100, 0.5 + x / 100]) for x in ages]
    short = [x * min(1.0, 2 / np.linalg.norm(x)) for x in features]
    wanted = sum(np.outer(x, x) for x in short)
    np.testing.assert_allclose(np.reshape(step.value, (3, 3)), wanted, rtol=1e-4)
    np.testing.assert_allclose(names["slope"], [0.5, 1.0], atol=0.05)


# -- regression ------------------------------------------------------------------------------------


def row_box(size: int, step: Fraction, high: Fraction) -> Any:
    """Features within the unit cube, and a value up to a bound, in steps."""
    ends = [[-int(1 / step), int(1 / step)]] * size + [[-int(high / step), int(high / step)]]
    return np.array(ends, dtype=object)


@pytest.mark.parametrize("seed", range(examples(6, 200)))
@pytest.mark.parametrize("packed", [True, False])
def test_two_rows_of_a_regression_lie_no_further_apart_than_its_diameter(
    seed: int, packed: bool
) -> None:
    rng = np.random.default_rng(seed)
    size, step = int(rng.integers(1, 7)), Fraction(1, 10 ** int(rng.integers(4, 10)))
    high = Fraction(1, 2) if seed % 2 else Fraction(3)
    weight = float(high) / np.sqrt(2) * (1.0 if seed % 3 else rng.random())
    made = regression(row_box(size, step, high), step, weight, packed)
    assert made.diameter == float(2 * high)
    phi = rng.normal(size=(60, size)) * 10.0 ** rng.integers(-2, 2, size=(60, 1))
    phi[1::4] = -phi[::4]
    phi[2::4] = phi[::4] + 1e-3 * rng.normal(size=(15, size))
    value = np.where(rng.random(60) < 0.8, np.sign(rng.normal(size=60)), rng.random(60))
    rows = np.clip(np.append(phi, value[:, None] * float(high), axis=1), -1, None).clip(None, 3)
    low, most = made_of(row_box(size, step, high))
    whole = np.clip(np.rint(rows / float(step)), low, most).astype(np.int64)
    whole[0] = 0
    found = made.of(whole).astype(object)
    largest = Fraction(made.diameter) ** 2
    for one in found:
        for other in found:
            apart = (sum((a - b) ** 2 for a, b in zip(one, other, strict=True))) * step**2
            assert apart <= largest


def made_of(ends: Any) -> Any:
    """Both ends as numbers."""
    return ends.astype(np.float64).T


@pytest.mark.parametrize("packed", [True, False])
def test_a_regression_adds_up_what_it_says(packed: bool) -> None:
    step, weight = Fraction(1, 10**9), 8.0**-0.5
    made = regression(row_box(2, step, Fraction(1, 2)), step, weight, packed)
    ((a, b), v) = (0.6, -0.3), -0.25
    found = made.of(np.rint(np.array([[a, b, v]]) * 1e9).astype(np.int64)) * 1e-9
    root = np.sqrt(2)
    triangle = [weight * a * a, weight * root * a * b, weight * b * b, v * a, v * b]
    square = [
        *(weight * a * a, weight * a * b, v * a / root),
        *(weight * a * b, weight * b * b, v * b / root),
        *(v * a / root, v * b / root, 0.0),
    ]
    np.testing.assert_allclose(found, [triangle if packed else square], atol=3e-9)
    # the bound is attained, but for rounding: the same features with the two ends of the value
    ends = made.of(np.array([[10**9, 0, 5 * 10**8], [10**9, 0, -5 * 10**8]])) * 1e-9
    assert np.linalg.norm(ends[0] - ends[1]) == pytest.approx(1.0, abs=2e-8)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weight": 0.36}, r"at most 0.5/√2"),
        ({"weight": 0.0}, "weight"),
        ({"weight": 0.1, "packed": 1}, "packed"),
    ],
)
def test_a_regression_that_could_move_further_is_refused(options: Any, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said) if "√" in said else said):
        regression(row_box(3, Fraction(1, 10**9), Fraction(1, 2)), Fraction(1, 10**9), **options)


def test_a_regression_of_coarse_features_is_refused() -> None:
    with pytest.raises(InputError, match="smaller step"):
        regression(row_box(3, Fraction(1, 10), Fraction(1, 2)), Fraction(1, 10), 0.1)


def test_entries_that_are_added_as_they_are_are_added_exactly() -> None:
    """A sum in floats of finer steps could move by more than its parts."""
    ends = np.array([[0, 10**12], [-(10**12), 10**12]], dtype=object)
    with pytest.raises(InputError, match="are allowed, so that sums are exact"):
        regression(ends, Fraction(1, 10**12), weight=0.5)
    largest = regression(ends // 1000, Fraction(1, 10**9), weight=0.5).ends.max()
    assert int(largest) * 2**21 <= 2**53
