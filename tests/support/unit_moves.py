"""How far one unit moves what a release is made of, as a share of what is declared."""

from __future__ import annotations

from fractions import Fraction

from dpaudit.mechanisms import (
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    StableHistogram,
    TopK,
)
from dpaudit.tables.queries import UnknownKeys


def values_of(query, part, found):
    """What a part releases, as arrays of exact integers, one for each release."""
    whole = found.integers.get(part.at, found.integers.get(query.name))
    return [each.ravel().tolist() for each in query.private_value(part.at, whole, part)]


def moved(query, part, one, other):
    """How far two tables lie apart in the norm of a part, as a share of what is declared."""
    mechanism, declared = part.mechanism, Fraction(part.sensitivity)
    if isinstance(query, UnknownKeys):
        assert isinstance(mechanism, StableHistogram)
        a, b = one.keys[part.at], other.keys[part.at]
        changes = [abs(a.get(key, 0) - b.get(key, 0)) for key in {*a, *b}]
        assert max(changes, default=0) <= 1
        return Fraction(sum(changes), mechanism.key_sensitivity)
    pairs = zip(values_of(query, part, one), values_of(query, part, other), strict=True)
    changes = [[abs(Fraction(x) - Fraction(y)) for x, y in zip(*p, strict=True)] for p in pairs]
    if isinstance(mechanism, ExponentialMechanism | TopK):
        cells = [max(each) for each in changes]
        assert sum(cell > 0 for cell in cells) <= part.count
        return max(cells) / Fraction(mechanism.utility_sensitivity)
    (entries,) = changes
    if isinstance(mechanism, Gaussian):
        square = sum(x * x for x in entries) / declared**2
        return square if square in (0, 1) else Fraction(square**0.5 if square <= 1 else square)
    assert isinstance(mechanism, DiscreteLaplace | Laplace)
    return sum(entries, Fraction(0)) / declared


def largest_move(release, tables):
    """The largest share of a declared sensitivity that neighbours move, over queries and parts."""
    one, other = tables
    return {
        query.name: max(
            moved(query, part, one, other) for part in query.parts(1.0, release.noise, 1e-6)
        )
        for query in release.queries
    }
