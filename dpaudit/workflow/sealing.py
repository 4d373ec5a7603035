"""Sealed runs from outside: finding code without importing it, starting the custodian, hearing it.

The process that certifies a sealed run never runs a line of the author's. It copies the code to a
folder of its own, and learns the plan from the sealed process.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dpaudit
from dpaudit.base import file_content
from dpaudit.base.applications import closed_extensions
from dpaudit.base.errors import DpAuditError, InputError, UnsupportedError
from dpaudit.base.file_content import FileContent
from dpaudit.base.validate import shown
from dpaudit.certificate import Claim, Finding, SealRecord, SubjectRecord
from dpaudit.ledger import AnchorState
from dpaudit.plan import Invocation, Plan
from dpaudit.project.own_files import combined_hash
from dpaudit.project.subject import RunResult
from dpaudit.project.targets import CodeFiles, Target, code_files, own_packages
from dpaudit.sealed.channel import Channel, ChannelError
from dpaudit.sealed.messages import error_of, refusal
from dpaudit.sealed.processes import ONE_THREAD

_BOOT = """
import importlib.util, sys
found = importlib.util.spec_from_file_location("dpaudit", {init!r})
sys.modules["dpaudit"] = importlib.util.module_from_spec(found)
found.loader.exec_module(sys.modules["dpaudit"])
from {module} import main
main(int(sys.argv[1]))
"""
"""Imports this package, whichever is installed, and nothing else of its folder."""
_WORD = re.compile(r"\bSealedSubject\b|\bfrom \S+\.sealed\b")
NOT_SEALED = "not-sealed"
"""Rule of the finding that sealed code ran in the process that holds the data."""
PROCESSOR_SECONDS = 3_600
"""What the author's code may use; its own time, not that of a clock."""
MEMORY_BYTES = 2**33
PATIENCE = 30
"""Seconds for which the author's code may leave an answer unread."""
_SECONDS_TO_END = 10
_MOST_CODE = 100_000_000
"""Bytes of a file of code."""


def boot(module: str) -> str:
    """What a fresh ``python -I`` runs to be one of the processes of a sealed run."""
    return _BOOT.format(init=dpaudit.__file__, module=module)


class UnsealedError(UnsupportedError):
    """This machine cannot seal a run; the message says why."""


def is_sealable(name: str) -> bool:
    """Tell whether the file of a name speaks of sealed subjects; nothing is imported."""
    if name.endswith(".toml"):
        return False
    with suppress(DpAuditError, OSError):
        return bool(_WORD.search(code_files(name).file.read_text("utf-8", "replace")))
    return False


@dataclass
class SealedRun:
    """A custodian that waits.

    Attributes:
        target: the subject as its process declared it, with the seal.
        say: shows what the code prints.
        releases: how many were made; None until the custodian told.
        began: whether its journal was made: else a file of that name is another run's.
    """

    target: Target
    _channel: Channel
    say: Callable[[str], None]
    releases: int | None = None
    began: bool = False

    def load(self, order: Mapping[str, Any], meanwhile: Callable[[], object] = tuple) -> None:
        """Let the custodian read the table.

        Args:
            order: ``seed``, and ``data`` where rows are made up.
            meanwhile: what this process does while rows are read.

        Raises:
            InputError: if it cannot be read as declared.
        """
        self._channel.send(order)
        meanwhile()
        _heard(self._channel, self.say)

    def go(self, order: Mapping[str, Any], account: object | None) -> dict[str, Any]:
        """Let the code run.

        Args:
            order: where the journal is, what seeds it, and other facts of this run.
            account: budget and anchor, if there are any.

        Returns:
            Result, the owner's numbers, and what is to be known of the journal.

        Raises:
            DpAuditError: if it did not end as it should. What was released before is charged.
        """
        self._channel.send(order)
        while True:
            said = _heard(self._channel, self.say)
            self.began |= "began" in said
            if "releases" in said:
                self.releases = said["releases"]
            if "call" in said:
                self._channel.send(_served(account, said))
            elif "result" in said:
                return said | {"result": _published(said["result"])}


@contextmanager
def sealed_run(
    name: str,
    settings: Mapping[str, Any],
    private: Sequence[Path],
    say: Callable[[str], None],
    rows: Path | None = None,
    meanwhile: Callable[[], object] = tuple,
) -> Iterator[SealedRun]:
    """Start a sealed run, and end it whatever happens.

    Args:
        name: ``FILE.py:Object`` or ``module:Object``.
        settings: of the subject's fields.
        private: paths that the code must not reach.
        say: shows what the code prints.
        rows: path of a file that is read in place of the table's source.
        meanwhile: what this process does while the others start.

    Raises:
        UnsealedError: if this machine cannot seal it.
        InputError: if there is no such subject, or it cannot be sealed.
    """
    code = code_files(name)
    with closed_extensions(), ExitStack() as stack:
        copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpaudit-code-")))
        stack.enter_context(_told_of_the_own(name, code, copy))
        copy.chmod(0o755)
        copied = {} if code.is_own else _copied(code, copy)
        own = [] if code.is_own else [str(code.file), str(code.folder)]
        channel = stack.enter_context(_custodian())
        channel.send(
            {
                "name": name if code.is_own else code.name_in(copy),
                "settings": dict(settings),
                "paths": [] if code.is_own else [str(copy / each) for each in code.paths],
                "packages": list(map(str, own_packages())),
                "copy": str(copy),
                "folder": str(code.place),
                "beside": str(copy if code.is_own else copy / code.folder.relative_to(code.root)),
                "code": [[str(path), *each.identity] for path, each in copied.items()],
                "rows": None if rows is None else str(rows),
                "private": [*own, *map(str, private)],
                "analyst": boot("dpaudit.project.sealed_code"),
                "template": boot("dpaudit.sealed.template"),
                "patience": PATIENCE,
                "processor_seconds": PROCESSOR_SECONDS,
                "memory_bytes": MEMORY_BYTES,
            }
        )
        meanwhile()
        said = _heard(channel, say)
        contents = [each.data for each in copied.values()]
        if code.is_own:
            contents = [path.read_bytes() for path in sorted(code.files)]
        digest = combined_hash(contents)
        yield SealedRun(_target(name, digest, said), channel, say)


def _copied(code: CodeFiles, copy: Path) -> dict[Path, FileContent]:
    """Copy the code, each file of which is opened once, and return what was copied, in order.

    Raises:
        InputError: if a file of it is a link to what is none of its code, or cannot be copied.
    """
    copied = {}
    try:
        paths = sorted(code.files)
    except OSError as error:  # of a file that is exchanged meanwhile
        raise InputError(
            f"the files of the code cannot be found: {error.strerror}; do not change them "
            "until the run has started."
        ) from None
    for path in paths:
        copied[path] = content = _read_code(path, code.root)
        place = copy / path.relative_to(code.root)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.data)
        except OSError as error:
            raise InputError(
                f"the code cannot be copied to the folder of temporary files: {error.strerror}."
            ) from None
    return copied


def _read_code(path: Path, root: Path) -> FileContent:
    try:
        real = path.resolve()  # which fails where a link is exchanged meanwhile
        if real.suffix != ".py" or not real.is_relative_to(root):
            raise InputError(
                f"file {shown(path.name)} is a link that leads out of the code's folder; put "
                "the file itself there."
            )
        return file_content.read_without_links(real, _MOST_CODE)
    except OSError as error:
        raise InputError(
            f"file {shown(path.name)} cannot be read as code of its folder: {error.strerror}."
        ) from None


@contextmanager
def _told_of_the_own(name: str, code: CodeFiles, copy: Path) -> Iterator[None]:
    """Let errors name the user's files, and not their copies."""
    try:
        yield
    except DpAuditError as error:
        said = str(error)
        if str(copy) in said:
            own, _, _ = name.rpartition(":")
            copied, _, _ = code.name_in(copy).rpartition(":")
            error.args = (said.replace(copied, own).replace(str(copy), str(code.root)),)
        raise


@contextmanager
def _custodian() -> Iterator[Channel]:
    """A fresh process that imports this package alone; it ends with this block, whatever it does.

    Its temporary files lie in a folder that is removed here, even where it was killed.
    """
    own, other = socket.socketpair()
    words = boot("dpaudit.sealed.custodian")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | ONE_THREAD
    with tempfile.TemporaryDirectory(prefix="dpaudit-") as scratch:
        with other:
            child = subprocess.Popen(
                # No compiled code is written, of which a full disk would leave a part.
                [sys.executable, "-IB", "-c", words, str(other.fileno())],
                pass_fds=(other.fileno(),),
                env=environment | {"TMPDIR": scratch},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt ends it from here
            )
        channel = Channel(own)
        try:
            yield channel
        except BaseException:
            child.terminate()
            raise
        finally:
            channel.close()
            _ended(child)


def _ended(child: subprocess.Popen[bytes]) -> None:
    try:
        child.wait(timeout=_SECONDS_TO_END)
    except subprocess.TimeoutExpired:  # within a query, or a computation, that hears no signal
        child.kill()
        child.wait()


def _heard(channel: Channel, say: Callable[[str], None]) -> dict[str, Any]:
    """The next message that is for this process.

    Raises:
        DpAuditError: if it is an error, or the custodian is gone.
    """
    while True:
        try:
            said = channel.receive()
        except ChannelError:
            raise UnsupportedError(
                "the custodian of the data ended: it was killed, or there was too little memory; "
                "what was released stays charged."
            ) from None
        if "unsealed" in said:
            raise UnsealedError(said["unsealed"])
        if "error" in said:
            raise error_of(said)
        if "said" not in said:
            return said
        say(said["said"])


def _published(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the code published, of whatever its process sent.

    Raises:
        InputError: if it is no result.
    """
    with _as_declared("published something that is not a result"):
        return RunResult(dict(record["summary"]), dict(record["series"])).to_dict()


@contextmanager
def _as_declared(what: str) -> Iterator[None]:
    """Of a process that may send anything."""
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        if isinstance(error, DpAuditError):
            raise
        raise InputError(f"the process of the code {what}.") from None


def _target(name: str, digest: str, said: Mapping[str, Any]) -> Target:
    """What is certified: as the sealed process declared it, with the hash of the copied code."""
    facts, seal = said["subject"], said["seal"]
    claim = facts["claim"]
    with _as_declared("declared something that is not a subject"):
        return Target(
            SubjectRecord(name, facts["configuration"], digest, facts["location"]),
            Plan.from_dict(facts["plan"]),
            None if claim is None else Claim.from_dict(claim),
            tuple(map(Finding.from_dict, facts["findings"])),
            tuple(map(str, facts["not_covered"])),
            seal=SealRecord.from_dict(seal),
        )


def _served(account: Any, said: Mapping[str, Any]) -> dict[str, Any]:
    """What budget and anchor answer."""
    try:
        return {"value": _CALLS[said["call"]](account, said)}
    except DpAuditError as error:
        return refusal(error)


def _state(record: Mapping[str, Any] | None) -> AnchorState | None:
    return None if record is None else AnchorState(**record)


def _began(account: Any, said: Mapping[str, Any]) -> None:
    if told := getattr(account, "begin", None):
        told(Plan.from_dict(said["plan"]), anchored=said["anchored"])


def _found(account: Any, said: Mapping[str, Any]) -> dict[str, Any] | None:
    found = account.state(said["journal"])
    return None if found is None else vars(found)


_CALLS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "begin": _began,
    "admit": lambda account, said: account.admit(Invocation.from_dict(said["invocation"])),
    "state": _found,
    "advance": lambda account, said: account.advance(_state(said["state"]), _state(said["after"])),
}
