from __future__ import annotations

import numpy as np

from dpaudit.accounting.orders import ORDERS, REAL, WHOLE


def test_orders_increase_through_real_ones_integers_and_powers_of_two() -> None:
    assert (np.diff(ORDERS) > 0).all()
    assert ORDERS[0] > 1
    assert REAL[-1] == 16
    assert WHOLE[0] == 17
    assert WHOLE[-1] == 1024
    assert ORDERS[REAL.size : REAL.size + len(WHOLE)].tolist() == list(WHOLE)
    assert np.log2(ORDERS[REAL.size + len(WHOLE) :]).tolist() == list(range(11, 25))


def test_no_two_neighbours_are_far_apart() -> None:
    gaps = np.diff(np.log(ORDERS - 1))
    assert gaps[ORDERS[1:] <= 1024].max() < 0.27
