"""What a release finds, without noise, is what a page of plain Python finds."""

import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from effort import examples
from random_releases import random_release

from dpaudit.tables.engines.duck import measured
from dpaudit.tables.queries import MostFrequent, Quantiles, UnknownKeys

pytest.importorskip("duckdb")
SECRET = bytes(range(32))


def compared(query, meant, truth, found, noise):
    """Assert that the integers, and what is told of them without noise, are the truth."""
    parts = query.parts(1.0, noise, 1e-6)
    if isinstance(query, UnknownKeys):
        assert found.keys[query.name] == truth
        keys = (*sorted(truth), ())
        told = query.estimates(parts, {query.name: (keys, [*(truth[k] for k in keys[:-1]), 0])})
        assert {each.cell: each.value for each in told} == truth
        return
    if isinstance(query, Quantiles):
        ranked(query, meant, truth, found, parts)
        return
    whole = [found.integers[measure.at].ravel().tolist() for measure in query.measures()]
    if "mean" in meant:
        shape = query.of.shape
        middle = (shape.low + shape.high) // 2
        sums = [
            sum((v / shape.step - middle for v in each), Fraction(0)) for each in truth.values()
        ]
        assert whole == [sums, [len(each) for each in truth.values()]]
        told = query.estimates(parts, dict(zip(query._labels, whole, strict=True)))
        near = max(1e-6, float((shape.high - shape.low) * shape.step) * 1e-14)
        for each, values in zip(told, truth.values(), strict=True):
            if values:
                wanted = float(sum(values) / len(values))
                assert each.value == pytest.approx(wanted, rel=1e-9, abs=near)
        return
    (numbers,) = whole
    step = query.of.shape.step if "sum" in meant else 1
    assert [n * step for n in numbers] == list(truth.values())
    if isinstance(query, MostFrequent):
        return
    told = query.estimates(parts, {query.name: np.array(numbers, dtype=np.float64)})
    assert [each.value for each in told] == pytest.approx([float(t) for t in truth.values()])
    assert all(each.low <= max(each.value, 0) <= each.high or "sum" in meant for each in told)


def ranked(query, meant, truth, found, parts):
    """The utilities of all candidates, and the best of them as the answer."""
    step, integers = query.of.shape.step, found.integers[query.name]
    for share, part in zip(meant["at"], parts, strict=True):
        q = Fraction(str(share))
        n, d = q.numerator, q.denominator
        utilities = query.private_value(part.at, integers, part)
        for values, vector in zip(truth.values(), utilities, strict=True):
            steps = [v / step for v in values]
            wanted = [
                -abs((d - n) * sum(s < c for s in steps) - n * sum(s > c for s in steps))
                for c in query.candidates
            ]
            assert vector.tolist() == wanted


@pytest.mark.parametrize("block", range(10))
def test_random_releases_find_what_plain_python_finds(block):
    for seed in range(examples(4, 20)):
        with tempfile.TemporaryDirectory() as folder:
            made = random_release(1000 * block + seed, Path(folder))
            release = made.release
            found = measured(release.source, release.layout, release.measures, SECRET)
            for query, meant, truth in zip(
                release.queries, made.queries, made.truth(SECRET), strict=True
            ):
                compared(query, meant, truth, found, release.noise)
