"""The servers in the form of the catalogue."""

from __future__ import annotations

from audits.federated.table import entries


def test_the_catalogue_knows_right_from_wrong():
    found = entries()
    assert [entry.right for entry in found] == [False] * 4 + [True] * 4
    for entry in found[:4]:
        assert entry.true_epsilon > entry.claim.epsilon
