"""The suite that every subject inherits: a subclass names a small subject and its data."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from dpaudit import Certificate, Ledger, RunResult, Subject, certify
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.certificate import SubjectRecord
from dpaudit.certificate.verification import verify

SEEDS = range(3, 8)
"""Of replays: which of them moves a release, the last bit of a processor may decide."""


class SubjectConformance:
    """Override the attributes and the three methods."""

    subject: Subject
    """Small: the suite runs it nine times."""
    moves: bool = True
    """Whether the neighbour changes what a release starts from."""

    def data(self) -> Any:
        """Private data, new at every call: a run may use them up."""
        raise NotImplementedError

    def neighbour(self) -> Any:
        """The same but for one privacy unit, new at every call."""
        raise NotImplementedError

    def bad_data(self) -> Iterable[Any]:
        """Data that a run must refuse before its first release."""
        raise NotImplementedError

    def run(self, data: Any, *, noise: int = 1, seed: int = 2) -> tuple[RunResult, Ledger]:
        """Run through a ledger; leaving it compares the run with the plan."""
        with Ledger(self.subject.plan(), rng=np.random.default_rng(noise)) as ledger:
            result = self.subject.run(data, ledger, np.random.default_rng(seed))
        return result, ledger

    # -- declared --------------------------------------------------------------------------------

    def test_its_fields_are_its_public_configuration_and_have_defaults(self):
        assert dataclasses.is_dataclass(self.subject)
        assert isinstance(type(self.subject)(), Subject)
        for field in dataclasses.fields(self.subject):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(self.subject, field.name, None)

    def test_its_plan_needs_no_data_and_none_change_it(self):
        before = self.subject.plan().hash
        self.run(self.data())
        assert self.subject.plan().hash == before
        assert dataclasses.replace(self.subject).plan().hash == before

    def test_it_is_certified_and_the_certificate_verifies(self):
        claim = self.subject.claim()
        made = certify(
            self.subject.plan(),
            subject=SubjectRecord(type(self.subject).__name__),
            claim=claim,
            delta=None if claim is None else claim.delta,
            findings=self.subject.findings(),
            not_covered=self.subject.not_covered(),
        )
        again = Certificate.from_dict(json.loads(json.dumps(made.to_dict())))
        assert again == made
        verify(again)

    # -- run -------------------------------------------------------------------------------------

    def test_a_run_makes_the_releases_of_its_plan(self):
        result, ledger = self.run(self.data())
        declared = {invocation.at for invocation in self.subject.plan().invocations}
        assert {entry.invocation.at for entry in ledger} == declared
        json.dumps(result.to_dict(), allow_nan=False)

    def test_equal_seeds_give_equal_runs_and_other_noise_another(self):
        (first, ledger), (second, again), (other, _) = (
            self.run(self.data(), noise=noise) for noise in (1, 1, 5)
        )
        assert first.for_owner.to_dict() == second.for_owner.to_dict()
        assert [entry.unit for entry in ledger] == [entry.unit for entry in again]
        assert first.for_owner.to_dict() != other.for_owner.to_dict()

    def test_a_replay_on_neighbours_finds_nothing(self):
        fresh = Routine(
            self.subject.plan(),
            lambda make, ledger, rng: self.subject.run(make(), ledger, rng),
        )
        try:
            reports = []
            for seed in SEEDS if self.moves else SEEDS[:1]:
                reports.append(replay(fresh, self.data, self.neighbour, seed=seed))
                if any(each.observed > 0 for each in reports[-1].comparisons):
                    break
        except UnsupportedError as error:
            pytest.skip(str(error))
        assert all(report.findings == () for report in reports)
        assert all(report.comparisons for report in reports)
        moved = [each.observed > 0 for report in reports for each in report.comparisons]
        assert any(moved) is self.moves

    def test_bad_data_are_refused_before_any_release_in_one_sentence(self):
        for data in self.bad_data():
            ledger = Ledger(self.subject.plan(), rng=np.random.default_rng(0))
            with pytest.raises(InputError) as refused:
                self.subject.run(data, ledger, np.random.default_rng(0))
            assert len(ledger) == 0
            assert str(refused.value).endswith(".")
            assert "\n" not in str(refused.value)
