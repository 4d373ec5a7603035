"""Losses as graphs: what a sealed run sends in place of code, and how it is checked and computed.

A graph is a list of calls of listed operators of torch, each of parameters, parts of one example,
public constants and what was computed before. :mod:`dpaudit.training.gradients.tracing` makes one.
Shapes, types and sizes are checked without a value. What is listed keeps its shape whatever the
values are, draws nothing, reads no memory that it has not written, and fails for no value: places
that an example names are moved into the table that they name a row of.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.validate import shown
from dpaudit.sealed.messages import field

TYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "int64": torch.int64,
    "bool": torch.bool,
}
"""Those that values of a graph may have, by the names that numpy has for them too."""
INFINITE = ("inf", "-inf", "nan")
"""Numbers that JSON has no name for; masks are made of them."""
_MOST_NODES, _MOST_ENTRIES = 20_000, 2**24
_MOST_BYTES = 2**32
"""Of a unit: its intermediate values, thrice, as gradients need them too, and its gradients."""

_LISTED = """
abs.default add.Scalar add.Tensor clamp.Tensor clamp.default clamp_max.default clamp_min.default
cos.default div.Scalar div.Tensor elu.default erf.default exp.default expm1.default gelu.default
hardsigmoid.default hardswish.default hardtanh.default leaky_relu.default log.default
log1p.default log_sigmoid_forward.default maximum.default minimum.default mish.default mul.Scalar
mul.Tensor neg.default pow.Tensor_Scalar reciprocal.default relu.default rsqrt.default rsub.Scalar
rsub.Tensor sigmoid.default sign.default silu.default sin.default softplus.default sqrt.default
sub.Scalar sub.Tensor tanh.default _prelu_kernel.default bitwise_and.Tensor bitwise_not.default
bitwise_or.Tensor eq.Scalar eq.Tensor ge.Scalar ge.Tensor gt.Scalar gt.Tensor isnan.default
le.Scalar le.Tensor logical_and.default logical_not.default logical_or.default lt.Scalar lt.Tensor
masked_fill.Scalar masked_fill.Tensor ne.Scalar ne.Tensor where.self _to_copy.default
_unsafe_view.default alias.default arange.default arange.start arange.start_step cat.default
clone.default constant_pad_nd.default detach.default diagonal.default expand.default flip.default
full.default full_like.default lift_fresh.default lift_fresh_copy.default new_full.default
new_ones.default new_zeros.default ones.default ones_like.default permute.default repeat.default
scalar_tensor.default select.int slice.Tensor split.Tensor split_with_sizes.default
squeeze.default squeeze.dim squeeze.dims stack.default t.default transpose.int tril.default
triu.default unbind.int unsafe_split.Tensor unsqueeze.default view.default zeros.default
zeros_like.default addmm.default baddbmm.default bmm.default convolution.default dot.default
mm.default mv.default all.default all.dim amax.default amin.default any.default any.dim
argmax.default argmin.default cumsum.default linalg_vector_norm.default logsumexp.default
max.default max.dim mean.default mean.dim min.default min.dim prod.default prod.dim_int
std.correction sum.default sum.dim_IntList var.correction var_mean.correction _log_softmax.default
_safe_softmax.default _softmax.default binary_cross_entropy_with_logits.default huber_loss.default
mse_loss.default nll_loss2d_forward.default nll_loss_forward.default smooth_l1_loss.default
_adaptive_avg_pool2d.default avg_pool2d.default max_pool2d_with_indices.default
native_group_norm.default native_layer_norm.default embedding.default gather.default
index_select.default
"""
OPERATORS = frozenset(_LISTED.split())
"""Of torch.ops.aten, each with its overload."""

_TABLES = {"embedding.default": (0, 1, 0), "gather.default": (0, 2, 1)}
_TABLES |= {"index_select.default": (0, 2, 1)}
_CLASSES = {"nll_loss_forward.default", "nll_loss2d_forward.default"}
_POOLS = {"max_pool2d_with_indices.default"}
"""With a dilation a window may hold nothing but what is padded: torch then takes a place beyond the
end for its largest one, and writes a gradient there."""
_PARTS, _MOST_PARTS = {"split.Tensor", "split_with_sizes.default", "unbind.int"}, 10_000
_PARTS |= {"unsafe_split.Tensor"}
_MADE = {"arange.default", "arange.start", "arange.start_step", "full.default", "ones.default"}
_MADE |= {"scalar_tensor.default", "zeros.default"}
_INSTEAD = dict.fromkeys(("view.default", "_unsafe_view.default"), "reshape.default")
"""Of the same values, whatever the order in which they lie."""


@dataclass(frozen=True, eq=False)
class Graph:
    """The loss of one example, called with parameters by name and the parts of the example.

    Attributes:
        constants: public tensors.
        nodes: operator, arguments and options of each call.
        result: of the last call, the loss.
        is_total: whether a unit for which a call fails has the gradient 0, as its own rows decide
            that; else the failure is an error.
    """

    constants: tuple[Any, ...]
    nodes: tuple[tuple[str, list[Any], dict[str, Any]], ...]
    result: Any
    is_total: bool = False

    @classmethod
    def read(
        cls, record: Mapping[str, Any], parameters: Mapping[str, Any], example: Sequence[Any]
    ) -> tuple[Graph, int]:
        """Return the graph of a record, and how many bytes its values have, of one example.

        Args:
            record: as :func:`~dpaudit.training.gradients.tracing.traced` makes it.
            parameters: tensors by name, of which shapes and types count.
            example: likewise, its parts.

        Raises:
            InputError: if it is no such record, or a call fails for these shapes.
            UnsupportedError: if an operator is not listed, or it is too large.
        """
        constants = tuple(map(tensor_of, field(record, "constants", list)))
        listed = field(record, "nodes", list)
        if len(listed) > _MOST_NODES:
            raise UnsupportedError(
                f"the loss has {len(listed)} calls; it may have at most {_MOST_NODES}."
            )
        made = cls(constants, tuple(map(_node, listed)), record.get("result"))
        return made, made._checked(parameters, example)

    def _checked(self, parameters: Mapping[str, Any], example: Sequence[Any]) -> int:
        """Compute shapes alone, and return the bytes of all values."""
        sizes: list[int] = []

        def checked(name: str, value: Any) -> None:
            for each in value if isinstance(value, tuple | list) else [value]:
                if not isinstance(each, torch.Tensor) or each.dtype not in TYPES.values():
                    raise UnsupportedError(
                        f"the loss has values of {getattr(each, 'dtype', type(each).__name__)} by "
                        f"aten.{name}; take {', '.join(TYPES)}."
                    )
                if each.numel() > _MOST_ENTRIES:
                    raise UnsupportedError(
                        f"the loss has a value of {each.numel()} entries by aten.{name}; at most "
                        f"{_MOST_ENTRIES} are allowed."
                    )
                sizes.append(each.numel() * each.element_size())

        def shape(each: Any) -> Any:
            return torch.empty(each.shape, dtype=each.dtype, device="meta")

        made = Graph(tuple(map(shape, self.constants)), self.nodes, self.result)
        given = {name: shape(each) for name, each in parameters.items()}
        loss = made._computed(given, [shape(each) for each in example], checked)
        if loss.ndim or not loss.is_floating_point():
            raise InputError(
                f"the loss of one example is of shape {tuple(loss.shape)} and {loss.dtype}; it "
                "must be one number, a float."
            )
        return sum(sizes)

    def __call__(self, parameters: Mapping[str, Any], example: Sequence[Any]) -> Any:
        """The loss."""
        return self._computed(parameters, example)

    def _computed(
        self, parameters: Mapping[str, Any], example: Sequence[Any], seen: Any = None
    ) -> Any:
        values: list[Any] = [*parameters.values(), *example]
        device = values[0].device
        for name, arguments, options in self.nodes:
            given = [self._filled(each, values) for each in arguments]
            further = {key: self._filled(each, values) for key, each in options.items()}
            further |= {"device": device} if name in _MADE else {}
            if seen is None:
                values.append(_called(name, given, further))
                continue
            try:
                values.append(_called(name, given, further))
            except (InputError, UnsupportedError):
                raise
            except Exception as error:  # noqa: BLE001  # of torch, about shapes alone
                said = str(error).partition("\n")[0]
                raise InputError(f"the loss cannot call aten.{name}: {said:.200}.") from None
            seen(name, values[-1])
        found = self._filled(self.result, values)
        if not isinstance(found, torch.Tensor):
            raise InputError("the loss has no result; it must be a value of its graph.")
        return found

    def _filled(self, argument: Any, values: Sequence[Any]) -> Any:
        """An argument: a number, a text, a list, a type, a constant, or a value from before."""
        if isinstance(argument, list):
            return [self._filled(each, values) for each in argument]
        if not isinstance(argument, dict):
            return argument
        if argument.keys() == {"type"} and argument["type"] in TYPES:
            return TYPES[argument["type"]]
        if argument.keys() == {"float"} and argument["float"] in INFINITE:
            return float(argument["float"])
        if argument.keys() == {"constant"}:
            argument, values = {"value": argument["constant"]}, self.constants
        place, part = argument.get("value"), argument.get("part")
        if type(place) is int and 0 <= place < len(values) and argument.keys() <= {"value", "part"}:
            found = values[place]
            if part is None and isinstance(found, torch.Tensor):
                return found
            several = isinstance(found, tuple | list)
            if type(part) is int and several and 0 <= part < len(found):
                return found[part]
        raise InputError(
            "an argument of the loss is not a number, a type, or a value that was computed "
            "before it."
        )

    def require_room(self, size: int, parameters: int) -> None:
        """Refuse what takes too much memory for one unit.

        Raises:
            UnsupportedError: if it does.
        """
        if (total := 3 * size + 8 * parameters) > _MOST_BYTES:
            raise UnsupportedError(
                f"the loss of a unit may take {total / 2**30:.1f} GiB; take fewer rows of a unit, "
                f"or a smaller loss, so that it is {_MOST_BYTES / 2**30:.0f} at most."
            )


def _called(name: str, given: list[Any], options: dict[str, Any]) -> Any:
    """One call, with places that are in the tables that they are of."""
    if name in _TABLES:
        of, places, axis = _TABLES[name]
        axis = 0 if axis == 0 else given[axis]
        last = _last(name, given[of].shape[axis] if given[of].ndim else 1)
        given[places] = given[places].clamp(0, last)
    elif name in _CLASSES:
        logits, target, ignored = given[0], given[1], given[4]
        inside = target.clamp(0, _last(name, logits.shape[min(1, logits.ndim - 1)]))
        given[1] = torch.where(target == ignored, target, inside)
    elif name in _PARTS and max(given[0].shape, default=0) > _MOST_PARTS:
        raise UnsupportedError(f"the loss takes more than {_MOST_PARTS} parts by aten.{name}.")
    return _operator(_INSTEAD.get(name, name))(*given, **options)


def _last(name: str, size: int) -> int:
    """The last place of so many, of which none would fail for some values alone.

    Raises:
        UnsupportedError: if there is none.
    """
    if not size:
        raise UnsupportedError(f"the loss names a place on an empty axis by aten.{name}.")
    return size - 1


def _node(record: Any) -> tuple[str, list[Any], dict[str, Any]]:
    """One call, as it is written."""
    if not isinstance(record, list) or len(record) != 3:
        raise InputError("a call of the loss must be a name, a list and a table.")
    name, arguments, options = record
    if not isinstance(name, str) or name not in OPERATORS:
        raise UnsupportedError(unlisted(name))
    if not isinstance(arguments, list) or not isinstance(options, dict):
        raise InputError(
            f"the call of aten.{name} must have its arguments as a list and its options as a table."
        )
    if name in _CLASSES and len(arguments) != 5:
        raise InputError(f"a call of aten.{name} must have five arguments.")
    declared = _operator(name)._schema.arguments
    named = {each.name: str(each.real_type) for each in declared}
    kinds = [*named.values()][: len(arguments)] + [named.get(each, "") for each in options]
    if len(arguments) > len(declared) or not all(
        map(_is_of, kinds, [*arguments, *options.values()])
    ):
        raise InputError(f"a call of aten.{name} has an argument of another kind than it takes.")
    apart = (dict(zip(named, arguments, strict=False)) | options).get("dilation", [])
    if name in _POOLS and any(each != 1 for each in apart):
        raise UnsupportedError(f"the loss calls aten.{name} with a dilation; it must be 1.")
    return name, arguments, options


def _operator(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload)


def _is_of(kind: str, argument: Any) -> bool:
    """Tell whether an argument is of a kind of torch's: it takes a number for some, unchecked."""
    if argument is None:
        return kind.startswith("Optional")
    if "ScalarType" in kind:
        return isinstance(argument, dict) and argument.keys() == {"type"}
    if "Tensor" in kind:
        return True  # which is looked up where it is computed
    if isinstance(argument, list):
        return "List" in kind and all(type(each) is int for each in argument)
    kind = kind.removeprefix("Optional[").removesuffix("]")
    if kind in ("number", "float"):
        is_infinite = isinstance(argument, dict) and argument.keys() == {"float"}
        return is_infinite or type(argument) in (bool, int, float)
    return type(argument) is {"bool": bool, "int": int, "str": str}.get(kind)


def unlisted(name: object) -> str:
    """Why an operator is refused."""
    return (
        f"the loss calls {shown(name)} of torch, which a sealed run cannot compute; leave out "
        "operators that are random, whose shape or failure depends on values, or that read "
        "raw memory."
    )


def bytes_of(tensor: Any) -> dict[str, Any]:
    """A tensor as JSON; :func:`tensor_of` reads it."""
    array = np.ascontiguousarray(tensor.detach().numpy(force=True))
    data = base64.b64encode(array.tobytes()).decode()
    return {"type": array.dtype.name, "shape": list(tensor.shape), "data": data}


def tensor_of(record: Any) -> Any:
    """The tensor of a record.

    Raises:
        InputError: if it is none, or of another type.
    """
    if not isinstance(record, dict) or record.get("type") not in TYPES:
        raise InputError(f"a tensor of the loss is of another type; take {', '.join(TYPES)}.")
    shape, data = field(record, "shape", list), field(record, "data", str)
    if any(type(each) is not int or each < 0 for each in shape):
        raise InputError("a tensor of the loss has no shape.")
    try:
        content = base64.b64decode(data, validate=True)
        if record["type"] == "bool":  # of which a byte has more values than two
            content = (np.frombuffer(content, np.uint8) != 0).tobytes()
        array = np.frombuffer(content, np.dtype(record["type"]))
    except (binascii.Error, ValueError):
        raise InputError("a tensor of the loss is malformed.") from None
    if array.size != math.prod(shape) or len(shape) > 8:
        raise InputError("a tensor of the loss has more or fewer entries than its shape says.")
    # Copied to where torch aligns memory: kernels may round by how it lies.
    return torch.from_numpy(array.copy()).reshape(shape).clone()
