"""One noisy step of an opacus optimizer: its noise, and the optimizers and models that can take it.

What opacus cannot do with a model is told in one sentence, before anything is charged and without
a size of a batch, which is private.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from opacus import __version__
from opacus.optimizers import (
    AdaClipDPOptimizer,
    DistributedDPOptimizer,
    DPOptimizer,
    DPOptimizerFastGradientClipping,
)
from opacus.optimizers.ddpoptimizer_fast_gradient_clipping import (
    DistributedDPOptimizerFastGradientClipping,
)

from dpaudit.base.errors import InputError, UnsupportedError

SAMPLER = f"opacus {__version__}"

DISTRIBUTED = DistributedDPOptimizer | DistributedDPOptimizerFastGradientClipping
"""Optimizers of several processes that sum after process 0 added its noise.

Sharded models (FSDP) hold parts of each gradient, and per-layer clipping of several processes adds
noise within the backward pass: neither has one moment at which a step could be refused."""


class ObservedStep(NamedTuple):
    """A noisy step that happened. It never leaves the process: the actual batch size is private.

    Attributes:
        at: label of the declared invocation.
        unit: the batch of the epoch, where batches are disjoint; else None.
        noise_multiplier: noise in units of the clip norm.
        max_grad_norm: the clip norm.
        expected_batch_size: what the sum is divided by; None for a sum.
        actual_batch_size: units that contributed.
        physical_batches: parts in which the batch was processed.
        epoch: passes over the loader that were begun, this one included; 0 without a loader.
        secure_mode: whether opacus drew the noise in its secure mode.
    """

    at: str
    unit: str | None
    noise_multiplier: float
    max_grad_norm: float
    expected_batch_size: float | None
    actual_batch_size: int
    physical_batches: int
    epoch: int
    secure_mode: bool


class GradientNoise:
    """The noise that an optimizer is about to add to its sum of clipped gradients."""

    sampler = SAMPLER
    packages = ("opacus", "torch")

    def __init__(self, optimizer: Any, add_noise: Callable[[], None]) -> None:
        self._optimizer = optimizer
        self._add_noise = add_noise

    def draw(self) -> None:
        """Let opacus add its noise; if it fails, no gradient that has some is left behind."""
        try:
            self._add_noise()
        except BaseException:
            for p in self._optimizer.params:
                p.grad = None
            raise

    def value(self) -> NDArray[Any]:
        """Return the sum of clipped gradients, flat; private."""
        return _flat([p.summed_grad for p in self._optimizer.params])

    def released(self) -> NDArray[Any]:
        """Return the noisy sum, flat."""
        return _flat([p.grad for p in self._optimizer.params])

    def impose(self, released: ArrayLike) -> None:
        """Put a noisy sum in place of the one just drawn, as a replay does."""
        values = torch.as_tensor(np.asarray(released, dtype=np.float64))
        sizes = [p.numel() for p in self._optimizer.params]
        if values.ndim != 1 or values.numel() != sum(sizes):
            raise InputError(
                f"released has shape {tuple(values.shape)}; the gradient has {sum(sizes)} entries."
            )
        for p, part in zip(self._optimizer.params, values.split(sizes), strict=True):
            p.grad = part.to(dtype=p.dtype, device=p.device, copy=True).view_as(p)


def _flat(tensors: list[Any]) -> NDArray[Any]:
    parts = [t.detach().reshape(-1).to(device="cpu", dtype=torch.float64) for t in tensors]
    return np.array(torch.cat(parts).numpy())  # a copy: gradients are scaled in place


def clips_in_the_loss(optimizer: Any) -> bool:
    """Tell whether the loss clips (fast gradient and ghost clipping), and not the optimizer."""
    return isinstance(optimizer, DPOptimizerFastGradientClipping)


def clips_adaptively(optimizer: Any) -> bool:
    """Tell whether the clip norm follows the gradients."""
    return isinstance(optimizer, AdaClipDPOptimizer)


def is_distributed(optimizer: Any) -> bool:
    """Tell whether it sums over processes, as :data:`DISTRIBUTED` does."""
    return type(optimizer) in get_args(DISTRIBUTED)


def require_supported(optimizer: Any, module: Any) -> None:
    """Refuse what is no opacus optimizer, or one whose noise this module does not account for.

    Args:
        optimizer: to be attached.
        module: its model, where it is known.

    Raises:
        InputError: if it is no opacus optimizer, or clips in the loss of a model that is not known.
        UnsupportedError: if it clips or adds noise in another way.
    """
    if not isinstance(optimizer, DPOptimizer):
        raise InputError(
            f"optimizer is a {type(optimizer).__name__}; it must be a PrivacyEngine before "
            "make_private, or an optimizer that make_private returned."
        )
    # A distributed optimizer knows the number of its processes, and only one of them adds noise.
    if hasattr(optimizer, "world_size") and not is_distributed(optimizer):
        raise UnsupportedError(
            f"optimizer is a {type(optimizer).__name__}; in several processes, only flat and "
            "ghost clipping of models that are not sharded are supported."
        )
    if clips_in_the_loss(optimizer) and module is None:
        raise InputError(
            "optimizer leaves clipping to the loss, where dpaudit cannot see it; attach the "
            "PrivacyEngine before make_private."
        )


def clip_norm(optimizer: Any) -> float:
    """Return the norm that one unit's gradient is clipped to, over all layers."""
    layers = getattr(optimizer, "max_grad_norms", None)
    norm = optimizer.max_grad_norm if layers is None else math.hypot(*layers)
    if isinstance(norm, list | tuple):
        raise InputError("max_grad_norm is a list; flat clipping needs one number.")
    return float(norm)


def explain_failures(module: Any, optimizer: Any) -> None:
    """Let hooks and steps fail with a sentence, and not for want of rows."""
    in_the_loss, model = clips_in_the_loss(optimizer), getattr(module, "_module", module)
    for handle in getattr(module, "autograd_grad_sample_hooks", ()):
        hooks = handle.hooks_dict_ref()
        hooks[handle.id] = partial(_hooked, hooks[handle.id], in_the_loss)
    if in_the_loss:
        kinds = module.NORM_SAMPLERS.items()
        module.NORM_SAMPLERS = {kind: partial(_norms, sampler) for kind, sampler in kinds}
    else:
        named = () if model is None else model.named_parameters()
        names = {id(p): name for name, p in named}
        optimizer.pre_step = partial(_stepped, optimizer.pre_step, names, optimizer.params)


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"opacus takes no gradients of rows for {what}; freeze it (requires_grad_(False)), or take "
        "a model whose layers have rows first, and are used as layers alone, such as BERT, "
        "RoBERTa, ELECTRA, ALBERT, DistilBERT, GPT-2 and Llama."
    )


def _require_wide(dtype: torch.dtype) -> None:
    if dtype.itemsize < 4:
        raise UnsupportedError(
            f"gradients are summed as {dtype}, and rounded by more than their noise covers; load "
            "the model as torch.float32, and take grad_sample_mode='hooks' with autocast."
        )


def _hooked(hook: Callable[..., Any], in_the_loss: bool, layer: Any, *given: Any) -> Any:
    passed = given[-1][0] if isinstance(given[-1], tuple) else None
    if in_the_loss and isinstance(passed, torch.Tensor):
        _require_wide(passed.dtype)
    try:
        return hook(layer, *given)
    except torch.OutOfMemoryError:
        raise
    except (AttributeError, IndexError, RuntimeError, TypeError):
        # Their texts have sizes of batches, which are private.
        raise _unsupported(f"a {type(layer).__name__}") from None


def _norms(sampler: Callable[..., Any], layer: Any, seen: Any, passed: Any) -> Any:
    """Take norms of rows; not every sampler of opacus knows a batch of none."""
    if len(passed):
        return sampler(layer, seen, passed)
    return {p: passed.new_zeros(0) for p in layer.parameters() if p.requires_grad}


def _stepped(step: Callable[..., Any], names: dict[int, str], params: Any, *given: Any) -> Any:
    """Return a step on gradients of the same rows for all parameters, as wide as these."""
    rows: list[int | None] = []
    for p in params:
        parts = p.grad_sample if isinstance(p.grad_sample, list) else [p.grad_sample]
        sizes = [None if each is None else len(each) for each in parts]
        rows = rows or sizes
        if None in sizes or sizes != rows:
            raise _unsupported(names.get(id(p), "a parameter"))
        _require_wide(p.dtype)
        if parts[0].dtype is not p.dtype:  # of autocast; opacus would round their norms
            wide = [each.to(p.dtype) for each in parts]
            p.grad_sample = wide if isinstance(p.grad_sample, list) else wide[0]
    return step(*given)
