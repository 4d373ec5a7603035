"""Home-made noise of numpy.random and scipy.stats: seen where it is added to a value.

Noise is held by an object that is no array, so that whoever makes one of it says so.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray
from scipy.stats import rv_continuous, rv_discrete

from dpaudit.observing import Patch, Recorder
from dpaudit.observing.sources import (
    LAWS,
    SEEDS,
    SHARED,
    Source,
    bits,
    of_numpy,
    of_state,
    seen_generator,
)

_SHAPING = ("reshape", "ravel", "flatten", "squeeze", "transpose", "copy", "T", "repeat", "view")
"""What arrays are asked for that leaves their numbers as they are."""
_PUBLIC = ("shape", "ndim", "size", "dtype", "nbytes", "itemsize", "flags", "strides")


def _looks(name: str) -> Any:
    """Return a method that gives away what noise holds."""

    def method(self: Noise, *given: Any, **options: Any) -> Any:
        return getattr(self.looked_at()[()], name)(*given, **options)

    return method


class Noise(NDArrayOperatorsMixin):
    """Draws of one law, which are a release once they are added to a value."""

    def __init__(self, made: NDArray[Any], source: Source) -> None:
        self._made = made
        self.source = source

    def looked_at(self) -> NDArray[Any]:
        """Return the numbers, which somebody wants to see by themselves."""
        self.source.note_seen()
        return self._made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """A plain array of it."""
        return np.array(self.looked_at(), dtype)  # none may change noise that is met later

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        """Functions of numpy look at what they are given, unless they only shape it."""
        if function.__name__ in _SHAPING and isinstance(given[0], Noise):
            return getattr(given[0], function.__name__)(*given[1:], **options)
        if function is np.sort and isinstance(given[0], Noise):  # what is picked has another law
            return Noise(np.sort(given[0].looked_at(), *given[1:], **options), given[0].source)
        return function(*plain(given), **{key: plain(each) for key, each in options.items()})

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        """Noise of a multiple of the scale, a release, or plain numbers."""
        noisy = [isinstance(each, Noise) for each in given]
        bare = [each._made if own else each for each, own in zip(given, noisy, strict=True)]
        target = options.pop("out", ())
        into = tuple(each._made if isinstance(each, Noise) else each for each in target)
        made = partial(getattr(ufunc, method), *bare, **options)
        result = None
        if method == "__call__" and noisy.count(True) == 1:
            place = noisy.index(True)
            other = bare[1 - place] if len(bare) == 2 else None
            result = given[place].after(ufunc.__name__, other, place == 0, made)
        if result is None:
            plain(given)  # which looks at it
            return made(out=into) if into else made()
        if not into:
            return result
        into[0][...] = result._made if isinstance(result, Noise) else result
        return result if isinstance(result, Noise) else into[0]

    def after(self, operation: str, other: Any, first: bool, made: Any) -> Any:
        """Return what an operation with numbers gives, where it is noise again or a release."""
        if self.source.recorder.quiet:
            return made()
        scaled = self.source.scaled(operation, other, first)
        if scaled is not None:
            return Noise(made(), scaled)
        value = self.source.hidden(operation, other, first)
        if value is None or np.asarray(value).dtype.kind not in "biuf":
            return None
        before = np.array(np.broadcast_to(value, np.broadcast_shapes(np.shape(value), self.shape)))
        whole: list[Any] = []

        def draw() -> Any:
            whole.append(made())
            return np.asarray(whole[0])[()]

        released = self.source.added(before, self.size, draw, {})
        if isinstance(whole[0], np.ndarray | np.generic):
            return released
        if hasattr(whole[0], "new_tensor"):
            return whole[0].new_tensor(released)
        whole[0][:] = released  # a frame of pandas
        return whole[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _PUBLIC:
            return getattr(self._made, name)
        if name not in _SHAPING:
            return getattr(self.looked_at()[()], name)
        found = getattr(self._made, name)
        if not callable(found):
            return Noise(found, self.source)
        return lambda *given, **options: Noise(found(*given, **options), self.source)

    def __getitem__(self, key: Any) -> Noise:
        """A part of it."""
        return Noise(np.asarray(self._made[plain(key)]), self.source)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Noise that is changed has no law any more."""
        self.looked_at()[plain(key)] = plain(value)

    def __iter__(self) -> Iterator[Noise]:
        """One after the other."""
        return (self[place] for place in range(len(self)))

    def __len__(self) -> int:
        return len(self._made)

    def __reduce__(self) -> Any:
        return np.array, (self.looked_at(),)


for _name in (
    *("__float__", "__int__", "__complex__", "__bool__", "__index__", "__repr__", "__str__"),
    *("__format__", "__round__", "__trunc__", "__floor__", "__ceil__", "__contains__"),
):
    setattr(Noise, _name, _looks(_name))


def plain(given: Any) -> Any:
    """Return what was given without noise, all of which is looked at."""
    if isinstance(given, Noise):
        return given.looked_at()
    if type(given) in (list, tuple):
        return type(given)(map(plain, given))
    return given


def framed(original: Any) -> Any:
    """Wrap arithmetic of pandas, which takes what is no array for a list."""

    def method(own: Any, other: Any, operation: Any) -> Any:
        if not isinstance(other, Noise):
            return original(own, other, operation)
        made = np.asarray(operation(own.to_numpy(), other))
        if made.ndim < 2:
            return type(own)(made, index=own.index, name=own.name)
        return type(own)(made, index=own.index, columns=own.columns)

    return method


_NAMES = ("laplace", "normal", "standard_normal")


class Numpy:
    """The adapter."""

    library = "numpy"
    versions = ("1.26.", "2.")
    packages = ("numpy", "scipy", "pandas")

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Patch generators made from now on, functions of the module, and scipy's laws."""
        watched = seen_generator(recorder, _NAMES, partial(_function, recorder))

        def default_rng(seed: Any = None) -> Any:
            if isinstance(seed, watched):
                return seed
            given = isinstance(seed, np.random.Generator)
            own = seed if given else original(seed)
            if not (given or seed is None):
                recorder.note_handling(bits(own), SEEDS)
            return own if recorder.quiet else watched(bits(own))  # type: ignore[arg-type]  # what it was made of

        original = np.random.default_rng
        yield Patch(np.random, "default_rng", lambda _: default_rng)
        for name in _NAMES:
            yield Patch(np.random, name, partial(_function, recorder, name, SHARED))
        yield from of_numpy(recorder)
        for kind in (rv_continuous, rv_discrete):
            yield Patch(kind, "rvs", recorder.replacing(partial(_variates, recorder)))
        if torch := sys.modules.get("torch"):  # takes nothing but arrays
            for name in ("from_numpy", "tensor", "as_tensor"):
                yield Patch(torch, name, lambda own: lambda data, **how: own(plain(data), **how))
        if pandas := sys.modules.get("pandas"):
            for kind in (pandas.DataFrame, pandas.Series):
                yield Patch(kind, "_arith_method", framed)


def _function(recorder: Recorder, name: str, generator: Hashable, original: Any) -> Any:
    """Replace ``laplace(loc, scale, size)``, or ``standard_normal(size)``."""
    law = name.removeprefix("standard_")

    def drawn(*given: Any, **options: Any) -> Any:
        if recorder.quiet:
            return original(*given, **options)
        if law != name:
            return _drawn(recorder, law, generator, 1.0, 0.0, lambda: original(*given, **options))
        loc, scale = itertools.islice((*given, *(0.0, 1.0)[len(given) :]), 2)
        loc, scale = options.pop("loc", loc), options.pop("scale", scale)
        rest = (0.0, scale, *given[2:])
        return _drawn(recorder, law, generator, scale, loc, lambda: original(*rest, **options))

    return drawn


def _drawn(
    recorder: Recorder,
    law: str,
    generator: Hashable,
    scale: Any,
    loc: Any,
    draw: Callable[[], Any],
) -> Any:
    """Draw noise, which is a release at once where it comes with its value."""
    made = recorder.alone(draw)
    if np.ndim(scale) or not scale > 0:
        return made + loc
    source = Source.of(law, float(scale), recorder, np.size(made), generator)
    found = Noise(np.asarray(made), source)
    return found if np.ndim(loc) == 0 and not loc else found + loc


def _variates(recorder: Recorder, original: Any, own: Any, *given: Any, **options: Any) -> Any:
    """Draw noise of scipy, of the laws that are known here."""
    if own.name not in LAWS:
        return original(own, *given, **options)
    shapes, loc, scale, _ = own._parse_args_rvs(
        *given, **{name: each for name, each in options.items() if name != "random_state"}
    )
    scale = 1 / shapes[0] if own.name == "dlaplace" else scale
    made = recorder.alone(lambda: original(own, *given, **options))
    state = of_state(recorder, options.get("random_state", own.random_state))
    scale, loc = np.asarray(scale)[()], np.asarray(loc)[()]
    return _drawn(recorder, own.name, state, scale, loc, lambda: made - loc)


ADAPTER = Numpy()
