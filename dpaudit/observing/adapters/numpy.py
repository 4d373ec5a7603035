"""Home-made noise of numpy.random and scipy.stats: seen where it is added to a value."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rv_continuous, rv_discrete

from dpaudit.observing import Patch, Recorder
from dpaudit.observing.generators import SEEDS, SHARED, bits, of_numpy, of_state, seen_generator
from dpaudit.observing.noise_array import Noise, framed, plain
from dpaudit.observing.traced import LAWS, Source

_NAMES = ("laplace", "normal", "standard_normal")


class Numpy:
    """The adapter."""

    library = "numpy"
    versions = ("1.26.", "2.")
    packages = ("numpy", "scipy", "pandas")

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Generators that are made from now on, the functions of the module, and scipy's laws."""
        watched = seen_generator(recorder, _NAMES, partial(_function, recorder))

        def default_rng(seed: Any = None) -> Any:
            if isinstance(seed, watched):
                return seed
            given = isinstance(seed, np.random.Generator)
            own = seed if given else original(seed)
            if not (given or seed is None):
                recorder.handled(bits(own), SEEDS)
            return own if recorder.quiet else watched(bits(own))  # type: ignore[arg-type]  # what it was made of

        original = np.random.default_rng
        yield Patch(np.random, "default_rng", lambda _: default_rng)
        for name in _NAMES:
            yield Patch(np.random, name, partial(_function, recorder, name, SHARED))
        yield from of_numpy(recorder)
        for kind in (rv_continuous, rv_discrete):
            yield Patch(kind, "rvs", lambda own: _variates(recorder, own))
        if torch := sys.modules.get("torch"):  # takes nothing but arrays
            for name in ("from_numpy", "tensor", "as_tensor"):
                yield Patch(torch, name, lambda own: lambda data, **how: own(plain(data), **how))
        if pandas := sys.modules.get("pandas"):
            for kind in (pandas.DataFrame, pandas.Series):
                yield Patch(kind, "_arith_method", framed)


def _function(recorder: Recorder, name: str, generator: Hashable, original: Any) -> Any:
    """``laplace(loc, scale, size)``, or ``standard_normal(size)``."""
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
    """Noise, which is a release at once where it comes with its value."""
    made = recorder.alone(draw)
    if np.ndim(scale) or not scale > 0:
        return made + loc
    source = Source.of(law, float(scale), recorder, np.size(made), generator)
    found = Noise(np.asarray(made), source)
    return found if np.ndim(loc) == 0 and not loc else found + loc


def _variates(recorder: Recorder, original: Any) -> Any:
    def rvs(own: Any, *given: Any, **options: Any) -> Any:
        if own.name not in LAWS or recorder.quiet:
            return original(own, *given, **options)
        shapes, loc, scale, _ = own._parse_args_rvs(
            *given, **{name: each for name, each in options.items() if name != "random_state"}
        )
        scale = 1 / shapes[0] if own.name == "dlaplace" else scale
        made = recorder.alone(lambda: original(own, *given, **options))
        state = of_state(recorder, options.get("random_state", own.random_state))
        scale, loc = np.asarray(scale)[()], np.asarray(loc)[()]
        return _drawn(recorder, own.name, state, scale, loc, lambda: made - loc)

    return rvs


ADAPTER = Numpy()
