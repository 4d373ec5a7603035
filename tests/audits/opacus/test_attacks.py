"""Attacks on what opacus does."""

import pytest
import torch

from audits.opacus.defects import expected_batch_audit


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def test_the_divisor_is_found_by_attack():
    record = expected_batch_audit(public=False, runs=80, seed=0)
    assert record.refuted
    assert record.epsilon_lower > record.claim_epsilon
