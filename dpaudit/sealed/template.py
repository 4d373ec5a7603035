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
import gc
import importlib
import importlib.abc
import importlib.util
import io
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
from dpaudit.sealed.channel import Channel, ChannelError, GoneError

_LIBRARIES = frozenset({"dpaudit", "numpy", "scipy"})
"""What a function may import beside Python's own modules and the files of the code."""
SPAWN, CALL = b"s", b"c"
"""Words of the custodian: one more worker, or what the next workers are to do."""


def main(descriptor: int) -> None:
    """Be the template of one run.

    Args:
        descriptor: of the socket to the custodian.
    """
    control = socket.socket(fileno=descriptor)
    channel = Channel(control)
    try:
        job = channel.receive()
        code = Code.read(job["paths"], job["packages"], job["functions"])
        code.import_libraries()
        size = _address_space()
        try:
            means = sandbox.confine_template(descriptor)
        except UnsupportedError as error:
            channel.send({"unsealed": str(error)})
            return
        code.take_imports_over()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        template = _Template(control, channel, code, size)
        gc.collect()
        gc.freeze()  # a worker's collector leaves what it shares with the template as it is
        channel.send({"means": list(means)})
        template.serve()
    except ChannelError:
        pass  # the custodian has gone on without this process
    finally:
        os._exit(0)


def _address_space() -> int:
    pages = Path("/proc/self/statm").read_text("ascii").split()[0]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Code(importlib.abc.MetaPathFinder, importlib.abc.Loader):
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
        with suppress(Exception):  # whoever needs it will say that it lacks
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
        return importlib.util.spec_from_loader(name, self, origin=file, is_package=is_package)

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


class _Template:
    """What makes workers, as the custodian says.

    Args:
        control: the socket to the custodian.
        channel: of that socket.
        code: the author's modules.
        size: bytes of address space that this process takes.
    """

    def __init__(self, control: socket.socket, channel: Channel, code: Code, size: int) -> None:
        self._control = control
        self._channel = channel
        self._code = code
        self._size = size
        self._program = sandbox.worker_program()
        self._generator = Generator()
        self._call: dict[str, Any] = {}

    def serve(self) -> None:
        """Make one worker for each word, each with the socket that comes with it.

        Raises:
            ChannelError: when the custodian has gone.
        """
        while True:
            word, ancillary, _, _ = self._control.recvmsg(1, socket.CMSG_SPACE(4))
            if word == CALL:
                call = self._channel.receive()
                call["parameters"] = {k: _read(v) for k, v in call.get("parameters", {}).items()}
                self._call = call
            elif word == SPAWN:
                ((_, _, descriptor),) = ancillary
                self._spawn(int.from_bytes(descriptor, sys.byteorder))
            else:
                raise GoneError("the other side is gone")

    def _spawn(self, descriptor: int) -> None:
        if sandbox.clone_alone():
            try:
                self._work(descriptor)
            finally:
                os._exit(0)
        os.close(descriptor)

    def _work(self, descriptor: int) -> None:
        """Be a worker."""
        call = self._call
        limits = call["processor_seconds"], self._size + call["memory_bytes"]
        channel = Channel(socket.socket(fileno=descriptor))
        self._control.detach()
        sandbox.confine_worker(descriptor, *limits, self._program)
        os.write(descriptor, b"h")  # by which the custodian learns the number of this process
        if "tries" in call:
            channel.send({"tries": sandbox.worker_tries(call["tries"])})
            return
        given = channel.receive()
        sys.stdout = sys.stderr = _Nothing()
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


class _Nothing(io.TextIOBase):
    """Where a worker prints."""

    def write(self, text: str) -> int:
        """Forget it."""
        return len(text)
