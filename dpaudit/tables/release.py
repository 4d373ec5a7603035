"""A release: a declared set of queries over a table, from which plan, noise and results follow.

Nothing of the author's touches a row. The noise is the least with which the claim is certified,
shared out by the weights of the queries; it follows from schema, bounds and queries alone, so that
the plan stands before there are data. ``release_file`` reads releases from files; here is what they
are, and how integers of an engine become results through a ledger.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.accounting import compose
from dpaudit.accounting.calibration import SMALLEST, least_noise
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.files import digest
from dpaudit.base.validate import shown
from dpaudit.certificate import Claim
from dpaudit.certificate.records import ReleaseRecord
from dpaudit.mechanisms import DiscreteLaplace
from dpaudit.plan import Invocation, Plan, PrivacyUnit, Relation, TrustModel
from dpaudit.tables.engines.cluster import measured_on_cluster
from dpaudit.tables.engines.duck import Layout, measured
from dpaudit.tables.engines.sources import Source
from dpaudit.tables.measures import Measure, Measured
from dpaudit.tables.queries import Estimate, Noise, Part, Query, UnknownKeys

if TYPE_CHECKING:
    from dpaudit.ledger import Ledger

_OF_KEYS = 0.5
"""Share of the claim's δ that thresholds of unknown keys may use; the rest is for composition."""
_TOLERANCE = 1e-4
"""Of the noise, relative to the least."""
_FEW_STEPS = 1000.0
"""By which whole numbers move, of a guess of the noise: each step is work for an accountant."""


@dataclass(frozen=True)
class Result:
    """What was released for one query.

    Attributes:
        query: its name.
        kind: its kind.
        columns: what the labels of a cell are called.
        estimates: one for each cell, or key.
    """

    query: str
    kind: str
    columns: tuple[str, ...]
    estimates: tuple[Estimate, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON record, of which each cell is a row."""
        return {
            "query": self.query,
            "kind": self.kind,
            "columns": list(self.columns),
            "rows": [
                {"cell": list(each.cell), "value": each.value}
                | ({} if each.low is None else {"low": each.low, "high": each.high})
                | ({"note": each.note} if each.note else {})
                for each in self.estimates
            ],
        }


@dataclass(frozen=True)
class Release:
    """Declared queries over a table.

    Attributes:
        source: where the table is.
        layout: how its rows are read.
        queries: of unique names.
        unit: who is protected.
        relation: add-remove or replace-one, of whole units.
        claim: what is to be certified.
        noise: what is added to counts and sums.
        trust: who sees raw data.
        declaration: all of it as it was written, for its digest.
    """

    source: Source
    layout: Layout
    queries: tuple[Query, ...]
    unit: PrivacyUnit
    relation: Relation
    claim: Claim
    noise: Noise = Noise.LAPLACE
    trust: TrustModel = TrustModel.CENTRAL
    declaration: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.claim.risk is None and self.claim.epsilon == 0:
            raise InputError(
                "claim has epsilon = 0, with which all answers are noise; claim an ε above 0, such "
                "as { epsilon = 1.0 }, or another bound, such as { advantage = 0.1 }."
            )
        labels = [measure.at for measure in self.measures]
        names = [each.name for each in self.queries]
        for each in (names, labels):
            if len(set(each)) < len(each):
                twice, _ = Counter(each).most_common(1)[0]
                raise InputError(
                    f"two queries have one name or label, {shown(twice)}; give each its own name."
                )

    # -- plan ------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> dict[str, tuple[Part, ...]]:
        """The releases of each query, with the least noise for the claim.

        Raises:
            InputError: if no noise certifies it.
            UnsupportedError: if no accountant has a theorem for the plan.
        """
        refused: dict[float, Exception] = {}

        def meets(factor: float, *, coarse: bool = False) -> bool:
            try:
                plan = self._plan(self._parts(factor), coarse=coarse)
                return self.claim.excess(compose(plan)) is None
            except (InputError, UnsupportedError) as error:
                refused[factor] = error
                return False

        factor = least_noise(partial(meets, coarse=True), _TOLERANCE)
        if factor is not None:
            factor = least_noise(meets, _TOLERANCE, near=factor)
        if factor is None:
            if 1.0 in refused:  # and not for noise that is too wide to be drawn
                raise refused[1.0]
            raise InputError(
                f"no noise certifies {self.claim}; claim a larger {self.claim.measure}, or declare "
                "fewer queries."
            )
        if factor <= SMALLEST:
            raise InputError(
                f"any noise certifies {self.claim}, however little; claim a smaller "
                f"{self.claim.measure}."
            )
        return self._parts(factor)

    def _parts(self, factor: float) -> dict[str, tuple[Part, ...]]:
        keyed = sum(each.weight for each in self.queries if isinstance(each, UnknownKeys))
        delta = self.claim.delta * _OF_KEYS
        return {
            each.name: each.parts(each.weight / factor, self.noise, delta * each.weight / keyed)
            if isinstance(each, UnknownKeys)
            else each.parts(each.weight / factor, self.noise, 0.0)
            for each in self.queries
        }

    def plan(self) -> Plan:
        """Every release, declared.

        Raises:
            InputError: as :attr:`parts`.
        """
        return self._plan(self.parts)

    def _plan(self, parts: Mapping[str, Sequence[Part]], *, coarse: bool = False) -> Plan:
        every = [part for own in parts.values() for part in own]
        return Plan.of(
            *(
                Invocation(
                    part.mechanism,
                    part.sensitivity,
                    self.unit,
                    self.relation,
                    self.trust,
                    count=part.count,
                    total=part.total,
                    at=part.at,
                )
                for part in (map(_coarse, every) if coarse else every)
            )
        )

    @property
    def measures(self) -> tuple[Measure, ...]:
        """All that an engine computes."""
        return tuple(measure for query in self.queries for measure in query.measures())

    @property
    def record(self) -> ReleaseRecord:
        """What a certificate says of it."""
        return ReleaseRecord(
            source=self.source.name,
            queries=tuple(f"{each.name}: {each.describe()}" for each in self.queries),
            declaration=digest(json.loads(json.dumps(self.declaration, default=str))),  # dates
        )

    # -- run -------------------------------------------------------------------------------------

    def load(self, rng: np.random.Generator | None = None, cluster: str | None = None) -> Measured:
        """The whole numbers of all queries.

        Args:
            rng: of an experiment, by whose seed rows are chosen; a fresh key without it.
            cluster: address of a dask scheduler whose workers share the folder of temporary files;
                this process alone without it.

        Raises:
            InputError: if the table cannot be read as declared, or the cluster does not work.
        """
        secret = secrets.token_bytes(32) if rng is None else rng.bytes(32)
        if cluster is None:
            return measured(self.source, self.layout, self.measures, secret)
        return measured_on_cluster(self.source, self.layout, self.measures, secret, cluster)

    def run(self, found: Measured, ledger: Ledger) -> tuple[Result, ...]:
        """Release every query through a ledger of its plan."""
        return tuple(self._run(query, found, ledger) for query in self.queries)

    def _run(self, query: Query, found: Measured, ledger: Ledger) -> Result:
        parts, released = self.parts[query.name], {}
        for part in parts:
            if isinstance(query, UnknownKeys):
                released[part.at] = _keys_released(found, part, ledger)
                continue
            whole = found.integers.get(part.at, found.integers.get(query.name))
            assert whole is not None
            values = query.private_value(part.at, whole, part)
            released[part.at] = _released(ledger, part, values)
        columns = query.columns
        return Result(query.name, query.kind, columns, query.estimates(parts, released))

    def for_owner(self, found: Measured) -> dict[str, Any]:
        """What the owner of the data alone may see: what the bounds cut, and what follows."""
        return {
            "rows": found.rows,
            "rows that the bounds left out": found.dropped,
            "ranges": dict(_cut(self.layout, found)),
            "queries": {query.name: list(_bias(query, found)) for query in self.queries},
            "note": "Bounds that somebody chooses after reading this are no longer public.",
        }


def _coarse(part: Part) -> Part:
    """Whole-number noise as if its steps were larger: nearly as private, and soon computed."""
    mechanism = part.mechanism
    if not isinstance(mechanism, DiscreteLaplace) or part.sensitivity <= _FEW_STEPS:
        return part
    scale = mechanism.scale * _FEW_STEPS / part.sensitivity
    return replace(part, mechanism=DiscreteLaplace(scale=scale), sensitivity=_FEW_STEPS)


def _released(ledger: Ledger, part: Part, values: Sequence[Any]) -> Any:
    """One release, or one for each cell.

    A name stands for as many cells as a unit can touch, the first of every query for the first
    ones, so that it is charged for as much as any unit is, wherever its cells are.
    """
    if part.total == 1:
        return ledger.release(part.mechanism, values[0], at=part.at)
    names = [f"cells {number // part.count + 1}" for number in range(len(values))]
    return ledger.release_each(part.mechanism, values, units=names, at=part.at)


def _keys_released(found: Measured, part: Part, ledger: Ledger) -> tuple[Any, Any]:
    """Keys in a fixed order and their noisy counts; a key that nobody has keeps an empty list."""
    counts = found.keys[part.at]
    keys = sorted(counts)
    vector = np.array([*(counts[key] for key in keys), 0], dtype=np.int64)
    return (*keys, ()), ledger.release(part.mechanism, vector, at=part.at)


def _cut(layout: Layout, found: Measured) -> Iterator[tuple[str, dict[str, float]]]:
    """The means of the columns that have values outside their ranges."""
    for column in layout.joined:
        of = found.ranges.get(column.name)
        if of is not None and found.rows.get(f"values of {column.name} outside its range"):
            as_read, within = of.means(column.shape.step)
            yield column.name, {"mean as read": as_read, "mean within its range": within}


def _bias(query: Query, found: Measured) -> Iterator[dict[str, Any]]:
    """Each cell as the bounds left it and as it would be without them, before any noise."""
    own = [measure.at for measure in query.measures() if measure.at in found.unbounded]
    if not own or query.measures()[0].bins > 1:
        return
    for number, cell in enumerate(query.groups.labels()):
        within = {at: int(found.integers[at][number, 0]) for at in own}
        without = {at: int(found.unbounded[at][number, 0]) for at in own}
        yield {
            "cell": list(cell),
            "with bounds": query.exact(within),
            "without bounds on rows and groups": query.exact(without),
        }
