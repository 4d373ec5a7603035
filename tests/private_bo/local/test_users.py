"""Asking users through a channel."""

from __future__ import annotations

import numpy as np
import pytest
from crowds import run

from dpaudit.base.errors import InputError
from private_bo.local import LDPATAGPUCB


def test_running_out_of_sellers_is_one_sentence() -> None:
    subject = LDPATAGPUCB(steps=371)
    data = subject.load("taipei-sellers", np.random.default_rng(0))
    with pytest.raises(InputError, match="steps is too large for 'neighbourhood prices'"):
        run(subject, data)
