from __future__ import annotations

import math

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.mechanisms.inversion import first_float, least_epsilon


@settings(max_examples=100, derandomize=True)
@given(root=st.floats(5e-324, 1e300), reach=st.floats(1.0, 1e6))
@example(root=1.0, reach=1.0)
@example(root=5e-324, reach=1e6)
def test_the_root_is_found_to_the_last_float(root: float, reach: float) -> None:
    assert least_epsilon(lambda epsilon: float(epsilon < root), 0.5, root * reach) == root


def test_ends_are_returned_as_they_are() -> None:
    assert least_epsilon(lambda _: -1.0, 0.0, 5.0) == 0.0
    assert least_epsilon(lambda _: 1.0, 0.0, 5.0) == 5.0
    assert first_float(lambda x: x >= 1e-320, 1.7e308) == 1e-320


def test_some_sixty_questions_are_enough() -> None:
    asked: list[float] = []

    def holds(x: float) -> bool:
        asked.append(x)
        return x >= math.pi * 1e-300

    assert first_float(holds, 1.7e308) == math.pi * 1e-300
    assert len(asked) <= 65
