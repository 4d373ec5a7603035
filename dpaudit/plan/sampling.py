"""How the units that take part in an invocation are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from dpaudit import validate
from dpaudit.errors import InputError

__all__ = ["FixedSizeSampling", "PoissonSampling", "Sampling"]


@dataclass(frozen=True)
class Sampling:
    """A sampling scheme; the draw itself stays secret."""

    scheme: ClassVar[str] = ""
    _schemes: ClassVar[dict[str, type[Sampling]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Sampling._schemes[cls.scheme] = cls

    def to_dict(self) -> dict[str, Any]:
        """``scheme`` and the fields."""
        return {"scheme": self.scheme} | {f.name: getattr(self, f.name) for f in fields(self)}

    @staticmethod
    def parse(record: object) -> Sampling:
        """The scheme that :meth:`to_dict` wrote.

        Raises:
            InputError: if the scheme or a field is unknown, missing or invalid.
        """
        if isinstance(record, Sampling):
            return record
        if not isinstance(record, Mapping):
            raise InputError(
                f"sampling is {record!r}; it must be a table such as "
                '{ scheme = "poisson", rate = 0.01 }.'
            )
        given = dict(record)
        name = given.pop("scheme", None)
        scheme = Sampling._schemes.get(name) if isinstance(name, str) else None
        if scheme is None:
            known = ", ".join(sorted(Sampling._schemes))
            raise InputError(f"sampling.scheme is {name!r}; it must be one of {known}.")
        wanted = [field.name for field in fields(scheme)]
        if sorted(given) != sorted(wanted):
            raise InputError(f"sampling has the fields {sorted(given)}; {name} takes {wanted}.")
        return scheme(**given)


@dataclass(frozen=True)
class PoissonSampling(Sampling):
    """Every unit takes part independently with probability ``rate``.

    Attributes:
        rate: probability in (0, 1].
    """

    scheme: ClassVar[str] = "poisson"
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", validate.fraction(rate=self.rate))


@dataclass(frozen=True)
class FixedSizeSampling(Sampling):
    """A uniform subset of ``size`` of the ``population`` units, without replacement.

    Attributes:
        size: how many take part, at least 1.
        population: how many there are, at least ``size``.
    """

    scheme: ClassVar[str] = "fixed-size"
    size: int
    population: int

    def __post_init__(self) -> None:
        size = validate.integer_at_least(1, size=self.size)
        population = validate.integer_at_least(1, population=self.population)
        if size > population:
            raise InputError(f"size is {size}; it must be at most the population, {population}.")
