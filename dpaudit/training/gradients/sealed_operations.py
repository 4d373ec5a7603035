"""What the custodian of a sealed run does for a training: it holds rows and ledger, and no code.

Both are tried on no rows and on made-up rows first, as all operations are. Opening a training looks
at the graph of its loss and maps it over units of zeros, and each step is first taken on made-up
rows, so that what is refused follows from the request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PlanMismatchError, UnsupportedError
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.plan import Invocation, TrustModel
from dpaudit.sealed.messages import field
from dpaudit.sealed.operations import Operations
from dpaudit.sealed.rows import Vectors
from dpaudit.sealed.sums import Side
from dpaudit.training.declared import Adaptive, invocations_at
from dpaudit.training.gradients.examples import UnitRows
from dpaudit.training.gradients.graphs import TYPES, Graph, bytes_of, tensor_of
from dpaudit.training.gradients.trainer import Trainer

_ALONE = 1
"""Units that are mapped at once. The last bits of a gradient depend on its place in a chunk, and so
on which other units there are; a loss can make any difference of them."""
_MOST_PARAMETERS = 2**21


def open_training(operations: Operations, request: Mapping[str, Any]) -> int:
    """Begin a training, and return its number.

    Raises:
        InputError: if the request is wrong.
        UnsupportedError: if its loss is none that can be computed here.
        PlanMismatchError: if the plan declares none of its kind.
    """
    vectors = [operations.vectors_of(each) for each in field(request, "of", list)]
    most = _most(vectors)
    kind = TYPES.get(str(request.get("type")))
    if kind not in (torch.float32, torch.float64):
        raise UnsupportedError("parameters must be of float32 or float64 in a sealed run.")
    parameters = _parameters(field(request, "parameters", list), kind)
    example = [torch.zeros(each.shape, dtype=_type(each, kind)) for each in vectors]
    graph, size = Graph.read(field(request, "loss", dict), parameters, example)
    divisor = validate.positive(divisor=request.get("divisor"))
    graph.require_room(size * most, sum(each.numel() for each in parameters.values()))
    settings: dict[str, Any] = {"divisor": divisor, "chunk": _ALONE}
    if request.get("adaptive") is not None:
        rule = Adaptive(**field(request, "adaptive", dict))
        settings |= {"adaptive": rule, "clip_norm": request.get("clip_norm")}
    at, number = field(request, "at", str), operations.next_number()

    def release(side: Side) -> None:
        declared = invocations_at(side.ledger, at)
        for each in declared:
            _require_declared(each)
        leaves, codes = _leaves(side, vectors, kind)
        names = operations.names(side, declared[0])
        own = {name: each.clone() for name, each in parameters.items()}
        rows = UnitRows(leaves, codes, names, most)
        loss = replace(graph, is_total=side is operations.real)  # of made-up rows it is said
        side.trainings[number] = Trainer(loss, own, rows, side.ledger, at=at, **settings)

    operations.both(release)
    return number


def next_gradients(operations: Operations, request: Mapping[str, Any]) -> Any:
    """One step: the noisy mean gradient of all parameters; None after the last one.

    Raises:
        InputError: if there is no such training, or the parameters are none of it.
    """
    number = field(request, "training", int)
    opened = operations.real.trainings.get(number)
    if opened is None:
        raise InputError("there is no such training.")
    given = tensor_of(request.get("parameters"))
    own = list(opened.parameters.values())
    if given.dtype != own[0].dtype or given.shape != (sum(each.numel() for each in own),):
        raise InputError("parameters differ in shape or type from those that are trained.")
    if not torch.isfinite(given).all():
        raise InputError("parameters have a NaN or an infinity; they must be finite.")
    parts = given.split([each.numel() for each in own])

    def release(side: Side) -> Any:
        training = side.trainings[number]
        for each, part in zip(training.parameters.values(), parts, strict=True):
            each.copy_(part.view_as(each))
        made = next(training, None)
        if made is None:
            return None
        flat = torch.cat([each.reshape(-1) for each in made.values()])
        return bytes_of(flat)["data"]

    return operations.both(release)


def _most(vectors: list[Vectors]) -> int:
    """How many rows a unit has at most.

    Raises:
        InputError: if nothing bounds them, or the numbers are of several rows.
    """
    if not vectors:
        raise InputError("data holds something other than vectors; give vectors of columns.")
    first = vectors[0].rows
    if any(each.rows.sql != first.sql for each in vectors):
        raise InputError("data has vectors of different rows; take all from the same rows.")
    if first.sample is not None or first.part is not None:
        raise PlanMismatchError("data has only some units; a training must draw from all.")
    if first.most is None:
        raise InputError("data has no bound on the rows of a unit; bound them by group_rows.")
    return first.most


def _require_declared(each: Invocation) -> None:
    """Refuse what follows from how many units there are, or in which order.

    Raises:
        UnsupportedError: if it does.
    """
    split = each.sampling is None and each.releases > each.count
    if split or isinstance(each.mechanism, Continual):
        raise UnsupportedError(
            f"{each.describe()} has batches that take turns, which depend on the order of all "
            "units; declare poisson or fixed-size sampling, or full batches."
        )
    if each.group is not None or each.trust is not TrustModel.CENTRAL:
        raise UnsupportedError(f"{each.describe()} is for a group, or not under central trust.")


def _parameters(listed: list[Any], kind: Any) -> dict[str, Any]:
    """Zeros of the shapes that are asked for.

    Raises:
        InputError: if names or shapes are none.
        UnsupportedError: if there are too many entries.
    """
    found: dict[str, Any] = {}
    left = _MOST_PARAMETERS
    for each in listed:
        name, shape = each if isinstance(each, list) and len(each) == 2 else ("", None)
        if not isinstance(name, str) or name in found or not isinstance(shape, list):
            raise InputError("parameters must be names, each once, with shapes.")
        left -= math.prod(validate.integer_at_least(1, parameters=length) for length in shape)
        if left < 0:
            raise UnsupportedError(f"parameters has more than {_MOST_PARAMETERS} entries.")
        found[name] = torch.zeros(shape, dtype=kind)
    return found


def _type(vectors: Vectors, kind: Any) -> Any:
    """Whole numbers are integers, for labels and embeddings; all others are of the type given."""
    return torch.int64 if vectors.step == 1 else kind


def _leaves(side: Side, vectors: list[Vectors], kind: Any) -> tuple[list[Any], Any]:
    """Tensors of rows, and the codes of their units."""
    codes = np.empty(0, dtype=np.int64)
    leaves = []
    for each in vectors:
        numbers, codes = side.total(each)
        leaves.append(torch.from_numpy(np.ascontiguousarray(numbers)).to(_type(each, kind)))
    return leaves, codes
