"""What a certificate of an opacus training must say besides its numbers.

A training asks when it certifies. An error breaks the proof, and what is proved instead is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from dpaudit.accounting import Guarantee, guarantee
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.plan import (
    AddRemove,
    Invocation,
    Plan,
    PoissonSampling,
    TruncatedPoissonSampling,
)
from dpaudit.plan.dp_sgd import Batching
from dpaudit.training.certifying import not_observed
from dpaudit.training.declared import is_sampled, unobserved
from dpaudit.training.opacus.batches import FALSE_ALARM, BatchStream
from dpaudit.training.opacus.step import ObservedStep

if TYPE_CHECKING:
    from dpaudit.training.opacus.optimizer import ObservedOptimizer

_found = FindingTable(__name__)

NOT_COVERED = (
    "Hyperparameters, and rates or stops during the training, that were chosen by looking at "
    "anything but noisy gradients.",
    "Anything computed from the data besides the noisy gradients, such as statistics of the inputs "
    "or a validation score on training rows.",
    "Rows that the training puts in place of those that its loader drew, losses of one row that "
    "depend on others, such as contrastive ones, losses summed over a batch whose mean opacus "
    "expects, and gradients of rows that something rewrites before they are clipped.",
    "Layers whose first dimension is not the rows of a batch, such as positions, if a batch "
    "has just as many rows.",
    "What a model holds outside its state_dict, and, if only the optimizer was attached, "
    "everything except the trained parameters.",
    "Dropout that follows from a seed that anybody knows, such as torch.manual_seed(0): "
    "adding a row changes the masks of all others.",
    "That a training breaks off.",
    "Steps of an optimizer that is not attached, before the first or after the last attached one.",
)

_SAME = 1e-9


def optimizer_findings(optimizer: ObservedOptimizer) -> Iterable[Finding]:
    """Tell how the noise was drawn, its divisor, and what happened beside the ledger, or unseen."""
    if optimizer.sampler is not None and not all(step.secure_mode for step in optimizer.steps):
        yield _found("noise-not-secure")
    # opacus takes the expected batch size from the size of the data (its issues 571, 819).
    if optimizer.divides and not optimizer.size_is_public and optimizer.public_divisor is None:
        yield _found("expected-batch-depends-on-data", optimizer.label)
    if optimizer.randomness.repeated:
        yield _found("noise-repeated", optimizer.label)
    if optimizer.writes.found:
        yield _found("parameters-written-elsewhere", optimizer.label)
    if earlier := unseen(optimizer):
        yield not_observed(optimizer.label, earlier, optimizer.declared)


def unseen(optimizer: ObservedOptimizer) -> int:
    """Count the ledger's steps of an earlier process: it knows that they happened, not how."""
    return max(0, optimizer.charged() - len(optimizer.steps) - optimizer.failed)


def batch_findings(
    label: str,
    declared: Sequence[Invocation],
    stream: BatchStream | None,
    steps: Sequence[ObservedStep],
) -> list[Finding]:
    """Tell whether batches were drawn as the plan says; errors break the proof."""
    if not steps:
        return []
    unknown = partial(_found, "sampling-not-observed", label)
    severity = unobserved(declared)
    if stream is None:
        return [replace(unknown(what="No loader was attached"), severity=severity)]
    if stream.repeats:
        return [_found("repeated-units", label)]
    if stream.batching is None:
        found = [replace(unknown(what="The loader's sampler is not known"), severity=severity)]
    else:
        found = [one for each in declared for one in _against(label, each, stream)]
    return [*dict.fromkeys(found), *_irregular(label, stream, len(steps))]


def _against(label: str, each: Invocation, stream: BatchStream) -> Iterator[Finding]:
    """Yield one declared invocation against a loader whose scheme is known."""
    batching, disjoint = stream.batching, stream.batching is Batching.DISJOINT
    if not is_sampled(each):
        whole = batching is Batching.POISSON or stream.per_epoch == 1
        if each.releases > each.count:
            if not disjoint:
                yield _found("loader-not-disjoint", label, unit=each.unit, batching=batching)
        elif isinstance(each.relation, AddRemove) and not whole:
            yield _found("batches-shift", label, unit=each.unit)
    elif isinstance(each.sampling, TruncatedPoissonSampling):
        declared = each.sampling
        drawn = stream.most, stream.population
        if (declared.size, declared.population) != drawn or not _at_most(stream, declared.rate):
            yield _found("truncation-differs", label, size=declared.size, rate=declared.rate)
    elif not isinstance(each.sampling, PoissonSampling):
        yield _found("sampling-differs", label, sampling=each.sampling, batching=batching)
    elif batching is not Batching.POISSON or stream.rate is None:
        yield _found("loader-not-poisson", label, rate=each.sampling.rate)
    else:
        rate = each.sampling.rate
        if not _at_most(stream, rate):
            yield _found("sample-rate-differs", label, rate=rate, drawn=stream.rate)
        if stream.p_value <= FALSE_ALARM:
            yield _found("batches-not-poisson", label, p_value=stream.p_value)


def _at_most(stream: BatchStream, rate: float) -> bool:
    """Tell whether the loader draws no unit with more than the declared probability."""
    return stream.rate is not None and stream.rate <= rate * (1 + _SAME)


def _irregular(label: str, stream: BatchStream, steps: int) -> Iterator[Finding]:
    """Yield what went otherwise than the scheme says; how many were left out may be private."""
    if stream.changed:
        yield _found("loader-changed", label)
    sampled = stream.batching in (Batching.POISSON, Batching.TRUNCATED)
    if stream.left_out and sampled:
        yield _found("batches-left-out", label)
    if stream.uneven and sampled:
        yield _found("passes-cut-unevenly", label)
    if stream.randomness.repeated:
        yield _found("batches-repeated", label)
    if stream.strays and stream.counted:
        yield _found("batch-not-fresh", label, strays=stream.strays, steps=steps)


def without_amplification(
    optimizers: Sequence[ObservedOptimizer], stated: Guarantee | None
) -> list[Finding]:
    """Say what is proved of disjoint batches instead of a claim: one release an epoch."""
    found = [_epochs(each) for each in optimizers if each.steps or unseen(each)]
    plans = [plan for plan in found if plan is not None]
    if stated is None or not plans or len(plans) < len(found):
        return []
    whole = Plan.of(*(invocation for plan in plans for invocation in plan.invocations))
    facts = {"unit": whole.unit, "epsilon": guarantee(whole, stated.delta).epsilon}
    return [_found("proved-instead", **facts, delta=stated.delta)]


def _epochs(optimizer: ObservedOptimizer) -> Plan | None:
    """Plan disjoint batches under zero-out, each epoch at the least noise of its steps."""
    stream = optimizer.stream
    if stream is None or stream.batching is not Batching.DISJOINT or unseen(optimizer):
        return None
    if stream.strays or stream.repeats or stream.changed:
        return None
    epochs = groupby(optimizer.steps, key=lambda step: step.epoch)
    least = [min(step.noise_multiplier for step in epoch) for _, epoch in epochs]
    return Plan.dp_sgd(
        noise_multiplier=least,
        steps=len(least),
        epochs=len(least),
        batching=Batching.DISJOINT,
        unit=optimizer.declared[0].unit,
        at=optimizer.label,
    )
