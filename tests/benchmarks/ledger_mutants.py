"""Each item of the ledger's contract, taken out: do the tests named for it notice?

Run ``python -m tests.benchmarks.ledger_mutants [WORD...] [--part 1/3]``. One thing at a time is
broken in a copy of the sources, and the tests that are named for it are run there; they must fail.
A mutant that survives is printed as such, and the command fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEDGER = "tests/dpaudit/ledger"
TIMEOUT = 150


@dataclass(frozen=True)
class Mutant:
    """One thing that is broken.

    Attributes:
        name: what no longer holds.
        file: of the sources, below ``dpaudit``.
        old: text that is there exactly once.
        new: what comes in its place.
        tests: files, or places in them, of which one must fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = (
    Mutant(
        "forks are let in",
        "ledger/process_bound.py",
        "if self._process is not _process or self._number != os.getpid():",
        "if False:",
        f"{LEDGER}/test_door.py",
    ),
    Mutant(
        "a fork keeps its parent's mark",
        "ledger/process_bound.py",
        "    _process = _Process()\n\n\nif",
        "    pass\n\n\nif",
        f"{LEDGER}/test_door.py",
    ),
    Mutant(
        "threads do not take turns",
        "ledger/door.py",
        "        self._lock: Any = threading.RLock()",
        "        import unittest.mock\n        self._lock: Any = unittest.mock.MagicMock()\n"
        "        self._lock._is_owned = lambda: False",
        f"{LEDGER}/test_door.py",
    ),
    Mutant(
        "a shut door opens",
        "ledger/door.py",
        "        if self._shut:\n",
        "        if False:\n",
        f"{LEDGER}/test_door.py {LEDGER}/test_ledger.py",
    ),
    Mutant(
        "a release within a release is let in",
        "ledger/door.py",
        "        if self._lock._is_owned():",
        "        if False:",
        f"{LEDGER}/test_door.py",
    ),
    Mutant(
        "a release that was cut off is forgotten",
        "ledger/door.py",
        "        if self.unfinished:",
        "        if False:",
        f"{LEDGER}/test_door.py",
    ),
    Mutant(
        "a charge is written before it is known to be unfinished",
        "ledger/ledger.py",
        "        self._door.unfinished = True\n        if self._journal is not None:\n",
        "        if self._journal is not None:\n",
        f"{LEDGER}/test_door.py",
    ),
    Mutant(
        "a step that was cut off is added again",
        "ledger/stream.py",
        "            self._door.unfinished = True  # a step",
        "            pass  # a step",
        f"{LEDGER}/test_door.py",
    ),
    Mutant(
        "copies are allowed",
        "ledger/process_bound.py",
        "    def __reduce_ex__(",
        "    def _not_called(",
        f"{LEDGER}/test_door.py {LEDGER}/test_queries.py",
    ),
    Mutant(
        "forked noise is drawn",
        "ledger/float_noise.py",
        "        self.require_own_process()\n        return entry",
        "        return entry",
        f"{LEDGER}/test_door.py",
    ),
    Mutant(
        "labels become an array before they are told apart",
        "ledger/units.py",
        "    listed = _entries(units)",
        "    listed = np.asarray(units)",
        f"{LEDGER}/test_units.py",
    ),
    Mutant(
        "subclasses of texts are names",
        "ledger/units.py",
        "    if type(unit) is not str or not unit:",
        "    if not isinstance(unit, str) or not unit:",
        f"{LEDGER}/test_units.py",
    ),
    Mutant(
        "a stream takes any name",
        "ledger/stream.py",
        "        unit = self._owner if unit is None else name_of(unit)",
        "        pass",
        f"{LEDGER}/test_units.py",
    ),
    Mutant(
        "a unit has a name of each kind",
        "ledger/account.py",
        "        if unit is not None and self._named_by not in (None, type(unit)):",
        "        if False:",
        f"{LEDGER}/test_account.py",
    ),
    Mutant(
        "a ledger can be extended",
        "ledger/ledger.py",
        '        raise TypeError("Ledger cannot',
        '        str("Ledger cannot',
        f"{LEDGER}/test_door.py::test_a_ledger_cannot_be_extended",
    ),
    Mutant(
        "noise is drawn before the charge",
        "ledger/ledger.py",
        "            self._charge(entry)\n            return draw(noise, entry)",
        "            drawn = draw(noise, entry)\n            self._charge(entry)\n"
        "            return drawn",
        f"{LEDGER}/test_ledger.py {LEDGER}/test_observing.py",
    ),
    Mutant(
        "a batch is drawn before the charge",
        "ledger/ledger.py",
        "            self._charge(*entries)\n"
        "            if entries and isinstance(noise, BatchNoise):\n"
        "                return noise.release_each(entries, own)\n"
        "            return [noise.release(*each) for each in zip(entries, own, strict=True)]",
        "            drawn = [noise.release(*each) for each in zip(entries, own, strict=True)]\n"
        "            self._charge(*entries)\n            return drawn",
        f"{LEDGER}/test_ledger.py",
    ),
    Mutant(
        "a journal that cannot be written leaves the ledger open",
        "ledger/ledger.py",
        '            self._door.shut(f"the ledger is closed, because',
        '            str(f"the ledger is closed, because',
        f"{LEDGER}/test_ledger.py::test_a_journal_that_cannot_be_written_closes_the_ledger",
    ),
    Mutant(
        "the budget is not asked",
        "ledger/ledger.py",
        "                self._budget.admit(replace(entry.invocation, count=1, total=1))",
        "                pass",
        f"{LEDGER}/test_ledger.py::test_budget_is_asked_before_noise_is_drawn",
    ),
    Mutant(
        "a resumed run repeats its noise",
        "ledger/ledger.py",
        "            ledger.noise = ledger.noise.continued(file.fresh_seed([]))",
        "            pass",
        f"{LEDGER}/test_ledger.py::test_the_seed_of_an_interrupted_run_repeats_no_noise",
    ),
    Mutant(
        "what a journal holds is forgotten when it is resumed",
        "ledger/ledger.py",
        "            ledger._account = content.account()\n",
        "            content.account()\n",
        f"{LEDGER}/test_observing.py",
    ),
    Mutant(
        "a stream goes on after its ledger",
        "ledger/stream.py",
        "        with self._door.lock, self._door:\n            self._sums.require(own)",
        "        if True:\n            self._sums.require(own)",
        f"{LEDGER}/test_queries.py::test_a_stream_ends_with_its_ledger",
    ),
    Mutant(
        "noise is wider than its integers",
        "ledger/exact_noise.py",
        "    if scale > WIDEST:",
        "    if False:",
        f"{LEDGER}/test_secure.py",
    ),
    Mutant(
        "a size that cannot be drawn is found after the charge",
        "ledger/ledger.py",
        "            self._require_sizes(invocation, value)\n",
        "",
        f"{LEDGER}/test_secure.py",
    ),
    Mutant(
        "an undeclared label is shown in an error",
        "ledger/account.py",
        "was requested at a label that is not declared",
        "was requested at {at}, which is not declared",
        "tests/dpaudit/project/test_foreign.py",
    ),
    Mutant(
        "a text of code is printed where its class is ours",
        "project/foreign.py",
        "    if not _is_own_module(type(error).__module__):\n        return False",
        "    return True",
        "tests/dpaudit/project/test_foreign.py",
    ),
    Mutant(
        "a contributor takes part too often",
        "ledger/stream.py",
        "        if len(earlier) >= mechanism.participations:",
        "        if False:",
        f"{LEDGER}/test_queries.py",
    ),
    Mutant(
        "a contributor takes part too soon",
        "ledger/stream.py",
        "        if not mechanism.may_take_part([*earlier, step]):",
        "        if False:",
        f"{LEDGER}/test_queries.py",
    ),
    Mutant(
        "groups overlap",
        "ledger/account.py",
        "        if group != invocation.group.name:",
        "        if False:",
        f"{LEDGER}/test_account.py {LEDGER}/test_queries.py",
    ),
    Mutant(
        "a unit is touched too often",
        "ledger/account.py",
        "        if own + charges[None] + times > invocation.count:",
        "        if False:",
        f"{LEDGER}/test_ledger.py",
    ),
    Mutant(
        "there are more releases than declared",
        "ledger/account.py",
        "        if charged + sum(units.values()) > invocation.releases:",
        "        if False:",
        f"{LEDGER}/test_ledger.py",
    ),
    Mutant(
        "another mechanism than declared runs",
        "ledger/account.py",
        "        if mechanism is not own and (type(mechanism)",
        "        if False and (type(mechanism)",
        f"{LEDGER}/test_ledger.py {LEDGER}/test_account.py",
    ),
    Mutant(
        "fewer releases than declared pass",
        "ledger/account.py",
        "            if ran != declared:",
        "            if False:",
        f"{LEDGER}/test_ledger.py",
    ),
    Mutant(
        "a journal has two writers",
        "base/chain.py",
        "fcntl.flock(descriptor, fcntl.LOCK_EX |",
        "fcntl.flock(descriptor, fcntl.LOCK_SH |",
        "tests/dpaudit/base/test_files.py::test_there_is_one_writer",
    ),
    Mutant(
        "half a line stays",
        "base/chain.py",
        "                os.ftruncate(self._descriptor, self._end.length)\n\n    def _lock",
        "                pass\n\n    def _lock",
        "tests/dpaudit/base/test_files.py",
    ),
    Mutant(
        "somebody else's change goes unseen",
        "base/chain.py",
        "            if state.st_size != self._end.length or state.st_nlink == 0:",
        "            if False:",
        "tests/dpaudit/base/test_files.py",
    ),
    Mutant(
        "an edited line is believed",
        "base/chain.py",
        "        raise TamperedError("
        'f"{place} was edited: its hash does not match; restore a copy.")',
        "        pass",
        "tests/dpaudit/base/test_files.py",
    ),
    Mutant(
        "a removed line goes unseen",
        "base/chain.py",
        '    if record["number"] != number or record["previous"] != head:',
        "    if False:",
        "tests/dpaudit/base/test_files.py",
    ),
    Mutant(
        "a journal is written over",
        "base/chain.py",
        "os.O_CREAT | os.O_EXCL | os.O_CLOEXEC",
        "os.O_CREAT | os.O_CLOEXEC",
        "tests/dpaudit/base/test_files.py tests/dpaudit/ledger/test_journal.py",
    ),
    Mutant(
        "lines after the closing one are believed",
        "ledger/journal.py",
        "            if closed:\n                raise _after_closing(line)",
        "            if False:\n                raise _after_closing(line)",
        f"{LEDGER}/test_journal.py",
    ),
    Mutant(
        "a journal names another plan",
        "ledger/journal.py",
        '        if header.get("plan_hash") != self.plan.hash:',
        "        if False:",
        f"{LEDGER}/test_journal.py",
    ),
    Mutant(
        "a journal that charges too much is summarised",
        "ledger/journal.py",
        "    if excess is not None:\n        raise excess",
        "    if False:\n        raise excess",
        f"{LEDGER}/test_journal.py tests/dpaudit/cli/test_commands.py",
    ),
    Mutant(
        "a dropped tail goes unseen by the anchor",
        "ledger/anchor.py",
        "        if lines < self.known.lines:",
        "        if False:",
        f"{LEDGER}/test_journal.py",
    ),
    Mutant(
        "a copy that went another way goes unseen",
        "ledger/anchor.py",
        "        if line == self.known.lines and head != self.known.head:",
        "        if False:",
        f"{LEDGER}/test_journal.py",
    ),
    Mutant(
        "a value is shown in an error",
        "base/validate.py",
        'f"value is of type {kind:.60}; it must',
        'f"value is {value!r}; it must',
        f"{LEDGER}/test_ledger.py::test_no_error_shows_a_value",
    ),
    Mutant(
        "two classes share a kind",
        "base/fields.py",
        "        if known is not cls and not again:",
        "        if False:",
        "tests/dpaudit/mechanisms/test_base.py tests/extension",
    ),
    Mutant(
        "a subclass passes for its registered base",
        "base/fields.py",
        "    if family._members.get(value.kind) is not type(value):",
        "    if False:",
        "tests/dpaudit/base/test_checks.py",
    ),
    Mutant(
        "a local sensitivity below the clip is accepted",
        "plan/invocation.py",
        "        if moved is not None and moved > self.sensitivity * (1 + 1e-9):",
        "        if False:",
        f"{LEDGER}/test_account.py {LEDGER}/test_ledger.py",
    ),
    Mutant(
        "parts are not bounded",
        "ledger/bounding.py",
        "    factors = np.where(over, most / np.where(over, norms, 1.0), 1.0) / step",
        "    factors = np.ones_like(norms) / step",
        f"{LEDGER}/test_queries.py",
    ),
    Mutant(
        "a bounded sum takes any value",
        "ledger/checks.py",
        "    if invocation.contribution is not None:",
        "    if False:",
        f"{LEDGER}/test_queries.py",
    ),
    Mutant(
        "a run does not read its journal back",
        "workflow/running.py",
        "    if not content.closed or content.releases != releases:",
        "    if False:",
        "tests/dpaudit/workflow/test_running.py",
    ),
    Mutant(
        "a device is replaced by an output",
        "base/files.py",
        '        special = special or path.absolute().parts[1:2] in (("dev",), ("proc",))',
        "        special = False",
        "tests/dpaudit/base/test_files.py::test_nothing_is_written_over_a_device_or_a_pipe",
    ),
    Mutant(
        "half an output stays",
        "base/files.py",
        "            Path(temporary).unlink(missing_ok=True)",
        "            pass",
        "tests/dpaudit/base/test_files.py tests/dpaudit/cli/test_bounds.py::"
        "test_a_full_disk_is_a_sentence_and_leaves_no_half",
    ),
    Mutant(
        "check writes over a file of somebody else",
        "workflow/publishing.py",
        "        if path.exists() and path.name not in own:",
        "        if False:",
        "tests/dpaudit/workflow/test_publishing.py::test_files_of_others_stay",
    ),
    Mutant(
        "check deletes a file of somebody else",
        "workflow/publishing.py",
        "        for name in own & stale:",
        "        for name in stale:",
        "tests/dpaudit/workflow",
    ),
    Mutant(
        "streams have any length",
        "mechanisms/continual/factorization.py",
        "    steps: Annotated[int, at_least(1, _MOST_STEPS)]",
        "    steps: Annotated[int, at_least(1)]",
        "tests/dpaudit/cli/test_bounds.py::test_a_stream_of_too_many_steps_is_refused_at_once",
    ),
    Mutant(
        "somebody else's proof is begun whatever it takes",
        "workflow/verifying.py",
        "    if not allow_work:",
        "    if False:",
        "tests/dpaudit/cli/test_bounds.py::test_work_that_is_allowed_is_done",
    ),
    Mutant(
        "files are read whatever their size",
        "base/files.py",
        "        if size > limit:",
        "        if False:",
        "tests/dpaudit/cli/test_bounds.py::test_a_large_file_is_refused_unread",
    ),
    Mutant(
        "an exact choice is taken at once",
        "ledger/samplers/exact.py",
        "        if decays(above * gap, below * scale * own_scale, source):",
        "        if True:",
        "tests/dpaudit/mechanisms/test_exponential.py",
    ),
    Mutant(
        "a journal of trials cuts a file of somebody else",
        "auditing/distinguishing/experiment.py",
        "        if not header.startswith(data[: len(header)]):",
        "        if False:",
        "tests/dpaudit/auditing/distinguishing/test_experiment.py",
    ),
)


def copied(folder: Path) -> None:
    """The sources and tests, without what is ignored."""
    for name in ("dpaudit", "algorithms", "tests", "audits"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True
        )
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder / name)


def failing(folder: Path, mutant: Mutant, seconds: float = TIMEOUT) -> list[str] | None:
    """The tests that notice; None where no test could be run."""
    path = folder / "dpaudit" / mutant.file
    source = path.read_text()
    if source.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.file} has {source.count(mutant.old)} times: {mutant.old}")
    path.write_text(source.replace(mutant.old, mutant.new))
    paths = os.pathsep.join(map(str, (folder, folder / "algorithms")))
    tests = [each for each in mutant.tests.split() if (folder / each.partition("::")[0]).exists()]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0",
             "--tb=no", "-rfE", *tests],
            cwd=folder, env=os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ["(no end)"]
    finally:
        path.write_text(source)
    if done.returncode < 0:
        return ["(killed)"]  # out of memory, say: a mutant that a bound was to prevent
    if done.returncode not in (0, 1):
        return None
    return list(_named(done.stdout))


def _named(output: str) -> Iterator[str]:
    for line in output.splitlines():
        if line.startswith(("FAILED", "ERROR")):
            yield line.split()[1].rpartition("/")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", help="of names; all mutants where none is given")
    parser.add_argument("--part", default="1/1", help="such as 2/3: the second of three parts")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    wanted, survivors = arguments.words, []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "tree"
        copied(folder)
        for mutant in MUTANTS[part - 1 :: parts]:
            if wanted and not any(word in mutant.name for word in wanted):
                continue
            found = failing(folder, mutant)
            if not found:
                survivors.append(mutant.name)
            told = "could not be run" if found is None else ", ".join(found) or "SURVIVED"
            print(f"{mutant.name:56} {told}", flush=True)
    print(f"{len(survivors)} survived{': ' if survivors else ''}{'; '.join(survivors)}")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
