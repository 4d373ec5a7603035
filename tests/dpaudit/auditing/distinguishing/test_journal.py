"""A killed audit goes on where it was; a journal of another audit or a damaged one is refused."""

import json
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from dpaudit import AuditPair, InputError, TamperedError
from dpaudit.auditing import audit_release
from dpaudit.auditing.distinguishing.experiment import TrialJournal
from dpaudit.base.errors import JournalError

PAIR = AuditPair(0.0, 1.0)
SETTINGS = {"epsilon": 1.0, "runs": 600, "seed": 11}


def noisy(data, size, rng):
    return data + rng.laplace(size=size)


def counted(path, data, size, rng):
    with path.open("a") as file:
        file.write(f"{size}\n")
    return noisy(data, size, rng)


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "trials.jsonl"


class TestAudits:
    def test_finished_runs_are_not_repeated(self, tmp_path, journal):
        log = tmp_path / "log"
        release = partial(counted, log)
        first = audit_release(release, PAIR, journal=journal, **SETTINGS)
        calls = len(log.read_text().splitlines())
        again = audit_release(release, PAIR, journal=journal, **SETTINGS)
        assert again == first == audit_release(noisy, PAIR, **SETTINGS)
        # The second time only the few runs of the checks were made.
        assert len(log.read_text().splitlines()) - calls == 6

    def test_lines_that_are_cut_or_missing_are_made_again(self, journal):
        first = audit_release(noisy, PAIR, journal=journal, **SETTINGS)
        whole = journal.read_bytes()
        lines = whole.splitlines(keepends=True)
        for kept in (whole[:10], whole[: len(whole) // 3], whole[:-5], b""):
            journal.write_bytes(kept)
            assert audit_release(noisy, PAIR, journal=journal, **SETTINGS) == first
            assert journal.read_bytes() == whole
        journal.write_bytes(b"".join([*lines[:3], *lines[4:]]))
        assert audit_release(noisy, PAIR, journal=journal, **SETTINGS) == first
        assert sorted(journal.read_bytes().splitlines()) == sorted(whole.splitlines())

    def test_a_killed_process_loses_and_reuses_nothing(self, journal):
        code = (
            "import time; from dpaudit import AuditPair\n"
            "from dpaudit.auditing import audit_release\n"
            "def slow(data, size, rng):\n"
            "    time.sleep(0.02); return data + rng.laplace(size=size)\n"
            f"audit_release(slow, AuditPair(0.0, 1.0), epsilon=1.0, runs=600, seed=11, "
            f"journal={str(journal)!r})\n"
        )
        process = subprocess.Popen([sys.executable, "-c", code])
        while not journal.exists() or journal.read_bytes().count(b"\n") < 10:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        finished = journal.read_bytes().count(b"\n") - 1
        assert 0 < finished < 110
        record = audit_release(slow_of(noisy), PAIR, journal=journal, **SETTINGS)
        assert record == audit_release(noisy, PAIR, **SETTINGS)
        lines = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
        places = [(line["stage"], line["number"]) for line in lines]
        assert len(set(places)) == len(places)

    def test_several_processes_keep_one_journal(self, journal):
        settings = {**SETTINGS, "runs": 64}  # each of which is a chunk
        alone = audit_release(noisy, PAIR, **settings)
        assert audit_release(noisy, PAIR, journal=journal, workers=2, **settings) == alone
        assert audit_release(noisy, PAIR, journal=journal, **settings) == alone


def slow_of(release):
    """The same release under the name that the killed process gave it."""

    def slow(data, size, rng):
        return release(data, size, rng)

    slow.__qualname__ = "slow"
    return slow


@dataclass(frozen=True)
class Scaled:
    scale: float

    def release(self, data, size, rng):
        return data + rng.laplace(scale=self.scale, size=size)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The journal of an audit."""
    path = tmp_path_factory.mktemp("audit") / "trials.jsonl"
    audit_release(Scaled(1.0).release, PAIR, journal=path, **SETTINGS)
    return path.read_bytes()


class TestRefusals:
    @pytest.mark.parametrize(
        ("release", "pair", "settings"),
        [
            (Scaled(1.0).release, PAIR, {"seed": 12}),
            (Scaled(1.0).release, PAIR, {"runs": 700}),
            (Scaled(1.0).release, PAIR, {"epsilon": 0.9}),
            (Scaled(1.0).release, AuditPair(0.0, 0.5), {}),
            (Scaled(2.0).release, PAIR, {}),
            (noisy, PAIR, {}),
        ],
    )
    def test_of_another_audit(self, journal, written, release, pair, settings):
        journal.write_bytes(written)
        with pytest.raises(InputError, match="belongs to another experiment"):
            audit_release(release, pair, journal=journal, **{**SETTINGS, **settings})

    def test_of_damage(self, journal):
        audit_release(noisy, PAIR, journal=journal, **SETTINGS)
        lines = journal.read_bytes().splitlines(keepends=True)
        edited = lines[3].replace(b'"number":2', b'"number":1')
        assert edited != lines[3]
        for wrong in (edited, b"{}\n", b"[]\n", b"\xff\n", lines[3][:-20] + b"\n"):
            journal.write_bytes(b"".join([*lines[:3], wrong, *lines[4:]]))
            with pytest.raises(TamperedError, match=r"line 4 of journal .* is damaged") as caught:
                audit_release(noisy, PAIR, journal=journal, **SETTINGS)
            assert "\n" not in str(caught.value)

    def test_of_a_chunk_of_another_experiment(self, tmp_path):
        one, two = (TrialJournal(tmp_path / name, {"name": name}) for name in ("one", "two"))
        with one, two:
            one.append(1, 0, (np.zeros(2), np.ones(2)))
        moved = (tmp_path / "one").read_bytes().splitlines(keepends=True)[1]
        whole = (tmp_path / "two").read_bytes()
        (tmp_path / "two").write_bytes(whole + moved)
        with pytest.raises(TamperedError, match="line 2"):
            TrialJournal(tmp_path / "two", {"name": "two"})

    def test_of_an_unwritable_place_and_a_missing_seed(self, tmp_path):
        with pytest.raises(InputError, match="seed"):
            audit_release(noisy, PAIR, journal=tmp_path / "j", epsilon=1.0)
        with pytest.raises(InputError, match="cannot be used"):
            audit_release(noisy, PAIR, journal=tmp_path / "no" / "j", **SETTINGS)


def test_arrays_come_back_as_they_were(journal):
    both = np.array([[1.0, -np.inf], [0.1, 2.0**-1074]]), np.empty((0, 2))
    with TrialJournal(journal, {}) as written:
        written.append(2, 7, both)
    with TrialJournal(journal, {}) as read:
        for was, found in zip(both, read.finished(2)[7], strict=True):
            np.testing.assert_array_equal(was, found)
        assert read.finished(1) == {}


@pytest.mark.parametrize("content", ["notes", "notes\nof mine", "{}\n", "\n\n"])
def test_a_file_of_somebody_else_stays_as_it_is(journal, content):
    journal.write_text(content)
    with pytest.raises(InputError, match="belongs to another experiment"):
        TrialJournal(journal, {"seed": 1})
    assert journal.read_text() == content


def test_a_chunk_without_room_leaves_no_half(journal):
    some = np.zeros(100)
    with TrialJournal(journal, {"seed": 1}) as trials:
        trials.append(0, 0, (some, some))
        before = journal.read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 99, limits[1]))
        try:
            with pytest.raises(JournalError, match=r"cannot be written: .*; the chunks"):
                trials.append(0, 1, (some, some))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert journal.read_bytes() == before
    with TrialJournal(journal, {"seed": 1}) as trials:
        assert list(trials.finished(0)) == [0]
