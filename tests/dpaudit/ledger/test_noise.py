"""What the door draws with floats, and by the declared law."""

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
from examples import LAPLACE, RESPONSE, gaussian_invocation, response_plan
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dpaudit import (
    AddRemove,
    ClosedLedgerError,
    FileAnchor,
    FixedSizeSampling,
    FloatNoise,
    Gaussian,
    Group,
    InputError,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PlanMismatchError,
    PoissonSampling,
    ReplaceOne,
    TamperedError,
    TrustModel,
)
from dpaudit.base.chain import chained_line
from dpaudit.ledger import read_journal
from dpaudit.mechanisms import BinaryTree, ContinualGaussian
from dpaudit.plan import TruncatedPoissonSampling

# --  ----------------------------------------------------------------------------------------------


def test_without_a_generator_nobody_knows_the_seed():
    answers = set()
    for _ in range(2):
        ledger = Ledger(response_plan(), noise=FloatNoise())
        assert not ledger.seeded
        answers.add(ledger.release(LAPLACE, 0.0, unit="ann"))
    assert len(answers) == 2
    assert Ledger(response_plan(), rng=np.random.default_rng(0)).seeded


def test_the_sampler_says_what_drew():
    assert FloatNoise().sampler == f"numpy {np.__version__}"
    assert FloatNoise(np.random.default_rng(0)).sampler == f"numpy {np.__version__}, seeded"


def test_generators_are_generators():
    with pytest.raises(InputError, match="rng is a int; it must be a Generator"):
        FloatNoise(5)


def test_continued_noise_depends_on_seed_and_words():
    def first(seed, words):
        noise = FloatNoise(np.random.default_rng(seed)).continued(words)
        assert noise.seeded
        ledger = Ledger(response_plan(), noise=noise)
        return ledger.release(LAPLACE, 0.0, unit="ann")

    plain = Ledger(response_plan(), rng=np.random.default_rng(0))
    drawn = [plain.release(LAPLACE, 0.0, unit="ann"), first(0, [1]), first(0, [2]), first(1, [1])]
    assert len(set(drawn)) == 4
    assert first(0, [1]) == drawn[1]


@pytest.mark.parametrize("sampling", [PoissonSampling(0.25), FixedSizeSampling(25, 100)])
def test_samples_have_the_declared_law(sampling):
    """10^5 events of 1/4, in all and of each unit, within 6.5 standard deviations; fixed seed."""
    noise = FloatNoise(np.random.default_rng(3))
    use = gaussian_invocation(relation=ReplaceOne(), sampling=sampling)
    samples = [noise.sample(use, [f"unit {n}" for n in range(100)]) for _ in range(1000)]
    assert all(sample == sorted(set(sample)) for sample in samples)
    sizes = np.array([len(sample) for sample in samples])
    assert abs(sizes.sum() - 25_000) < 5.1 * np.sqrt(100_000 * 0.25 * 0.75)
    spread = 0.0 if isinstance(sampling, FixedSizeSampling) else 100 * 0.25 * 0.75
    assert 0.8 * spread <= sizes.var() <= 1.25 * spread
    counts = np.bincount(np.concatenate(samples), minlength=100)
    assert abs(counts - 250).max() < 6.5 * np.sqrt(1000 * 0.25 * 0.75)


def test_truncated_samples_are_poisson_samples_cut_at_random():
    """2000 samples of rate 1/2 cut at 3 of 4 units, within 6 standard deviations (below 1e-7)."""
    use = gaussian_invocation(sampling=TruncatedPoissonSampling(0.5, 3, 4))
    noise = FloatNoise(np.random.default_rng(3))
    samples = [noise.sample(use, list("abcd")) for _ in range(2_000)]
    assert all(sample == sorted(set(sample)) for sample in samples)
    sizes = np.bincount([len(sample) for sample in samples], minlength=5)
    for size, expected in ((0, 1 / 16), (1, 1 / 4), (2, 3 / 8), (3, 5 / 16)):
        assert abs(sizes[size] - 2_000 * expected) < 6 * np.sqrt(2_000 * expected)
    assert sizes[4] == 0
    full = np.concatenate([sample for sample in samples if len(sample) == 3])
    assert abs(np.bincount(full) - full.size / 4).max() < 6 * np.sqrt(full.size / 4)


# -- the law of ledger and journal: what was given out ≤ what is charged ≤ what the plan admits ----


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
