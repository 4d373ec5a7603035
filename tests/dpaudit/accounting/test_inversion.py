from __future__ import annotations

import math

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.accounting.inversion import least_epsilon


@settings(max_examples=100, derandomize=True)
@given(root=st.floats(1e-12, 1e12), reach=st.floats(1.0, 1e6))
@example(root=1.0, reach=1.0)
def test_the_root_is_found_from_the_safe_side(root: float, reach: float) -> None:
    found = least_epsilon(lambda epsilon: root - epsilon, root * reach)
    assert root <= found <= max(root * (1 + 4e-15), root * reach * 2**-199)


def test_ends_are_returned_as_they_are() -> None:
    assert least_epsilon(lambda _: -1.0, 5.0) == 0.0
    assert least_epsilon(lambda _: 1.0, 5.0) == 5.0
    assert least_epsilon(lambda epsilon: 1e-320 - epsilon, 1e-319) >= 1e-320


def test_it_stops_after_so_many_steps() -> None:
    asked: list[float] = []

    def excess(epsilon: float) -> float:
        asked.append(epsilon)
        return math.pi - epsilon

    assert least_epsilon(excess, 4.0, steps=3) == 3.5
    assert asked == [0.0, 2.0, 3.0, 3.5]
