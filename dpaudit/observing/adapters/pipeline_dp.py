"""PipelineDP: where it draws noise, and what that noise is in a plan.

It bounds to how many partitions a privacy unit contributes, and how far it moves each. So the noise
of each partition is a release of its own, and one unit moves no more of them than that. Its
collections are put in the order of keys: releases of neighbours are compared one by one, and an
order, or a sample, that follows from the order of rows would be no match.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from pipeline_dp import LocalBackend, combiners, dp_computations
from pipeline_dp.aggregate_params import NoiseKind, NormKind
from pipeline_dp.budget_accounting import NaiveBudgetAccountant, PLDBudgetAccountant

from dpaudit import mechanisms as kinds
from dpaudit.observing import Patch, Reading, Recorder
from dpaudit.observing.calls import fingerprint, least_known


class Lazy:
    """A collection that is computed whenever it is asked for, as all of the library."""

    def __init__(self, made: Callable[[], Iterable[Any]]) -> None:
        self._made = made

    def __iter__(self) -> Iterator[Any]:
        return iter(self._made())


def by_key(row: Any) -> str:
    """Return by what rows of a key and what it has are put in order."""
    return repr(row[0])


def in_order(_: Any, own: Any, col: Any, fn: Any, *given: Any, **options: Any) -> Any:
    """Map in the order of keys: in that of rows releases of neighbours would not match."""

    def run() -> Iterator[Any]:
        rows = list(col)
        places = sorted(range(len(rows)), key=lambda place: by_key(rows[place]))
        made = {place: fn(rows[place][1]) for place in places}
        return ((row[0], made[place]) for place, row in enumerate(rows))

    return Lazy(run)


def sampled(
    recorder: Recorder, _: Any, own: Any, col: Any, n: int, *given: Any, **options: Any
) -> Any:
    """Sample each unit by a generator of its own, whoever else is there."""
    salt = recorder.memory.setdefault("salt", np.random.randint(2**31))  # noqa: NPY002 - theirs

    def run() -> Iterator[Any]:
        for key, held in own.group_by_key(col):
            rng = np.random.default_rng([salt, *repr(key).encode()])
            places = range(len(held)) if len(held) <= n else rng.permutation(len(held))[:n]
            yield key, [held[place] for place in places]

    return Lazy(run)


Among = tuple[int, Hashable] | None


class PipelineDP:
    """The adapter."""

    library = "pipeline-dp"
    versions = ("0.3.",)
    packages = ("pipeline_dp", "pydp", "numpy")

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Yield what adds noise, selects partitions, is one release as a whole, and charges."""
        computing = dp_computations
        for owner, name, read in (
            (computing.AdditiveMechanism, "add_noise", _added),
            (computing, "_add_random_noise", _scalar),
            (computing, "add_noise_vector", _vector),
            (computing.ExponentialMechanism, "apply", _chosen),
            (combiners.QuantileCombiner, "compute_metrics", _quantiles),
        ):
            yield Patch(owner, name, recorder.reading(partial(read, recorder)))
        for owner, name, call in (
            (computing, "create_additive_mechanism", partial(_created, recorder)),
            (LocalBackend, "filter", partial(_selected, recorder)),
            (LocalBackend, "map_values", in_order),
            (LocalBackend, "sample_fixed_per_key", partial(sampled, recorder)),
            (combiners.VarianceCombiner, "compute_metrics", partial(_combined, recorder)),
            (combiners.VectorSumCombiner, "compute_metrics", partial(_combined, recorder)),
            (NaiveBudgetAccountant, "compute_budgets", partial(_charged, recorder)),
            (PLDBudgetAccountant, "compute_budgets", partial(_charged, recorder)),
        ):
            yield Patch(owner, name, recorder.replacing(call, within_draws=True))


def _key(recorder: Recorder, *own: Any) -> Hashable:
    """Return what releases have in common; it is held, so that it stays one of its kind."""
    found = tuple(map(id, own))
    recorder.memory[found] = own
    return found


def _created(recorder: Recorder, original: Any, spec: Any, sensitivities: Any) -> Any:
    """Keep of a mechanism how many partitions one unit moves, and how far each."""
    own = original(spec, sensitivities)
    recorder.memory[id(own)] = own, sensitivities, _key(recorder, spec)
    return own


def _added(recorder: Recorder, own: Any, value: Any) -> Reading:
    among, far = None, own.sensitivity
    _, known, key = recorder.memory.get(id(own), (None, None, None))
    if known is not None:  # where all partitions are bounded together, one moves that far
        among = (1, key) if known.l0 is None else (known.l0, key)
        far = own.sensitivity if known.l0 is None else known.linf
    return _noise(own.noise_kind, own.noise_parameter, far, value, among)


def _noise(kind: Any, scale: float, far: float, value: Any, among: Among) -> Reading:
    laplace = kind == NoiseKind.LAPLACE
    mechanism = kinds.Laplace(float(scale)) if laplace else kinds.Gaussian(float(scale))
    name, most = f"{'Laplace' if laplace else 'Gaussian'}Mechanism", among[0] if among else 0
    facts = {"scale": float(scale), "partitions": most}
    return Reading(name, mechanism, float(far), np.array(value, float), facts=facts, among=among)


def _scale(kind: Any, epsilon: float, delta: float, far: float, partitions: float) -> float:
    """Return the scale by which PipelineDP noises each of some partitions."""
    if kind == NoiseKind.LAPLACE:
        return partitions * far / epsilon
    return float(dp_computations.compute_sigma(epsilon, delta, math.sqrt(partitions) * far))


def _scalar(
    recorder: Recorder, value: Any, eps: float, delta: float, l0: int, linf: float, kind: Any
) -> Reading:
    """Read noise of a variance, whose mechanisms are made anew for each number."""
    return _noise(kind, _scale(kind, eps, delta, linf, l0), linf, value, _turn(recorder, l0))


def _vector(recorder: Recorder, vec: Any, params: Any) -> Reading | None:
    kind, most = params.noise_kind, params.l0_sensitivity
    laplace = kind == NoiseKind.LAPLACE
    if params.norm_kind not in (NormKind.Linf, NormKind.L1 if laplace else NormKind.L2):
        return None
    entries = np.size(vec) if params.norm_kind == NormKind.Linf else 1
    far = params.max_norm * (entries if laplace else math.sqrt(entries))
    scale = _scale(kind, params.eps, params.delta, far, most)
    return _noise(kind, scale, far, vec, _turn(recorder, most))


def _combined(recorder: Recorder, original: Any, own: Any, accumulator: Any) -> Any:
    """Return what one combiner draws for a partition, number by number.

    A combiner draws its numbers in one order for every partition, and fewer than 100. The turn of a
    draw therefore says which number it is, so that the same number of all partitions is one
    invocation.
    """
    recorder.memory["combiner"] = own, iter(range(100))
    return original(own, accumulator)


def _turn(recorder: Recorder, partitions: int) -> Among:
    """Return the releases that one number of a combiner is, over all partitions."""
    own, turns = recorder.memory.get("combiner", (None, None))
    return None if turns is None else (partitions, (_key(recorder, own), next(turns)))


def _chosen(recorder: Recorder, own: Any, eps: float, inputs_to_score_col: Any) -> Reading:
    scoring, name = own._scoring_function, "ExponentialMechanism"
    mechanism: kinds.Mechanism = kinds.ExponentialMechanism(eps, float(scoring.global_sensitivity))
    if scoring.is_monotonic:
        mechanism = kinds.Opaque(name, least_known(eps))
    utilities = np.array([scoring.score(each) for each in inputs_to_score_col], float)
    return Reading(name, mechanism, 1.0, utilities, facts={"epsilon": eps})


def _selected(
    recorder: Recorder, original: Any, own: Any, col: Any, fn: Any, stage_name: Any = None
) -> Any:
    """Keep or drop partitions of private keys all together, as one release."""
    budget: Any = fn.args[0] if isinstance(fn, partial) and fn.args else None
    if not hasattr(budget, "set_thresholding_delta"):
        return original(own, col, fn, stage_name)

    def select() -> Iterator[Any]:
        rows = list(col)
        size = fingerprint(sorted((repr(key), held[0]) for key, held in rows))
        made = budget.standard_deviation_is_set  # of which it states a law alone
        cost = (math.inf, 0.0) if made else (float(budget.eps), float(budget.delta))
        mechanism = kinds.Opaque("selection of partitions", least_known(cost[0]), cost[1])
        draws = partial(sorted, (row for row in rows if fn(row)), key=by_key)
        reading = Reading("selection", mechanism, 1.0, size, facts={"epsilon": cost[0]})
        kept = recorder.release(reading, lambda: frozenset(row[0] for row in draws()))
        return (row for row in rows if row[0] in kept)

    return Lazy(select)


def _quantiles(recorder: Recorder, own: Any, accumulator: Any) -> Reading:
    """Read noisy counts of a tree, of which PipelineDP states what they cost together."""
    most = own._params.aggregate_params.max_partitions_contributed
    epsilon, delta = own._params.eps, own._params.delta
    mechanism = kinds.Opaque("quantiles of a tree", least_known(epsilon / most), delta / most)
    held, tree = (getattr(accumulator, name, None) for name in ("elements", "tree"))
    tree = accumulator if tree is None else tree.serialize().to_bytes()
    value = fingerprint(tree if held is None else sorted(held))
    facts, among = {"epsilon": epsilon, "delta": delta}, (most, _key(recorder, own))
    return Reading("quantiles", mechanism, 1.0, value, facts=facts, among=among)


def _charged(recorder: Recorder, original: Any, own: Any) -> Any:
    made = original(own)
    recorder.charge(own.total_epsilon, own.total_delta)
    return made


ADAPTER = PipelineDP()
