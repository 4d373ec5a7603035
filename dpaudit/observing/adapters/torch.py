"""Home-made noise of torch: seen where it is added to a value."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import distributions

from dpaudit.observing import Patch, Recorder
from dpaudit.observing.generators import READS, SEEDS, SETS, handling, of_option
from dpaudit.observing.noise_tensor import looked_at, noise_of
from dpaudit.observing.traced import Source

_SHARED = torch.default_generator
_HANDLING = {"manual_seed": SEEDS, "seed": SEEDS, "initial_seed": READS}
_HANDLING |= {"get_rng_state": READS, "set_rng_state": SETS}


class Torch:
    """The adapter."""

    library = "torch"
    versions = ("2.",)
    packages = ("torch",)

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """What draws, and the two ways to copy numbers of which tensors are not told."""
        for owner in (torch, torch.random):
            yield from handling(recorder, owner, _SHARED, _HANDLING.items())
        for name in ("randn", "randn_like"):
            yield Patch(torch, name, partial(_standard, recorder))
        yield Patch(torch, "normal", partial(_normal, recorder))
        yield Patch(torch.Tensor, "normal_", partial(_filled, recorder))
        for kind, law in ((distributions.Laplace, "laplace"), (distributions.Normal, "normal")):
            for name in ("sample", "rsample"):
                yield Patch(kind, name, partial(_sampled, recorder, law))
        for name in ("tensor", "as_tensor"):
            yield Patch(torch, name, lambda own: lambda data, **how: own(looked_at(data), **how))
        setting = torch.Tensor, "__setitem__"
        yield Patch(*setting, lambda own: lambda to, key, held: own(to, key, looked_at(held)))


def _drawn(recorder: Recorder, law: str, scale: Any, loc: Any, draw: partial[torch.Tensor]) -> Any:
    """Noise around 0, or a release at once where it comes with its value."""
    generator = of_option(recorder, draw.keywords.get("generator"), _SHARED)
    made, spread = recorder.alone(draw), torch.as_tensor(scale, dtype=torch.float64)
    if not spread.numel() or spread.min() != spread.max() or not spread.min() > 0:
        return made + loc
    source = Source.of(law, float(spread.min()), recorder, made.numel(), generator)
    found = noise_of(made, source)
    return found if not isinstance(loc, torch.Tensor) and not loc else found + loc


def _standard(recorder: Recorder, original: Any) -> Any:
    def randn(*given: Any, **options: Any) -> Any:
        if recorder.quiet:
            return original(*given, **options)
        return _drawn(recorder, "normal", 1.0, 0.0, partial(original, *given, **options))

    return randn


def _normal(recorder: Recorder, original: Any) -> Any:
    def normal(mean: Any = 0.0, std: Any = 1.0, *size: Any, **options: Any) -> Any:
        if recorder.quiet:
            return original(mean, std, *size, **options)
        around = torch.zeros_like(mean) if isinstance(mean, torch.Tensor) else 0.0
        return _drawn(
            recorder, "normal", std, mean, partial(original, around, std, *size, **options)
        )

    return normal


def _filled(recorder: Recorder, original: Any) -> Any:
    def normal_(own: Any, mean: float = 0.0, std: float = 1.0, **options: Any) -> Any:
        if recorder.quiet or not std > 0 or mean:
            return original(own, mean, std, **options)
        return _drawn(recorder, "normal", std, 0.0, partial(original, own, 0.0, std, **options))

    return normal_


def _sampled(recorder: Recorder, law: str, original: Any) -> Any:
    def sample(own: Any, sample_shape: Any = ()) -> Any:
        shape = torch.Size(sample_shape)
        if recorder.quiet:
            return original(own, shape)
        around = type(own)(torch.zeros_like(own.loc), own.scale, validate_args=False)
        loc = own.loc if own.loc.any() else 0.0
        return _drawn(recorder, law, own.scale, loc, partial(original, around, shape))

    return sample


ADAPTER = Torch()
