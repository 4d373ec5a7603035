"""Trainings that real processes begin, and that are cut off: nothing is released uncharged."""

import os

import pytest

from tests.benchmarks.training_crashes import PLANS, WAYS, attack, in_process, trained, wrong

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


@pytest.fixture(scope="module", autouse=True)
def _imported(tmp_path_factory):
    """What is imported late is imported before the first fork."""
    trained(tmp_path_factory.mktemp("first"), "adaptive", str)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_cut_off_goes_on_and_is_counted(way):
    endings, found = attack(way, 3)
    assert found == []
    assert set(endings) - {"done"}  # some were


def test_what_would_be_wrong_is_told(tmp_path):
    """The checks see a release that nobody charged, one made twice, and one not counted."""
    lines = in_process(tmp_path, "poisson")
    steps = PLANS["poisson"].invocations[0].count
    assert wrong(tmp_path, lines) == []
    twice = wrong(tmp_path, [*lines, lines[0]])
    assert twice == [f"{steps + 1} handed out, {steps} charged", "one noisy gradient twice"]
    assert "counts" in wrong(tmp_path, [*lines, "certificate 3"])[-1]
    assert wrong(tmp_path, [*lines, "ended a traceback: KeyError x"])
