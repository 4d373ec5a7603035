"""Short ways to write plans in the tests of the accounting layer."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dpaudit.mechanisms import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.plan import (
    AddRemove,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    Relation,
    TrustModel,
)

ROW = PrivacyUnit("row")


def use(
    mechanism: Mechanism,
    sensitivity: float = 1.0,
    relation: Relation | None = None,
    unit: str | PrivacyUnit = "row",
    **fields: Any,
) -> Invocation:
    about = {"unit": PrivacyUnit(str(unit)), "relation": relation or AddRemove()}
    return Invocation(mechanism, sensitivity, **({"trust": TrustModel.CENTRAL} | about | fields))


def repeated(
    mechanism: Mechanism, count: int = 1, *, rate: float | None = None, **fields: Any
) -> Invocation:
    """So many uses, Poisson-sampled at a rate."""
    if rate is not None:
        fields["sampling"] = PoissonSampling(rate)
    return use(mechanism, count=count, **fields)


def plan(*invocations: Invocation) -> Plan:
    return Plan.of(*invocations)


def poisson(rate: float) -> PoissonSampling:
    return PoissonSampling(rate)


_noise = st.floats(0.5, 20.0)
_counts = st.integers(1, 20)


def pure_invocations() -> st.SearchStrategy[Invocation]:
    return st.one_of(
        st.builds(lambda b, n: use(Laplace(b), count=n), _noise, _counts),
        st.builds(lambda b, n: use(DiscreteLaplace(b), count=n), _noise, _counts),
        st.builds(lambda p, n: use(RandomizedResponse(p), count=n), st.floats(0.1, 1.0), _counts),
        st.builds(lambda e, n: use(PureBlackBox(e), count=n), st.floats(0.01, 2.0), _counts),
    )


def gaussian_invocations(
    rates: st.SearchStrategy[float] | None = None,
) -> st.SearchStrategy[Invocation]:
    drawn = st.none() if rates is None else rates
    return st.builds(lambda s, n, q: repeated(Gaussian(s), n, rate=q), _noise, _counts, drawn)


def sampled_invocations() -> st.SearchStrategy[Invocation]:
    mechanisms = st.one_of(st.builds(Gaussian, _noise), st.builds(Laplace, _noise))
    rates = st.floats(0.001, 0.9)
    return st.builds(lambda m, q, n: repeated(m, n, rate=q), mechanisms, rates, _counts)


def any_invocations() -> st.SearchStrategy[Invocation]:
    return st.one_of(pure_invocations(), gaussian_invocations(), sampled_invocations())
