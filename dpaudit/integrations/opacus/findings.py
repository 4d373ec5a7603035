"""What a certificate of an opacus training must say besides its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dpaudit.accounting import Guarantee, guarantee
from dpaudit.certificate import Finding, Severity
from dpaudit.integrations.opacus.batches import BatchStream
from dpaudit.integrations.opacus.step import ObservedStep
from dpaudit.plan import AddRemove, FixedSizeSampling, Invocation, Plan, PoissonSampling
from dpaudit.plan.dp_sgd import Batching

if TYPE_CHECKING:
    from dpaudit.integrations.opacus.optimizer import ObservedOptimizer

__all__ = ["batch_findings", "divisor_finding", "library_findings", "without_amplification"]

FALSE_ALARM = 1e-6
_SAME = 1e-9


def library_findings(steps: Sequence[ObservedStep], sampler: str) -> Iterable[Finding]:
    """Who drew the noise, and how."""
    yield Finding(
        "noise-drawn-elsewhere",
        Severity.NOTE,
        f"The noise was drawn by {sampler}, not by the ledger, which recorded that it was drawn "
        "with the declared parameters.",
        "Test the library's noise by conformance, and its clipping by replay.",
    )
    if not all(step.secure_mode for step in steps):
        yield Finding(
            "noise-not-secure",
            Severity.WARNING,
            "The noise came from a generator of torch, which is not cryptographic: who learns "
            "its state can subtract the noise.",
            "Deploy with PrivacyEngine(secure_mode=True).",
        )


def divisor_finding(optimizer: ObservedOptimizer) -> list[Finding]:
    """An expected batch size that opacus took from the size of the data (its issues 571, 819)."""
    if optimizer.size_is_public or not optimizer.divides or optimizer.public_divisor is not None:
        return []
    return [
        Finding(
            "expected-batch-depends-on-data",
            Severity.ERROR,
            "opacus divides the noisy sum by an expected batch size that follows from the number "
            "of units, which add-remove protects: where neighbours get different divisors, the "
            "scale of the noise tells them apart (opacus issues 571 and 819).",
            "Give attach a public expected_batch_size, use loss_reduction='sum', or state the "
            "guarantee under zero-out.",
            optimizer.label,
        )
    ]


def batch_findings(
    label: str,
    declared: Sequence[Invocation],
    stream: BatchStream | None,
    steps: Sequence[ObservedStep],
) -> list[Finding]:
    """Whether batches were drawn as the plan says; errors break the proof."""
    if not steps:
        return []
    if stream is None:
        return [_not_observed(label, "No loader was attached", Severity.WARNING)]
    if stream.repeats:
        return [
            _error(
                "repeated-units",
                "The loader draws units with replacement: one unit may be in a batch several times "
                "and move the sum by a multiple of the clip norm.",
                "Draw every unit at most once a batch.",
                label,
            )
        ]
    if stream.batching is None:
        claimed = any(_sampled(each) or each.releases > each.count for each in declared)
        severity = Severity.ERROR if claimed else Severity.WARNING
        found = [_not_observed(label, "The loader's sampler is not known", severity)]
    else:
        found = [one for each in declared for one in _against(label, each, stream)]
    return [*dict.fromkeys(found), *_irregular(label, stream, len(steps))]


def _not_observed(label: str, what: str, severity: Severity) -> Finding:
    return Finding(
        "sampling-not-observed",
        severity,
        f"{what}, so that batches are drawn as declared is an assumption.",
        "Attach the loader that make_private returned.",
        label,
    )


def _sampled(each: Invocation) -> bool:
    """Whether less than all units take part, so that amplification is claimed."""
    match each.sampling:
        case None:
            return False
        case PoissonSampling(rate=rate):
            return rate < 1
        case FixedSizeSampling(size=size, population=population):
            return size < population
    return True


def _against(label: str, each: Invocation, stream: BatchStream) -> list[Finding]:
    """One declared invocation against a loader whose scheme is known."""
    if _sampled(each):
        if isinstance(each.sampling, PoissonSampling):
            return _poisson(label, each, each.sampling.rate, stream)
        return [
            _error(
                "sampling-differs",
                f"The plan claims amplification by {each.sampling}; the loader's batches are "
                f"{stream.batching}, and no loader is known that draws a fresh subset every step.",
                "Declare batching='poisson' and let make_private make the loader, or declare "
                "batching='disjoint'.",
                label,
            )
        ]
    if each.releases > each.count:
        return _disjoint(label, each, stream)
    return _unamplified(label, each, stream)


def _irregular(label: str, stream: BatchStream, steps: int) -> Iterable[Finding]:
    """What went otherwise than the scheme says; how many were left out may be private."""
    if stream.changed:
        yield _error(
            "loader-changed",
            "The loader's sampler, its rate or its number of units was changed after the loader "
            "was attached.",
            "Leave the sampler as it is; attach another optimizer for another scheme.",
            label,
        )
    if stream.left_out and stream.batching is Batching.POISSON:
        yield _error(
            "batches-left-out",
            "Batches that the loader drew were passed over and later ones used: the batches of the "
            "steps are then chosen, not sampled. To skip empty batches is such a choice.",
            "Make a step of every batch, empty ones too, and stop only at the end.",
            label,
        )
    if stream.strays and stream.counted:
        yield _error(
            "batch-not-fresh",
            f"{stream.strays} of {steps} noisy steps used a batch that the loader did not draw for "
            "them: a batch was used twice, or came from elsewhere and may hold a unit twice.",
            "Draw a batch from the attached loader for every step, and share it with no other "
            "optimizer.",
            label,
        )


def _poisson(label: str, first: Invocation, rate: float, stream: BatchStream) -> list[Finding]:
    if stream.batching is not Batching.POISSON or stream.rate is None:
        return [
            _error(
                "loader-not-poisson",
                f"The plan claims amplification by Poisson sampling at rate {rate:g}; the loader "
                "passes over the units in disjoint batches, which that theorem does not cover.",
                "Let make_private make the loader (poisson_sampling=True), or declare "
                "batching='disjoint'.",
                label,
            )
        ]
    found = []
    if stream.rate > rate * (1 + _SAME):
        found.append(
            _error(
                "sample-rate-differs",
                f"The plan declares the sample rate {rate:g}; the loader draws at {stream.rate:g}.",
                "Declare sample_rate=1/len(data_loader), or change the batch size.",
                label,
            )
        )
    if stream.p_value <= FALSE_ALARM:
        found.append(
            _error(
                "batches-not-poisson",
                "More batches are equally large than independent draws would be, with probability "
                f"at most {stream.p_value:.2g}.",
                "Look for what pads, cuts or replaces the loader's batches.",
                label,
            )
        )
    return found


def _disjoint(label: str, first: Invocation, stream: BatchStream) -> list[Finding]:
    if stream.batching is Batching.DISJOINT:
        return []
    return [
        _error(
            "loader-not-disjoint",
            f"The plan declares that one {first.unit} is in one batch of an epoch; with the "
            f"loader's {stream.batching} sampling it may be in several.",
            "Declare batching='poisson', or make the optimizer with poisson_sampling=False.",
            label,
        )
    ]


def _unamplified(label: str, first: Invocation, stream: BatchStream) -> list[Finding]:
    whole = stream.batching is Batching.POISSON or stream.per_epoch == 1
    if not isinstance(first.relation, AddRemove) or whole:
        return []
    return [
        _error(
            "batches-shift",
            f"Under add-remove a missing {first.unit} moves others to other batches of this "
            "loader, and these batches differ by more than one clip norm.",
            "State the guarantee under zero-out or replace-one.",
            label,
        )
    ]


def without_amplification(
    optimizers: Sequence[ObservedOptimizer], stated: Guarantee | None
) -> list[Finding]:
    """What is proved of disjoint batches in place of a claim that is not: one release an epoch."""
    plans = [_epochs(each) for each in optimizers if each.steps]
    if stated is None or not plans:
        return []
    invocations = [call for plan in plans if plan is not None for call in plan.invocations]
    if None in plans:
        return []
    proved = guarantee(Plan.of(*invocations), stated.delta)
    return [
        Finding(
            "proved-instead",
            Severity.WARNING,
            f"Under zero-out, with each {plans[0].unit if plans[0] else 'unit'} in one batch of an "
            f"epoch, ε = {proved.epsilon:.4g} at δ = {proved.delta:g} is proved of the steps that "
            "ran.",
            "Declare this, or draw batches as declared.",
        )
    ]


def _epochs(optimizer: ObservedOptimizer) -> Plan | None:
    """Disjoint batches under zero-out, each epoch at the least noise of its steps."""
    stream = optimizer.stream
    if stream is None or stream.batching is not Batching.DISJOINT:
        return None
    if stream.strays or stream.repeats or stream.changed:
        return None
    least: dict[int, float] = {}
    for step in optimizer.steps:
        noise = least.get(step.epoch, step.noise_multiplier)
        least[step.epoch] = min(noise, step.noise_multiplier)
    return Plan.dp_sgd(
        noise_multiplier=list(least.values()),
        steps=len(least),
        epochs=len(least),
        batching=Batching.DISJOINT,
        unit=optimizer.declared[0].unit,
        at=optimizer.label,
    )


def _error(rule: str, message: str, remedy: str, label: str) -> Finding:
    return Finding(rule, Severity.ERROR, message, remedy, label)
