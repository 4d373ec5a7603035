"""The one door for noise, and the process that it belongs to."""

import copy
import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context

import numpy as np
import pytest
from effort import examples
from examples import LAPLACE, gaussian_invocation, response_plan

from dpaudit import (
    ClosedLedgerError,
    DpAuditError,
    FloatNoise,
    Gaussian,
    InputError,
    Ledger,
    Plan,
    PlanMismatchError,
    PoissonSampling,
    SecureNoise,
)
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.ledger import Entry, read_journal
from dpaudit.ledger.door import ReleaseGate
from dpaudit.mechanisms.continual import BinaryTree, ContinualGaussian

# -- nobody passes twice, together, or in another process ------------------------------------------


STREAM = ContinualGaussian(sigma=1.0, factorization=BinaryTree(8), participations=2)


def open_ledger(plan=None, **options):
    return Ledger(plan or response_plan(), rng=np.random.default_rng(1), **options)


def outcome_in_a_fork(action):
    """What a forked child makes of it, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = repr(action())
        except DpAuditError as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    return os.read(reading, 4096).decode()


@pytest.mark.parametrize(
    "action",
    [
        lambda ledger: ledger.release(LAPLACE, 1.0, unit="ann"),
        lambda ledger: ledger.release_each(LAPLACE, [1.0], units=["ann"]),
        lambda ledger: ledger.close(),
    ],
    ids=["release", "release_each", "close"],
)
def test_a_forked_process_gets_nothing(action, tmp_path):
    ledger = open_ledger(journal=tmp_path / "ledger.jsonl")
    told = outcome_in_a_fork(lambda: action(ledger))
    assert told.startswith(f"ClosedLedgerError: the ledger belongs to process {os.getpid()}")
    drawn = ledger.release(LAPLACE, 1.5, unit="ann")
    assert drawn == LAPLACE.release(1.5, np.random.default_rng(1))
    assert len(ledger) == 1


def test_a_fork_of_a_fork_and_a_pool_get_nothing():
    ledger = open_ledger()

    def twice():
        return outcome_in_a_fork(lambda: ledger.release(LAPLACE, 1.0, unit="ann"))

    assert "belongs to process" in outcome_in_a_fork(twice)
    with (
        get_context("fork").Pool(1) as pool,
        pytest.raises(InputError, match="cannot be copied or sent"),
    ):
        pool.apply(ledger.release, (LAPLACE, 1.0))


def test_threads_take_turns():
    ledger = open_ledger(response_plan(count=1, total=1))
    start, drawn, refused = threading.Barrier(8), [], []

    def ask():
        start.wait()
        try:
            drawn.append(ledger.release(LAPLACE, 0.0, unit="ann"))
        except DpAuditError as error:
            refused.append(type(error).__name__)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(drawn), refused) == (1, ["PlanMismatchError"] * 7)


def test_copies_are_refused():
    ledger = open_ledger()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InputError, match="cannot be copied or sent"):
            copied(ledger)


def test_a_ledger_cannot_be_extended():
    with pytest.raises(TypeError, match="cannot be extended"):
        type("Mine", (Ledger,), {"_charge": lambda self, *entries: None})


def test_the_door_is_shut_for_good():
    door = ReleaseGate()
    with door:
        pass
    door.shut("enough.")
    door.shut("another reason.")
    with pytest.raises(ClosedLedgerError, match="enough"):
        door.__enter__()


def test_nobody_enters_twice():
    door = ReleaseGate()
    with door.lock, door, pytest.raises(InputError, match="another one is being made"), door.lock:
        pass
    with door.lock, door:  # and it is free again
        pass


def test_greenlets_that_switch_within_a_release_get_no_second_one():
    """Stacks of one thread: the lock of a thread alone would let each of them in."""
    greenlet = pytest.importorskip("greenlet")
    ledger_of, outcomes = [], []

    class Switching:
        def admit(self, invocation):
            greenlet.getcurrent().parent.switch()

    def ask():
        try:
            outcomes.append(ledger_of[0].release(LAPLACE, 0.0, unit="ann"))
        except DpAuditError as error:
            outcomes.append(type(error).__name__)

    ledger_of.append(open_ledger(response_plan(count=1, total=1), budget=Switching()))
    stacks = [greenlet.greenlet(ask) for _ in range(4)]
    for _ in range(2):
        for stack in stacks:
            stack.switch()
    released = [each for each in outcomes if isinstance(each, float)]
    assert (len(outcomes), len(released), len(ledger_of[0])) == (4, 1, 1)
    assert outcomes[:3] == ["InputError"] * 3


def test_a_stream_is_not_entered_twice_by_greenlets():
    greenlet = pytest.importorskip("greenlet")
    plan = Plan.of(gaussian_invocation(mechanism=STREAM, at="sums"))
    ledger = Ledger(plan, rng=np.random.default_rng(1))
    sums, seen = ledger.stream(STREAM, (), at="sums"), []
    written = sums._write

    def switching(*given):
        greenlet.getcurrent().parent.switch()
        written(*given)

    sums._write = switching

    def add():
        try:
            seen.append(float(sums.add(1.0, unit="ann")))
        except DpAuditError as error:
            seen.append(type(error).__name__)

    one, two = greenlet.greenlet(add), greenlet.greenlet(add)
    for stack in (one, two, one):
        stack.switch()
    assert (seen[0], len(seen), sums.taken) == ("InputError", 2, 1)


def test_a_fork_that_has_its_parents_number_gets_nothing(monkeypatch):
    """Numbers of processes are given again after a while."""
    ledger, number = open_ledger(), os.getpid()

    def action():
        monkeypatch.setattr(os, "getpid", lambda: number)
        return ledger.release(LAPLACE, 1.0, unit="ann")

    assert outcome_in_a_fork(action).startswith("ClosedLedgerError")


def test_only_one_thread_is_inside_at_any_time():
    """Two releases meet within the budget, which is asked in the critical section."""
    inside, most = [], []

    class Slow:
        def admit(self, invocation):
            inside.append(1)
            time.sleep(0.02)
            most.append(len(inside))
            inside.pop()

    ledger = open_ledger(response_plan(total=8), budget=Slow())
    threads = [
        threading.Thread(target=ledger.release, args=(LAPLACE, 1.0), kwargs={"unit": f"user {n}"})
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_an_interrupt_at_any_place_leaves_the_door_usable():
    """Ctrl-C within a ledger's block: the ledger closes, and nothing waits for ever."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    plan = Plan.of(gaussian_invocation(mechanism=Gaussian(4.0), count=10**6, at="sum"))
    try:
        for turn in range(150):
            it = Ledger(plan, rng=np.random.default_rng(0))
            try:
                with it:
                    signal.setitimer(signal.ITIMER_REAL, 5e-4 + 1.3e-5 * turn)
                    while True:
                        it.release(Gaussian(4.0), 3.0, at="sum")
            except KeyboardInterrupt:
                pass
            with pytest.raises(ClosedLedgerError):
                it.release(Gaussian(4.0), 3.0, at="sum")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def session(journal, returned):
    """Releases of every kind, by code that takes an interrupt for nothing and goes on."""
    plan = Plan.of(
        gaussian_invocation(mechanism=Gaussian(4.0), count=2, total=6, at="each"),
        gaussian_invocation(mechanism=STREAM, at="sums"),
    )
    try:
        ledger = Ledger(plan, rng=np.random.default_rng(0), journal=journal)
    except KeyboardInterrupt:
        return None
    with suppress(DpAuditError, KeyboardInterrupt):
        for _ in range(2):
            for name in ("ann", "bob", "ann"):
                with suppress(KeyboardInterrupt):
                    ledger.release(Gaussian(4.0), 3.0, unit=name, at="each")
                    returned.append(("each", name))
        with suppress(KeyboardInterrupt):
            ledger.release_each(Gaussian(4.0), [1.0, 2.0], units=["bob", "cid"], at="each")
            returned.extend([("each", "bob"), ("each", "cid")])
        sums = ledger.stream(STREAM, (), at="sums")
        for name in ("ann", "bob", "bob"):
            with suppress(KeyboardInterrupt, PlanMismatchError):
                sums.add(1.0, unit=name)
                returned.append(("sums", name))
    with suppress(DpAuditError, KeyboardInterrupt):
        ledger.close()
    return ledger


PLACES = tuple(
    f"{os.sep}{name}.py" for name in ("ledger", "door", "account", "journal", "chain", "stream")
)


def interrupted_at(point, journal, returned):
    """A session in which KeyboardInterrupt is raised at one bytecode; how many there were.

    In a thread of its own: where an exception is about to be forgotten, Python keeps it as the
    context of all that its thread raises later.
    """
    with ThreadPoolExecutor(1) as one:
        return one.submit(traced, point, journal, returned).result()


def traced(point, journal, returned):
    passed = 0

    def trace(frame, event, _):
        nonlocal passed
        if not frame.f_code.co_filename.endswith(PLACES):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and journal.exists() and journal.stat().st_size:
            passed += 1
            if passed == point:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        ledger = session(journal, returned)
    finally:
        sys.settrace(before)
    return ledger, passed


def test_an_interrupt_at_any_bytecode_leaves_a_journal_that_verifies(tmp_path):
    """Of what was returned all is in it, and no more than the plan admits; and it can be resumed.

    At every eleventh bytecode of the ledger's own frames, or at each in thorough tests.
    """
    _, points = interrupted_at(0, tmp_path / "whole.jsonl", [])
    assert points > 1_500
    tried = range(1, points, examples(11, 1))
    closed = 0
    for point in tried:
        journal, returned = tmp_path / f"{point}.jsonl", []
        ledger, _ = interrupted_at(point, journal, returned)
        if not journal.exists():
            assert ledger is None
            continue
        content = read_journal(journal)  # the chain holds
        content.account()  # and the plan admits it
        kept = Counter((each.at, each.unit) for each in content.entries)
        assert Counter(returned) <= kept, point
        assert sum(kept.values()) <= len(returned) + 2 + 1, point  # that batch, and the stream
        closed += content.closed
        if ledger is not None and not content.closed:
            ledger.journal.release()
            Ledger.resume(journal, rng=np.random.default_rng(0)).close()
            assert read_journal(journal).closed
    assert closed > len(tried) / 4


def test_a_step_of_a_stream_that_was_cut_off_is_not_added_again():
    plan = Plan.of(gaussian_invocation(mechanism=STREAM, at="sums"))
    ledger = Ledger(plan, rng=np.random.default_rng(1))
    sums = ledger.stream(STREAM, (), at="sums")
    added = sums._sums.add

    def cut(value, *, unit=None):
        added(value, unit=unit)
        raise KeyboardInterrupt

    sums._sums.add = cut
    with pytest.raises(KeyboardInterrupt):
        sums.add(1.0)
    sums._sums.add = added
    with pytest.raises(ClosedLedgerError, match="interrupted while it was charged"):
        sums.add(1.0)


def test_a_handler_of_a_signal_that_releases_is_refused():
    plan = Plan.of(gaussian_invocation(mechanism=Gaussian(4.0), count=10**6, at="sum"))
    ledger, seen = Ledger(plan, rng=np.random.default_rng(0)), []

    def release(*_):
        try:
            seen.append(ledger.release(Gaussian(4.0), 3.0, at="sum"))
        except InputError as error:
            seen.append(error)

    before = signal.signal(signal.SIGALRM, release)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
    try:
        made = [ledger.release(Gaussian(4.0), 3.0, at="sum") for _ in range(3000)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    released = [each for each in seen if not isinstance(each, InputError)]
    assert len(ledger) == len(made) + len(released)
    assert len({*made, *released}) == len(ledger)


# -- whatever draws noise is in one process, once --------------------------------------------------


def secure():
    pytest.importorskip("opendp", reason="the extra 'secure' is not installed")
    return SecureNoise()


BACKENDS = {
    "fresh": FloatNoise,
    "seeded": lambda: FloatNoise(np.random.default_rng(1)),
    "continued": lambda: FloatNoise(np.random.default_rng(1)).continued([1]),
    "secure": secure,
    "recording": lambda: RecordingNoise(np.random.default_rng(1)),
}


@pytest.mark.parametrize("made", BACKENDS.values(), ids=list(BACKENDS))
def test_noise_is_neither_copied_nor_sent(made):
    noise = made()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InputError, match="noise cannot be copied or sent"):
            copied(noise)
    with get_context("fork").Pool(1) as pool, pytest.raises(InputError, match="copied or sent"):
        pool.apply(noise.release, (None, 1.0))


@pytest.mark.parametrize("made", BACKENDS.values(), ids=list(BACKENDS))
def test_two_workers_do_not_draw_the_same_noise(made):
    """Made before the fork, it would be drawn in both: their difference is that of the values."""
    noise = made()
    sampled = gaussian_invocation(sampling=PoissonSampling(0.5), at="sampled")
    entry = Entry(response_plan().invocations[0], None, "here:1", "")
    actions = [
        lambda: Ledger(response_plan(), noise=noise).release(LAPLACE, 1.0, unit="ann"),
        lambda: Ledger(Plan.of(sampled), noise=noise).sample(["ann"], at="sampled"),
        lambda: noise.release(entry, np.float64(1.0)),
    ]
    if isinstance(noise, FloatNoise):
        plan = Plan.of(gaussian_invocation(mechanism=STREAM, at="sums"))
        actions += [
            lambda: noise.stream(Entry(plan.invocations[0], None, "", ""), ()),
            lambda: noise.continued([2]),
        ]
    for action in actions:
        assert outcome_in_a_fork(action).startswith(
            f"ClosedLedgerError: noise belongs to process {os.getpid()}"
        )
    ledger = Ledger(response_plan(), noise=noise)
    assert outcome_in_a_fork(lambda: len(ledger)) == "0"
    ledger.release(LAPLACE, 1.0, unit="ann")


def test_a_refusal_in_another_process_costs_nothing():
    noise = FloatNoise()

    def charged():
        ledger = Ledger(response_plan(), noise=noise)
        with pytest.raises(ClosedLedgerError):
            ledger.release(LAPLACE, 1.0, unit="ann")
        return len(ledger)

    assert outcome_in_a_fork(charged) == "0"
