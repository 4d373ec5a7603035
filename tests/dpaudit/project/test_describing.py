"""What ``dpaudit list`` tells of each kind, tried by the reader of plans itself."""

import tomllib

import pytest

from dpaudit.accounting import Accountant
from dpaudit.base.errors import InputError
from dpaudit.certificate import SubjectRecord, Verdict, certify
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.plan import Relation, Sampling
from dpaudit.project.describing import described, plan_text
from dpaudit.project.plan_file import read_plan

FAMILIES = (Mechanism, Relation, Sampling, Factorization)
KINDS = [
    kind
    for family in FAMILIES
    for kind, each in family.kinds().items()
    if each.__module__.startswith("dpaudit.")  # and not by another test
]


LONG = "with-replacement"
"""Its proof takes as long as those of all others."""


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.pages if each == LONG else ()) for each in KINDS]
)
def test_the_example_certifies_as_it_stands(name):
    content = read_plan(tomllib.loads(described(name).example))
    made = certify(
        content.plan, subject=SubjectRecord(name), claim=content.claim, findings=content.findings
    )
    proved = Verdict.UNPROVEN if name in ("opaque", "stated-noise") else Verdict.CERTIFIED
    assert made.verdict is proved
    assert described(name).written.startswith(
        ("mechanism", "relation", "sampling", "factorization")
    )
    assert name in described(name).written


@pytest.mark.parametrize("name", Mechanism.kinds())
def test_every_parameter_is_told_and_its_example_is_read(name):
    found = described(name)
    assert [each.name for each in found.parameters] == list(Mechanism.kinds()[name].keys())
    for each in (*found.parameters, *found.shared):
        assert each.type
        assert each.meaning
        tomllib.loads(f"x = {each.example}")
    content = tomllib.loads(found.example)
    (item,) = content["invocation"]
    for each in found.parameters:
        item[each.name] = tomllib.loads(f"x = {each.example}")["x"]
    read_plan(content)


def test_texts_are_quoted_as_toml_does():
    content = {"plan": {"unit": 'a "row"\\\n\x7f'}, "odd key": [{"x": [1.5, True, float("inf")]}]}
    assert tomllib.loads(plan_text(content)) == content


def test_accountants_and_unknown_names():
    for name in Accountant.kinds():
        assert described(name).about
    with pytest.raises(InputError, match="did you mean 'gaussian'"):
        described("gausian")


def test_an_unknown_or_missing_key_shows_a_correct_example():
    head = '[plan]\nrelation = "add-remove"\n[[invocation]]\n'
    for body in (
        'mechanism = "continual-gaussian"\nsigma = 1.0',
        'mechanism = "continual-gaussian"\nsigma = 1.0\nfactorization = { type = "tree" }',
        'mechanism = "continual-gaussian"\nsigma = 1.0\nsteps = 4',
    ):
        with pytest.raises(InputError) as caught:
            read_plan(tomllib.loads(head + body))
        _, _, example = str(caught.value).partition("for example: ")
        lines = example.partition(" (`dpaudit list")[0]
        table = tomllib.loads(f"x = {{ {lines} }}")["x"]
        read_plan({"plan": {"relation": "add-remove"}, "invocation": [table]})
