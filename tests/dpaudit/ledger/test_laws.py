"""The law of ledger and journal: what was given out ≤ what is charged ≤ what the plan admits.

A state machine releases, streams, crashes at any byte of a line, resumes, opens a second writer,
forks and uses threads, in any order.
"""

import os
import shutil
import tempfile
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from effort import examples
from examples import RESPONSE
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dpaudit import (
    AddRemove,
    ClosedLedgerError,
    FileAnchor,
    FloatNoise,
    Gaussian,
    Group,
    InputError,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PlanMismatchError,
    TamperedError,
    TrustModel,
)
from dpaudit.base.chain import chained_line
from dpaudit.ledger import read_journal
from dpaudit.mechanisms import BinaryTree, ContinualGaussian

NOISE, OTHER = Laplace(1.0), Gaussian(1.0)
SUMS = ContinualGaussian(sigma=1.0, factorization=BinaryTree(steps=3), participations=1)


def invocation(mechanism, at, **facts):
    return Invocation(mechanism, 1.0, RESPONSE, AddRemove(), TrustModel.CENTRAL, at=at, **facts)


PLAN = Plan.of(
    invocation(NOISE, "own", count=2, total=5),
    invocation(OTHER, "all", count=2),
    invocation(NOISE, "left", total=3, group=Group("left")),
    invocation(NOISE, "right", total=3, group=Group("right")),
    invocation(SUMS, "sums", count=2),
)
MECHANISMS = {each.at: each.mechanism for each in PLAN.invocations}
REFUSALS = (PlanMismatchError, ClosedLedgerError)

units = st.sampled_from([None, "ann", "bob", "cid"])
places = st.sampled_from(["own", "all", "left", "right"])


class LedgerMachine(RuleBasedStateMachine):
    @initialize(seeded=st.booleans(), anchored=st.booleans())
    def start(self, seeded, anchored):
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "ledger.jsonl"
        self.anchor = FileAnchor(self.folder / "anchor") if anchored else None
        self.rng = np.random.default_rng(0) if seeded else None
        self.given = {at: Counter() for at in MECHANISMS}
        self.values, self.stream = [], None
        self.ledger = Ledger(PLAN, journal=self.path, anchor=self.anchor, **self.noise())

    def noise(self):
        if self.rng is None:
            return {"noise": FloatNoise()}
        return {"rng": np.random.default_rng(0)}  # always the same seed

    def teardown(self):
        if hasattr(self, "ledger"):
            self.ledger.journal.release()
            shutil.rmtree(self.folder)

    def release(self, at, unit):
        with suppress(*REFUSALS):
            self.values.append(self.ledger.release(MECHANISMS[at], 0.0, unit=unit, at=at))
            self.given[at][unit] += 1

    @rule(at=places, unit=units)
    def one(self, at, unit):
        self.release(at, unit)

    @rule(at=places, unit=units)
    def in_a_thread(self, at, unit):
        thread = threading.Thread(target=self.release, args=(at, unit))
        thread.start()
        thread.join()

    @rule(at=places, names=st.lists(st.sampled_from(["ann", "bob", "cid"]), min_size=1, max_size=3))
    def several(self, at, names):
        with suppress(*REFUSALS):
            drawn = self.ledger.release_each(MECHANISMS[at], [0.0] * len(names), units=names, at=at)
            self.values += drawn
            self.given[at].update(names)

    @rule(unit=units)
    def open_stream(self, unit):
        with suppress(*REFUSALS):
            self.stream = self.ledger.stream(SUMS, (), unit=unit, at="sums")
            self.given["sums"][unit] += 1

    @precondition(lambda self: self.stream is not None)
    @rule(unit=units)
    def add(self, unit):
        with suppress(InputError, *REFUSALS):
            self.stream.add(0.0, unit=unit)

    @rule(at=places, unit=units)
    def in_a_fork(self, at, unit):
        child = os.fork()
        if child == 0:
            code = 1
            with suppress(ClosedLedgerError):
                self.ledger.release(MECHANISMS[at], 0.0, unit=unit, at=at)
                code = 0
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1

    @rule()
    def second_writer(self):
        with pytest.raises(InputError, match=r"open elsewhere|is closed"):
            Ledger.resume(self.path, anchor=self.anchor, **self.noise())

    @rule(at=places, unit=units, share=st.floats(0, 1))
    def crash_while_writing_and_resume(self, at, unit, share):
        """The process is killed while it writes the line of a release, before the draw."""
        before, journal = self.path.read_bytes(), self.ledger.journal
        record = {"at": at, "sampler": "numpy", "source": "here:1", "unit": unit}
        line, _ = chained_line(record, journal.lines, journal.head)
        journal.release()
        admitted = not read_journal(self.path).closed and self.admits(at, unit)
        if admitted:
            self.path.write_bytes(before + line[: int(share * (len(line) - 1))])
        self.resume()

    def admits(self, at, unit):
        with suppress(PlanMismatchError):
            return bool(read_journal(self.path).account().admissible(MECHANISMS[at], at, {unit: 1}))
        return False

    def resume(self):
        closed = read_journal(self.path).closed
        try:
            ledger = Ledger.resume(self.path, anchor=self.anchor, **self.noise())
        except InputError:
            assert closed
            return
        self.ledger, self.stream = ledger, None

    @precondition(lambda self: self.anchor is not None)
    @rule(lines=st.integers(1, 3))
    def drop_the_tail(self, lines):
        data = self.path.read_bytes()
        kept = data.split(b"\n")[: -1 - lines]
        if len(kept) < 1:
            return
        copy = self.folder / "short.jsonl"
        copy.write_bytes(b"\n".join([*kept, b""]))
        with suppress(TamperedError):
            read_journal(copy, anchor=self.anchor)
            raise AssertionError
        copy.unlink()

    @rule()
    def close(self):
        self.ledger.close()

    @invariant()
    def the_law(self):
        if not hasattr(self, "ledger"):
            return
        content = read_journal(self.path, anchor=self.anchor)
        content.account()  # raises where the plan admits less than is charged
        charged = {at: Counter() for at in MECHANISMS}
        for entry in content.releases:
            charged[entry.at][entry.unit] += 1
        assert all(self.given[at] <= charged[at] for at in MECHANISMS)
        assert len(self.ledger) == len(content.releases)
        assert len(set(self.values)) == len(self.values)  # no noise was drawn twice


LedgerMachine.TestCase.settings = settings(
    max_examples=examples(20, 200), stateful_step_count=20, deadline=None, derandomize=True
)
TestLedgerMachine = LedgerMachine.TestCase
