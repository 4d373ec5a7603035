"""User functions as releases."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.children import within_time
from dpaudit.auditing.distinguishing.outputs import as_array, copies, stack_outputs
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Positive
from dpaudit.base.validate import shown

_PLACE_ONLY = Parameter.POSITIONAL_ONLY
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class BlackBox(Checked):
    """A user function as a release: ``f(data, rng)``, ``f(data, rng, size)`` or ``f(data)``.

    The first parameter takes the data, whatever its name. A generator is taken by a parameter that
    is named ``rng``, or else by the second one if it has no default; without one, the function
    draws its own randomness. Only a parameter that is named ``size`` makes it give ``size`` runs a
    call. All others keep their defaults, or are set by ``arguments``. It may return anything.

    >>> noisy = BlackBox(lambda data, rng: sum(data) + rng.laplace())
    >>> noisy([1, 2], 3, np.random.default_rng(0)).shape
    (3,)

    Attributes:
        function: the code under attack.
        timeout: seconds that one run may take; None for any time.
        arguments: values of further parameters, by name.
        batched: whether a call makes several runs.
        takes_rng: whether it takes a generator.

    Raises:
        InputError: if it is no such function, or a parameter without default is not set.
    """

    function: Callable[..., Any]
    timeout: Positive | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    batched: bool = field(init=False)
    takes_rng: bool = field(init=False)
    _rng_by_name: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        parameters = _parameters(self.function)
        rest = {each.name: each for each in parameters[1:] if each.kind not in _VARIADIC}
        second = parameters[1] if len(parameters) > 1 else None
        by_place = (
            "rng" not in rest
            and second is not None
            and second.kind not in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)
            and second.default is Parameter.empty
            and second.name not in {"size", *self.arguments}
        )
        given = {"size", "rng", *([second.name] if by_place and second is not None else [])}
        free = rest.keys() - given
        takes_any = any(each.kind is Parameter.VAR_KEYWORD for each in parameters)
        for name in self.arguments:
            if name in given | {parameters[0].name} or not (name in free or takes_any):
                raise InputError(
                    f"{self.name} has no parameter {shown(name)} to set; of its parameters "
                    f"{', '.join(sorted(free)) or 'none'} may be set."
                )
        for name in sorted(free - self.arguments.keys()):
            if rest[name].default is Parameter.empty:
                raise InputError(
                    f"{self.name} needs the parameter {name}, and nobody sets it; give --arg "
                    f"{name}=JSON (arguments={{{name!r}: …}}), or make it f(data, rng), or "
                    "f(data, rng, size) for batches."
                )
        self._set("batched", "size" in rest)
        self._set("takes_rng", by_place or "rng" in rest)
        self._set("_rng_by_name", "rng" in rest and rest["rng"].kind is not _PLACE_ONLY)

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
            NotPlainError: if an output is no number, or differs in shape from the first one.
            TrialTimeoutError: if a call takes longer than the timeout.
        """
        fresh = copies(data)
        if self.batched:
            return as_array(self.raw(fresh(), size, rng))
        return stack_outputs([self.raw(fresh(), 1, rng)[0] for _ in range(size)])

    def raw(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Call it once for ``size`` runs, of which it makes one unless it is batched."""
        given = {**self.arguments, **({"rng": rng} if self._rng_by_name else {})}
        places = (rng,) if self.takes_rng and not self._rng_by_name else ()
        limit = None if self.timeout is None else self.timeout * size
        if self.batched:
            return within_time(limit, lambda: self.function(data, *places, size=size, **given))
        return [within_time(limit, lambda: self.function(data, *places, **given))]


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Those of a function that takes data."""
    wanted = "it must be a function f(data), f(data, rng) or f(data, rng, size)"
    if not callable(function):
        raise InputError(f"the black box is {function!r:.60}; {wanted}.")
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise InputError(f"the black box {function!r:.60} has no signature; {wanted}.") from None
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind is Parameter.VAR_POSITIONAL:  # takes data and rng
        parameters.insert(0, Parameter("data", _PLACE_ONLY))
    if not parameters or parameters[0].kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD):
        raise InputError(f"the black box has the parameters {signature}; {wanted}.")
    return parameters
