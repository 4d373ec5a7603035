"""User functions as releases."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.limits import within_time
from dpaudit.auditing.distinguishing.outputs import copies
from dpaudit.errors import InputError
from dpaudit.fields import Checked, Positive

__all__ = ["BlackBox"]


@dataclass(frozen=True)
class BlackBox(Checked):
    """A user function ``f(data, rng)`` or ``f(data, rng, size)`` as a release.

    Which of the two is told by the number of its positional parameters: two for one run a call,
    three for ``size`` runs a call.

    >>> noisy = BlackBox(lambda data, rng: sum(data) + rng.laplace())
    >>> noisy([1, 2], 3, np.random.default_rng(0)).shape
    (3,)

    Attributes:
        function: the code under attack.
        timeout: seconds that one run may take; None for any time.
        batched: whether a call makes several runs.

    Raises:
        InputError: if it is no function of two or three positional parameters.
    """

    function: Callable[..., Any]
    timeout: Positive | None = None
    batched: bool = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("batched", _positional(self.function) == 3)

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
