"""Home-made noise of torch: seen where it is added to a value.

Noise is a subclass of tensors that is told of all that is done with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributions

from dpaudit.observing import Patch, Recorder
from dpaudit.observing.sources import READS, SEEDS, SETS, Source, handling, of_option

_OPERATIONS = {"add": "add", "mul": "multiply", "div": "divide", "neg": "negative"} | {
    **{"sub": "subtract", "__rsub__": "subtract", "rsub": "subtract", "true_divide": "divide"},
    **{name: name for name in ("subtract", "multiply", "divide", "negative")},
}
"""Functions of torch by numpy's name for them; those in place end with an underscore."""
_SHAPING = re.compile(
    "reshape|view|view_as|flatten|ravel|(un)?squeeze|transpose|permute|t|clone|contiguous|detach|to|"
    "cpu|cuda|double|float|type_as|expand|expand_as|unbind|split|chunk|__getitem__|__get__"
)
"""What leaves the numbers as they are."""
_PUBLIC = frozenset({"size", "dim", "numel", "__len__", "stride", "is_floating_point"})


class Noise(torch.Tensor):  # type: ignore[misc]  # its types are not read here
    """Draws of one law, which are a release once they are added to a value."""

    source: Source

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Noise again, a release, or plain numbers."""
        found: list[Noise] = []
        given, options = _plain(args, found), _plain(kwargs or {}, found)
        made, name = partial(function, *given, **options), function.__name__
        if name in _PUBLIC or found[0].source.recorder.quiet:
            return made()
        if "out" in options:
            result = function(*args, **{key: kwargs[key] for key in kwargs if key != "out"})
            return kwargs["out"].resize_(result.shape).copy_(result)
        if options.keys() == {"alpha"} and name != "rsub":
            return function(args[0], args[1] * kwargs["alpha"])
        if _SHAPING.fullmatch(name) and len(found) == 1:
            return noise_of(made(), found[0].source)
        if not options and len(found) == 1 and len(args) < 3:
            result = _after(name, args, given, made)
            if result is not None:
                return result
        for each in found:
            each.source.note_seen()
        return made()


def _plain(given: Any, found: list[Noise]) -> Any:
    """Return the same with plain tensors, for noise that is told."""
    if isinstance(given, Noise):
        found.append(given)
        with torch._C.DisableTorchFunctionSubclass():
            return given.as_subclass(torch.Tensor)
    if isinstance(given, dict):
        return {key: _plain(each, found) for key, each in given.items()}
    if type(given) in (list, tuple):
        return type(given)(_plain(each, found) for each in given)
    return given


def noise_of(made: Any, source: Source) -> Any:
    """Return what was made of noise, as noise; what holds none as it is."""
    if isinstance(made, list | tuple) and not isinstance(made, torch.Size):
        return type(made)(noise_of(each, source) for each in made)
    if not isinstance(made, torch.Tensor):
        return made
    found = made.as_subclass(Noise)
    found.source = source
    return found


def _after(name: str, args: Any, given: Any, made: Any) -> Any:
    """Return what an operation with numbers gives, where it is noise again or a release."""
    operation = _OPERATIONS.get(name if name.startswith("_") else name.removesuffix("_"))
    if operation is None:
        return None
    place = int(not isinstance(args[0], Noise))
    source, other = args[place].source, given[1 - place] if len(args) == 2 else None
    first = (place == 0) != (name in ("__rsub__", "rsub"))
    in_place = name.endswith("_") and not name.startswith("_")
    scaled = source.scaled(operation, other, first)
    if scaled is not None and not (in_place and place):
        return noise_of(made(), scaled)
    hidden = source.hidden(operation, other, first)
    if hidden is None:
        return None
    value, draws = torch.as_tensor(hidden).detach(), given[place].numel()
    if value.is_complex():
        return None
    value = value.broadcast_to(torch.broadcast_shapes(value.shape, given[place].shape))
    whole: list[torch.Tensor] = []

    def draw() -> Any:
        whole.append(made())
        return _numbers(whole[0])

    facts = {"dtype": str(value.dtype).removeprefix("torch.")}
    released = source.added(_numbers(value), draws, draw, facts)
    with torch.no_grad():
        whole[0].copy_(torch.as_tensor(released))
    return whole[0]


def _numbers(given: torch.Tensor) -> NDArray[Any]:
    """Return an array of its own, with which nothing is lost."""
    return np.array(given.detach().cpu().double().numpy())


def looked_at(given: Any) -> Any:
    """Return what was given without noise, all of which is looked at."""
    found: list[Noise] = []
    plain = _plain(given, found)
    for each in found:
        each.source.note_seen()
    return plain


_SHARED = torch.default_generator
_HANDLING = {"manual_seed": SEEDS, "seed": SEEDS, "initial_seed": READS}
_HANDLING |= {"get_rng_state": READS, "set_rng_state": SETS}


class Torch:
    """The adapter."""

    library = "torch"
    versions = ("2.",)
    packages = ("torch",)

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Yield what draws, and the two ways to copy numbers of which tensors are not told."""
        for owner in (torch, torch.random):
            yield from handling(recorder, owner, _SHARED, _HANDLING.items())
        for name in ("randn", "randn_like"):
            yield Patch(torch, name, recorder.replacing(partial(_standard, recorder)))
        yield Patch(torch, "normal", recorder.replacing(partial(_normal, recorder)))
        yield Patch(torch.Tensor, "normal_", recorder.replacing(partial(_filled, recorder)))
        for kind, law in ((distributions.Laplace, "laplace"), (distributions.Normal, "normal")):
            for name in ("sample", "rsample"):
                yield Patch(kind, name, recorder.replacing(partial(_sampled, recorder, law)))
        for name in ("tensor", "as_tensor"):
            yield Patch(torch, name, lambda own: lambda data, **how: own(looked_at(data), **how))
        setting = torch.Tensor, "__setitem__"
        yield Patch(*setting, lambda own: lambda to, key, held: own(to, key, looked_at(held)))


def _drawn(recorder: Recorder, law: str, scale: Any, loc: Any, draw: partial[torch.Tensor]) -> Any:
    """Draw noise around 0, or a release at once where it comes with its value."""
    generator = of_option(recorder, draw.keywords.get("generator"), _SHARED)
    made, spread = recorder.alone(draw), torch.as_tensor(scale, dtype=torch.float64)
    if not spread.numel() or spread.min() != spread.max() or not spread.min() > 0:
        return made + loc
    source = Source.of(law, float(spread.min()), recorder, made.numel(), generator)
    found = noise_of(made, source)
    return found if not isinstance(loc, torch.Tensor) and not loc else found + loc


def _standard(recorder: Recorder, original: Any, *given: Any, **options: Any) -> Any:
    return _drawn(recorder, "normal", 1.0, 0.0, partial(original, *given, **options))


def _normal(
    recorder: Recorder, original: Any, mean: Any = 0.0, std: Any = 1.0, *size: Any, **options: Any
) -> Any:
    around = torch.zeros_like(mean) if isinstance(mean, torch.Tensor) else 0.0
    return _drawn(recorder, "normal", std, mean, partial(original, around, std, *size, **options))


def _filled(
    recorder: Recorder, original: Any, own: Any, mean: float = 0.0, std: float = 1.0, **options: Any
) -> Any:
    if not std > 0 or mean:
        return original(own, mean, std, **options)
    return _drawn(recorder, "normal", std, 0.0, partial(original, own, 0.0, std, **options))


def _sampled(recorder: Recorder, law: str, original: Any, own: Any, sample_shape: Any = ()) -> Any:
    around = type(own)(torch.zeros_like(own.loc), own.scale, validate_args=False)
    loc = own.loc if own.loc.any() else 0.0
    return _drawn(
        recorder, law, own.scale, loc, partial(original, around, torch.Size(sample_shape))
    )


ADAPTER = Torch()
