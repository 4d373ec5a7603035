"""Releases whose noise another library draws, and ledgers that go on after an interruption."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import (
    AddRemove,
    BudgetExceededError,
    ClosedLedgerError,
    FloatNoise,
    Gaussian,
    InputError,
    Invocation,
    Ledger,
    Plan,
    PlanMismatchError,
    PrivacyUnit,
    TamperedError,
    TrustModel,
    UnsupportedError,
)
from dpaudit.auditing.noise.conformance import conformance
from dpaudit.auditing.replaying.recording import RecordingNoise, Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.base.files import digest
from dpaudit.certificate import Premise, Standing
from dpaudit.certificate.assumptions import assumptions_of
from dpaudit.ledger import read_journal, summarise_journal
from dpaudit.workflow.running import ledger_record

NOISE = Gaussian(2.0)


def plan(count=2, **settings):
    invocation = Invocation(
        NOISE,
        1.0,
        PrivacyUnit("row"),
        AddRemove(),
        TrustModel.CENTRAL,
        count,
        at="sum",
        **settings,
    )
    return Plan.of(invocation)


class Outside:
    """A library that adds noise to a sum of its own."""

    sampler = "outside 1.0"

    def __init__(self, rows=(), rng=None, sigma=2.0, fails=False):
        self.sum, self.rng, self.sigma, self.fails = float(sum(rows)), rng, sigma, fails
        self.noisy = None

    def draw(self):
        if self.fails:
            raise OSError("no entropy")
        rng = self.rng or np.random.default_rng(0)
        self.noisy = self.sum + rng.normal(scale=self.sigma)

    def value(self):
        return np.array([self.sum])

    def released(self):
        return np.array([self.noisy])

    def impose(self, released):
        self.noisy = float(np.asarray(released)[0])


def test_an_observed_draw_is_journalled_as_such(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with Ledger(plan(), journal=path, noise=FloatNoise()) as ledger:
        outside = Outside([1.0])
        ledger.observe(NOISE, outside)
        ledger.release(NOISE, 1.0)
    assert outside.noisy is not None
    drawn = f"numpy {np.__version__}"
    assert [entry.sampler for entry in ledger] == ["outside 1.0", drawn]
    first, second = read_journal(path).entries
    assert (first.sampler, second.sampler) == ("outside 1.0", drawn)
    assert first.source.startswith(__name__)


class Borrowed(FloatNoise):
    """Of another package, by the name of ours."""


def test_noise_from_outside_is_known_whatever_it_calls_itself(tmp_path):
    path, outside = tmp_path / "ledger.jsonl", Outside()
    outside.sampler = own = FloatNoise().sampler
    with Ledger(plan(3), journal=path, noise=FloatNoise()) as ledger:
        ledger.observe(NOISE, outside)
        ledger.release(NOISE, 1.0)
        ledger.close()
        record = ledger_record(ledger, path)
    assert [entry.external for entry in ledger] == [True, False]
    assert [entry.external for entry in read_journal(path).entries] == [True, False]
    assert record["samplers"] == {own: 2}
    assert record["external"] == dict(summarise_journal(path).external) == {own: 1}
    (noise,) = (
        each
        for each in assumptions_of(
            plan(), code=True, rehearsal=None, findings=(), run={"ledger": record}
        )
        if each.premise is Premise.NOISE
    )
    assert noise.standing is Standing.ASSUMED
    borrowed = Ledger(plan(4), noise=Borrowed())
    borrowed.release(NOISE, 1.0)
    borrowed.release_each(NOISE, [1.0], units=["a"])
    assert [entry.external for entry in borrowed] == [True, True]


def test_what_an_interrupted_run_had_from_outside_stays_so(tmp_path):
    path, outside = tmp_path / "ledger.jsonl", Outside()
    outside.sampler = FloatNoise().sampler
    ledger = Ledger(plan(3), journal=path, noise=FloatNoise())
    ledger.observe(NOISE, outside)
    ledger.journal.release()
    resumed = Ledger.resume(path, noise=FloatNoise())
    resumed.release(NOISE, 1.0)
    assert [entry.external for entry in resumed] == [True, False]


@pytest.mark.parametrize(
    ("mechanism", "at", "error"),
    [
        (Gaussian(1.0), "sum", PlanMismatchError),
        (NOISE, "mean", PlanMismatchError),
        ("gaussian", "sum", InputError),
    ],
)
def test_what_is_not_declared_is_not_drawn(mechanism, at, error):
    ledger, outside = Ledger(plan()), Outside()
    with pytest.raises(error):
        ledger.observe(mechanism, outside, at=at)
    assert outside.noisy is None
    assert len(ledger) == 0


def test_more_than_declared_or_after_the_end_is_not_drawn():
    ledger = Ledger(plan(1))
    ledger.observe(NOISE, Outside())
    late = Outside()
    with pytest.raises(PlanMismatchError, match="charged that often"):
        ledger.observe(NOISE, late)
    ledger.close()
    with pytest.raises(ClosedLedgerError):
        ledger.observe(NOISE, late)
    assert late.noisy is None


def test_a_draw_that_fails_stays_charged(tmp_path):
    """What was written before the draw cannot know how far the draw came."""
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(plan(), journal=path)
    with pytest.raises(OSError, match="no entropy"):
        ledger.observe(NOISE, Outside(fails=True))
    assert len(ledger) == 1
    ledger.close()
    assert len(read_journal(path).entries) == 1


NAMES = ["ann", 'a"b', "back\\slash", "Zoë 𝜎", "line\nbreak", "\u2028\x00"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_all_kinds_keep_the_chain(tmp_path, name):
    path = tmp_path / "ledger.jsonl"
    invocation = replace(plan(1).invocations[0], total=2, at=name)
    ledger = Ledger(Plan.of(invocation), journal=path, noise=FloatNoise())
    ledger.release(NOISE, 1.0, unit=name, at=name)
    outside = Outside()
    outside.sampler = name
    ledger.observe(NOISE, outside, unit="other", at=name)
    ledger.close()
    first, second = read_journal(path).entries
    assert (first.at, first.unit, second.sampler) == (name, name, name)
    for line in path.read_text().rstrip("\n").split("\n"):
        record = json.loads(line)
        claimed = record.pop("hash")
        assert claimed == digest(record)


class Allowance:
    def __init__(self, uses):
        self.uses = uses

    def admit(self, invocation):
        assert invocation.count == 1
        if self.uses == 0:
            raise BudgetExceededError("no more")
        self.uses -= 1


def test_the_budget_comes_before_the_draw():
    ledger, refused = Ledger(plan(), budget=Allowance(1)), Outside()
    ledger.observe(NOISE, Outside())
    with pytest.raises(BudgetExceededError):
        ledger.observe(NOISE, refused)
    assert refused.noisy is None


# -- audits see through it -----------------------------------------------------------------------


def observing(factor=1.0, sigma=2.0):
    def run(rows, ledger, rng):
        outside = Outside([factor * row for row in rows], rng, sigma)
        ledger.observe(NOISE, outside)
        if outside.noisy > 0:
            ledger.observe(NOISE, Outside(rows, rng, sigma))
        else:
            ledger.observe(NOISE, Outside([0.0], rng, sigma))
        return outside.noisy

    return Routine(plan(), run)


def test_replay_of_outside_noise():
    right = replay(observing(), [1.0, 1.0], [1.0])
    assert right.clean
    assert [each.observed for each in right.comparisons] in ([1.0, 1.0], [1.0, 0.0])
    wrong = replay(observing(factor=2.0), [1.0, 1.0], [1.0])
    assert [each.rule for each in wrong.findings] == ["sensitivity-understated"]


def test_conformance_of_outside_noise():
    assert conformance(observing(), [1.0], runs=100).clean
    report = conformance(observing(sigma=1.0), [1.0], runs=100)
    assert report.findings[0].rule == "not-the-declared-noise"
    assert report.tested[0].ratio == pytest.approx(0.5, abs=0.1)


def test_outside_noise_that_cannot_be_seen_is_not_recorded():
    class Sealed:
        sampler = "sealed"

        def draw(self):
            raise AssertionError

    ledger = Ledger(plan(), noise=RecordingNoise(np.random.default_rng(0)))
    with pytest.raises(UnsupportedError, match="cannot be recorded"):
        ledger.observe(NOISE, Sealed())


# -- going on ------------------------------------------------------------------------------------


def interrupted(path, count=3):
    ledger = Ledger(plan(count), journal=path, rng=np.random.default_rng(0))
    ledger.release(NOISE, 1.0)
    ledger.observe(NOISE, Outside())
    ledger.journal.release()  # as the end of the process would
    return path


def test_a_resumed_ledger_counts_what_ran(tmp_path):
    path = interrupted(tmp_path / "ledger.jsonl")
    with Ledger.resume(path, rng=np.random.default_rng(1)) as ledger:
        assert [entry.sampler.split()[0] for entry in ledger] == ["numpy", "outside"]
        ledger.release(NOISE, 1.0)
        with pytest.raises(PlanMismatchError):
            ledger.release(NOISE, 1.0)
    content = read_journal(path)
    assert content.closed
    assert len(content.entries) == 3
    assert ledger.plan == plan(3)


def test_a_resumed_ledger_charges_its_budget(tmp_path):
    path = interrupted(tmp_path / "ledger.jsonl")
    before = path.read_bytes()
    with pytest.raises(BudgetExceededError):
        Ledger.resume(path, budget=Allowance(1))
    assert path.read_bytes() == before
    ledger = Ledger.resume(path, budget=Allowance(2))
    with pytest.raises(BudgetExceededError):
        ledger.release(NOISE, 1.0)
    ledger.close()


def test_a_broken_chain_is_not_resumed(tmp_path):
    path = interrupted(tmp_path / "ledger.jsonl")
    lines = path.read_text().splitlines()
    record = json.loads(lines[1])
    path.write_text("\n".join([lines[0], json.dumps(record | {"at": "other"}), lines[2], ""]))
    with pytest.raises(TamperedError):
        Ledger.resume(path)
    with pytest.raises(InputError):
        Ledger.resume(tmp_path / "none.jsonl")


def test_no_library_is_called_as_the_exact_sampler_is():
    """Readers of a certificate, and policies, know exact noise by that name."""
    outside = Outside([1.0])
    outside.sampler = "opendp 0.12.1, exact"
    ledger = Ledger(plan())
    with pytest.raises(InputError, match="is named like the ledger's own sampler"):
        ledger.observe(NOISE, outside)
    assert len(ledger) == 0
