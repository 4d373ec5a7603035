"""The laws that every accountant obeys; its test class inherits them and names what it takes."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpaudit.accounting import Accountant, Composition, accountant_of, compose
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import Gaussian, Laplace, Opaque
from dpaudit.plan import Invocation, ReplaceOne

LAWS = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.differing_executors],  # the laws are inherited
)


class AccountantLaws:
    """Inherit, set ``accountant`` and ``ledgers``, and pass."""

    accountant: ClassVar[Accountant]
    ledgers: ClassVar[st.SearchStrategy[list[Invocation]]]
    inversion_slack: ClassVar[float] = 1e-6
    deltas: ClassVar[st.SearchStrategy[float]] = st.sampled_from([1e-10, 1e-6, 1e-3, 0.05])
    curve: ClassVar[tuple[float, ...]] = tuple(np.geomspace(1e-12, 0.5, 12))
    """The δ between which ε must fall; a few, of several decades, where each takes long."""
    big: ClassVar[Invocation] = use(Laplace(10.0), count=10**9)

    def epsilon(self, ledger: list[Invocation], delta: float) -> float:
        return self.accountant.compose(ledger).epsilon(delta).upper

    def drawn(self, data: st.DataObject) -> Composition:
        return self.accountant.compose(data.draw(self.ledgers))

    @LAWS
    @given(data=st.data())
    def test_order_does_not_matter(self, data: st.DataObject) -> None:
        ledger, delta = data.draw(self.ledgers), data.draw(self.deltas)
        shuffled = data.draw(st.permutations(ledger))
        assert self.epsilon(ledger, delta) == self.epsilon(list(shuffled), delta)

    @LAWS
    @given(data=st.data())
    def test_count_is_a_loop(self, data: st.DataObject) -> None:
        ledger, delta = data.draw(self.ledgers), data.draw(self.deltas)
        loop = [replace(each, count=1, total=1) for each in ledger for _ in range(each.count)]
        assert self.epsilon(ledger, delta) == self.epsilon(loop, delta)

    @LAWS
    @given(data=st.data())
    def test_more_invocations_cost_no_less(self, data: st.DataObject) -> None:
        ledger, delta = data.draw(self.ledgers), data.draw(self.deltas)
        more = [*ledger, data.draw(self.ledgers)[0]]
        assert self.epsilon(more, delta) >= self.epsilon(ledger, delta) * (1 - 1e-12)

    @LAWS
    @given(data=st.data())
    def test_epsilon_decreases_in_delta(self, data: st.DataObject) -> None:
        composed = self.drawn(data)
        curve = [composed.epsilon(float(delta)).upper for delta in self.curve]
        assert all(b <= a * (1 + 1e-12) for a, b in pairwise(curve))

    @LAWS
    @given(data=st.data())
    def test_delta_decreases_in_epsilon_and_is_a_probability(self, data: st.DataObject) -> None:
        composed = self.drawn(data)
        epsilons = np.linspace(0, 60, len(self.curve))
        curve = [composed.delta(float(epsilon)).upper for epsilon in epsilons]
        assert all(0 <= value <= 1 for value in curve)
        assert all(b <= a * (1 + 1e-9) + 1e-15 for a, b in pairwise(curve))

    @LAWS
    @given(data=st.data())
    def test_delta_inverts_epsilon(self, data: st.DataObject) -> None:
        composed, delta = self.drawn(data), data.draw(self.deltas)
        epsilon = composed.epsilon(delta).upper
        if math.isfinite(epsilon):
            assert composed.delta(epsilon).upper <= delta * (1 + self.inversion_slack)

    @LAWS
    @given(data=st.data())
    def test_it_is_not_below_the_lower_end_of_the_best(self, data: st.DataObject) -> None:
        ledger, delta = data.draw(self.ledgers), data.draw(self.deltas)
        best = compose(plan(*ledger)).epsilon(delta)
        if best.lower is not None:
            assert self.epsilon(ledger, delta) >= best.lower * (1 - 1e-12)

    @LAWS
    @given(data=st.data())
    def test_arrays_agree_with_numbers(self, data: st.DataObject) -> None:
        composed, delta = self.drawn(data), data.draw(self.deltas)
        assert composed.epsilons([delta])[0] == composed.epsilon(delta).upper
        assert composed.deltas([1.0])[0] == composed.delta(1.0).upper

    def test_it_is_known_by_its_name(self) -> None:
        name = self.accountant.kind
        assert accountant_of(name) == self.accountant
        composed = compose(plan(self.big), name)
        assert composed.epsilon(1e-3).upper == self.epsilon([self.big], 1e-3)
        with pytest.raises(InputError, match=f"accountant is 'x{name}'"):
            accountant_of(f"x{name}")

    def test_a_sensitivity_of_zero_costs_nothing(self) -> None:
        composed = self.accountant.compose([use(Gaussian(1.0), 0.0)])
        assert composed.epsilon(1e-9).upper <= 1e-9 * 3e10  # moments pay ln(1/δ)/32

    def test_a_claim_without_proof_is_refused_by_name(self) -> None:
        opaque = use(Opaque("sorter", 0.1), at="sort")
        with pytest.raises(UnsupportedError, match="opaque at 'sort'"):
            self.accountant.compose([opaque])

    def test_sampling_without_a_theorem_costs_what_holds_of_any(self) -> None:
        """Whether a unit is drawn may be known: then δ is that of the mechanism, times 1/10."""
        sampled = use(Laplace(1.0), relation=ReplaceOne(), sampling=poisson(0.1), at="draw")
        with suppress(UnsupportedError):  # an accountant may take none that are sampled
            interval = self.accountant.compose([sampled]).epsilon(0.03)
            assert 1 + 2 * math.log(1 - 0.3) <= interval.upper
            assert interval.lower is None

    def test_a_billion_uses_are_answered_in_a_second(self) -> None:
        from time import process_time

        start = process_time()
        epsilon = self.epsilon([self.big], 1e-6)
        assert process_time() - start < 1
        assert epsilon > 0
