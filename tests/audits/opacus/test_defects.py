"""Every defect is found by what should find it, and opacus itself passes."""

import pytest
import torch

from audits.opacus.defects import CHECKS

ATTACKS = [check for check in CHECKS if check.method.startswith("attack")]
QUICK = [check for check in CHECKS if check not in ATTACKS]


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("check", QUICK, ids=[f"{each.subject}, {each.method}" for each in QUICK])
def test_what_should_be_found_is(check):
    assert bool(check.look(1).found) is check.finds


def test_every_defect_has_a_method_that_finds_it():
    subjects = {check.subject for check in CHECKS}
    found = {check.subject for check in CHECKS if check.finds}
    right = {"opacus as it is", "the same with a public divisor"}
    assert subjects - found == right
