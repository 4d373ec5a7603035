"""Neighbouring data sets: pairs that are worth an attack, and pairs that are none.

Of a plan they follow from its mechanism; of a function of which nothing is known they are patterns
of numbers, with which wrong selections are found: one entry moves, all do, or some go up and the
others down (Ding et al. 2018, Table 1; Lyu, Su and Li 2017 for the sparse vector).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from dpaudit.auditing.distinguishing.choosing import (
    Learner,
    choose_score,
    first_scores,
    learn_scores,
)
from dpaudit.auditing.distinguishing.experiment import (
    Chunk,
    Experiment,
    OneSidedError,
    OneSideNotPlainError,
    Release,
    Side,
    Stage,
)
from dpaudit.auditing.distinguishing.output_facts import forms
from dpaudit.auditing.distinguishing.output_features import Vocabulary, require_answers
from dpaudit.auditing.distinguishing.outputs import NotPlainError
from dpaudit.auditing.distinguishing.scores import Score
from dpaudit.auditing.evidence.events import Both
from dpaudit.auditing.execution import DEFAULTS, Execution, ExecutionFields
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.mechanisms import Mechanism, Norm
from dpaudit.plan import (
    AddRemove,
    Invocation,
    MetricBall,
    Plan,
    Relation,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.project import AuditPair

CLOSE = 0.15
"""Promises that differ by less are taken for equal; the earlier pair is chosen."""
KEPT = 6
"""Pairs around which others are tried."""
FINALS = ((24, 4), (6, 16))
"""How many of the best pairs are compared once more, and on how many times the runs, at most."""
ROUNDS, LOOKS = 4, 300
CLEAREST = 6
"""Columns of encoded outputs on which pairs are compared; nothing is learned for that."""
BEYOND = 10.0
"""How far beyond a clip its effect is probed, in units of the clip."""
SIZES = (1, 2, 5, 10)
FEW = 3
"""Numbers in a list of constants of the code."""
REACH = (0.05, 1000.0)
PLACES = (*range(-10, 11), *(sign * round(12 * 1.6**k) for k in range(10) for sign in (-1, 1)))


# -- candidates -----------------------------------------------------------------------------------


def candidate_pairs(plan: Plan) -> tuple[AuditPair, ...]:
    """Pairs of values that the first mechanism of a plan is most likely to tell apart.

    They follow from the mechanism's clip, the declared sensitivity and the relation: both ends,
    beyond the ends, opposite signs, orthogonal vectors, and one value against nothing.
    """
    invocation = plan.invocations[0]
    mechanism, relation = invocation.mechanism, invocation.relation
    if own := mechanism.worst_pairs():
        return tuple(AuditPair(*pair) for pair in own)
    clip, norm = getattr(mechanism, "clip", None), getattr(mechanism, "clip_norm", None)
    if clip is not None:
        return tuple(_clipped(clip, relation))
    if norm is not None:
        return tuple(_ball_pairs(norm, relation))
    if mechanism.norm is Norm.CHANGE:
        return (AuditPair(0, 1, "any two inputs"),)
    return tuple(_distance_pairs(invocation))


def _clipped(clip: tuple[float, float], relation: Relation) -> Iterator[AuditPair]:
    lower, upper = clip
    width = upper - lower
    if isinstance(relation, ReplaceOne):
        yield AuditPair(upper, lower, "both ends of the clip")
        yield AuditPair(upper + BEYOND * width, lower - BEYOND * width, "beyond the clip")
        return
    if isinstance(relation, MetricBall):
        yield AuditPair(lower + relation.radius, lower, "the radius of the relation")
        return
    far = upper if abs(upper) >= abs(lower) else lower
    yield AuditPair(far, 0.0, "the larger end against nothing")
    yield AuditPair(BEYOND * far, 0.0, "beyond the clip against nothing")


def _ball_pairs(norm: float, relation: Relation) -> Iterator[AuditPair]:
    there, across = [norm, 0.0], [0.0, norm]
    if isinstance(relation, ReplaceOne):
        yield AuditPair(there, [-norm, 0.0], "opposite signs")
        yield AuditPair(there, across, "orthogonal vectors")
        yield AuditPair([BEYOND * norm, 0.0], [-BEYOND * norm, 0.0], "beyond the clip")
        return
    yield AuditPair(there, [0.0, 0.0], "one vector against nothing")
    yield AuditPair([BEYOND * norm, 0.0], [0.0, 0.0], "beyond the clip against nothing")


def _distance_pairs(invocation: Invocation) -> Iterator[AuditPair]:
    distance = invocation.sensitivity
    whole = distance == int(distance)
    step: float = int(distance) if whole else distance
    yield AuditPair(step, 0, "the sensitivity, from 0")
    yield AuditPair(0, -step, "the sensitivity, opposite sign")
    if not _accepts(invocation.mechanism, [0.5, 0.5]):
        return
    yield AuditPair(distance / 2, -distance / 2, "opposite signs around 0")
    share = distance / (2 if invocation.mechanism.norm is Norm.L1 else np.sqrt(2.0))
    yield AuditPair([float(share), 0.0], [0.0, float(share)], "orthogonal vectors")


def _accepts(mechanism: Mechanism, value: Any) -> bool:
    try:
        mechanism.checked(value)
    except InputError:
        return False
    return True


# -- patterns of numbers ---------------------------------------------------------------------------


def patterns(relation: Relation | None, constants: Iterable[float] = ()) -> Iterator[AuditPair]:
    """Pairs of numbers and of lists of numbers.

    Args:
        relation: under which one entry moves by 1 (or the radius), becomes 0, or is missing;
            without it each entry may move by 1.
        constants: numbers of the code, near which numbers are tried too.
    """
    step: float = relation.radius if isinstance(relation, MetricBall) else 1
    near = [*constants]
    if isinstance(relation, AddRemove | ZeroOut):
        yield from _fixed_patterns(relation, near)
        return
    for x in _equal_numbers(near):
        rest = len(x) - 1
        told = f"{len(x)} equal numbers" if rest else "a list of one number"
        ways: dict[str, list[float]] = {"one apart": [step, *[0] * rest]}
        if relation is None and rest:
            ways["all apart"] = [1] * len(x)
            ways["one up and all others down"] = [1, *[-1] * rest]
            ways["half up and half down"] = [1 if 2 * k < len(x) else -1 for k in range(len(x))]
        for why, way in ways.items():
            for sign in (1, -1):
                other = [a + sign * b for a, b in zip(x, way, strict=True)]
                yield AuditPair(x, other, f"{told}, {why}")
    for place in (*PLACES, *(c + k * step / 2 for c in near for k in (-1, 0))):
        yield AuditPair(place, place + step, "one number, one apart")


def _equal_numbers(constants: Sequence[float]) -> Iterator[Sequence[float]]:
    """Lists of equal numbers: 0 or 1 of each size, and few of each constant of the code."""
    yield from ([level] * size for size in SIZES for level in (0, 1))
    yield from ([level] * FEW for level in constants if level not in (0, 1))


def _fixed_patterns(relation: Relation, constants: Sequence[float]) -> Iterator[AuditPair]:
    """Lists of which the first number is missing or becomes 0."""
    ends = [each for c in constants for each in ((c, 0), (0, c))]
    odd = [[one, *[other] * rest] for one, other in ends for rest in (1, FEW - 1)]
    for x in (*_equal_numbers(constants), *(each for each in odd if any(each))):
        told = f"{len(x)} equal numbers" if len({*x}) == 1 else "one number unlike the others"
        if isinstance(relation, ZeroOut):
            yield AuditPair(x, [0, *x[1:]], told)
        elif len(x) > 1:  # an empty list is another matter
            yield AuditPair(x, x[1:], told)


def around(pair: AuditPair, rng: np.random.Generator) -> AuditPair:
    """A pair whose ends differ as much, but lie elsewhere: in all entries, or in one."""
    x, other = (np.array(end, dtype=np.float64) for end in (pair.x, pair.x_prime))
    size = float(rng.choice([-1, 1]) * np.exp(rng.uniform(*np.log(REACH))))
    size = round(size) if rng.random() < 0.5 else size
    where: Any = int(rng.integers(x.size)) if x.ndim and rng.random() < 0.5 else ...
    if rng.random() < 0.5:  # counted from 0, not from where it is
        size -= float(np.ravel(x[where])[0])
    x[where] += size
    other[where] += size
    whole = all((end == np.floor(end)).all() for end in (x, other))
    one, two = (end.astype(int).tolist() if whole else end.tolist() for end in (x, other))
    return AuditPair(one, two, pair.why.removesuffix(", moved") + ", moved")


# -- what is no pair ------------------------------------------------------------------------------


def require_neighbours(plan: Plan, pair: AuditPair) -> None:
    """Refuse two values that the plan's only mechanism does not take for neighbours.

    Where every user may answer anything (local trust, replace-one), any two values are neighbours
    and the declared sensitivity is what is under test. Data that are no values of the mechanism,
    and plans of several invocations, are left to their author.

    Raises:
        InputError: naming the distance and the sensitivity.
    """
    if len(plan.invocations) != 1:
        return
    invocation = plan.invocations[0]
    mechanism, relation = invocation.mechanism, invocation.relation
    if mechanism.norm is Norm.CHANGE:
        return
    if invocation.trust is TrustModel.LOCAL and isinstance(relation, ReplaceOne):
        return
    try:
        x, x_prime = (np.asarray(mechanism.prepare(data)) for data in (pair.x, pair.x_prime))
    except (InputError, TypeError, ValueError):
        return
    if x.shape != x_prime.shape:
        return
    change = np.asarray(x - x_prime, dtype=np.float64).ravel()
    limits = [(mechanism.norm, invocation.sensitivity)]
    if isinstance(relation, MetricBall):
        limits.append((Norm.L2, relation.radius))
    for norm, allowed in limits:
        distance = float(np.linalg.norm(change, ord=1 if norm is Norm.L1 else 2))
        if distance > allowed * (1 + 1e-9):
            raise InputError(
                f"x and x' are at {norm.value.upper()} distance {distance:.6g}, and the mechanism "
                f"does not clip them; neighbours under {relation} differ by at most {allowed:g}."
            )


# -- search ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Search:
    """The outcome of a search.

    Attributes:
        pair: the one that promises the largest bound.
        seed: of the experiment; the attack on fresh runs goes on with it.
        runs: runs a side that were spent on the search.
        promises: the lower bound to be expected of each candidate; None where it was refused.
        one_sided: how many pairs the code failed on at one end alone.
        raised: kinds of exceptions for which pairs were refused.
    """

    pair: AuditPair
    seed: int
    runs: int
    promises: tuple[float | None, ...]
    one_sided: int = 0
    raised: frozenset[str] = frozenset()


def search_pairs(
    release: Release,
    pairs: Sequence[AuditPair],
    *,
    delta: float = 0.0,
    moved: Callable[[AuditPair, np.random.Generator], AuditPair] | None = None,
    execution: Execution = DEFAULTS,
    **fields: Unpack[ExecutionFields],
) -> Search:
    """The most promising of several pairs, by a short pilot on each, and of others around them.

    The pair is chosen on runs that are not used again, so the attack that follows spends no error
    rate on the search.

    Args:
        release: the code under attack.
        pairs: candidates; one that the code refuses is passed over.
        delta: at which ε will be bounded.
        moved: makes another pair of a good one; as many are tried as the runs allow.
        execution: of the attack that will follow. The search spends about a tenth of its runs on
            all pairs, and up to two thirds on the best; with ``moved`` half of them besides.
        fields: fields of ``execution`` to replace, such as ``runs=2_000, seed=1``.

    Raises:
        InputError: if there are no pairs, or every one is refused.
    """
    if not pairs:
        raise InputError("there is no pair to attack; give one.")
    execution = execution.updated(fields)
    seed, runs = execution.known_seed(), execution.runs
    if len(pairs) == 1:
        return Search(pairs[0], seed, 0, (None,))
    each = max(20, min(2000, runs // (10 * len(pairs) if moved is None else LOOKS)))
    look = _Looks(release, delta, execution.updated({"seed": seed}))
    promises = look.at(pairs, each)
    if not look.good:
        assert look.refusal is not None
        raise look.refusal
    rng, left = np.random.default_rng(seed), (runs // each - len(pairs)) // (2 * ROUNDS)
    for _ in range(ROUNDS if moved is not None and left > 0 else 0):
        near = [pair for _, _, pair in heapq.nlargest(KEPT, look.good)]
        look.at([moved(near[int(rng.integers(len(near)))], rng) for _ in range(left)], each)  # type: ignore[misc]
    for kept, longer in FINALS:  # those that chance made the best are looked at once more
        times = min(longer, runs // (3 * kept * each))
        if len(look.good) <= kept or times < 2:
            continue
        best = sorted(heapq.nlargest(kept, look.good), key=lambda one: -one[1])
        look.good = []
        look.at([pair for _, _, pair in best], times * each)
        look.good = look.good or best
    enough = max(look.good)[0] - CLOSE
    pair = next(pair for promise, _, pair in look.good if promise >= enough)
    return Search(pair, seed, look.runs, tuple(promises), look.one_sided, frozenset(look.raised))


AROUND = 3
"""Search, attack, and a look at data with a row less have about as many runs each."""


@dataclass
class _Looks:
    """Short pilots on pairs, and those that the code took: promise, −number, pair."""

    release: Release
    delta: float
    execution: Execution
    runs: int = 0
    number: int = 0
    one_sided: int = 0
    refusal: DpAuditError | None = None
    raised: set[str] = field(default_factory=set)
    good: list[tuple[float, int, AuditPair]] = field(default_factory=list)

    def at(self, pairs: Sequence[AuditPair], each: int) -> list[float | None]:
        """Return what they promise; None where they are refused."""
        known = vars(Experiment.of(self.release, pairs[0], self.execution))
        plain = _Several(**known, pairs=tuple(pairs), first=self.number)
        promises: list[float | None] = []
        with ExitStack() as stack:
            draw, draw_forms = stack.enter_context(plain.drawing()), None
            for pair in pairs:
                promise, chunk = None, Chunk(Stage.SEARCH, self.number, 0, each)
                try:
                    try:
                        promise = self._promise(draw(chunk), first_scores)
                    except (NotPlainError, OneSideNotPlainError) as error:
                        if draw_forms is None:
                            encoded = replace(plain, one_by_one=True, encoder=forms)
                            draw_forms = stack.enter_context(encoded.drawing())
                        promise = self._promise(*_encoded(draw_forms(chunk), error), None)
                    self.good.append((promise, -self.number, pair))
                    self.runs += each
                except (InputError, OneSidedError) as error:
                    self.refusal = error
                    self.raised.update(str(error).partition("mechanism raised ")[2].split()[:1])
                    self.one_sided += isinstance(error, OneSidedError)
                promises.append(promise)
                self.number += 1
                if self.execution.progress is not None:
                    self.execution.progress(self.runs, AROUND * self.execution.runs)
        return promises

    def _promise(
        self,
        both: Both,
        scores: Callable[[Any], Sequence[Score]],
        learner: Learner | None = learn_scores,
    ) -> float:
        return choose_score(
            scores(both[0]),
            *both,
            self.delta,
            test_runs=self.execution.runs,
            confidence=self.execution.confidence,
            learner=learner,
        ).promise


def _encoded(
    both: tuple[Any, Any], reason: DpAuditError
) -> tuple[Both, Callable[[Any], Sequence[Score]]]:
    """Rows of the second half of outputs of any kind, and the clearest columns of the first."""
    require_answers(both, str(reason))
    half = len(both[0]) // 2
    vocabulary = Vocabulary.of(*(side[:half] for side in both))
    x, x_prime = (vocabulary.rows(side[half:]) for side in both)
    return (x, x_prime), lambda _: vocabulary.scores[:CLEAREST]


@dataclass(frozen=True)
class _Several(Experiment):
    """Runs on several pairs in the same children: one for each chunk, from ``first`` on."""

    pairs: tuple[AuditPair, ...] = ()
    first: int = 0

    def outputs(self, side: Side, chunk: Chunk) -> Any:
        own = replace(self, pair=self.pairs[chunk.number - self.first])
        return Experiment.outputs(own, side, chunk)
