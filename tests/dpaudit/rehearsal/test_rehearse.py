"""A subject that does what it declares has no finding; each mistake has its own."""

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from effort import examples
from examples import Answers

from dpaudit import (
    AddRemove,
    Contribution,
    Gaussian,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    RunResult,
    Subject,
    TrustModel,
)
from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.certificate import (
    Claim,
    Premise,
    Severity,
    Standing,
    SubjectRecord,
    Verdict,
    certify,
)
from dpaudit.certificate.assumptions import assumptions_of
from dpaudit.mechanisms import BinaryTree, ContinualLaplace
from dpaudit.project import Move
from dpaudit.rehearsal.rehearse import rehearse
from dpaudit.workflow.rehearsing import rehearse_on

ROWS = np.random.default_rng(5).uniform(0, 1, 30)
NOISE = Laplace(1.0)
TREE = ContinualLaplace(scale=4.0, factorization=BinaryTree(8), participations=1)


@dataclass(frozen=True)
class Total(Subject):
    """Sums rows in [0, 1] that the door bounds."""

    def plan(self):
        facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation.bounded(NOISE, Contribution(1.0), *facts, at="sum"))

    def run(self, rows, ledger, rng):
        return RunResult({"sum": ledger.sum(rows)})


@dataclass(frozen=True)
class Raw(Total):
    """The same by hand, as far as ``what`` lets it."""

    what: str = "right"

    def plan(self):
        facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(NOISE, 1.0, *facts, at="sum"))

    def run(self, rows, ledger, rng):
        rows = np.asarray(rows)
        clipped = rows if self.what == "no clip" else np.clip(np.nan_to_num(rows), 0, 1)
        total = clipped.sum()
        if self.what == "refuses" and not np.all((rows >= 0) & (rows <= 1)):
            raise ValueError(f"a row is {rows.max()}")
        if self.what == "NaN":
            total = np.clip(rows, 0, 1).sum()
        if self.what == "branch" and len(rows) < 30:
            return RunResult({})
        if self.what == "prints":
            print(len(rows))  # noqa: T201
        shown = {"sum": ledger.release(NOISE, total, at="sum")}
        if self.what == "late" and not np.all(rows <= 1):
            raise ValueError("too late")
        if self.what == "noise":
            shown["error"] = shown["sum"] - total
        if self.what == "unseeded":
            shown["other"] = np.random.default_rng().normal()
        if self.what == "second ledger":
            shown["again"] = Ledger(self.plan(), rng=rng).release(NOISE, total, at="sum")
        if self.what == "counts":
            shown["rows"] = len(rows)
        if self.what == "draws":
            rng.normal(size=len(rows))
        owner = RunResult({"true": total}) if self.what == "owner" else None
        return RunResult(shown, owner=owner)


@dataclass(frozen=True)
class Stream(Total):
    """A running sum of 8 rows."""

    factor: float = 1.0

    def plan(self):
        facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(TREE, 1.0, *facts, at="sums"))

    def run(self, rows, ledger, rng):
        sums = ledger.stream(TREE, (), at="sums")
        bounded = self.factor * np.clip(np.nan_to_num(rows), 0, 1)
        return RunResult({}, {"sums": [float(sums.add(row)) for row in bounded]})

    def neighbours(self, data, rng):
        for place in range(3):
            moved = np.array(data)
            moved[place] = 0.0
            yield Move(moved, f"row {place} zeroed")
        yield Move(np.full(8, 7.0) * (np.arange(8) == 2) + data, "row 2 far above", True)


@pytest.mark.parametrize("seed", range(examples(3, 20)))
@pytest.mark.parametrize("subject", [Total(), Raw(), Raw(what="owner")])
def test_nothing_is_found_where_nothing_is_wrong(subject, seed):
    made = rehearse(subject, ROWS, "numbers", seed=seed)
    assert made.findings == ()
    assert made.record.done
    assert len(made.record.neighbours) >= 5
    assert not made.record.refused


@pytest.mark.parametrize("seed", range(examples(2, 5)))
def test_that_nobody_has_what_a_run_refuses_is_assumed(seed):
    subject = Raw(what="refuses")
    made = rehearse(subject, ROWS, seed=seed)
    (found,) = made.findings
    assert (found.rule, found.severity) == ("refuses-values", Severity.WARNING)
    assert len(made.record.neighbours) >= 5
    assert made.record.refused
    known = assumptions_of(subject.plan(), code=True, rehearsal=made.record, findings=(found,))
    (flow,) = (each for each in known if each.premise is Premise.CONTROL_FLOW)
    assert flow.standing is Standing.ASSUMED


@dataclass(frozen=True)
class TooMuch(Raw):
    """Refuses by a sum of bounded rows, which only rows that the data do not have can reach."""

    most: float = 0.0

    def run(self, rows, ledger, rng):
        if np.clip(np.nan_to_num(rows), 0, 1).sum() > self.most:
            raise ValueError("too much")
        return super().run(rows, ledger, rng)


@pytest.mark.parametrize("size", [1, 30])
def test_a_refusal_that_follows_from_the_other_rows_is_found(size):
    rows = np.linspace(0.2, 0.4, size)
    found = rehearse(TooMuch(most=rows.sum() + 0.5), rows).findings
    assert "raises-on-neighbour" in {each.rule for each in found}


@pytest.mark.parametrize(
    ("what", "rule"),
    [
        ("no clip", "sensitivity-understated"),
        ("NaN", "not-a-number"),
        ("branch", "private-control-flow"),
        ("prints", "prints-private-data"),
        ("late", "refused-after-release"),
        ("noise", "result-not-from-releases"),
        ("unseeded", "hidden-randomness"),
        ("second ledger", "result-not-from-releases"),
        ("counts", "result-not-from-releases"),
        ("draws", "private-use-of-randomness"),
    ],
)
def test_each_mistake_has_its_finding(what, rule):
    made = rehearse(Raw(what=what), ROWS)
    assert rule in {finding.rule for finding in made.findings}


def test_findings_tell_no_value():
    made = rehearse(Raw(what="no clip"), 131.25 * ROWS)
    (finding,) = (f for f in made.findings if f.rule == "sensitivity-understated")
    assert "times too far apart" in finding.message
    assert "131" not in finding.message


def test_streams_are_compared_step_by_step():
    data = np.linspace(0, 1, 8)
    right = rehearse(Stream(), data)
    assert right.findings == ()
    assert right.record.releases == 8
    assert right.record.draws > 0
    wrong = rehearse(Stream(factor=3.0), data)
    assert {finding.rule for finding in wrong.findings} == {"sensitivity-understated"}


def test_a_local_unit_may_refuse_its_own_value():
    made = rehearse(Answers(), np.array([0.5, 1.0, -1.0]))
    assert made.findings == ()
    assert any("NaN" in recipe for recipe in made.record.refused)


def test_what_cannot_be_rehearsed_says_why():
    assert rehearse(Raw(), 0.5).record.reason == (
        "No neighbours can be derived from a float; define neighbours."
    )
    late = rehearse(Raw(what="refuses"), 5 * ROWS)
    assert late.record.reason.startswith("The run on the data raised ValueError at test_rehearse")
    assert not late.record.done


def test_the_data_are_not_changed():
    @dataclass(frozen=True)
    class Spoils(Total):
        def run(self, rows, ledger, rng):
            rows[:] = np.clip(np.nan_to_num(rows), 0, 1)
            return super().run(rows, ledger, rng)

    data = 2 * ROWS
    before = data.copy()
    assert rehearse(Spoils(), data).findings == ()
    assert np.array_equal(data, before)


def test_a_run_that_takes_too_long_is_given_up():
    @dataclass(frozen=True)
    class Slow(Total):
        def run(self, rows, ledger, rng):
            while True:
                pass

    made = rehearse(Slow(), ROWS, timeout=0.1)
    assert "more than 0.1 seconds" in made.record.reason


def test_numbers_are_checked():
    with pytest.raises(InputError, match="most is 0"):
        rehearse(Total(), ROWS, most=0)
    with pytest.raises(InputError, match="seed is -1"):
        rehearse(Total(), ROWS, seed=-1)


@dataclass(frozen=True)
class Sampled(Total):
    """Three sums of a Poisson sample each, under add-remove."""

    clip: bool = True

    def plan(self):
        facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        sampling = PoissonSampling(0.5)
        return Plan.of(Invocation(NOISE, 1.0, *facts, count=3, sampling=sampling, at="sum"))

    def run(self, rows, ledger, rng):
        bounded = np.clip(np.nan_to_num(rows), 0, 1) if self.clip else rows
        masks = rng.random((3, len(rows))) < 0.5
        sums = [ledger.release(NOISE, bounded[mask].sum(), at="sum") for mask in masks]
        return RunResult({"sums": sums})


@pytest.mark.parametrize("seed", range(examples(2, 5)))
def test_a_sample_is_kept_where_rows_are_replaced(seed):
    right = rehearse(Sampled(), ROWS, seed=seed)
    assert right.record.done
    assert right.findings == ()
    assert all(move.endswith("(two steps)") for move in right.record.neighbours)
    wrong = rehearse(Sampled(clip=False), ROWS, seed=seed)
    (found,) = (each for each in wrong.findings if each.rule == "sensitivity-understated")
    assert "2 steps from each other" in found.message


@dataclass(frozen=True)
class ByLedger(Sampled):
    """The same by ledger.sample, as a mistake may have it."""

    mistake: str = ""

    def run(self, rows, ledger, rng):
        bounded, sums, shown = np.clip(np.nan_to_num(rows), 0, 1), [], 0
        for _ in range(3):
            sample = ledger.sample([f"row {n}" for n in range(len(rows))], at="sum")
            if self.mistake == "everybody":
                sample = range(len(rows))
            shown += len(sample)
            sums.append(ledger.release(NOISE, bounded[list(sample)].sum(), at="sum"))
        shows = {"sampled": shown} if self.mistake == "shows" else {}
        return RunResult({"sums": sums, **shows})


def sampling_stands(subject):
    made = rehearse(subject, ROWS)
    known = assumptions_of(subject.plan(), code=True, rehearsal=made.record, findings=made.findings)
    (found,) = (each for each in known if each.premise is Premise.SAMPLING)
    return found.standing, [each.rule for each in made.findings]


def test_samples_of_the_ledger_are_tested_and_others_assumed():
    assert sampling_stands(ByLedger()) == (Standing.TESTED, [])
    assert sampling_stands(Sampled()) == (Standing.ASSUMED, [])
    everybody = sampling_stands(ByLedger(mistake="everybody"))
    assert everybody == (Standing.VIOLATED, ["sampled-too-often"])


def test_who_was_sampled_is_not_to_be_seen_in_the_result():
    made = rehearse(ByLedger(mistake="shows"), ROWS)
    (found,) = made.findings
    assert found.rule == "result-not-from-releases"
    assert "the same data, other samples" in found.message


def test_only_draws_that_were_tested_are_counted():
    assert rehearse(Raw(), ROWS).record.draws > 0
    assert rehearse(Raw(what="branch"), ROWS[:30]).record.draws > 0
    assert rehearse(Raw(what="unseeded"), ROWS).record.draws == 0, "it ended before the test"


@dataclass(frozen=True)
class Shows(Total):
    what: object = None

    def run(self, rows, ledger, rng):
        return RunResult({"sum": ledger.sum(rows), "what": self.what})


@pytest.mark.parametrize("what", [None, np.int64(3), np.ones(2), (1, "a"), {"x": np.float32(1)}])
def test_what_can_be_written_is_no_finding(what):
    assert rehearse(Shows(what), ROWS).findings == ()


@pytest.mark.parametrize("what", [float("nan"), np.inf, {1, 2}, object])
def test_what_cannot_be_written_is_found_before_anything_is_released(what):
    assert [each.rule for each in rehearse(Shows(what), ROWS).findings] == ["unwritable-result"]


@dataclass(frozen=True)
class ReadsItsData(Total):
    def run(self, rows, ledger, rng):
        return super().run(np.loadtxt(rows), ledger, rng)

    def neighbours(self, data, rng):
        shorter = data.with_name("shorter")
        np.savetxt(shorter, np.loadtxt(data)[1:])
        yield Move(shorter, "row 0 removed")


def test_data_may_be_the_name_of_a_file(tmp_path):
    np.savetxt(tmp_path / "rows", ROWS)
    made = rehearse(ReadsItsData(), tmp_path / "rows")
    assert made.record.done
    assert made.findings == ()


@dataclass(frozen=True)
class Hostile(Total):
    """Sums rows, and does one more thing where a row is missing, or always."""

    what: str = ""

    def run(self, rows, ledger, rng):
        if self.what == "exits" and len(rows) < len(ROWS):
            raise SystemExit(0)
        if self.what == "hangs" and len(rows) < len(ROWS):
            time.sleep(1000)
        if self.what == "insists":
            with suppress(PlanMismatchError):
                ledger.release(NOISE, max(rows, default=0.0), at="largest")
            with suppress(PlanMismatchError):
                ledger.sum(rows, at="rows")
        return super().run(rows, ledger, rng)


def test_leaving_the_process_is_an_output_too():
    found = rehearse(Hostile("exits"), ROWS).findings
    assert "raises-on-neighbour" in {each.rule for each in found}
    assert "SystemExit at test_rehearse.py" in found[0].message


def test_one_run_that_does_not_end_is_enough():
    begun = time.monotonic()
    made = rehearse(Hostile("hangs"), ROWS, timeout=0.4)
    assert [each.rule for each in made.findings] == ["raises-on-neighbour"]
    assert made.record.done
    assert time.monotonic() - begun < 5


def test_a_release_that_was_refused_is_noted():
    (found,) = rehearse(Hostile("insists"), ROWS).findings
    assert (found.rule, found.severity) == ("tries-undeclared", Severity.NOTE)
    assert "asks 2 times" in found.message


def test_what_can_neither_be_written_nor_compared_is_called_unwritable():
    class Fresh(Total):
        def run(self, rows, ledger, rng):
            return RunResult({"sum": ledger.sum(rows), "model": object()})

    assert [each.rule for each in rehearse(Fresh(), ROWS).findings] == ["unwritable-result"]


# -- what was exercised ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Idle(Raw):
    """A second release, which no data move, and a third one that is never made."""

    def plan(self):
        facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        labels = ("sum", "idle", "unreached")
        return Plan.of(*(Invocation(NOISE, 1.0, *facts, at=label) for label in labels))

    def run(self, rows, ledger, rng):
        total = np.clip(np.nan_to_num(rows), 0, 1).sum()
        found = {"sum": ledger.release(NOISE, total, at="sum")}
        return RunResult(found | {"idle": ledger.release(NOISE, 0.0, at="idle")})


def test_a_label_that_no_neighbour_moves_is_not_exercised():
    plan, outcome = Idle().plan(), rehearse(Idle(), ROWS)
    counts = outcome.record.exercised
    for premise in ("SENSITIVITY", "OWN_VALUES", "TOUCHES", "UNITS"):
        by_label = counts[Premise[premise]]
        assert by_label["sum"] > 20
        assert by_label["idle"] == by_label["unreached"] == 0
    flow = counts[Premise.CONTROL_FLOW]
    assert flow["sum"] == flow["idle"] == len(outcome.record.neighbours)
    assert flow["unreached"] == 0
    found = assumptions_of(plan, code=True, rehearsal=outcome.record, findings=outcome.findings)
    standing = {each.premise: each.standing for each in found}
    for premise in (Premise.SENSITIVITY, Premise.UNITS, Premise.CONTROL_FLOW):
        assert standing[premise] is Standing.NOT_EXERCISED


def test_a_label_that_neighbours_move_is_tested():
    plan, outcome = Raw().plan(), rehearse(Raw(), ROWS)
    found = assumptions_of(plan, code=True, rehearsal=outcome.record, findings=outcome.findings)
    standing = {each.premise: each.standing for each in found}
    assert standing[Premise.SENSITIVITY] is Standing.TESTED


# -- a rehearsal that fails ------------------------------------------------------------------------


@dataclass(frozen=True)
class Unjudged(Laplace):
    """Noise whose law cannot be judged: what judges it overflows."""

    kind: ClassVar[str] = "test-unjudged"

    def tails(self, released, value, rng):
        raise OverflowError("cannot convert float infinity to integer")


@dataclass(frozen=True)
class Failing(Total):
    """A right subject by that mechanism."""

    def plan(self):
        facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation.bounded(Unjudged(1.0), Contribution(1.0), *facts, at="sum"))


def test_a_rehearsal_that_ends_in_an_error_leaves_the_code_unproven():
    record = SubjectRecord("code", code_hash="0" * 64)
    bare = certify(Failing().plan(), subject=record, claim=Claim(3.0))
    outcome = rehearse_on(Failing(), "code", ROWS, "rows")
    assert not outcome.record.done
    assert [each.rule for each in outcome.findings] == ["rehearsal-fails"]
    assert "OverflowError" in outcome.findings[0].message
    assert "infinity" not in outcome.findings[0].message  # it may hold a private value
    certificate = bare.with_rehearsal(outcome.record, outcome.findings)
    assert bare.verdict is Verdict.CERTIFIED
    assert certificate.verdict is Verdict.UNPROVEN


# -- numbers that hide each other ------------------------------------------------------------------


@dataclass(frozen=True)
class Gradient(Subject):
    """One step of least squares, whose gradient is clipped: that of each example, or of all."""

    each: bool

    def plan(self):
        facts = (PrivacyUnit("row"), ReplaceOne(), TrustModel.CENTRAL)
        return Plan.of(Invocation(Gaussian(1.0), 2 / 80, *facts, at="gradient"))

    def run(self, rows, ledger, rng):
        rows = np.nan_to_num(np.asarray(rows))
        gradients = -rows[:, -1:] * rows[:, :-1]
        if not self.each:
            gradients = gradients.mean(axis=0, keepdims=True)
        lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
        mean = (gradients / np.maximum(1, lengths)).sum(axis=0) / len(gradients)
        return RunResult({"step": ledger.release(Gaussian(1.0), mean, at="gradient").tolist()})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("each", [True, False])
def test_the_gradient_of_a_batch_is_not_that_of_each_example(each, seed):
    rows = np.random.default_rng(seed).uniform(4.9, 5.1, size=(80, 4))
    found = {one.rule for one in rehearse(Gradient(each), rows, seed=seed).findings}
    assert found == (set() if each else {"sensitivity-understated"})


@dataclass(frozen=True)
class FirstOfEach(Subject):
    """Counts rows until 30 were seen: a unit that comes first takes the room of all others."""

    def plan(self):
        facts = (PrivacyUnit("user"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(NOISE, 5.0, *facts, at="others"))

    def run(self, data, ledger, rng):
        kept = data["user"][:30]
        first = [min(kept.count(each), 5) for each in dict.fromkeys(kept)]
        return RunResult({"others": ledger.release(NOISE, float(sum(first)), at="others")})


def test_a_heavy_unit_before_all_others_is_tried():
    data = {"user": [f"u{n // 2}" for n in range(60)], "value": [float(n) for n in range(60)]}
    outcome = rehearse(FirstOfEach(), data)
    assert any(each.endswith("rows added, before others") for each in outcome.record.neighbours)
    (found,) = [each for each in outcome.findings if each.rule == "sensitivity-understated"]
    assert "before others" in found.message


@pytest.mark.parametrize("subject", [Raw(), Total(), Idle()], ids=lambda each: type(each).__name__)
def test_a_rehearsal_that_was_made_counts_each_premise_at_each_label(subject):
    record = rehearse(subject, ROWS).record
    assert record.done
    labels = {each.at for each in subject.plan().invocations}
    assert {each: set(by_label) for each, by_label in record.exercised.items()} == dict.fromkeys(
        (
            Premise.SENSITIVITY,
            Premise.OWN_VALUES,
            Premise.TOUCHES,
            Premise.UNITS,
            Premise.CONTROL_FLOW,
        ),
        labels,
    )
