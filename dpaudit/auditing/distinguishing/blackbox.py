"""User functions as releases, and what must be true of any code before it is attacked."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.experiment import (
    Chunk,
    Experiment,
    Release,
    Side,
    Stage,
    copies,
)
from dpaudit.auditing.distinguishing.limits import within_time
from dpaudit.errors import InputError

__all__ = ["BlackBox", "Preflight", "preflight"]

CHECK_RUNS = 4


@dataclass(frozen=True)
class BlackBox:
    """A user function ``f(data, rng)`` or ``f(data, rng, size)`` as a release.

    Which of the two is told by the number of its positional parameters: two for one run a call,
    three for ``size`` runs a call.

    >>> noisy = BlackBox(lambda data, rng: sum(data) + rng.laplace())
    >>> noisy([1, 2], 3, np.random.default_rng(0)).shape
    (3,)

    Attributes:
        function: the code under attack.
        timeout: seconds that one run may take; None for any time.

    Raises:
        InputError: if it is no function of two or three positional parameters.
    """

    function: Callable[..., Any]
    timeout: float | None = None
    batched: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "batched", _positional(self.function) == 3)

    @property
    def name(self) -> str:
        """What the function calls itself."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def within(self, timeout: float | None) -> BlackBox:
        """The same with this timeout, unless it has one of its own."""
        return self if self.timeout is not None else replace(self, timeout=timeout)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """``size`` outputs, one after the other unless the function makes them at once.

        Every call is given a copy of the data, so that code may change them.

        Raises:
            InputError: if an output is missing or differs in shape from the first one.
            TrialTimeoutError: if a call takes longer than the timeout.
        """
        fresh = copies(data)
        if self.batched:
            limit = None if self.timeout is None else self.timeout * size
            return self._array(within_time(limit, lambda: self.function(fresh(), rng, size)))
        outputs: list[NDArray[Any]] = []
        for run in range(size):
            output = within_time(self.timeout, lambda: self.function(fresh(), rng))
            if output is None:
                raise InputError(f"{self.name} returned nothing in run {run + 1}; it must return.")
            array = self._array(output)
            if outputs and array.shape != outputs[0].shape:
                raise InputError(
                    f"{self.name} returned shape {array.shape} in run {run + 1} and "
                    f"{outputs[0].shape} before; pad the outputs to one shape."
                )
            outputs.append(array)
        return np.stack(outputs)

    def _array(self, output: Any) -> NDArray[Any]:
        if output is None:
            raise InputError(f"{self.name} returned nothing; it must return its output.")
        try:
            return np.asarray(output)
        except ValueError:
            raise InputError(
                f"{self.name} returned an output of ragged shape; pad it to an array."
            ) from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by value what another process could not import, such as a file's function."""
        cloudpickle = _cloudpickle()
        module = sys.modules.get(self.function.__module__ or "")
        foreign = module is not None and not _importable(module.__name__)
        if foreign:
            cloudpickle.register_pickle_by_value(module)
        try:
            packed = cloudpickle.dumps(self.function)
        finally:
            if foreign:
                cloudpickle.unregister_pickle_by_value(module)
        return _unpacked, (packed, self.timeout)


@dataclass(frozen=True)
class OneByOne:
    """A release that is asked for one output a call.

    One that makes the same batch whatever its seed would otherwise pass for independent runs.

    Attributes:
        release: the code under attack.
    """

    release: Release

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """``size`` outputs, each of a call of its own."""
        return np.concatenate([np.asarray(self.release(data, 1, rng)) for _ in range(size)])


def _importable(module: str) -> bool:
    """Whether another process of this installation finds the module by its name."""
    if module == "__main__":
        return False
    top = module.partition(".")[0]
    return top in sys.builtin_module_names or PathFinder.find_spec(top) is not None


def _unpacked(packed: bytes, timeout: float | None) -> BlackBox:
    return BlackBox(_cloudpickle().loads(packed), timeout)


def _cloudpickle() -> Any:
    """The pickler of joblib, which joblib before 1.6 kept inside itself."""
    try:
        return import_module("cloudpickle")
    except ImportError:
        return import_module("joblib.externals.cloudpickle")


def _positional(function: Callable[..., Any]) -> int:
    """2 or 3: how many positional arguments a function takes."""
    wanted = "it must be a function f(data, rng) or f(data, rng, size)"
    if not callable(function):
        raise InputError(f"the black box is {function!r:.60}; {wanted}.")
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise InputError(f"the black box {function!r:.60} has no signature; {wanted}.") from None
    for names in ("data rng size", "data rng"):
        try:
            signature.bind(*names.split())
        except TypeError:
            continue
        return len(names.split())
    raise InputError(f"the black box has the parameters {signature}; {wanted}.")


@dataclass(frozen=True)
class Preflight:
    """What a few runs show before the experiment begins.

    Attributes:
        shape: of one output.
        deterministic: whether outputs were equal for every seed, on both sides.
        repeats: whether every call gave the same batch of different outputs, whatever its seed.
    """

    shape: tuple[int, ...]
    deterministic: bool
    repeats: bool


def preflight(experiment: Experiment) -> Preflight:
    """Run the code a few times, twice with one seed and once with another.

    A mechanism whose output is the same for every seed is deterministic: it can be audited (and is
    as bad as can be). One whose output differs for the same seed draws from elsewhere, and nothing
    about it could be replayed.

    Raises:
        InputError: if it raises, hangs, returns what cannot be tested, draws from elsewhere than
            its generator, or repeats one draw within a batch.
    """
    shapes, deterministic, repeats = set(), True, False
    for side in Side:
        chunk = Chunk(Stage.CHECK, 0, 0, CHECK_RUNS)
        first, again = experiment.outputs(side, chunk), experiment.outputs(side, chunk)
        other = experiment.outputs(side, replace(chunk, number=1))
        if first.shape != again.shape or not np.array_equal(first, again):
            raise InputError(
                "the mechanism gave different outputs for the same seed; it ignores its rng, so "
                "draw all randomness from the generator that it is given."
            )
        if first.shape == other.shape:
            if (
                (first == first[:1]).all()
                and (other == other[:1]).all()
                and (first[0] != other[0]).all()
                and _continuous(first, other)
            ):
                raise InputError(
                    "the mechanism repeated one draw for every run of a batch; each of the `size` "
                    "outputs needs noise of its own."
                )
            same, constant = np.array_equal(first, other), bool((first == first[:1]).all())
            deterministic = deterministic and same
            repeats = repeats or (same and not constant)
        shapes |= {first.shape[1:], other.shape[1:]}
    if len(shapes) > 1:
        shown = " and ".join(map(str, sorted(shapes)))
        raise InputError(
            f"the mechanism returned outputs of shapes {shown}; pad them to one shape."
        )
    return Preflight(shapes.pop(), deterministic, repeats)


def _continuous(*outputs: NDArray[np.float64]) -> bool:
    """Whether there are outputs that are no whole numbers, which do not repeat by chance."""
    return any(bool((array != np.floor(array)).any()) for array in outputs)
