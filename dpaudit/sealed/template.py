"""The template of workers: a process of trusted code that holds no record, and is copied for each.

It reads the author's files and compiles them, imports what they name of Python, numpy, scipy and
this package, and shuts itself in. Each worker is a copy of it, with process numbers of its own. A
worker runs the author's modules anew, then one function on the records of one unit, says its value
and ends. The template never hears of a record nor of what a worker did, so that nothing in it
depends on the units that came before.
"""

from __future__ import annotations

import ast
import base64
import ctypes
import gc
import importlib
import importlib.util
import io
import itertools
import operator
import os
import pickle
import random
import signal
import socket
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from dpaudit.base.errors import UnsupportedError
from dpaudit.sealed import sandbox
from dpaudit.sealed.channel import Channel, ChannelError
from dpaudit.sealed.escape_attempts import worker_tries

_LIBRARIES = frozenset({"dpaudit", "numpy", "scipy"})
"""What a function may import beside Python's own modules and the files of the code."""
_WITH_EFFECTS = frozenset(
    ["antigravity", "idlelib", "lib2to3", "test", "this", "turtle", "turtledemo"]
)
"""Modules of Python that do something when they are imported."""
IDLE, SPAWN, CALL = b"\0", b"\1", b"\2"
"""Words of the custodian: all that a worker takes, without one; one more worker; and what the next
workers are to do."""


def main(descriptor: int) -> None:
    """Be the template of one run.

    Args:
        descriptor: of the socket to the custodian.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=descriptor))
    try:
        job = channel.receive()
        code = Code.read(job["paths"], job["packages"], job["functions"])
        code.import_libraries()
        size = _address_space()
        with suppress(OSError):  # where memory is short, others than the custodian end first
            Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
        try:
            means = sandbox.confine_template(descriptor)
        except UnsupportedError as error:
            channel.send({"unsealed": str(error)})
            return
        code.take_imports_over()
        sys.stdout = sys.stderr = _Nothing()
        template = _Template(descriptor, channel, code, size)
        channel.send({"means": list(means)})
        gc.disable()  # it would collect at one worker or another
        gc.collect()
        gc.freeze()  # a worker's collector leaves what it shares with the template as it is
        template.serve()
    except ChannelError:
        pass  # the custodian has gone on without this process
    finally:
        os._exit(0)


def _address_space() -> int:
    pages = Path("/proc/self/statm").read_text("ascii").split()[0]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Code:
    """The author's modules that a function can come to, compiled and not run.

    Args:
        places: file, text and whether it is a package, of each module by its dotted name.
        functions: files of the functions; None for all modules.
    """

    def __init__(
        self,
        places: Mapping[str, tuple[str, bytes, bool]],
        functions: Collection[str] | None = None,
    ) -> None:
        self._modules: dict[str, tuple[CodeType, str, bool]] = {}
        self._names: list[tuple[str, list[str]]] = []
        pending = [
            name for name, place in places.items() if functions is None or place[0] in functions
        ]
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            if name in seen or name not in places:
                continue
            seen.add(name)
            file, text, is_package = places[name]
            with suppress(SyntaxError, ValueError, RecursionError):  # what is so cannot be imported
                tree = ast.parse(text, file)
                program = compile(tree, file, "exec", dont_inherit=True)
                self._modules[name] = program, file, is_package
                for module, attributes in _imports(tree, name, is_package=is_package):
                    self._names.append((module, attributes))
                    pending += [module, *(f"{module}.{each}" for each in attributes)]
            pending += [name.rpartition(".")[0]]  # of which its own is found in turn

    @classmethod
    def read(
        cls, paths: Sequence[str], packages: Sequence[str], functions: Collection[str] | None = None
    ) -> Code:
        """Modules below some folders, by the names that they have from where one imports.

        Args:
            paths: folders from which is imported, those that come first before others.
            packages: folders of further packages.
            functions: files of the functions; None for all modules.
        """
        places: dict[str, tuple[str, bytes, bool]] = {}
        known: set[Path] = set()
        folders = [(Path(each), Path(each)) for each in paths]
        for base, folder in folders + [(Path(each).parent, Path(each)) for each in packages]:
            for file in sorted({*folder.rglob("*.py")} - known):
                known.add(file)
                parts = file.relative_to(base).with_suffix("").parts
                is_package = parts[-1] == "__init__"
                name = ".".join(parts[:-1] if is_package else parts)
                if name:
                    places.setdefault(name, (str(file), file.read_bytes(), is_package))
        return cls(places, functions)

    def import_libraries(self) -> None:
        """Import what these modules name of Python and of the libraries that they may use."""
        for name, attributes in self._names:
            self._import(name, attributes)
        self._names.clear()
        if "numpy" in sys.modules:
            importlib.import_module("numpy.random")  # which it imports when it is first used

    def _import(self, name: str, attributes: Sequence[str]) -> None:
        root = name.partition(".")[0]
        if root in self._modules or not (root in _LIBRARIES or root in sys.stdlib_module_names):
            return
        if root in _WITH_EFFECTS or name.endswith("__main__"):
            return
        with suppress(Exception, SystemExit):  # whoever needs it will say that it lacks
            module = importlib.import_module(name)
            for attribute in attributes:
                if not hasattr(module, attribute):
                    importlib.import_module(f"{name}.{attribute}")

    def take_imports_over(self) -> None:
        """Let what is imported from here on be found here, or not at all."""
        sys.meta_path[:] = [self]
        sys.path.clear()

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a module of the code; None of any other."""
        if name not in self._modules:
            return None
        _, file, is_package = self._modules[name]
        loader: Any = self
        return importlib.util.spec_from_loader(name, loader, origin=file, is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run a module of the code; a package's own file when something of it is asked for.

        Most workers ask for a module of a package alone, and what is beside it takes long.
        """
        code, file, is_package = self._modules[module.__name__]
        module.__file__ = file
        if not is_package:
            exec(code, module.__dict__)  # a worker runs the author's code
            return

        def held(name: str) -> Any:
            vars(module).pop("__getattr__")
            exec(code, module.__dict__)
            return getattr(module, name)

        module.__getattr__ = held  # type: ignore[method-assign]

    def function(self, file: str, name: str) -> Any:
        """A function of the code, whose module is run."""
        known = [module for module, (_, place, _) in self._modules.items() if place == file]
        if not known:
            raise LookupError(f"{name} is in no file of the code that can be imported")
        (module, *_) = known
        return getattr(importlib.import_module(module), name)


def _imports(tree: ast.Module, name: str, *, is_package: bool) -> Iterator[tuple[str, list[str]]]:
    """Modules that a module imports anywhere, and which of their names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            above = name.split(".")[: len(name.split(".")) - node.level + is_package]
            own = [*above, *([node.module] if node.module else [])] if node.level else [node.module]
            if own:
                yield ".".join(map(str, own)), names


class _Message(ctypes.Structure):
    """A message with a descriptor, as ``recvmsg`` takes it."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("parts", ctypes.c_void_p),
        ("number_of_parts", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Template:
    """What makes workers, as the custodian says.

    What it does for one worker leaves its memory as it was, so that no later one can tell how many
    there were.

    Args:
        control: descriptor of the socket to the custodian.
        channel: of that socket.
        code: the author's modules.
        size: bytes of address space that this process takes.
    """

    def __init__(self, control: int, channel: Channel, code: Code, size: int) -> None:
        self._control = control
        self._channel = channel
        self._code = code
        self._size = size
        self._program = sandbox.worker_program()
        self._generator = Generator()
        self._call: dict[str, Any] = {}
        self._word = (ctypes.c_ubyte * 1)()
        self._ancillary = (ctypes.c_int * 6)()  # length, of two; level, kind, descriptor, room
        self._part = (ctypes.c_void_p * 2)(ctypes.addressof(self._word), 1)
        parts, ancillary = ctypes.addressof(self._part), ctypes.addressof(self._ancillary)
        self._message = _Message(None, 0, parts, 1, ancillary, 0, 0)

    def serve(self) -> None:
        """Make one worker for each word, each with the socket that comes with it."""
        steps = self._steps()
        while True:
            self._message.control_length = ctypes.sizeof(self._ancillary)
            any(map(next, itertools.cycle(steps)))
            if os.getpid() == 1:
                try:
                    self._work(self._ancillary[4])
                finally:
                    os._exit(0)
            if self._word[0] != CALL[0]:
                return  # the custodian has gone
            self._hear()

    def _steps(self) -> list[Iterator[Any]]:
        """What is done for one word after another, each until one of them is true.

        These are functions of C alone. Python notes in its own code how often that ran (PEP 659),
        which a worker could read; and objects that are made beside each other and freed exchange
        their places.
        """
        library, always = ctypes.PyDLL(None), itertools.repeat  # which keeps Python's lock
        word, ancillary = always(self._word), always(self._ancillary)
        message: Iterator[Any] = always(ctypes.byref(self._message))
        received = map(library.recvmsg, always(self._control), message, always(0))
        words = map(operator.getitem, word, always(0))
        made = sandbox.cloning(map(operator.getitem, word, always(0)))
        given = map(operator.getitem, ancillary, always(4))
        return [
            map(operator.ne, received, always(1)),
            map(operator.eq, words, always(CALL[0])),
            made,
            map(operator.eq, map(operator.call, always(os.getpid)), always(1)),
            map(library.close, given),
        ]

    def _hear(self) -> None:
        self._call = {}
        call = self._channel.receive()
        try:
            call["parameters"] = {k: _read(v) for k, v in call.get("parameters", {}).items()}
        except Exception:  # noqa: BLE001  # whatever the parameters are, they hold no record
            self._channel.send({"ready": False})
            return
        self._call = call
        self._channel.send({"ready": True})

    def _work(self, descriptor: int) -> None:
        """Be a worker."""
        call = self._call
        limits = call["processor_seconds"], self._size + call["memory_bytes"]
        sandbox.confine_worker(self._control, *limits, self._program)
        channel = Channel(_End(descriptor))
        os.write(descriptor, b"h")  # by which the custodian learns the number of this process
        gc.enable()
        if "tries" in call:
            channel.send({"tries": worker_tries(call["tries"])})
            return
        given = channel.receive()
        try:
            channel.send(self._value(call, given))
        except BaseException as error:  # noqa: BLE001  # made-up records alone have it read
            with suppress(Exception):
                channel.send({"failed": words_of(error)})

    def _value(self, call: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        seed = int(given["seed"], 16)
        rng = self._generator.at(seed)
        self._generator.seed_others(seed)
        function = self._code.function(call["file"], call["name"])
        return value_of(function, call["parameters"], given, rng, keeps_state=call["state"])


def words_of(error: BaseException) -> str:
    """What a function raised, in words that are shown of made-up records alone."""
    return f"{type(error).__name__}: {error}"[:500]


def value_of(
    function: Callable[..., Any],
    parameters: Mapping[str, Any],
    given: Mapping[str, Any],
    rng: Any,
    *,
    keeps_state: bool,
) -> dict[str, Any]:
    """What a function makes of one unit, as a message.

    Args:
        function: of records, a generator, the state if there is one, and parameters.
        parameters: public ones.
        given: ``records`` and ``state`` of the unit.
        rng: source of its randomness.
        keeps_state: whether it takes and returns a state.
    """
    if keeps_state:
        before = pickle.loads(base64.b64decode(given["state"])) if given["state"] else None
        value, after = function(given["records"], rng, before, **parameters)
        state = base64.b64encode(pickle.dumps(after)).decode("ascii")
    else:
        value, state = function(given["records"], rng, **parameters), ""
    return {"value": value.tolist() if hasattr(value, "tolist") else value, "state": state}


class Generator:
    """What a function draws from: made once, as that takes long, and set to a seed of 256 bits."""

    def __init__(self) -> None:
        self._numpy = sys.modules.get("numpy")
        self._own: Any = random.Random(0)
        if self._numpy is not None:
            self._own = self._numpy.random.default_rng(0)

    def at(self, seed: int) -> Any:
        """The generator at this seed: numpy's where that is imported, or Python's."""
        if self._numpy is None:
            self._own.seed(seed)
            return self._own
        state = {"state": seed % 2**128, "inc": seed >> 128 | 1}
        parts = {"bit_generator": "PCG64", "state": state, "has_uint32": 0, "uinteger": 0}
        self._own.bit_generator.state = parts
        return self._own

    def seed_others(self, seed: int) -> None:
        """Let what draws without a generator follow from the seed."""
        random.seed(seed + 1)
        if self._numpy is not None:
            self._numpy.random.seed(seed % 2**32)


def _read(value: Any) -> Any:
    """A parameter of a message; arrays are lists where the code does not import numpy."""
    if not isinstance(value, dict):
        return value
    if "list" in value:
        return [_read(each) for each in value["list"]]
    if "counts" in value:
        return dict(map(tuple, value["counts"]))
    if (numpy := sys.modules.get("numpy")) is None:
        return value["array"]
    return numpy.array(value["array"], dtype=value["type"]).reshape(value["shape"])


class _End:
    """A socket by its descriptor: a worker makes no object of Python's for it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def sendall(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]

    def recv(self, size: int) -> bytes:
        return os.read(self._descriptor, size)

    def close(self) -> None:
        os.close(self._descriptor)


class _Nothing(io.TextIOBase):
    """Where a worker prints."""

    def write(self, text: str) -> int:
        """Forget it."""
        return len(text)
