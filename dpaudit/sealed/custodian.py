"""The custodian: the process that holds data, ledger, noise and journal of a sealed run.

It is started afresh, imports nothing of the author's or of other packages' extensions, and answers
messages alone. Its own words to the launcher follow from plan, schema and requests, but for one
fixed sentence.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from dpaudit.base import errors, files
from dpaudit.base.applications import closed_extensions
from dpaudit.base.chain import Durability
from dpaudit.base.errors import DpAuditError, InputError, UnsupportedError
from dpaudit.base.file_content import Identity
from dpaudit.ledger import AnchorState, FloatNoise, Ledger, SecureNoise
from dpaudit.plan import Invocation, Plan
from dpaudit.sealed import sandbox
from dpaudit.sealed.channel import LONGEST_REQUEST, Channel, ChannelError
from dpaudit.sealed.messages import error_of, generator, refusal
from dpaudit.sealed.messages import field as message_field
from dpaudit.sealed.operations import (
    FATAL,
    FatalError,
    Operations,
)
from dpaudit.sealed.per_unit import UnitFunctions
from dpaudit.sealed.processes import end, start
from dpaudit.sealed.public_files import read_public, require_apart, table_files
from dpaudit.sealed.sealable import require_population, require_sealable
from dpaudit.sealed.store import ReadTable, opened, tables_to_try, with_data
from dpaudit.sealed.sums import Side, trial_of
from dpaudit.sealed.workers import Workers

_FACTS: dict[str, type | tuple[type, ...]] = {
    "configuration": dict,
    "location": str,
    "plan": dict,
    "claim": (dict, type(None)),
    "findings": list,
    "not_covered": list,
}
_LIBRARIES = ("sqlglot",)
"""What reads a declaration, as :mod:`dpaudit.tables` does; it takes long to load."""
_LONGEST_SAID = 10_000
"""Characters that the code may print."""


def main(descriptor: int) -> None:
    """Hold the data of one run, as the launcher says over a socket."""
    sandbox.refuse_dumps()
    sandbox.end_with_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    launcher = Channel(socket.socket(fileno=descriptor))
    with suppress(ChannelError):
        try:
            with closed_extensions(), ExitStack() as stack:
                _Custodian(launcher, launcher.receive(), stack).work()
        except _UnsealedError as error:
            launcher.send({"unsealed": str(error)})
        except DpAuditError as error:
            launcher.send(refusal(error))
        except ChannelError:
            raise
        except BaseException:  # noqa: BLE001  # whatever it is, its words may hold a value
            launcher.send({"error": FATAL, "kind": "UnsupportedError"})


class _UnsealedError(UnsupportedError):
    """This machine lacks what seals a process; whoever does not insist runs without."""


@dataclass
class _Custodian:
    """One run."""

    launcher: Channel
    job: Mapping[str, Any]
    stack: ExitStack
    analyst: Channel = field(init=False)
    process: int = field(init=False)
    left_to_say: int = _LONGEST_SAID
    declared: bool = False
    functions: tuple[tuple[str, str], ...] = ()
    workers: Workers | None = None
    readable: dict[str, Identity] = field(default_factory=dict)

    def work(self) -> None:
        seal = self._seal_analyst()
        table, public = self._declared()
        facts = self._facts()
        if self.workers is not None:
            self._seal_functions(self.workers, seal)
        plan = Plan.from_dict(facts["plan"])
        require_sealable(plan, table)
        record = {"source": table.source.name, "table": table.declaration, "files": public}
        self.launcher.send({"subject": facts, "seal": seal | record})
        self._run(plan, table, self.launcher.receive())

    # -- before there are data -------------------------------------------------------------------

    def _seal_analyst(self) -> dict[str, Any]:
        """Start the analyst, and return how it is sealed.

        Raises:
            UnsupportedError: if it is not.
        """
        words = [sys.executable, "-IB", "-c", self.job["analyst"]]
        own, child = start(words, self.job["copy"])
        self.analyst = Channel(own, LONGEST_REQUEST, self.job["patience"])
        self.process = child.pid
        self.stack.callback(end, child, self.analyst)
        self.stack.callback(self._go_on)  # who stands still does not end
        wanted = "name", "settings", "paths", "packages", "processor_seconds", "memory_bytes"
        readable = [*map(str, self._open_to_code()), self.job["copy"]]
        private = [_out_of_reach(path, readable) for path in self.job["private"]]
        self.analyst.send(
            {name: self.job[name] for name in wanted}
            | {"readable": readable, "private": private, "parent": os.getpid()}
        )
        for name in _LIBRARIES:  # while the other process starts
            with suppress(ImportError):
                import_module(name)
        said = self._hear()
        if "unsealed" in said:
            raise _UnsealedError(said["unsealed"])
        if not said["tries"] or "succeeded" in said["tries"].values():
            raise UnsupportedError(
                "the process of the code was able to do something that a sealed process must not "
                "be able to do."
            )
        return {name: said[name] for name in ("system", "means", "tries")}

    def _declared(self) -> tuple[ReadTable, dict[str, str]]:
        """The table, and the public files that the code may read from now on, with their digests.

        The table is known before a file is handed out, as what is read can be printed.
        """
        said = self._hear()
        self.declared = True
        folder = Path(self.job["folder"])
        declared = message_field(said, "table", dict)
        table = ReadTable.of(declared, folder)
        private = table_files(table, self._open_to_code())
        if self.job["rows"] is not None:  # nor may it read the table that it declares
            table = ReadTable.of(declared | {"source": self.job["rows"]}, folder)
            private |= table_files(table, self._open_to_code())
        self.readable = {path: tuple(identity) for path, *identity in self.job["code"]}
        require_apart(private, self.readable)
        named = map(str, message_field(said, "files", list))
        public = {name: self._hand_out(name, private) for name in named}
        self._start_workers(message_field(said, "functions", list))  # which reads all of the code
        return table, public

    def _open_to_code(self) -> list[Path]:
        """What all code may read: Python, its packages, and those that come with this one."""
        return [*sandbox.python_folders(), *map(Path, self.job["packages"])]

    def _hand_out(self, name: str, private: frozenset[Identity]) -> str:
        """Copy a public file to where the analyst reads it, and return its digest."""
        path, content = read_public(Path(self.job["folder"]), name)
        require_apart(private, {name: content.identity})
        self.readable[name] = content.identity
        place = Path(self.job["beside"]) / path
        if place.exists():  # copied already, as code: of which the hash is certified
            return files.sha256(place.read_bytes())
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.data)
        return files.sha256(content.data)

    def _start_workers(self, functions: list[Any]) -> None:
        """Start what makes a process for each unit, if the subject has functions of units."""
        if any(not isinstance(each, list) or len(each) != 2 for each in functions):
            raise InputError(
                "functions must list functions that are defined at the top of a file of the code."
            )
        self.functions = tuple((str(file), str(name)) for file, name in functions)
        if self.functions:
            words = [sys.executable, "-IB", "-c", self.job["template"]]
            code = {name: self.job[name] for name in ("paths", "packages")}
            code["functions"] = [file for file, _ in self.functions]
            self.workers = Workers(words, code, self.stack)

    def _seal_functions(self, workers: Workers, seal: dict[str, Any]) -> None:
        """Add to a seal how the processes of functions are kept in.

        Raises:
            UnsupportedError: if they are not. It is no :class:`_UnsealedError`: the analyst was
                sealed, and so it may be the author's files that keep these from being so.
        """
        means, tries = workers.seal(self.job["private"])
        if "succeeded" in tries.values():
            raise UnsupportedError(
                "the process of a function was able to do something that a sealed process must "
                "not be able to do."
            )
        seal["means"] = [*seal["means"], *means]
        seal["tries"] = seal["tries"] | tries
        seal["functions"] = [f"{Path(file).name}:{name}" for file, name in self.functions]

    def _facts(self) -> dict[str, Any]:
        """What the subject declares beside its table."""
        self._tell({})
        facts: dict[str, Any] = _kept(message_field(self._hear(), "subject", dict))
        for name, kind in _FACTS.items():
            message_field(facts, name, kind)
        return facts

    # -- the run ---------------------------------------------------------------------------------

    def _run(self, plan: Plan, table: ReadTable, first: Mapping[str, Any]) -> None:
        seeds, seeded = _seeds(first["seed"]), first["seed"] is not None
        if first["data"] is not None:
            folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="dpaudit-")))
            table = with_data(table, first["data"], folder, generator(seeds[0]))
        secret = generator(seeds[3]).bytes(32) if seeded else secrets.token_bytes(32)
        tried = tables_to_try(table, plan, self.stack)
        rows = opened(table, secret, self.stack)
        require_apart(table_files(table, self._open_to_code()), self.readable)
        require_population(plan, len(rows.units()))
        self.launcher.send({"loaded": True})
        order = self.launcher.receive()
        noise = FloatNoise() if order["float_noise"] else None
        if not seeded:
            (noise or SecureNoise()).require(plan)
        account = _Account(self.launcher) if order["account"] else None
        ledger = Ledger(
            plan,
            rng=generator(seeds[2]) if seeded else None,
            noise=noise,
            journal=Path(order["journal"]),
            durability=Durability(order["durability"]),
            anchor=account,
            budget=account if order["budget"] else None,
        )
        self.launcher.send({"began": True})
        functions = None
        if self.workers is not None:
            functions = UnitFunctions(self.workers, self.functions, secret, self._show)
        trials = [Side(each, trial_of(ledger)) for each in tried]
        operations = Operations(plan, table, trials, Side(rows, ledger), functions=functions)
        try:
            result = self._answer_all(operations, seeds[1])
            if not len(ledger):
                ledger.check()
        finally:
            ledger.close()
            self.launcher.send({"releases": len(ledger)})
        assert ledger.journal is not None
        self.launcher.send(
            {
                "result": result,
                "owner": operations.owner,
                "head": ledger.journal.head,
                "seeded": ledger.seeded,
                "left": list(ledger.left()),
                "releases": len(ledger),
            }
        )

    def _answer_all(self, operations: Operations, seed: dict[str, Any]) -> Any:
        self._tell({"seed": seed})
        while True:
            said = self._hear()
            if "result" in said:
                return _kept(message_field(said, "result", dict))
            try:
                answer = operations.answer(said)
            except FatalError:
                raise UnsupportedError(FATAL) from None
            self._tell(answer)

    # The analyst runs while it is waited for, and at no other time: it could else count how long
    # rows take. A time-out of the kernel goes on while it stands still. So whatever it finds when
    # it goes on must not depend on that: its answer is there, and there is one request at a time.

    def _go_on(self) -> None:
        os.kill(self.process, signal.SIGCONT)

    def _tell(self, message: Mapping[str, Any]) -> None:
        """Answer the analyst, and let it go on.

        Raises:
            DpAuditError: if it is gone, or did not wait for the answer.
        """
        with _lost():
            self.analyst.answer(message, self._go_on)

    def _hear(self) -> dict[str, Any]:
        """What the analyst says that is not for the terminal; it stands still from then on.

        Raises:
            DpAuditError: if it says that its code failed, or it is gone.
        """
        self._go_on()
        while True:
            with _lost():
                said = self.analyst.receive()
            if "failed" in said:
                kind = getattr(errors, str(said.get("kind")), InputError)
                known = isinstance(kind, type) and issubclass(kind, DpAuditError)
                if self.declared and kind is errors.OtherSubjectError:
                    known = False  # it has said that it is one
                raise (kind if known else InputError)(str(said["failed"])[:2_000])
            if "said" not in said:
                _stop(self.process)
                return said
            self._show(str(said["said"]))

    def _show(self, text: str) -> None:
        """Show what follows from releases and public facts, on the terminal."""
        shown = text[: self.left_to_say]
        self.left_to_say -= len(shown)
        if shown:
            self.launcher.send({"said": shown})


class _Account:
    """Budget and anchor of the launcher."""

    def __init__(self, launcher: Channel) -> None:
        self._launcher = launcher

    def begin(self, plan: Plan, *, anchored: bool) -> None:
        """Tell the launcher's budget, or anchor, that a ledger takes it."""
        self._asked(call="begin", anchored=anchored, plan=plan.to_dict())

    def admit(self, invocation: Invocation) -> None:
        """Charge an invocation; see Budget."""
        self._asked(call="admit", invocation=invocation.to_dict())

    def state(self, journal: str) -> AnchorState | None:
        """What is known of a journal; see Anchor."""
        found = self._asked(call="state", journal=journal)
        return None if found is None else AnchorState(**found)

    def advance(self, state: AnchorState, after: AnchorState | None = None) -> None:
        """Remember how far a journal has come; see Anchor."""
        before = None if after is None else vars(after)
        self._asked(call="advance", state=vars(state), after=before)

    def _asked(self, **request: Any) -> Any:
        self._launcher.send(request)
        said = self._launcher.receive()
        if "error" in said:
            raise error_of(said)
        return said["value"]


def _out_of_reach(path: str, readable: Sequence[str]) -> str:
    """What the code must not reach of a private path.

    That is all but what it may read, where this lies in it: of a project with Python's packages in
    its folder, that there is a folder is seen, and nothing else that is in it.
    """
    folder = Path(path).resolve()
    around = any(Path(each).resolve().is_relative_to(folder) for each in readable)
    return f"{path}/.dpaudit" if around else path


@contextmanager
def _lost() -> Iterator[None]:
    """Say in words that the analyst has ended, or sent something that is not a message."""
    try:
        yield
    except ChannelError:
        raise UnsupportedError(
            "the process of the code ended before it returned: it sent something that is not a "
            "message, got no answer, or used up its time or memory."
        ) from None


def _kept(record: dict[str, Any]) -> dict[str, Any]:
    """A record of the analyst, if a file can hold it.

    Raises:
        InputError: if it has half of a character, or an infinite number.
    """
    try:
        json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise InputError(
            "the process of the code sent a result that no file can hold; it must be finite "
            "numbers, texts "
            "and lists."
        ) from None
    return record


def _seeds(seed: int | None) -> list[dict[str, Any]]:
    """Seeds of made-up rows, of the algorithm, of the noise, and of the order of rows.

    Those of a deployment are drawn by themselves: the analyst is told one, from which no other
    follows.
    """
    if seed is None:
        return [{"entropy": secrets.randbits(128)} for _ in range(4)]
    return [{"entropy": seed, "spawn_key": [child]} for child in range(4)]


def _stop(process: int) -> None:
    """Let a process stand still, and wait until it does."""
    os.kill(process, signal.SIGSTOP)
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, process, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
