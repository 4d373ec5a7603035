"""What a training may do beside its ledger: other steps, and randomness that is used again.

Optimizers look before each step, findings at the end. Copies of tensors tell whether something else
wrote to them; digests and copies never leave the process.
"""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from io import BytesIO
from operator import attrgetter
from typing import Any

import torch

from dpaudit.base.errors import PlanMismatchError

_kind = attrgetter("dtype", "device", "shape")
_NONE = torch.empty(0)


class TensorCopies:
    """Copies of tensors, or of None, to compare them with what they are later.

    Attributes:
        holds: whether there are any that count.
        views: the copies, in the order of the tensors.
    """

    def __init__(self) -> None:
        self.holds = False
        self.views: list[Any] = []
        self._bytes: list[bytearray | None] = []  # of the copies, where they can be compared so
        self._kinds: list[Any] = []

    def keep(self, tensors: Sequence[Any], over: float = 1.0) -> None:
        """Copy the tensors, divided by a number as torch divides them."""
        held = [_NONE if each is None else each.data for each in tensors]
        if list(map(_kind, held)) != self._kinds:
            self._kinds = list(map(_kind, held))
            memory = list(map(_memory, held))
            self._bytes, self.views = [raw for raw, _ in memory], [view for _, view in memory]
        torch._foreach_copy_(self.views, held)
        for view in self.views if over != 1 else ():
            view.div_(over)
        self.holds = True

    def unchanged(self, tensors: Sequence[Any]) -> bool:
        """Tell whether these are the tensors held, NaN being itself."""
        held = [_NONE if each is None else each.data for each in tensors]
        if not self.holds or list(map(_kind, held)) != self._kinds:
            return False
        return all(map(_alike, self._bytes, self.views, held))

    def finite(self) -> bool:
        """Tell whether no value that is held is infinite or NaN."""
        # Where their sum is finite, all of them are; that is the faster question.
        return all(math.isfinite(each.sum()) or each.isfinite().all() for each in self.views)


def _memory(tensor: Any) -> tuple[bytearray | None, Any]:
    """Allocate memory of the kind of a tensor, as bytes where numpy knows it, and as a tensor."""
    size, dtype = tensor.numel(), tensor.dtype
    raw = bytearray(max(1, size) * dtype.itemsize)
    view = torch.frombuffer(raw, dtype=dtype)[:size].view(tensor.shape)
    known = tensor.device.type == "cpu" and dtype is not torch.bfloat16
    return (raw, view) if known else (None, view.to(tensor.device))


def _alike(raw: bytearray | None, x: Any, y: Any) -> bool:
    # Bytes are compared five times faster, and in place.
    if raw is not None and y.is_contiguous() and raw == y.numpy():
        return True
    return torch.equal(x, y) or bool(((x == y) | (x.isnan() & y.isnan())).all())


def bytes_of(tensor: Any) -> bytes:
    """Return the values of a tensor; of a kind that numpy does not know, as larger floats."""
    known = tensor.float() if tensor.dtype is torch.bfloat16 else tensor
    return bytes(known.numpy(force=True).tobytes())


def content(value: Any) -> Any:
    """Return what a value and its tensors hold, to compare; where none can tell, no equal."""
    into = BytesIO()
    pickler = pickle.Pickler(into)
    pickler.dispatch_table = {torch.Tensor: lambda each: (bytes, (bytes_of(each),))}
    try:
        pickler.dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        return object()
    return into.getvalue()


_OWNER = "_dpaudit_owner"
"""Where a tensor holds a number of the ledger whose step wrote to it last."""

_WRITES = "_opacus_writes"
"""Where a ledger holds all of its :class:`Writes`, which may share tensors."""

_owner = attrgetter(_OWNER)


def _is_parameter(tensor: Any) -> bool:
    return isinstance(tensor, torch.nn.Parameter)


class Randomness:
    """States of generators, of which none may be drawn from twice.

    Attributes:
        repeated: whether one was: what was drawn from it then was drawn before.
    """

    def __init__(self) -> None:
        self.repeated = False
        self._seen: set[int] = set()

    @staticmethod
    def state(generator: Any) -> int | None:
        """Hash the state of a generator, or of torch's own; None of one that shows none."""
        source = torch.default_generator if generator is None else generator
        try:
            return hash(source.get_state().numpy().tobytes())
        except (AttributeError, RuntimeError, TypeError):
            return None

    def note(self, state: int | None) -> None:
        """Note that something was drawn from a state."""
        if state is not None:
            self.repeated |= state in self._seen
            self._seen.add(state)


def watch_inputs(module: Any, look: Callable[..., None]) -> None:
    """Show what a model is trained on to somebody, before each pass.

    Args:
        module: that ``make_private`` returned, model or hooks.
        look: is given the arguments of the model, by place and by name.
    """

    def hook(model: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        if model.training and torch.is_grad_enabled():
            look(args, named)

    model = module if isinstance(module, torch.nn.Module) else module._module
    model.register_forward_pre_hook(hook, with_kwargs=True)


class Inputs:
    """The batches that a model saw, by a digest that never leaves the process.

    Args:
        module: that ``make_private`` returned, model or hooks.

    Attributes:
        last: of the batch seen last; None where it cannot be told from its like.
    """

    def __init__(self, module: Any) -> None:
        self.last: int | None = None
        self._rows = torch.empty(0)
        watch_inputs(module, self._look)

    def _look(self, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        held = [each for each in (*args, *named.values()) if isinstance(each, torch.Tensor)]
        if not held or held[0].ndim == 0 or held[0].shape[0] < 2:
            self.last = None
            return
        self.last = hash(tuple([bytes_of(each) for each in held]))
        self._rows = held[0].data

    def chance(self) -> float:
        """Estimate the chance to draw the last batch again, by how common its rows are in it.

        Small batches, and those of few different rows, come again in honest trainings.
        """
        alike = Counter(map(bytes_of, self._rows))
        rows = len(self._rows)
        return math.prod((count / rows) ** count for count in alike.values())


class Writes:
    """The writers of a model: steps of attached optimizers, each after its noise.

    Args:
        optimizer: of opacus; the one that it wraps steps only after noise was added, and by it.
        ledger: of the training, whose optimizers may share a model.
        module: the model, where it is known; its other parameters and its buffers stay as they are.

    Attributes:
        elsewhere: whether something else wrote to it between two steps.
    """

    def __init__(self, optimizer: Any, ledger: Any, module: Any) -> None:
        self.elsewhere = False
        self._optimizer, self._ledger = optimizer, id(ledger)
        self._model = getattr(module, "_module", module)
        self._wrapped = optimizer.original_optimizer
        self._all: list[Writes] = vars(ledger).setdefault(_WRITES, [])
        self._all.append(self)
        self._watched: list[Any] = []
        self._views: dict[int, Any] = {}  # of the copies, by tensor
        self._left = TensorCopies()  # what is watched, as the last step left it
        self._counters: list[Any] | None = None  # copies of buffers that count steps
        self._noisy = TensorCopies()  # gradients that a step may take
        self._wrapped.register_step_pre_hook(self._require_noisy)
        self._wrapped.register_step_post_hook(self._after)
        if module is not None:
            watch_inputs(module, self._passed)
        if hasattr(optimizer, "reduce_gradients"):  # sums over processes, after the noise
            self._reduce, optimizer.reduce_gradients = optimizer.reduce_gradients, self._reduced

    def _passed(self, *_: Any) -> None:
        """Compare parameters before a pass that makes gradients; they may be put back after it."""
        if self._watched and not self.elsewhere:
            left = ((self._views[id(p)], p.data) for p in self._watched if _is_parameter(p))
            self.elsewhere = not all(_kind(x) == _kind(y) and _alike(None, x, y) for x, y in left)

    def look(self, params: list[Any]) -> None:
        """Compare the model with what the last attached step left, before one of parameters.

        Raises:
            PlanMismatchError: if the step would also take a gradient that gets no noise.
        """
        self._params, noisy = params, set(map(id, params))
        held = [p for group in self._wrapped.param_groups for p in group["params"]]
        if any(p.grad is not None and p.grad.any() for p in held if id(p) not in noisy):
            raise PlanMismatchError(
                "a parameter was frozen after its gradient was made, and the step would use that "
                "without noise; freeze parameters before the backward pass."
            )
        if self._watched:
            owners = set(map(_owner, self._watched))
            self.elsewhere |= owners != {self._ledger} or not self._unchanged()
        else:
            self._begin()
        # Noise that no step took was used for something else.
        self.elsewhere |= self._noisy.holds
        self.elsewhere |= self._optimizer.original_optimizer is not self._wrapped

    def _begin(self) -> None:
        """Note how the model is, or as the last step of another optimizer of the ledger left it."""
        model, params = self._model, self._params
        held = params if model is None else [*params, *model.parameters(), *model.buffers()]
        self._watched = list({id(each): each for each in held}.values())
        self._left.keep(self._watched)
        views = dict(zip(map(id, self._watched), self._left.views, strict=True))
        for each in self._watched:
            if getattr(each, _OWNER, None) == self._ledger:
                for other in self._all:
                    views[id(each)].copy_(other._views.get(id(each), views[id(each)]))
            setattr(each, _OWNER, self._ledger)
        self._views = views
        self._beside = self._besides()

    def _unchanged(self) -> bool:
        """Tell whether nothing changed but buffers that count steps, by one a step."""
        if self._counters is None:
            self._counters = [
                left
                for left, now in zip(self._left.views, self._watched, strict=True)
                if not _is_parameter(now)
                and (left + 1).dtype is now.dtype
                and left.device == now.device
                and torch.equal(left + 1, now)
            ]
        if self._counters:
            torch._foreach_add_(self._counters, 1)
        return self._left.unchanged(self._watched)

    def _besides(self) -> Any:
        """Tell which tensors the model has, and what its state_dict holds beside them."""
        model = self._model
        if model is None:
            return None
        held = dict(model.named_parameters(remove_duplicate=False))
        held |= model.named_buffers(remove_duplicate=False)
        rest = {name: each for name, each in model.state_dict().items() if name not in held}
        return {*map(id, held.values())}, content(rest)

    @property
    def found(self) -> bool:
        """Whether something else wrote to the model, or changed what else its state_dict holds."""
        return self.elsewhere or (bool(self._watched) and self._besides() != self._beside)

    def admit(self) -> None:
        """Admit one step, now that noise was added: by these gradients over the batch size."""
        optimizer = self._optimizer
        mean = str(optimizer.loss_reduction) == "mean"
        size = optimizer.expected_batch_size * optimizer.accumulated_iterations if mean else 1.0
        self._noisy.keep([p.grad for p in self._params], over=size)

    def _reduced(self) -> None:
        self._require_noisy()
        self._reduce()
        self._noisy.keep([p.grad for p in self._params])

    def _require_noisy(self, *_: Any) -> None:
        if not self._noisy.holds:
            raise PlanMismatchError(
                "the optimizer that opacus wraps was asked for a step without noise; call step of "
                "the one that make_private returned."
            )
        if not self._noisy.unchanged([p.grad for p in self._params]):
            raise PlanMismatchError(
                "the gradients were changed after their noise was added; change neither them "
                "nor the step that make_private's optimizer takes."
            )

    def _after(self, *_: Any) -> None:
        self._noisy.holds = False
        for each in self._all:
            own = [p for p in self._params if id(p) in each._views]
            if own and not each.elsewhere:
                torch._foreach_copy_([each._views[id(p)] for p in own], [p.data for p in own])
        for p in self._params:
            setattr(p, _OWNER, self._ledger)
