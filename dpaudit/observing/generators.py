"""Generators of noise that code takes in hand: who knows their state can draw the noise again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial, wraps
from typing import Any

import numpy as np

from dpaudit.observing.recorder import Patch, Recorder

SEEDS = "sets the seed"
READS = "reads the state"
SETS = "sets the state"
COPIES = "makes a copy"
HOLDS = "chooses the seed"
SHARED = np.random.mtrand._rand
"""That of the functions of ``numpy.random``."""
_BITS: Any = np.random.Generator.bit_generator
_HANDLING = {"seed": SEEDS, "get_state": READS, "set_state": SETS}
_HANDLING |= {"get_bit_generator": READS, "set_bit_generator": SETS}


def handling(
    recorder: Recorder, owner: Any, known: Hashable, names: Iterable[tuple[str, str]]
) -> Iterator[Patch]:
    """What tells that functions of a module are called, which take its own generator in hand.

    Args:
        recorder: is told.
        owner: the module.
        known: the generator.
        names: of functions, each with what the code does by it.
    """

    def made(how: str, original: Any) -> Any:
        @wraps(original)
        def call(*given: Any, **options: Any) -> Any:
            recorder.handled(known, how)
            return original(*given, **options)

        return call

    for name, how in names:
        yield Patch(owner, name, partial(made, how))


def of_numpy(recorder: Recorder) -> Iterator[Patch]:
    """The same of ``numpy.random``."""
    return handling(recorder, np.random, SHARED, _HANDLING.items())


def seen_generator(
    recorder: Recorder, laws: Iterable[str], drawing: Callable[[str, Hashable, Any], Any]
) -> type[np.random.Generator]:
    """A class of numpy's generators that tell what is drawn, and whether their state is seen.

    Args:
        recorder: is told.
        laws: names of methods that draw noise.
        drawing: what replaces a method, given its name, the generator and what it was.
    """

    def drawn(name: str) -> Any:
        original = getattr(np.random.Generator, name)

        def method(own: Any, *given: Any, **options: Any) -> Any:
            return drawing(name, bits(own), original.__get__(own))(*given, **options)

        return method

    def read(own: Any) -> Any:
        recorder.handled(bits(own), READS)
        return bits(own)

    def reduced(own: Any, _: Any = None) -> Any:
        recorder.handled(bits(own), COPIES)
        return np.random.Generator, (bits(own),)

    def spawned(own: Any, n_children: int) -> Any:
        made = np.random.Generator.spawn(own, n_children)
        for each in made:
            recorder.inherited(bits(each), bits(own))
        return made

    methods = {name: drawn(name) for name in laws}
    held = {"bit_generator": property(read), "__reduce__": reduced, "__reduce_ex__": reduced}
    held |= {"spawn": spawned}
    return type("Generator", (np.random.Generator,), methods | held)


def bits(generator: np.random.Generator) -> Hashable:
    """What two objects have in common that draw from one stream."""
    found: Hashable = _BITS.__get__(generator)
    return found


def of_option(recorder: Recorder, given: Any, shared: Hashable) -> Hashable:
    """The generator that ``generator=`` means; none but the shared one is seeded by the system."""
    if given is None or given is shared:
        return shared
    recorder.handled(given, HOLDS)
    known: Hashable = given
    return known


def of_state(recorder: Recorder, state: Any) -> Hashable:
    """The generator that ``random_state=`` means; one of the code's own is in its hands."""
    if state is None or state is SHARED:
        return SHARED
    if isinstance(state, np.random.Generator):
        return bits(state)
    key = state if isinstance(state, np.random.RandomState) else object()
    recorder.handled(key, HOLDS)
    return key
