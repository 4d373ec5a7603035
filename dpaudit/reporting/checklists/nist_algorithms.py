"""Hazards of the algorithms: NIST SP 800-226, section 3."""

from __future__ import annotations

from dpaudit.reporting.checklists.facts import Facts, Level, Rules, listed
from dpaudit.reporting.checklists.model import Status, Template

__all__ = ["TEMPLATES"]

_GROUP = "Algorithms"


def _custom_implementation(facts: Facts) -> tuple[Status, str]:
    if found := facts.found(Rules.IMPLEMENTATION):
        return Status.NOT_MET, f"The code has findings of its own ({listed(found)})."
    if facts.contradicted:
        return Status.NOT_MET, f"{facts.unproved}."
    if facts.certificate.subject.code_hash is None:
        return Status.UNKNOWN, "The certificate speaks of a plan, not of code."
    return Status.UNKNOWN, (
        "Which library draws the noise of a deployment, and how well it is tested, is not recorded."
    )


def _systemic_bias(facts: Facts) -> tuple[Status, str]:
    return Status.UNKNOWN, "What the noise does to small groups is not recorded."


def _human_bias(facts: Facts) -> tuple[Status, str]:
    return Status.UNKNOWN, "How results are changed to look plausible is not recorded."


def _statistical_bias(facts: Facts) -> tuple[Status, str]:
    clipped = tuple(
        dict.fromkeys(
            m.kind
            for m in facts.mechanisms
            if any(getattr(m, name, None) is not None for name in ("clip", "clip_norm"))
        )
    )
    if clipped:
        return (
            Status.UNKNOWN,
            f"{listed(clipped)} clips values; how biased that is, is not recorded.",
        )
    return Status.UNKNOWN, "The bias of the published results is not recorded."


def _bounded_contribution(facts: Facts) -> tuple[Status, str]:
    if found := facts.found(Rules.CONTRIBUTIONS):
        return Status.NOT_MET, f"A unit contributes more than is counted ({listed(found)})."
    if facts.proved is None:
        return Status.UNKNOWN, f"{facts.unproved}."
    if facts.level is Level.EVENT:
        return Status.NOT_APPLICABLE, (
            f"The guarantee protects one {facts.plan.unit}, so contributions of a person are not "
            "bounded."
        )
    most = max(sum(i.count for i in group) for group in facts.plan.by_unit())
    bound = f"The proof counts up to {most} releases that touch one {facts.plan.unit}"
    if facts.certificate.run is None:
        return Status.UNKNOWN, f"{bound}, but no run is recorded that kept to it."
    return Status.MET, f"{bound}, and the recorded run kept to it."


def _histogram_bins(facts: Facts) -> tuple[Status, str]:
    return (
        Status.UNKNOWN,
        "Whether a release is a histogram, and who chose its bins, is not recorded.",
    )


def _learning(facts: Facts) -> tuple[Status, str]:
    return _covered(facts, "learned", "learning")


def _synthetic(facts: Facts) -> tuple[Status, str]:
    return _covered(facts, "generated", "synthesis")


def _covered(facts: Facts, done: str, doing: str) -> tuple[Status, str]:
    """Whatever follows from private releases is private; without them nothing is."""
    if facts.proved is None:
        return Status.NOT_MET, f"{facts.unproved}; {doing} alone protects nothing."
    if found := facts.found(Rules.UNCOUNTED):
        return Status.UNKNOWN, (
            f"Whether what is {done} also follows from what is not counted ({listed(found)}) is "
            "not recorded."
        )
    return Status.MET, f"What is {done} from the declared releases alone is covered by the proof."


def _synthetic_quality(facts: Facts) -> tuple[Status, str]:
    return Status.UNKNOWN, "Whether a release is synthetic data, and how good, is not recorded."


def _unstructured(facts: Facts) -> tuple[Status, str]:
    return Status.UNKNOWN, (
        f"Whether the data are text, images, audio or video, where one {facts.plan.unit} can hold "
        "data of others, is not recorded."
    )


TEMPLATES = (
    Template(
        "nist-custom-implementation",
        _GROUP,
        "Well-tested libraries are used instead of custom implementations (3)",
        _custom_implementation,
    ),
    Template(
        "nist-systemic-bias",
        _GROUP,
        "Systemic bias is neither created nor magnified (3.3.1)",
        _systemic_bias,
    ),
    Template(
        "nist-human-bias",
        _GROUP,
        "Interventions against human bias are weighed for their other effects (3.3.2)",
        _human_bias,
    ),
    Template(
        "nist-statistical-bias",
        _GROUP,
        "Statistical bias is understood and quantified (3.3.3)",
        _statistical_bias,
    ),
    Template(
        "nist-bounded-contribution",
        _GROUP,
        "Noise is scaled to all that one user contributes (3.4.1)",
        _bounded_contribution,
    ),
    Template(
        "nist-histogram-bins",
        _GROUP,
        "Bins of histograms are not read off the data (3.4.1)",
        _histogram_bins,
    ),
    Template(
        "nist-machine-learning",
        _GROUP,
        "Learned models are protected by a proof, not by learning alone (3.5)",
        _learning,
    ),
    Template(
        "nist-synthetic-data",
        _GROUP,
        "Synthetic data are generated with differential privacy (3.6)",
        _synthetic,
    ),
    Template(
        "nist-synthetic-quality",
        _GROUP,
        "Synthetic data from deep learning are good enough for their use (3.6)",
        _synthetic_quality,
    ),
    Template(
        "nist-unstructured-data",
        _GROUP,
        "The unit of privacy is meaningful where data are unstructured (3.7)",
        _unstructured,
    ),
)
"""In the order of the publication."""
