"""The reporting list of "How to DP-fy ML".

Ponomareva et al., "How to DP-fy ML: A Practical Guide to Machine Learning with Differential
Privacy" (JAIR 77, 2023), section 5.3.3, ask a report to state the setting, how the definition is
instantiated, how privacy is accounted for, and what allows others to verify it. An item is met
where the certificate states it.
"""

from __future__ import annotations

import re

from dpaudit.reporting.checklists.facts import Facts, Level, Rules, listed
from dpaudit.reporting.checklists.model import Source, Status, Template
from dpaudit.reporting.text import plain, up
from dpaudit.reporting.wording import words

__all__ = ["REPORTING"]

_SETTING = "DP setting"
_DEFINITION = "Instantiating the DP definition"
_ACCOUNTING = "Privacy accounting details"
_VERIFIABILITY = "Transparency and verifiability"

_TUNING = re.compile(r"\b(hyper-?parameters?|tun(e|ed|ing)|model selection)\b", re.IGNORECASE)


def _setting(facts: Facts) -> tuple[Status, str]:
    trusted = list(dict.fromkeys(i.trust for i in facts.plan.invocations))
    who = words.adversary(facts.plan.trust)
    who = f"{who[0].lower()}{who[1:]}"
    if len(trusted) > 1:
        return Status.MET, (
            f"The trust models are {listed([str(trust) for trust in trusted])}, all of them "
            f"against {who}."
        )
    return Status.MET, f"The trust model is {trusted[0]}, against {who}."


def _data_accesses(facts: Facts) -> tuple[Status, str]:
    if found := facts.found(Rules.UNCOUNTED):
        return Status.NOT_MET, f"Some accesses to the data are not counted ({listed(found)})."
    if any(_TUNING.search(sentence) for sentence in facts.certificate.not_covered):
        return Status.MET, (
            f"What is declared is covered ({facts.releases}); what is said of tuning is listed as "
            "not covered."
        )
    return Status.UNKNOWN, (
        f"What is declared is covered ({facts.releases}); whether parameters were tuned on the "
        "data is not recorded."
    )


def _final_output(facts: Facts) -> tuple[Status, str]:
    return Status.MET, (
        f"The output is everything released: {facts.releases} by {listed(facts.kinds)}."
    )


def _unit(facts: Facts) -> tuple[Status, str]:
    aside = "" if facts.level is Level.PERSON else ", which may be less than a person’s data"
    return Status.MET, f"The unit of privacy is one {facts.plan.unit}{aside}."


def _adjacency(facts: Facts) -> tuple[Status, str]:
    return Status.MET, f"Data sets are neighbours under {_relation(facts)}."


def _relation(facts: Facts) -> str:
    ball = "" if facts.ball is None else f" of radius {plain(facts.ball.radius)}"
    return f"{facts.plan.relation}{ball} of one {facts.plan.unit}"


def _accountant(facts: Facts) -> tuple[Status, str]:
    guarantee = facts.certificate.guarantee
    if guarantee is None:
        return Status.NOT_MET, f"{facts.unproved}."
    theorem = words.ACCOUNTANTS.get(guarantee.accountant, "")
    aside = f" ({theorem})" if theorem else ""
    return Status.MET, f"The guarantee is by the accountant {guarantee.accountant}{aside}."


def _assumptions(facts: Facts) -> tuple[Status, str]:
    if found := facts.found(Rules.SOUNDNESS):
        return Status.NOT_MET, f"An assumption does not hold or is not declared ({listed(found)})."
    if facts.proved is None:
        return Status.NOT_MET, f"{facts.unproved}."
    sampled = any(i.sampling is not None for i in facts.plan.invocations)
    rest = "sensitivity, counts and sampling" if sampled else "sensitivity and counts"
    return Status.UNKNOWN, (
        f"The assumptions on {rest} are stated; that the deployed code keeps to all of them is not "
        "shown."
    )


def _formal_statement(facts: Facts) -> tuple[Status, str]:
    proved = facts.proved
    if proved is None:
        return Status.NOT_MET, f"{facts.unproved}."
    return Status.MET, (
        f"The system is (ε, δ)-differentially private with ε = {up(proved.epsilon)} and "
        f"δ = {plain(proved.delta)}."
    )


def _recomputable(facts: Facts) -> tuple[Status, str]:
    if facts.certificate.guarantee is None:
        return Status.NOT_MET, f"{facts.unproved}, which leaves nothing to recompute."
    if not facts.certificate.versions:
        return Status.UNKNOWN, "The plan is here, but not the versions that computed the guarantee."
    return Status.MET, "The plan and the versions are here, so anybody can recompute the guarantee."


def _open_code(facts: Facts) -> tuple[Status, str]:
    if facts.certificate.subject.code_hash is None:
        return Status.NOT_MET, "No code is attached: the certificate speaks of a plan alone."
    return Status.UNKNOWN, "The code is named by its hash; whether it is public is not recorded."


REPORTING = Source(
    "how-to-dp-fy-ml",
    "How to DP-fy ML: what a report must state",
    "Ponomareva et al., How to DP-fy ML, Journal of Artificial Intelligence Research 77 (2023), "
    "section 5.3.3",
    (
        Template("dpfy-setting", _SETTING, "Who is trusted with what", _setting),
        Template(
            "dpfy-data-accesses",
            _DEFINITION,
            "Which accesses to the data are covered, tuning included",
            _data_accesses,
        ),
        Template("dpfy-final-output", _DEFINITION, "What the covered output is", _final_output),
        Template("dpfy-unit", _DEFINITION, "The unit of privacy", _unit),
        Template("dpfy-adjacency", _DEFINITION, "Which data sets are neighbours", _adjacency),
        Template("dpfy-accountant", _ACCOUNTING, "The type of accounting", _accountant),
        Template(
            "dpfy-assumptions",
            _ACCOUNTING,
            "The assumptions of the accounting, and whether they hold",
            _assumptions,
        ),
        Template("dpfy-formal-statement", _ACCOUNTING, "The formal statement", _formal_statement),
        Template(
            "dpfy-recomputable",
            _VERIFIABILITY,
            "Others can recompute the accounting",
            _recomputable,
        ),
        Template("dpfy-open-code", _VERIFIABILITY, "Others can read the code", _open_code),
    ),
)
"""The whole list."""
