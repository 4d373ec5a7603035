"""The model card: a certificate for people who choose a model and know nothing of dpaudit.

It has the format of Hugging Face, a header in YAML and then Markdown, and says in words what is
proved, of whom, on which premises, what was attacked, and what the number leaves open. It holds
what the certificate says, and beside it no more than the utility that its author states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Finite
from dpaudit.certificate import Certificate, Verdict
from dpaudit.reporting.markdown import template
from dpaudit.reporting.text import visible
from dpaudit.reporting.view import View, view


@dataclass(frozen=True)
class Utility(Checked):
    """A score of the model, as its author states it.

    Attributes:
        name: of the score, such as ``accuracy``.
        private: of the model that the card is of.
        public: of the same model, trained without privacy; None where there is none.
    """

    name: str
    private: Finite
    public: Finite | None = None

    @classmethod
    def parse(cls, text: str) -> Utility:
        """Read a score as it is typed.

        Raises:
            InputError: if it has no name, or is not one number or two.

        >>> Utility.parse("accuracy=0.85,0.91")
        Utility(name='accuracy', private=0.85, public=0.91)
        """
        name, _, given = text.rpartition("=")
        try:
            scores = [float(each) for each in given.split(",")]
        except ValueError:
            scores = []
        if not name.strip() or not 1 <= len(scores) <= 2:
            raise InputError(
                f"utility is {validate.shown(text)}; it must be NAME=SCORE or "
                "NAME=SCORE,SCORE, where the second score is that of a model without privacy."
            )
        return cls(name.strip(), *scores)


def model_card(
    certificate: Certificate, utility: Sequence[Utility] = (), *, name: str | None = None
) -> str:
    """Write the model card of a certificate, which whoever calls this has verified.

    Args:
        certificate: of whatever kind; of a claim that does not hold, the card says that first.
        utility: scores of the model, which no certificate covers.
        name: of the model; that of the certificate's subject where not given.

    Raises:
        InputError: if a score is there twice, or a name is empty.
    """
    scores = [each.name for each in utility]
    for each in scores:
        if scores.count(each) > 1:
            raise InputError(f"utility has {validate.shown(each)} twice; keep one of them.")
    name = certificate.subject.name if name is None else validate.text(name=name)
    shown = view(replace(certificate, owner=None))  # a card is for everybody
    front = _front(shown, scores)
    return template("card").render(shown=shown, name=name, utility=utility, front=front)


def _front(shown: View, scores: Sequence[str]) -> Any:
    """The header; it has an ε only where that is proved of what runs and no attack exceeds it."""
    import yaml
    from markupsafe import Markup

    certificate, plan = shown.certificate, shown.certificate.plan
    proved, holds = certificate.guarantee, certificate.verdict is Verdict.CERTIFIED
    facts: dict[str, Any] = {"verdict": str(certificate.verdict)}
    founded = shown.headline.odds.proved is not None
    if proved is not None and founded and certificate.verdict is not Verdict.REFUTED:
        facts |= {"epsilon": proved.epsilon, "delta": proved.delta}
        facts["accountant"] = str(proved.accountant)
    facts |= {"unit": _line(plan.unit), "relation": _line(plan.relation)}
    facts |= {"scope": str(certificate.scope), "certificate": shown.record["digest"]}
    front: dict[str, Any] = {"tags": [*(["differential-privacy"] if holds else []), "dpaudit"]}
    if scores:
        front["metrics"] = [*map(_line, scores)]
    front["differential_privacy"] = facts
    return Markup(yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=1000))


def _line(text: Any) -> str:
    """Foreign text on one line: none may look like the end of the header."""
    return visible(" ".join(str(text).split()))
