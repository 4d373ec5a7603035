"""The categories of the privacy label for differential privacy.

Dibia, Lu, Bhattacharjee, Near and Feng, "'We Need a Standard': Toward an Expert-Informed Privacy
Label for Differential Privacy" (arXiv 2507.15997), name nine categories of parameters (table 1).
They are given here as a published summary of that table lists them. An item is met where the
certificate discloses something of that category.
"""

from __future__ import annotations

import re

from dpaudit.reporting.checklists.facts import Facts, listed
from dpaudit.reporting.checklists.model import Source, Status, Template
from dpaudit.reporting.text import down, percent, plain, probability, up
from dpaudit.reporting.wording import words

__all__ = ["LABEL"]

_UTILITY = re.compile(r"\b(accura|error|regret|utility|rmse|mae\b|mse\b|auc\b|loss)", re.IGNORECASE)


def _parameters(facts: Facts) -> tuple[Status, str]:
    proved = facts.proved
    if proved is None:
        return Status.NOT_MET, f"{facts.unproved}."
    return Status.MET, f"Proved are ε = {up(proved.epsilon)} and δ = {plain(proved.delta)}."


def _unit(facts: Facts) -> tuple[Status, str]:
    return Status.MET, f"The unit is one {facts.plan.unit}, under {facts.plan.relation}."


def _utility(facts: Facts) -> tuple[Status, str]:
    run = facts.certificate.run
    if run is None:
        return Status.NOT_MET, "No run is recorded, so nothing is said of accuracy."
    names = sorted({*run["summary"], *run["series"]})
    measured = [name for name in names if _UTILITY.search(name)]
    if measured:
        return Status.MET, f"A run reports {listed(measured)}."
    return Status.UNKNOWN, "A run is recorded, but none of its results is named as an accuracy."


def _mechanism(facts: Facts) -> tuple[Status, str]:
    if facts.unexplained:
        return Status.NOT_MET, (
            f"How {listed(facts.unexplained)} works is not stated, only how private it is."
        )
    return Status.MET, f"The mechanisms are {listed(facts.kinds)}."


def _hyperparameters(facts: Facts) -> tuple[Status, str]:
    named = sorted(facts.certificate.subject.configuration)
    if not named:
        return Status.UNKNOWN, "The mechanisms’ parameters are stated, those of the algorithm not."
    return Status.MET, f"The public configuration is stated ({listed(named)})."


def _deployment(facts: Facts) -> tuple[Status, str]:
    trusted = dict.fromkeys(i.trust for i in facts.plan.invocations)
    stated = " ".join(words.TRUST[trust].split(".")[0] + "." for trust in trusted)
    if len(trusted) > 1:
        stated = (
            f"The trust models are {listed(trusted)}; the whole promises no more than "
            f"{facts.plan.trust}."
        )
    return Status.MET, stated


def _empirical(facts: Facts) -> tuple[Status, str]:
    audits = facts.certificate.audits
    if not audits:
        return Status.NOT_MET, "Nothing was attacked."
    lower = max((a.epsilon_lower for a in audits if a.epsilon_lower is not None), default=None)
    shown = "" if lower is None else f"; the largest lower bound is ε = {down(lower)}"
    attacks = "one attack is" if len(audits) == 1 else f"{len(audits)} attacks are"
    return Status.MET, f"{attacks[0].upper()}{attacks[1:]} recorded{shown}."


def _interpretation(facts: Facts) -> tuple[Status, str]:
    proved = facts.proved
    if proved is None:
        return Status.NOT_MET, f"{facts.unproved}, which leaves nothing to interpret."
    bound = percent(probability(proved.epsilon, proved.delta))
    return Status.MET, f"A guess at even odds is right with probability at most {bound}."


def _other(facts: Facts) -> tuple[Status, str]:
    return Status.UNKNOWN, (
        "Accountant, sampling, counts and versions are stated; whether a reader needs others is "
        "not recorded."
    )


LABEL = Source(
    "privacy-label",
    "Privacy label for differential privacy",
    "Dibia et al., “We Need a Standard”: Toward an Expert-Informed Privacy Label for Differential "
    "Privacy, arXiv 2507.15997 (2025), table 1",
    tuple(
        Template(rule, "Label", title, answer)
        for rule, title, answer in (
            ("label-parameters", "Privacy parameters", _parameters),
            ("label-unit", "Unit of privacy", _unit),
            ("label-utility", "Utility", _utility),
            ("label-mechanism", "Mechanism", _mechanism),
            ("label-hyperparameters", "Hyperparameters of the algorithm", _hyperparameters),
            ("label-deployment", "Deployment model", _deployment),
            ("label-empirical", "Empirical privacy metrics", _empirical),
            ("label-interpretation", "What the privacy means", _interpretation),
            ("label-other", "Other parameters", _other),
        )
    ),
)
"""The whole list."""
