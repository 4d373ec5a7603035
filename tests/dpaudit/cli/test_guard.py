"""A command whose process is ended by foreign code is no success."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpaudit.cli.main import main

AUDIT = ("--pair", "0", "1", "--epsilon", "1", "--runs", "200", "--seed", "1")


def start(folder: Path, code: str, *arguments: str) -> subprocess.Popen[str]:
    (folder / "code_under_audit.py").write_text(code)
    given = arguments or ("code_under_audit.py:f", *AUDIT)
    return process_of(folder, "-m", "dpaudit", "audit", *given)


def process_of(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def outcome(folder: Path, code: str, *arguments: str) -> tuple[int, str, str]:
    process = start(folder, code, *arguments)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


NOISY = "def f(data, rng):\n    return data + rng.laplace()\n"
SLOW = "import time\nopen('started', 'w').close()\ntime.sleep(60)\n"


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import os\nos._exit(0)", "exit status 0"),
        ("import os\nos._exit(7)", "exit status 7"),
        ("import signal\nsignal.raise_signal(signal.SIGKILL)", "SIGKILL"),
        ("import os, threading\nthreading.Thread(target=os._exit, args=(0,)).start()", "status 0"),
        ("import os\nif os.fork():\n    os._exit(0)\n" + NOISY, "exit status 0"),
    ],
)
def test_an_import_that_ends_the_process_is_inconclusive(tmp_path, code, how):
    status, out, err = outcome(tmp_path, code)
    assert status == 2
    assert out == "" or "fork" in code  # whose copy goes on, unheard
    assert how in err
    assert err.count("there is no verdict") == 1


def test_a_report_that_cannot_be_made_is_inconclusive(tmp_path):
    status, _, err = outcome(tmp_path, "import os\nos.closerange(3, 500)\n" + NOISY)
    assert status in (2, 3)
    assert err.startswith("dpaudit: ")


def test_exit_codes_and_answers_pass_through(tmp_path):
    status, out, err = outcome(tmp_path, NOISY)
    assert (status, err) == (0, "")
    assert "not-refuted" in out
    assert outcome(tmp_path, NOISY, "no_such.py:f")[0] == 3


def test_an_exit_in_python_is_no_success_without_a_guard_too(tmp_path, capsys):
    (tmp_path / "leaving.py").write_text(
        "from dpaudit.project import Subject\nfrom dataclasses import dataclass\n"
        "@dataclass(frozen=True)\nclass Leaving(Subject):\n"
        "    def plan(self):\n        raise SystemExit(0)\n"
    )
    with pytest.raises(SystemExit) as caught:
        main(["certify", f"{tmp_path / 'leaving.py'}:Leaving"])
    assert caught.value.code == 3
    assert "raised SystemExit" in capsys.readouterr().err


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("whole_group", [False, True])
def test_an_interrupt_counts_once(tmp_path, whole_group):
    process = start(tmp_path, SLOW)
    wait_for(tmp_path / "started")
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    said = "nothing is kept; with --journal FILE and --seed N, the same command would continue"
    assert (process.returncode, err) == (130, f"dpaudit: interrupted; {said}.\n")


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_audit_says_that_it_can_go_on(tmp_path):
    process = start(tmp_path, SLOW, "code_under_audit.py:f", *AUDIT, "--journal", "kept")
    wait_for(tmp_path / "started")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    said = "finished runs are in kept; the same command continues from them"
    assert (process.returncode, err) == (130, f"dpaudit: interrupted; {said}.\n")


SUBJECT = """
import time
from dataclasses import dataclass
from pathlib import Path
from dpaudit import Claim, Invocation, Laplace, Plan, PrivacyUnit, ReplaceOne, RunResult, Subject
from dpaudit import TrustModel

@dataclass(frozen=True)
class Slow(Subject):
    def plan(self):
        about = (PrivacyUnit("row"), ReplaceOne(), TrustModel.CENTRAL)
        return Plan.of(Invocation(Laplace(1.0), 1.0, *about, at="sum"))
    def claim(self):
        return Claim(1.0, 0.0)
    def load(self, source, rng):
        return [0.0, 1.0]
    def run(self, rows, ledger, rng):
        ledger.release(Laplace(1.0), 1.0, at="sum")
        Path("started").touch()
        time.sleep(60)
        return RunResult({}, {})

def count(data, rng):
    Path("started").touch()
    time.sleep(60)
"""
DEMO = """
import sys
from dpaudit.cli.main import main
from dpaudit.workflow import demo
demo.DEMO_SUBJECT, demo.DEMO_SETTINGS = "slow.py:Slow", ()
sys.argv[1:] = ["demo"]
main()
"""
COMMANDS = {
    "run": ("run", "slow.py:Slow", "--seed", "1", "--no-rehearsal"),
    "certify": ("certify", "slow.py:Slow", "--rehearse"),
    "check": ("check",),
    "observe": ("observe", "slow.py:count", "--data", "data.json", "--library", "numpy"),
    "demo": (),
}
ANEW = "the same command starts again"
KEPT = {
    "run": "what was released is charged and recorded in out; to run again, use another -o",
    "certify": f"nothing was written; {ANEW}",
    "check": f"reports are written once all work is done: the earlier ones stay, and {ANEW}",
    "observe": f"dpaudit wrote nothing; {ANEW}",
    "demo": "the same command replaces what is in out/demo",
}


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_says_what_is_kept_and_how_to_go_on(tmp_path):
    running = {}
    for name, words in COMMANDS.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "slow.py").write_text(SUBJECT)
        (folder / "data.json").write_text("[1, 2]")
        target = '[[subject]]\nname = "slow"\ntarget = "slow.py:Slow"\n'
        (folder / "dpaudit.toml").write_text(target)
        running[name] = process_of(folder, *(("-m", "dpaudit", *words) if words else ("-c", DEMO)))
    told = {}
    for name, process in running.items():
        wait_for(tmp_path / name / "started")
        process.send_signal(signal.SIGINT)
    for name, process in running.items():
        out, err = process.communicate(timeout=30)
        told[name] = (process.returncode, out, err)
    assert told == {n: (130, "", f"dpaudit: interrupted; {kept}.\n") for n, kept in KEPT.items()}
    assert (tmp_path / "run" / "out" / "ledger.jsonl").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_kill_of_the_guard_leaves_nobody(tmp_path, number):
    process = start(tmp_path, SLOW)
    wait_for(tmp_path / "started")
    process.send_signal(number)
    process.communicate(timeout=30)  # ends when the copy, too, has closed the pipes
    assert process.returncode == -number


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
