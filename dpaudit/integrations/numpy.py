"""Home-made noise of numpy.random and scipy.stats: seen where it is added to a value."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rv_continuous, rv_discrete

from dpaudit.integrations.observing import Patch, Recorder
from dpaudit.integrations.observing.noise_array import Noise, framed, plain
from dpaudit.integrations.observing.traced import LAWS, Source


class Numpy:
    """The adapter."""

    library = "numpy"
    versions = ("1.26.", "2.")
    packages = ("numpy", "scipy", "pandas")

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Generators that are made from now on, the functions of the module, and scipy's laws."""
        watched = _generator(recorder)

        def default_rng(seed: Any = None) -> Any:
            if isinstance(seed, watched):
                return seed
            own = seed if isinstance(seed, np.random.Generator) else original(seed)
            return own if recorder.quiet else watched(own.bit_generator)

        original = np.random.default_rng
        yield Patch(np.random, "default_rng", lambda _: default_rng)
        for name in ("laplace", "normal", "standard_normal"):
            yield Patch(np.random, name, partial(_function, recorder, name))
        for kind in (rv_continuous, rv_discrete):
            yield Patch(kind, "rvs", lambda own: _variates(recorder, own))
        if torch := sys.modules.get("torch"):  # takes nothing but arrays
            for name in ("from_numpy", "tensor", "as_tensor"):
                yield Patch(torch, name, lambda own: lambda data, **how: own(plain(data), **how))
        if pandas := sys.modules.get("pandas"):
            yield Patch(pandas.DataFrame, "_arith_method", framed)


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
    found = Noise(np.asarray(made), Source.of(law, float(scale), recorder, np.size(made)))
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
        if own.name not in LAWS or recorder.quiet:
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
