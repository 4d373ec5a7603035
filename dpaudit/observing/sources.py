"""Home-made noise: the generators that it comes from, and its way to the value that it hides.

Adapters of numpy and torch use it, and that of diffprivlib for its generators. Noise remembers its
law until it meets a value: what comes out then is the release. How far a value moves only its
author knows, so a plan must say it. Noise that hid a value must be seen in no other way: who sees
both knows the value, and so does who knows the state of the generator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.mechanisms import DiscreteLaplace, Gaussian, Laplace, Mechanism
from dpaudit.observing.calls import Reading
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
    """Yield what tells that functions of a module are called, which take its own generator in hand.

    Args:
        recorder: is told.
        owner: the module.
        known: the generator.
        names: of functions, each with what the code does by it.
    """

    def made(how: str, original: Any) -> Any:
        @wraps(original)
        def call(*given: Any, **options: Any) -> Any:
            recorder.note_handling(known, how)
            return original(*given, **options)

        return call

    for name, how in names:
        yield Patch(owner, name, partial(made, how))


def of_numpy(recorder: Recorder) -> Iterator[Patch]:
    """Yield the same of ``numpy.random``."""
    return handling(recorder, np.random, SHARED, _HANDLING.items())


def seen_generator(
    recorder: Recorder, laws: Iterable[str], drawing: Callable[[str, Hashable, Any], Any]
) -> type[np.random.Generator]:
    """Give a class of numpy's generators that tell what is drawn, and whether their state is seen.

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
        recorder.note_handling(bits(own), READS)
        return bits(own)

    def reduced(own: Any, _: Any = None) -> Any:
        recorder.note_handling(bits(own), COPIES)
        return np.random.Generator, (bits(own),)

    def spawned(own: Any, n_children: int) -> Any:
        made = np.random.Generator.spawn(own, n_children)
        for each in made:
            recorder.note_heritage(bits(each), bits(own))
        return made

    methods = {name: drawn(name) for name in laws}
    held = {"bit_generator": property(read), "__reduce__": reduced, "__reduce_ex__": reduced}
    held |= {"spawn": spawned}
    return type("Generator", (np.random.Generator,), methods | held)


def bits(generator: np.random.Generator) -> Hashable:
    """Return what two objects have in common that draw from one stream."""
    found: Hashable = _BITS.__get__(generator)
    return found


def of_option(recorder: Recorder, given: Any, shared: Hashable) -> Hashable:
    """Return the generator of ``generator=``; the system seeds the shared one alone."""
    if given is None or given is shared:
        return shared
    recorder.note_handling(given, HOLDS)
    known: Hashable = given
    return known


def of_state(recorder: Recorder, state: Any) -> Hashable:
    """Return the generator that ``random_state=`` means; one of the code's own is in its hands."""
    if state is None or state is SHARED:
        return SHARED
    if isinstance(state, np.random.Generator):
        return bits(state)
    key = state if isinstance(state, np.random.RandomState) else object()
    recorder.note_handling(key, HOLDS)
    return key


LAWS: dict[str, Callable[[float], Mechanism]] = {
    "laplace": Laplace,
    "normal": Gaussian,
    "norm": Gaussian,
    "dlaplace": DiscreteLaplace,
}
"""By the name of what draws."""
_SUMS = ("add", "subtract")


class Fate:
    """The fate of one draw and of all that was made of it."""

    def __init__(self, draws: int) -> None:
        self.left = draws
        self._met = self._seen = self._told = False

    def note_met(self, source: Source, draws: int) -> None:
        """Return some of it was added to as many entries of a value."""
        if draws > self.left:
            source.recorder.tell("noise-shared", primitive=source.law)
        taken = min(self.left, draws)
        self.left -= taken
        source.recorder.note_met(source.law, taken)
        self._met = True
        self._tell(source)

    def note_seen(self, source: Source) -> None:
        """Note that it was looked at by itself, or changed."""
        self._seen = True
        self._tell(source)

    def _tell(self, source: Source) -> None:
        if self._met and self._seen and not self._told:
            self._told = True
            source.recorder.tell("noise-shown", primitive=source.law)


@dataclass(frozen=True)
class Source:
    """The origin of noise: its law and scale, whoever records it, and what became of it."""

    law: str
    scale: float
    recorder: Recorder
    fate: Fate

    @classmethod
    def of(
        cls, law: str, scale: float, recorder: Recorder, draws: int, generator: Hashable
    ) -> Source:
        """Return a fresh draw of a generator, which has met no value yet."""
        recorder.note_loose(law, draws)
        recorder.note_draw(generator, law)
        return cls(law, scale, recorder, Fate(draws))

    def note_seen(self) -> None:
        """Note that it was looked at by itself."""
        self.fate.note_seen(self)

    def scaled(self, operation: str, other: Any, first: bool) -> Source | None:
        """Return the source of what an operation with a number makes, where that is noise again.

        Args:
            operation: numpy's name for it.
            other: the number; None where there is none.
            first: whether the noise stands before it.
        """
        if operation == "negative":
            return self
        if operation != "multiply" and not (operation == "divide" and first):
            return None
        if self.law == "dlaplace" or other is None or np.ndim(other) or not other:
            return None
        factor = abs(float(other))
        return replace(self, scale=self.scale * (factor if operation == "multiply" else 1 / factor))

    def hidden(self, operation: str, other: Any, first: bool) -> Any:
        """Return the value that an operation hides, as a sum has it; None if it hides none."""
        if operation not in _SUMS or other is None:
            return None
        return -other if operation == "subtract" and first else other

    def added(
        self, value: NDArray[Any], draws: int, draw: Callable[[], Any], facts: dict[str, Any]
    ) -> Any:
        """Return the release that noise and a value make.

        Args:
            value: before noise, of the shape of the release.
            draws: how many of the numbers drawn it uses.
            draw: makes it.
            facts: public numbers, beside the scale.
        """
        self.fate.note_met(self, max(draws, value.size))
        mechanism = LAWS[self.law](self.scale)
        facts = {"scale": self.scale, **facts}
        return self.recorder.release(Reading(self.law, mechanism, None, value, facts=facts), draw)
