"""What a subject shows, and the neighbours that it names itself."""

from pathlib import Path

import numpy as np
from examples import gaussian_invocation
from rehearsals import rules

from dpaudit import Gaussian, Plan, RunResult, Subject, ZeroOut
from dpaudit.project import Move

NOISE = Gaussian(2.0)


class Total(Subject):
    """A sum of parts in ±1, of which one may be zeroed; neighbours of two other data sets."""

    def plan(self):
        return Plan.of(
            gaussian_invocation(
                mechanism=NOISE, sensitivity=1.0, relation=ZeroOut(), count=5, at="sum"
            )
        )

    def load(self, source, rng):
        return np.zeros(3)

    def bounded(self, data):
        return np.clip(data, -1, 1)

    def neighbours(self, data, rng):
        yield Move(data, "nobody zeroed")
        for far in (1.0, -5.0, 5.0):
            yield Move(data, "row 0 zeroed", extreme=True, base=np.array([far, 0.0, 0.0]))

    def run(self, data, ledger, rng):
        noisy = [float(ledger.release(NOISE, self.bounded(data).sum())) for _ in range(5)]
        return RunResult({"sums": noisy}, owner=RunResult({"truth": float(data.sum())}))


def test_neighbours_of_other_data_are_compared_with_those():
    assert rules(Total()) == set()

    class Unbounded(Total):
        def bounded(self, data):
            return data

    assert rules(Unbounded()) == {"sensitivity-understated"}


def test_the_owner_sees_all_and_others_what_is_published():
    own = RunResult({"regret": 2.0}, {"regrets": [1.0, 2.0]})
    result = RunResult({"rounds": 2}, {"noisy": [0.5]}, owner=own)
    assert result.to_dict() == {"summary": {"rounds": 2}, "series": {"noisy": [0.5]}}
    assert result.for_owner.to_dict() == {
        "summary": {"rounds": 2, "regret": 2.0},
        "series": {"noisy": [0.5], "regrets": [1.0, 2.0]},
    }
    assert own.for_owner is own


def test_the_survey_of_the_page_is_rehearsed_without_a_finding():
    example = (Path(__file__).parents[3] / "docs" / "examples" / "survey.py").read_text("utf-8")
    names = {"__name__": "survey"}
    exec(compile(example, "survey.py", "exec"), names)
    assert rules(names["Survey"](users=100)) == set()
