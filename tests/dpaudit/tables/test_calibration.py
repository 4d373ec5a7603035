"""The noise of a release is the least for its claim, and found without many costly proofs."""

import pytest

from dpaudit.accounting import compose
from dpaudit.mechanisms import DiscreteLaplace
from dpaudit.tables import release as releases
from dpaudit.tables.release_file import read_release


def release_of(rows, delta, *queries):
    columns = {
        "g": {"type": "boolean"},
        "x": {"type": "integer", "range": [0, 100]},
        "town": {"type": "text"},
    }
    data = {"source": "t.csv", "unit": "u", "columns": columns}
    claim = {"epsilon": 1.0} | ({"delta": delta} if delta else {})
    privacy = {"relation": "add-remove", "claim": claim, "rows_per_unit": rows}
    return read_release({"data": data, "privacy": privacy, "query": list(queries)})


COUNT = {"count": True, "by": "g"}
SEVERAL = (COUNT, {"mean": "x"}, {"median": "x"}, {"count": True})


@pytest.mark.parametrize(
    ("rows", "delta", "queries"),
    [
        (50_000, 1e-6, [COUNT]),
        (50_000, 0.0, SEVERAL),
        (20_000, 1e-6, (*SEVERAL, {"keys": "town"})),
        (1, 1e-3, (*SEVERAL, *SEVERAL)),
    ],
)
def test_the_least_noise_is_found_in_few_proofs_of_many_steps(rows, delta, queries, monkeypatch):
    release = release_of(rows, delta, *({**each, "name": f"{n}"} for n, each in enumerate(queries)))
    proofs = []

    def counted(plan):
        whole = [e for e in plan.invocations if isinstance(e.mechanism, DiscreteLaplace)]
        proofs.append(max(each.sensitivity for each in whole) > releases._FEW_STEPS)
        return compose(plan)

    monkeypatch.setattr(releases, "compose", counted)
    parts = release.parts
    assert sum(proofs) <= 4
    assert release.claim.excess(compose(release.plan())) is None
    spent = parts["0"][0].sensitivity / parts["0"][0].mechanism.scale
    tighter = release._parts(1 / spent * (1 - 3e-4))
    assert release.claim.excess(compose(release._plan(tighter))) is not None
