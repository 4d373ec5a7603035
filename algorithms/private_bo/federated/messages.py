"""What travels between the server and the agents.

Numbers travel as the bytes of little-endian float64, so that what arrives is exactly what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, at_least
from private_bo.gp.types import Array, array_of, read_only

_WIRE = np.dtype("<f8")


@dataclass(frozen=True, eq=False)
class Broadcast(Checked):
    """ω_t^joint: what the server shows to every agent, private by itself (line 12, Algorithm 1).

    Attributes:
        round: t, the iteration that made it; -1 for the zeros that precede the first.
        vectors: one vector for each sub-region, (P, M), read-only.

    Raises:
        InputError: if the round is below -1, or the vectors are no finite matrix.
    """

    round: Annotated[int, at_least(-1)]
    vectors: Annotated[Array, array_of("P", "M")]

    @classmethod
    def none_yet(cls, regions: int, features: int) -> Self:
        """ω_{-1}^joint = 0 (line 1)."""
        return cls(-1, np.zeros((regions, features)))

    def to_dict(self) -> dict[str, Any]:
        """As values of a Flower record: integers, and the bytes of the numbers."""
        shape = list(self.vectors.shape)
        return {"round": self.round, "shape": shape, "vectors": _packed(self.vectors)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The broadcast that :meth:`to_dict` wrote.

        Raises:
            InputError: if it is none.
        """
        _require_fields(record, "broadcast", {"round", "shape", "vectors"})
        flat = _unpacked(vectors=record["vectors"])
        shape = record["shape"]
        if not isinstance(shape, list | tuple) or len(shape) != 2:
            raise InputError(f"shape is {shape!r:.60}; it must be a pair (P, M).")
        regions, features = (validate.integer_at_least(1, shape=length) for length in shape)
        if regions * features != flat.size:
            raise InputError(f"vectors has {flat.size} numbers; shape asks for {shape}.")
        return cls(record["round"], flat.reshape(regions, features))


def _integer(**field: Any) -> int:
    ((name, value),) = field.items()
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} is {value!r:.60}; it must be an integer.")
    return int(value)


def _numbers(**field: Any) -> Array:
    """A vector of real numbers, finite or not, of any length."""
    ((name, value),) = field.items()
    try:
        vector = np.array(value)
    except ValueError:
        raise InputError(f"{name} is ragged; it must be a vector of numbers.") from None
    if vector.ndim != 1 or vector.dtype.kind not in "iuf":
        raise InputError(
            f"{name} has shape {vector.shape} and type {vector.dtype}; it must be a vector of "
            "numbers."
        )
    return read_only(vector.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Report(Checked):
    """ω_n,t: what one agent sends to the server (line 10, Algorithm 2). It is private.

    It comes from outside, so its content is for the server to judge: the vector may have any
    length and any values here.

    Attributes:
        round: t, the iteration it belongs to.
        agent: n, from 0.
        vector: a vector of floats, (M,) if it is right; read-only.

    Raises:
        InputError: if round or agent is no integer, or the vector is no vector of real numbers.
    """

    round: Annotated[int, _integer]
    agent: Annotated[int, _integer]
    vector: Annotated[Array, _numbers]

    def to_dict(self) -> dict[str, Any]:
        """As values of a Flower record: integers, and the bytes of the numbers."""
        return {"round": self.round, "agent": self.agent, "vector": _packed(self.vector)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The report that :meth:`to_dict` wrote.

        Raises:
            InputError: if it is none.
        """
        _require_fields(record, "report", {"round", "agent", "vector"})
        return cls(record["round"], record["agent"], _unpacked(vector=record["vector"]))


def _packed(array: Array) -> bytes:
    return array.astype(_WIRE).tobytes()


def _unpacked(**field: Any) -> Array:
    ((name, content),) = field.items()
    if not isinstance(content, bytes) or len(content) % _WIRE.itemsize:
        raise InputError(f"{name} is {content!r:.40}; it must be the bytes of float64 numbers.")
    return np.frombuffer(content, dtype=_WIRE).astype(np.float64)


def _require_fields(record: object, what: str, wanted: set[str]) -> None:
    if not isinstance(record, Mapping) or set(record) != wanted:
        shown = sorted(map(str, record)) if isinstance(record, Mapping) else repr(record)[:60]
        raise InputError(f"{what} has the fields {shown}; it must have {sorted(wanted)}.")
