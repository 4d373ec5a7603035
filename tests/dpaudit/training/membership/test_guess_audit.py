"""What is fixed before a model is trained, and the record after."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpaudit.auditing import Execution
from dpaudit.auditing.evidence.one_run import gaussian_family
from dpaudit.base.errors import InputError
from dpaudit.training.membership.guessing import GuessAudit, membership_null

NULL = membership_null(1.0, 1e-5, None)


def audit(canaries=100, guesses=None, **fields):
    return GuessAudit(NULL, canaries, guesses, Execution(**{"seed": 1, **fields}))


def members(size=100):
    return np.random.default_rng(0).random(size) < 0.5


def test_a_model_that_remembers_is_refuted_and_its_record_is_strict_json():
    design = audit(guesses=(20, 20))
    record = design.record(members() * 1.0, members(), "by hand", 1, {"attack": "mine"})
    assert record.refuted
    assert record.power == ""
    assert record.details["correct"] == record.details["guesses"] == 40
    assert record.details["attack"] == "mine"
    assert record.details["family"]["assumption"] == gaussian_family().assumption
    json.dumps(record.to_dict(), allow_nan=False)


def test_scores_without_information_show_nothing_and_say_what_would_have():
    record = audit().record(np.zeros(100), members(), "by hand", 1, {})
    assert not record.refuted
    assert record.epsilon_lower <= 1.0
    assert "would have refuted ε = 1, δ = 1e-05" in record.power


def test_a_seed_orders_equal_scores():
    first, second = (audit().record(np.zeros(100), members(), "by hand", 1, {}) for _ in range(2))
    assert first == second
    assert audit(seed=None).seed != audit(seed=None).seed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"canaries": 4}, "there are 4 guesses; even if all were right, 5 are needed"),
        ({"guesses": (80, 30)}, r"guesses is \(80, 30\); there are only 100 canaries"),
        ({"guesses": 5}, "guesses is 5; it must be two numbers"),
        ({"confidence": 1 - 1e-40 - 2**-50, "guesses": (10, 10)}, "use more canaries"),
    ],
)
def test_bad_designs_are_named(options, words):
    with pytest.raises(InputError, match=words):
        audit(**options)
