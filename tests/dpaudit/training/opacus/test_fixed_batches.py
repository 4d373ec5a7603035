import pytest

from dpaudit import InputError
from dpaudit.training.opacus import FixedBatches


def test_fixed_batches_hold_every_unit_once_and_stay():
    batches = FixedBatches(10, 4, seed=3)
    first = list(batches)
    assert sorted(unit for batch in first for unit in batch) == list(range(10))
    assert list(batches) == first == list(FixedBatches(10, 4, seed=3))
    first[0].clear()
    assert len(next(iter(batches))) == 4
    for wrong in ((0, 4), (4, 0), (4, 2, -1), (2.5, 1), (4, 2, 2**70)):
        with pytest.raises(InputError):
            FixedBatches(*wrong)
