"""The real run is attacked, with no model by its author."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from audited import audited

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    InputError,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    RunResult,
    Subject,
    TrustModel,
    UnsupportedError,
)
from dpaudit.auditing.replaying.replay import own_generator
from dpaudit.mechanisms import BinaryTree, ContinualLaplace
from dpaudit.plan import PoissonSampling
from dpaudit.project import Execution, Move
from dpaudit.workflow.through_run import FEWEST, audit_run

FACTS = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
TREE = ContinualLaplace(scale=3.0, factorization=BinaryTree(4), participations=1)
RUNS = Execution(runs=400, seed=1, confidence=0.999999)


@dataclass(frozen=True)
class Total(Subject):
    """A sum, released twice as ``half`` noisy as declared."""

    declared: float = 1.0
    factor: float = 1.0

    def plan(self):
        return Plan.of(Invocation(Laplace(self.declared), 1.0, *FACTS, at="sum"))

    def claim(self):
        return Claim(1.0 / self.declared)

    def load(self, source, rng):
        return rng.uniform(0, 1, 10)

    def run(self, rows, ledger, rng):
        total = self.factor * np.clip(np.nan_to_num(rows), 0, 1).sum()
        return RunResult({"sum": ledger.release(Laplace(self.declared), total, at="sum")})


@dataclass(frozen=True)
class Stream(Total):
    def plan(self):
        return Plan.of(Invocation(TREE, 1.0, *FACTS, at="sums"))

    def load(self, source, rng):
        return rng.uniform(0, 1, 4)

    def run(self, rows, ledger, rng):
        sums = ledger.stream(TREE, (), at="sums")
        return RunResult({}, {"sums": [float(sums.add(self.factor * row)) for row in rows]})

    def neighbours(self, data, rng):
        return [Move(np.concatenate([[0.0], data[1:]]), "row 0 zeroed")]


def test_as_many_draws_as_there_is_time_for_but_never_too_few():
    claim = Claim(1.0)
    assert audit_run(Total(), "x", claim, RUNS, seconds=1e-9).runs == min(FEWEST, RUNS.runs)
    assert audit_run(Total(), "x", claim, RUNS, seconds=1e9).runs == RUNS.runs


def test_the_pair_is_a_recipe_and_the_bound_is_near():
    record = audit_run(Total(), "x", Claim(1.0), RUNS)
    assert not record.refuted
    assert 0.3 < record.epsilon_lower < 1.0
    assert set(record.pair) == {"x", "x_prime"}
    assert record.pair["x"] == "synthetic"
    assert "row" in record.pair["x_prime"]


@pytest.mark.parametrize("kind", [Total, Stream])
def test_a_run_that_does_more_than_it_declares_is_refuted(kind):
    claim = Claim(kind().plan().invocations[0].mechanism.pair(1.0).pure_epsilon)
    assert audit_run(kind(factor=12.0), "x", claim, RUNS).refuted
    assert not audit_run(kind(), "x", claim, RUNS).refuted


def test_who_is_sampled_is_not_the_adversary_s_to_know():
    @dataclass(frozen=True)
    class Sampled(Total):
        def plan(self):
            (use,) = super().plan().invocations
            return Plan.of(
                Invocation(use.mechanism, 1.0, *FACTS, at="sum", sampling=PoissonSampling(0.5))
            )

    with pytest.raises(UnsupportedError, match="the plan samples units"):
        audit_run(Sampled(), "x", Claim(1.0), RUNS)


@dataclass(frozen=True)
class BySample(Total):
    """A sum of a Poisson sample, or of all, at half the noise that is declared for these."""

    rate: float = 0.5
    everybody: bool = False

    def plan(self):
        use = Invocation(
            Laplace(self.declared), 1.0, *FACTS, at="sum", sampling=PoissonSampling(self.rate)
        )
        return Plan.of(use)

    def run(self, rows, ledger, rng):
        sample = ledger.sample([f"row {n}" for n in range(len(rows))])
        chosen = rows if self.everybody else np.asarray(rows)[sample]
        total = self.factor * np.clip(np.nan_to_num(chosen), 0, 1).sum()
        return RunResult({"sum": ledger.release(Laplace(self.declared), total, at="sum")})


def test_samples_of_the_ledger_are_the_adversary_s_to_know_but_for_one_unit():
    """Rows are removed, whatever their numbers are then."""
    claim = Claim(math.log1p(0.5 * math.expm1(1.0)))
    record = audit_run(BySample(), "x", claim, RUNS)
    assert not record.refuted
    assert record.epsilon_lower <= claim.epsilon
    assert "removed" in record.pair["x_prime"]
    assert audit_run(BySample(factor=12.0), "x", claim, RUNS).refuted
    with pytest.raises(InputError, match="the unit is in no sample"):
        audit_run(BySample(everybody=True), "x", claim, RUNS)


def test_a_neighbour_must_move_something():
    with pytest.raises(InputError, match="no neighbour of the data moves what is released"):
        audit_run(Total(factor=0.0), "x", Claim(1.0), RUNS)


def test_the_command_s_options_go_together():
    with pytest.raises(InputError, match="--pair is given with --through-run"):
        audited("examples:Answers", pair=("1", "2"), through_run=True)


def test_bounded_sums_are_attacked_too():
    @dataclass(frozen=True)
    class Bounded(Total):
        def plan(self):
            return Plan.of(Invocation.bounded(Laplace(1.0), Contribution(1.0), *FACTS, at="sum"))

        def run(self, rows, ledger, rng):
            return RunResult({"sum": ledger.sum(rows)})

    assert not audit_run(Bounded(), "x", Claim(1.0), RUNS).refuted


@dataclass(frozen=True)
class Weighed(Total):
    """One row counts, and the run's own randomness says which."""

    def load(self, source, rng):
        return np.ones(10)

    def run(self, rows, ledger, rng):
        total = rows[rng.integers(10)]
        return RunResult({"sum": ledger.release(Laplace(self.declared), total, at="sum")})

    def neighbours(self, data, rng):
        for row in range(10):
            yield Move(np.where(np.arange(10) == row, 0.0, data), f"row {row} zeroed")


@pytest.mark.parametrize("seed", range(4))
def test_the_neighbour_is_chosen_for_the_randomness_that_is_attacked(seed):
    few = Execution(runs=200, seed=seed, confidence=0.999999)
    record = audit_run(Weighed(), "x", Claim(1.0), few)
    chosen = int(own_generator(seed).integers(10))
    assert record.pair["x_prime"] == f"row {chosen} zeroed"
    assert record.epsilon_lower > 0
