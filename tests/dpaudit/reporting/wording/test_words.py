"""The terms of a plan in words."""

from dataclasses import replace

import pytest

from dpaudit import AddRemove, MetricBall, Plan, PrivacyUnit, ReplaceOne, TrustModel, ZeroOut
from dpaudit.accounting import AccountantName
from dpaudit.accounting.proved import FILTER
from dpaudit.certificate import Severity
from dpaudit.reporting.checklists import checklists
from dpaudit.reporting.checklists.model import Status
from dpaudit.reporting.wording import words
from dpaudit.reporting.wording.headline import headline
from dpaudit.reporting.wording.statement import statement


@pytest.mark.parametrize(
    ("relation", "asked"),
    [
        (AddRemove(), "whether you took part"),
        (ReplaceOne(), "which of two answers you gave"),
        (ZeroOut(), "whether your data were used"),
        (MetricBall(0.25), "differ by at most 0.25"),
    ],
)
def test_relations_in_words(certificates, relation, asked):
    plan, central = certificates["bare"].plan, TrustModel.CENTRAL
    changed = Plan(tuple(replace(i, relation=relation, trust=central) for i in plan.invocations))
    assert asked in headline(replace(certificates["bare"], plan=changed)).sentence
    assert "one household" in words.neighbours(relation, PrivacyUnit("household"))


@pytest.mark.parametrize("trust", TrustModel)
def test_every_trust_model_has_words(certificates, trust):
    plan = certificates["bare"].plan
    changed = Plan(tuple(replace(i, trust=trust) for i in plan.invocations))
    said = headline(replace(certificates["bare"], plan=changed)).sentence
    assert words.adversary(trust)[1:] in said
    assert words.TRUST[trust].lower().startswith(trust.value)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_mixed_trust_promises_the_weakest(certificates, order):
    """A server that holds raw data sees more than what leaves a device."""
    use = certificates["bare"].plan.invocations[0]
    both = [replace(use, trust=t, at=t) for t in (TrustModel.LOCAL, TrustModel.CENTRAL)]
    plan = Plan(tuple(both[n] for n in order))
    mixed = replace(certificates["bare"], plan=plan)
    said = headline(mixed).sentence
    assert words.adversary(TrustModel.CENTRAL)[1:] in said
    assert words.adversary(TrustModel.LOCAL)[1:] not in said
    said_of_trust = words.trusted(plan)
    assert "no more than the weakest of these, central" in said_of_trust[0]
    assert said_of_trust[1:] == (words.TRUST[TrustModel.CENTRAL],)
    assert set(said_of_trust) < set(statement(mixed).setting)
    assert not set(said_of_trust) & set(statement(certificates["bare"]).setting)
    items = {item.rule: item for one in checklists(mixed) for item in one.items}
    assert "publishes" in items["dpfy-setting"].reason
    assert "device" not in items["dpfy-setting"].reason
    assert items["label-deployment"].reason.endswith("no more than central.")
    assert items["nist-trust-assumptions"].status is Status.UNKNOWN


def test_every_accountant_and_severity_has_words():
    assert words.ACCOUNTANTS.keys() == {*AccountantName, FILTER} - {AccountantName.BEST}
    assert words.SEVERITIES.keys() == set(Severity)


def test_published_counts_the_releases_of_each_mechanism(certificates):
    assert words.published(certificates["exceeded"]) == ("36 releases by the mechanism gaussian",)
    assert words.published(certificates["bare"]) == ("1 release by the mechanism laplace",)
