"""An accountant from outside the package: one class, by public names alone, known by its name.

It composes pure ε by concentration: each is ε²/2-zCDP, ρ adds up, and ρ-zCDP is
(ρ + 2√(ρ ln 1/δ), δ)-private for every δ (Bun and Steinke 2016, Propositions 1.4, 1.3 and
Lemma 1.7). Built-in accountants convert better; this one is for the test of the door.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest
from accounting_builders import plan, pure_invocations, use
from accounting_conformance import AccountantLaws
from hypothesis import strategies as st

import dpaudit.base.applications
from dpaudit import certify, guarantee
from dpaudit.accounting import (
    Accountant,
    Composition,
    Interval,
    accountant_of,
    compose,
)
from dpaudit.accounting.terms import terms
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.certificate import SubjectRecord
from dpaudit.certificate.verification import verify
from dpaudit.cli.main import main
from dpaudit.mechanisms import Laplace, RandomizedResponse
from dpaudit.plan import Invocation
from dpaudit.reporting.wording.headline import headline

UP = 1 + 1e-12


class SquaredSum(Composition):
    """ρ, and the sum of ε beyond which nothing is spent."""

    def __init__(self, rho: float, total: float) -> None:
        self.rho, self.total = rho, total

    def epsilon(self, delta: float) -> Interval:
        """ρ + 2√(ρ ln 1/δ), at most the sum."""
        if delta == 0:
            return Interval(None, self.total)
        found = self.rho + 2 * math.sqrt(self.rho * -math.log(delta))
        return Interval(None, min(found * UP, self.total))

    def delta(self, epsilon: float) -> Interval:
        """exp(−(ε − ρ)²/4ρ) from ρ on, and 0 from the sum on."""
        if epsilon >= self.total:
            return Interval(None, 0.0)
        if epsilon <= self.rho:
            return Interval(None, 1.0)
        return Interval(None, min(1.0, math.exp(-((epsilon - self.rho) ** 2) / 4 / self.rho) * UP))

    @property
    def native(self) -> dict[str, Any]:
        return {"rho": self.rho}


class SquaredAccountant(Accountant):
    """Squares of pure ε."""

    kind: ClassVar[str] = "outside-squared"

    def compose(self, invocations: Sequence[Invocation]) -> SquaredSum:
        parts = terms(invocations)
        for part in parts:
            if part.sampled_epsilon == math.inf or part.slack:
                raise UnsupportedError(f"{part.invocation.describe()} has no pure ε.")
        costs = [(part.count, Fraction(part.sampled_epsilon)) for part in parts]
        rho = sum((count * epsilon**2 / 2 for count, epsilon in costs), Fraction(0))
        total = sum((count * epsilon for count, epsilon in costs), Fraction(0))
        return SquaredSum(float(rho) * UP, float(total) * UP)


class TestSquared(AccountantLaws):
    accountant = SquaredAccountant()
    ledgers = st.lists(pure_invocations(), min_size=1, max_size=4)


ANSWERS = plan(use(RandomizedResponse(0.9), count=200))


def test_it_is_chosen_by_its_name():
    proved = guarantee(ANSWERS, 1e-6, "outside-squared")
    assert proved.accountant == "outside-squared"
    assert proved.native == {"rho": SquaredAccountant().compose(ANSWERS.invocations).rho}
    assert proved.compared == {"outside-squared": proved.epsilon}
    assert guarantee(ANSWERS, 1e-6).epsilon <= proved.epsilon
    assert compose(ANSWERS, "outside-squared").epsilon(1e-6).upper == proved.epsilon


def test_a_certificate_names_it_and_is_verified():
    certificate = certify(
        ANSWERS, subject=SubjectRecord("answers"), delta=1e-6, accountant="outside-squared"
    )
    record = json.loads(json.dumps(certificate.to_dict()))
    again = type(certificate).from_dict(record)
    assert again.guarantee.accountant == "outside-squared"
    assert again == certificate
    verify(again)


def test_the_best_never_asks_it_whatever_it_says(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SquaredAccountant, "in_best", True, raising=False)
    assert "outside-squared" not in guarantee(ANSWERS, 1e-6).compared
    with pytest.raises(InputError, match="accountant 'outside-best' sets in_best; 'best' asks"):

        class Asked(SquaredAccountant):
            kind = "outside-best"
            in_best = True

    assert "outside-best" not in Accountant.kinds()


def test_a_certificate_by_it_says_whose_proof_it_is():
    subject = SubjectRecord("answers")
    made = certify(ANSWERS, subject=subject, delta=1e-6, accountant="outside-squared")
    assert made.foreign.accountants == ("outside-squared",)
    assert made.foreign.mechanisms == ()
    said = headline(made)
    assert said.label == "Proved, weak protection: the plan, if what others state is true"
    assert any("the accountant 'outside-squared'" in each for each in said.details)
    own = certify(ANSWERS, subject=subject, delta=1e-6)
    assert not own.foreign
    assert headline(own).label == "Proved, weak protection: the plan"


def test_names_that_nobody_registered_are_errors_at_every_door():
    for door in (
        lambda: guarantee(ANSWERS, 1e-6, "outside-sqared"),
        lambda: certify(
            ANSWERS, subject=SubjectRecord("x"), delta=1e-6, accountant="outside-sqared"
        ),
        lambda: accountant_of("outside-sqared"),
    ):
        with pytest.raises(InputError, match="did you mean 'outside-squared'"):
            door()


MODULE = """
from dataclasses import dataclass
from typing import ClassVar

from dpaudit import AddRemove, Invocation, Laplace, Plan, PrivacyUnit, Subject, TrustModel
from dpaudit.accounting import Accountant, PureAccountant


class Doubled(Accountant):
    '''The pure sum; what a module that the user names may define.'''

    kind: ClassVar[str] = "outside-doubled"

    def compose(self, invocations):
        return PureAccountant().compose([*invocations, *invocations])


@dataclass(frozen=True)
class Sum(Subject):
    '''One sum.'''

    def plan(self):
        unit, trust = PrivacyUnit("row"), TrustModel.CENTRAL
        return Plan.of(Invocation(Laplace(2.0), 1.0, unit, AddRemove(), trust))
"""


def code_of(arguments: list[str]) -> object:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return left.value.code


def test_the_command_line_knows_what_the_subjects_module_registers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "sums.py").write_text(MODULE)
    written = tmp_path / "certificate.json"
    arguments = ["certify", f"{tmp_path / 'sums.py'}:Sum", "--accountant", "outside-doubled"]
    assert code_of([*arguments, "--delta", "0", "-o", str(written)]) == 0
    record = json.loads(written.read_text())
    assert record["guarantee"]["accountant"] == "outside-doubled"
    assert record["guarantee"]["epsilon"] == 1.0
    assert code_of([*arguments[:-1], "outside-tripled"]) == 3
    assert "accountant is 'outside-tripled'; did you mean" in " ".join(
        capsys.readouterr().err.split()
    )


class Entry:
    """Stands for an entry point of an installed package."""

    name = value = "a_package.accountants"

    def __init__(self, load) -> None:
        self.load = load


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch):
    def install(*entries: Entry) -> None:
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)
        dpaudit.base.applications._load_extensions.cache_clear()

    yield install
    dpaudit.base.applications._load_extensions.cache_clear()


def test_installed_packages_are_asked_for_a_name_that_is_not_known(installed):
    def load() -> None:
        class Installed(SquaredAccountant):
            kind = "outside-installed"

    installed(Entry(load))
    assert guarantee(plan(use(Laplace(1.0))), 0.0, "outside-installed").epsilon >= 1.0
    assert "outside-installed" in Accountant.kinds()


def test_an_extension_that_cannot_be_imported_is_one_sentence(installed):
    def load() -> None:
        raise ModuleNotFoundError("No module named 'gone'")

    installed(Entry(load))
    with pytest.raises(InputError, match=r"'a_package.accountants' .* cannot be imported: .*gone"):
        accountant_of("outside-missing")
