"""What fails in a sealed run leaves nothing behind, and returned no more than it charged."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.ledger import summarise_journal
from dpaudit.sealed import custodian, sandbox
from dpaudit.sealed.channel import Channel, ChannelError
from dpaudit.sealed.processes import start
from dpaudit.workflow import sealing
from dpaudit.workflow.running import run_subject

pytest.importorskip("duckdb")

CODE = Path(__file__).with_name("leaks") / "faults.py"
ENDED = (
    "the process of the code ended too early: it sent something that is not a message, "
    "got no "
    "answer, or used up its time or memory."
)
CUSTODIAN_ENDED = "the custodian of the data ended"
CUSTODIAN_FAILED = "the custodian had to stop"


@pytest.fixture(scope="module")
def sealable() -> None:
    """Skips where nothing is sealed."""
    if why := sandbox.lacking():
        pytest.skip(why)


@pytest.fixture
def project(sealable: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with code and a table; temporary files lie beside it."""
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copy(CODE, folder)
    (folder / "rows.csv").write_text("person,age\nann,41\nben,44\n")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return folder


def children(of: int) -> list[int]:
    """Processes that a process has started and that run, and what these started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        state, parent, *_ = rest.split()
        if int(parent) == of and state != "Z":
            found.append(int(path.parent.name))
    return found + [each for child in found for each in children(child)]


def require_clean(project: Path, received: int) -> None:
    """No process and no temporary file is left, and the journal charges what was received."""
    assert list((project.parent / "tmp").iterdir()) == []
    journal = project / "out" / "ledger.jsonl"
    charged = summarise_journal(journal).releases if journal.exists() else 0
    assert received <= charged


FAULTS = {
    "Aborts": ENDED,
    "Exits": ENDED,
    "Crashes": ENDED,
    "Spins": ENDED,
    "Closes": ENDED,
    "Huge": ENDED,
    "NoJson": ENDED,
    "NoTable": ENDED,
    "NotANumber": ENDED,
    "Deep": ENDED,
    "Half": ENDED,
    "Endless": ENDED,
    "Hasty": ENDED,
    "Talks": ENDED,
    "Eats": "MemoryError",
    "Raises": "SystemExit",
    "Recurses": "RecursionError",
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_analyst_that_fails_is_ended(
    project: Path, name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sealing, "PROCESSOR_SECONDS", 4 if name in {"Spins", "Talks"} else 60)
    monkeypatch.setattr(sealing, "MEMORY_BYTES", 2**31)
    monkeypatch.setattr(sealing, "PATIENCE", 2)
    with pytest.raises(DpAuditError) as failed:
        run_subject(f"{project / 'faults.py'}:{name}", (), None, 1, project / "out")
    sentence = str(failed.value)
    assert FAULTS[name] in sentence
    assert "\n" not in sentence
    said = capfd.readouterr().err
    assert said.count("received") == 2
    assert len(said) < 20_000
    assert children(os.getpid()) == []
    require_clean(project, 2)


def started(project: Path, *arguments: str, **settings: str) -> subprocess.Popen[str]:
    """A run by the command line, in a process of its own."""
    name, *more = arguments
    words = [sys.executable, "-m", "dpaudit.cli.main", "run", f"faults.py:{name}", "--seed", "1"]
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return subprocess.Popen(
        [*words, *given, "-o", "out", *more],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def received(run: subprocess.Popen[str], times: int) -> None:
    """Wait until the code has received so many releases."""
    assert run.stdout is not None
    for _ in range(times):
        while "received" not in (line := run.stdout.readline()):
            assert line, "the run ended before it released"


def command_of(process: int) -> str:
    """The command line of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def gone(processes: list[int]) -> bool:
    """Whether these have ended within some seconds."""
    for _ in range(150):
        if not any(Path(f"/proc/{each}").exists() for each in processes):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_all_processes(project: Path) -> None:
    run = started(project, "Sleeps")
    received(run, 2)
    processes = children(run.pid)
    assert len(processes) == 3  # a command runs within another process of its own
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=300)
    assert run.returncode == 130
    assert "Traceback" not in said
    assert gone(processes)
    require_clean(project, 2)


def test_a_killed_custodian_takes_the_analyst_with_it(project: Path) -> None:
    run = started(project, "Sleeps", releases="200")
    received(run, 100)
    processes = children(run.pid)
    (custodian,) = (each for each in processes if "sealed.custodian" in command_of(each))
    os.kill(custodian, signal.SIGKILL)
    said, _ = run.communicate(timeout=300)
    assert run.returncode == 3
    assert CUSTODIAN_ENDED in " ".join(said.split())
    assert "Traceback" not in said
    assert gone(processes)
    require_clean(project, 100 + said.count("received"))


SPINS = """
from faults import Fault, RunResult, SealedSubject

def spins(records, rng):
    while records["age"] == [41] * 7:
        pass
    return 1.0

class OfUnits(Fault):
    functions = (spins,)

    def run(self, data, ledger, rng):
        ledger.count(data, at="visits")
        print("received")
        data.per_unit(spins, low=0, high=1)
        return RunResult({})
"""


@pytest.mark.parametrize("module", ["sealed.custodian", "sealed.template"])
def test_processes_of_functions_end_with_the_run(project: Path, module: str) -> None:
    """Whether the custodian is killed, or what makes them; nothing is a default then."""
    (project / "units.py").write_text(SPINS)
    rows = ["ann,41"] * 7 + [f"p{n},44" for n in range(300)]
    (project / "rows.csv").write_text("\n".join(["person,age", *rows]))
    words = [sys.executable, "-m", "dpaudit.cli.main", "run", "units.py:OfUnits", "--seed", "1"]
    run = subprocess.Popen(
        [*words, "-o", "out"],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    received(run, 1)
    while sum("sealed.template" in command_of(each) for each in children(run.pid)) < 2:
        time.sleep(0.05)  # until there is a worker
    processes = children(run.pid)
    (first, *_) = sorted(each for each in processes if module in command_of(each))
    os.kill(first, signal.SIGKILL)
    said, _ = run.communicate(timeout=300)
    assert run.returncode == 3
    sentence = CUSTODIAN_ENDED if "custodian" in module else CUSTODIAN_FAILED
    assert sentence in " ".join(said.split())
    assert "Traceback" not in said
    assert gone(processes)
    require_clean(project, 1)


def test_a_killed_launcher_takes_all_with_it(project: Path) -> None:
    run = started(project, "Sleeps")
    received(run, 2)
    processes = children(run.pid)
    run.kill()
    run.communicate(timeout=300)
    assert gone(processes)


@pytest.mark.parametrize(
    ("most", "rows", "sentence"),
    [
        (1_000, 2, "the code cannot be copied"),
        (10_000, 5_000, "there is too little memory or room"),
        (40_000, 2, CUSTODIAN_FAILED),
    ],
)
def test_a_full_disk_ends_the_run_in_one_sentence(
    project: Path, most: int, rows: int, sentence: str
) -> None:
    """At the copy of the code, at temporary files, and at the journal after some hundred lines."""
    people = [f"person {n},{n * n % 110}" for n in range(rows)]
    (project / "rows.csv").write_text("\n".join(["person,age", *people]))
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(most), "faults.py:Fault"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert sentence in run.stdout
    assert "Traceback" not in run.stderr
    require_clean(project, run.stderr.count("received"))


LIMITED = """
import resource, sys
from pathlib import Path
from dpaudit.base.errors import DpAuditError
from dpaudit.workflow.running import run_subject
sys.dont_write_bytecode = True  # Python keeps what it could write of a file, and fails later
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
try:
    run_subject(sys.argv[2], ("releases=1000",), None, 1, Path("out"))
except DpAuditError as error:
    print(error)
"""


def test_a_table_that_vanishes_is_said(project: Path) -> None:
    name = f"{project / 'faults.py'}:Fault"
    with sealing.sealed_run(name, {}, [], print) as run:
        (project / "rows.csv").unlink()
        with pytest.raises(InputError, match=r"rows\.csv"):
            run.load({"seed": 1, "data": None})
    require_clean(project, 0)


ASKS = """
import socket, sys
from dpaudit.sealed.channel import Channel
socket = socket.socket(fileno=int(sys.argv[1]))
channel = Channel(socket)
while True:
    channel.send({"op": "left"})
    channel.receive()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_code_stands_still_unless_it_is_waited_for() -> None:
    """It could else count how long something takes that follows from the rows."""

    def state() -> str:
        return Path(f"/proc/{child.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]

    own, child = start([sys.executable, "-c", ASKS], ".")
    with ExitStack() as stack:
        run = custodian._Custodian(Channel(own), {}, stack)
        run.analyst, run.process = Channel(own), child.pid
        for _ in range(3):
            assert run._hear() == {"op": "left"}
            assert state() == "T"
            run._tell({"value": 1})
        assert state() != "T"
        child.kill()
        custodian._stop(child.pid)  # who has ended is not waited for
        child.wait()
        own.close()


def test_an_answer_is_there_before_who_waits_for_it_goes_on() -> None:
    """Its time-outs go on while it stands still; what it then finds must not tell of them."""
    own, other = socket.socketpair()
    with own, other:
        found: list[int] = []
        long = {"value": "x" * 10**6}

        def wake() -> None:
            found.append(len(other.recv(2**21, socket.MSG_PEEK | socket.MSG_DONTWAIT)))
            threading.Thread(target=lambda: received.append(Channel(other).receive())).start()

        received: list[object] = []
        for said in ({"value": 1}, long):
            Channel(own).answer(said, wake)
        while len(received) < 2:
            time.sleep(0.01)
        assert found[0] == len(b'{"value":1}') + 4
        assert found[1] > 10_000  # as much as a socket holds
        assert received == [{"value": 1}, long]
        other.sendall(b"more")
        with pytest.raises(ChannelError, match="before the answer"):
            Channel(own).answer({}, wake)
