"""A case: uses of mechanisms as bare numbers, from which the plan and the oracle are both made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpaudit import (
    AddRemove,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampling,
    Gaussian,
    IndividualGaussian,
    Invocation,
    Laplace,
    Mechanism,
    MetricBall,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    RandomizedResponse,
    Relation,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.accounting import at_radius, for_group
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    BandedToeplitz,
    BinaryTree,
    BitVectorResponse,
    BufferedToeplitz,
    ConcentratedBlackBox,
    ContinualGaussian,
    ContinualLaplace,
    ExponentialMechanism,
    GaussianVector,
    HonakerTree,
    LaplaceVector,
    NoisyMax,
    OwnMatrix,
    OwnToeplitz,
    PermuteAndFlip,
    PureBlackBox,
    Shuffled,
    SparseVector,
    SquareRootToeplitz,
    StableHistogram,
    Staircase,
    SubsetSelection,
    TopK,
    TruncatedDiscreteGaussian,
    TruncatedLaplace,
    UnaryEncoding,
)
from dpaudit.plan import (
    Contribution,
    CyclicPoissonSampling,
    Group,
    Membership,
    MixtureSampling,
    RandomAllocation,
    Sampling,
    TruncatedPoissonSampling,
    WithReplacementSampling,
)

SUMS = ("gaussian", "laplace", "discrete-gaussian", "discrete-laplace")
STREAMS = ("continual-gaussian", "continual-laplace")

_MECHANISMS: dict[str, type[Mechanism]] = {
    "gaussian": Gaussian,
    "individual-gaussian": IndividualGaussian,
    "laplace": Laplace,
    "discrete-gaussian": DiscreteGaussian,
    "discrete-laplace": DiscreteLaplace,
    "randomized-response": RandomizedResponse,
    "exponential": ExponentialMechanism,
    "pure-black-box": PureBlackBox,
    "approximate-black-box": ApproximateBlackBox,
    "concentrated-black-box": ConcentratedBlackBox,
    "top-k": TopK,
    "laplace-vector": LaplaceVector,
    "gaussian-vector": GaussianVector,
    "stable-histogram": StableHistogram,
    "staircase": Staircase,
    "truncated-laplace": TruncatedLaplace,
    "truncated-discrete-gaussian": TruncatedDiscreteGaussian,
    "continual-gaussian": ContinualGaussian,
    "continual-laplace": ContinualLaplace,
    "shuffled": Shuffled,
    "permute-and-flip": PermuteAndFlip,
    "noisy-max": NoisyMax,
    "sparse-vector": SparseVector,
    "bit-vector-response": BitVectorResponse,
    "unary-encoding": UnaryEncoding,
    "subset-selection": SubsetSelection,
}
_FACTORIZATIONS = {
    "binary-tree": BinaryTree,
    "honaker-tree": HonakerTree,
    "square-root-toeplitz": SquareRootToeplitz,
    "buffered-toeplitz": BufferedToeplitz,
    "banded-toeplitz": BandedToeplitz,
    "own-toeplitz": OwnToeplitz,
    "own-matrix": OwnMatrix,
}


_SCHEMES: dict[str, Callable[..., Sampling]] = {
    "rows": lambda _, rate, rows: PoissonSampling(rate, rows=rows),
    "replaced": lambda use, rate: PoissonSampling(rate, contribution=use.shift / 2),
    "truncated": lambda _, *facts: TruncatedPoissonSampling(*facts),
    "again": lambda _, size, population, changes: WithReplacementSampling(size, population),
    "allocated": lambda _, steps, times=1: RandomAllocation(steps, times),
    "turns": lambda _, rate, groups: CyclicPoissonSampling(rate, groups),
    "taken": lambda _, size, population: FixedSizeSampling(size, population),
    "shares": lambda _, shares, rates: MixtureSampling(shares, rates),
}


@dataclass(frozen=True)
class Use:
    """One invocation.

    Attributes:
        kind: of the mechanism.
        facts: its fields; of a stream also ``matrix``, the kind and the fields of a factorisation.
        shift: the declared sensitivity.
        count: how often one unit is touched.
        rate: of Poisson sampling.
        subset: size and population of a subset of fixed size.
        group: a group of units, if not all.
        by_value: whether the unit's own value decides its group.
        local: whether the value is the unit's own.
        bound: of each unit's part, where the release is a sum of bounded parts.
        drawn: another scheme and its facts: ``rows`` (rate, rows), ``replaced`` (rate),
            ``truncated`` (rate, size, population), ``again`` (size, population, changes of a
            replacement), ``allocated`` (steps, times), ``taken`` (size, population), ``turns``
            (rate, groups), ``shares`` (shares, their rates).
        enumerated: whether the oracle compares with neighbours whose outputs it enumerates.
    """

    kind: str
    facts: Mapping[str, Any]
    shift: float = 1.0
    count: int = 1
    rate: float | None = None
    subset: tuple[int, int] | None = None
    group: str | None = None
    by_value: bool = False
    local: bool = False
    bound: float | None = None
    drawn: tuple[Any, ...] | None = None
    enumerated: bool = False


@dataclass(frozen=True)
class Case:
    """A plan and the δ at which it is certified.

    Attributes:
        name: its kind, in the table.
        relation: the kind of the relation.
        uses: the invocations.
        delta: of the guarantee.
        radius: of a metric ball.
        size: of a group of units that is to be protected together.
        moved: the radius at which ``at_radius`` is asked for, if it is.
        dataset: ``records``, ``bound`` and ``reach`` of tiny data sets that the oracle enumerates.
    """

    name: str
    relation: str
    uses: tuple[Use, ...]
    delta: float
    radius: float = 1.0
    size: int = 1
    moved: float | None = None
    dataset: Mapping[str, Any] = field(default_factory=dict)


def mechanism(use: Use) -> Mechanism:
    """The mechanism that the package has for it."""
    facts = dict(use.facts)
    if "matrix" in facts:
        kind, own = facts.pop("matrix")
        facts["factorization"] = _FACTORIZATIONS[kind](**own)
    if use.kind == "shuffled":
        facts = {"local": RandomizedResponse(facts["p"]), "reports": facts["reports"]}
    return _MECHANISMS[use.kind](**facts)


def relation(case: Case) -> Relation:
    """The relation of a case."""
    known = {one.kind: one for one in (AddRemove, ReplaceOne, ZeroOut)}
    return known[case.relation]() if case.relation in known else MetricBall(case.radius)


def invocation(use: Use, related: Relation) -> Invocation:
    """One use as it is declared."""
    sampling: Sampling | None = None if use.rate is None else PoissonSampling(use.rate)
    if use.subset is not None:
        sampling = FixedSizeSampling(*use.subset)
    if use.drawn is not None:
        sampling = _SCHEMES[use.drawn[0]](use, *use.drawn[1:])
    membership = Membership.VALUE if use.by_value else Membership.POSITION
    facts = {
        "count": use.count,
        "sampling": sampling,
        "group": None if use.group is None else Group(use.group, membership),
    }
    trust = TrustModel.LOCAL if use.local else TrustModel.CENTRAL
    unit, made = PrivacyUnit("row"), mechanism(use)
    if use.bound is not None:
        return Invocation.bounded(made, Contribution(use.bound), unit, related, trust, **facts)
    return Invocation(made, use.shift, unit, related, trust, **facts)


def declared(case: Case) -> Plan:
    """The plan of a case."""
    related = relation(case)
    plan = Plan.of(*(invocation(use, related) for use in case.uses))
    if case.moved is not None:
        plan = at_radius(plan, case.moved)
    return for_group(plan, case.size) if case.size > 1 else plan


def python_of(case: Case) -> str:
    """Lines that repeat the certification."""
    try:
        record: Any = declared(case).to_dict()
    except (InputError, UnsupportedError) as error:
        return f"# refused: {error}"
    return (
        "from dpaudit import Plan\nfrom dpaudit.accounting import guarantee\n"
        f"plan = Plan.from_dict({record!r})\nprint(guarantee(plan, {case.delta!r}))"
    )
