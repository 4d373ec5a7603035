"""Home-made noise of numpy.random and scipy.stats: seen where it is added to a value.

What is drawn remembers its law until it meets a value: ``value + noise`` is then the release, and
``value`` what a rehearsal compares. How far a value moves only its author knows, so a plan must say
it. Draws that meet no value may have no privacy role; they are counted, and told.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rv_continuous, rv_discrete

from dpaudit.integrations.observing import Patch, Reading, Recorder
from dpaudit.mechanisms import DiscreteLaplace, Gaussian, Laplace, Mechanism

_LAWS: dict[str, Callable[[float], Mechanism]] = {
    "laplace": Laplace,
    "normal": Gaussian,
    "norm": Gaussian,
    "dlaplace": DiscreteLaplace,
}


class Fate:
    """What became of one draw and of all that was made of it.

    Noise that hid a value must be seen in no other way: who sees both knows the value.
    """

    def __init__(self) -> None:
        self._met = self._seen = self._told = False

    def met(self, noise: Noise) -> None:
        """It was added to a value."""
        self._met = True
        self._tell(noise)

    def seen(self, noise: Noise) -> None:
        """It was looked at by itself."""
        self._seen = True
        self._tell(noise)

    def _tell(self, noise: Noise) -> None:
        if self._met and self._seen and not self._told and noise.recorder is not None:
            self._told = True
            noise.recorder.shown(noise.law)


def _looks(name: str) -> Any:
    """A method of arrays that gives away what they hold."""

    def method(self: Noise, *given: Any, **options: Any) -> Any:
        self.fate.seen(self)
        return getattr(np.asarray(self), name)(*given, **options)

    return method


class Noise(np.ndarray):
    """Draws of one law, which are a release once they are added to a value."""

    law = ""
    scale = 0.0
    recorder: Recorder | None = None
    fate = Fate()

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        """Functions of numpy look at what they are given."""
        self.fate.seen(self)
        return super().__array_function__(function, types, given, options)

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        """Noise of a multiple of the scale, a release, or plain numbers."""
        noisy = [isinstance(each, Noise) for each in given]
        plain = [np.asarray(each) if own else each for each, own in zip(given, noisy, strict=True)]
        into = tuple(map(np.asarray, options.pop("out", ())))
        made = partial(getattr(ufunc, method), *plain, **options)
        result = None
        if method == "__call__" and noisy.count(True) == 1:
            result = given[noisy.index(True)].after(ufunc, plain, noisy, made)
        if result is None:
            for each, own in zip(given, noisy, strict=True):
                if own:
                    each.fate.seen(each)
            return made(out=into) if into else made()
        if not into:
            return result
        into[0][...] = result
        return into[0]

    def after(self, ufunc: Any, given: Sequence[Any], noisy: Sequence[bool], made: Any) -> Any:
        """What an operation with numbers gives, where it is noise again or a release."""
        other: Any = given[noisy.index(False)] if False in noisy else None
        if ufunc in (np.add, np.subtract):
            return self.added(-other if ufunc is np.subtract and noisy[0] else other, made)
        if ufunc is np.negative:
            return self.like(made(), self.scale)
        scales = ufunc is np.multiply or (ufunc is np.true_divide and noisy[0])
        if scales and self.law != "dlaplace" and np.ndim(other) == 0 and other:
            return self.like(made(), abs(float(ufunc(self.scale, other))))
        return None

    def __array_finalize__(self, other: Any) -> None:
        """A part of noise is noise."""
        if isinstance(other, Noise):
            self.law, self.scale, self.recorder = other.law, other.scale, other.recorder
            self.fate = other.fate

    def __getitem__(self, key: Any) -> Any:
        """A part of it."""
        return self.like(np.asarray(self)[key], self.scale)

    def __iter__(self) -> Iterator[Any]:
        """One after the other."""
        return (self[place] for place in range(len(self)))

    def like(self, made: Any, scale: float) -> Noise:
        """Draws of the same law and another scale."""
        return noise(made, self.law, scale, self.recorder, self.fate)

    def added(self, value: Any, draw: Callable[[], Any]) -> Any:
        """The release that noise and a value make."""
        recorder = self.recorder
        if recorder is None or recorder.quiet or np.asarray(value).dtype.kind not in "biuf":
            return draw()
        shape = np.broadcast_shapes(np.shape(value), self.shape)
        before = np.array(np.broadcast_to(value, shape))
        recorder.met(self.law, self.size)
        self.fate.met(self)
        return recorder.release(_reading(self.law, self.scale, before), draw)


for _name in (
    *("__float__", "__int__", "__complex__", "__bool__", "__index__", "__repr__", "__str__"),
    *("__format__", "item", "tolist", "tobytes", "argmin", "argmax", "argsort", "min", "max"),
    *("sum", "mean", "std", "var", "prod", "cumsum", "dot", "round", "sort", "astype"),
):
    setattr(Noise, _name, _looks(_name))


def noise(
    made: Any, law: str, scale: float, recorder: Recorder | None, fate: Fate | None = None
) -> Noise:
    """Draws that remember their law."""
    found = np.asarray(made).view(Noise)
    found.law, found.scale, found.recorder = law, scale, recorder
    found.fate = fate or Fate()
    return found


def _reading(law: str, scale: float, value: Any) -> Reading:
    return Reading(law, _LAWS[law](scale), None, value, facts={"scale": scale})


class Numpy:
    """The adapter."""

    library = "numpy"
    versions = ("1.26.", "2.")
    packages = ("numpy", "scipy")

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Generators that are made from now on, the functions of the module, and scipy's laws."""
        watched = _generator(recorder)

        def default_rng(seed: Any = None) -> Any:
            if isinstance(seed, watched):
                return seed
            own = seed if isinstance(seed, np.random.Generator) else plain(seed)
            return own if recorder.quiet else watched(own.bit_generator)

        plain = np.random.default_rng
        yield Patch(np.random, "default_rng", lambda _: default_rng)
        for name in ("laplace", "normal", "standard_normal"):
            yield Patch(np.random, name, partial(_function, recorder, name))
        for kind in (rv_continuous, rv_discrete):
            yield Patch(kind, "rvs", lambda own: _variates(recorder, own))


def _function(recorder: Recorder, name: str, original: Any) -> Any:
    """``laplace(loc, scale, size)``, or ``standard_normal(size)``."""
    law = name.removeprefix("standard_")

    def drawn(*given: Any, **options: Any) -> Any:
        if recorder.quiet:
            return original(*given, **options)
        if law != name:
            return _drawn(recorder, law, 1.0, 0.0, lambda: original(*given, **options))
        loc, scale = itertools.islice((*given, *(0.0, 1.0)[len(given) :]), 2)
        loc, scale = options.pop("loc", loc), options.pop("scale", scale)
        rest = (0.0, scale, *given[2:])
        return _drawn(recorder, law, scale, loc, lambda: original(*rest, **options))

    return drawn


def _drawn(recorder: Recorder, law: str, scale: Any, loc: Any, draw: Callable[[], Any]) -> Any:
    """Noise, which is a release at once where it comes with its value."""
    made = recorder.alone(draw)
    if np.ndim(scale) or not scale > 0:
        return made + loc
    found = noise(made, law, float(scale), recorder)
    recorder.loose(law, found.size)
    return found if np.ndim(loc) == 0 and not loc else found + loc


def _generator(recorder: Recorder) -> type[np.random.Generator]:
    """A class of generators whose noise is seen."""

    def method(name: str) -> Any:
        original = getattr(np.random.Generator, name)

        def drawn(own: Any, *given: Any, **options: Any) -> Any:
            return _function(recorder, name, original.__get__(own))(*given, **options)

        return drawn

    names = ("laplace", "normal", "standard_normal")
    return type("Generator", (np.random.Generator,), {name: method(name) for name in names})


def _variates(recorder: Recorder, original: Any) -> Any:
    def rvs(own: Any, *given: Any, **options: Any) -> Any:
        if own.name not in _LAWS or recorder.quiet:
            return original(own, *given, **options)
        shapes, loc, scale, _ = own._parse_args_rvs(
            *given, **{name: each for name, each in options.items() if name != "random_state"}
        )
        scale = 1 / shapes[0] if own.name == "dlaplace" else scale
        made = recorder.alone(lambda: original(own, *given, **options))
        return _drawn(
            recorder, own.name, np.asarray(scale)[()], np.asarray(loc)[()], lambda: made - loc
        )

    return rvs


ADAPTER = Numpy()
