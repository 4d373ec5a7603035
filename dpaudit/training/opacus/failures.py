"""What opacus cannot do with a model, in one sentence and before anything is charged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from dpaudit.base.errors import UnsupportedError
from dpaudit.training.opacus.step import clips_in_the_loss


def explain(module: Any, optimizer: Any) -> None:
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
    """Norms of rows; not every sampler of opacus knows a batch of none."""
    if len(passed):
        return sampler(layer, seen, passed)
    return {p: passed.new_zeros(0) for p in layer.parameters() if p.requires_grad}


def _stepped(step: Callable[..., Any], names: dict[int, str], params: Any, *given: Any) -> Any:
    """A step on gradients of the same rows for all parameters, as wide as these."""
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
