from __future__ import annotations

import pytest
from accounting_builders import repeated, use

from dpaudit.accounting.amplification import PlainPair
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.pld.terms import DirectedTerm, directed_terms
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import Gaussian, GaussianPair, Opaque


def test_each_direction_has_its_pairs_with_their_counts() -> None:
    sampled, plain = repeated(Gaussian(2.0), 3, rate=0.1), repeated(Gaussian(2.0), 4)
    remove, add = directed_terms([sampled, plain, sampled])
    base = GaussianPair(0.5)
    assert set(remove) == {
        DirectedTerm(RemovedPair(base, 0.1), 6),
        DirectedTerm(PlainPair(base), 4),
    }
    assert set(add) == {DirectedTerm(AddedPair(base, 0.1), 6), DirectedTerm(PlainPair(base), 4)}
    assert directed_terms([plain, sampled, sampled]) == (remove, add)


def test_what_has_no_pair_is_named() -> None:
    with pytest.raises(UnsupportedError, match="opaque at 'x'"):
        directed_terms([use(Opaque("vendor", 1.0), at="x")])
