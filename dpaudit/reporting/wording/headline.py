"""The verdict in a few sentences that a non-expert understands."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from dpaudit.accounting.accountant import FILTER
from dpaudit.base.numbers import confidence, down, percent, plain, up
from dpaudit.base.validate import shown as quoted
from dpaudit.certificate import (
    AuditRecord,
    Certificate,
    Claim,
    Premise,
    Scope,
    Severity,
    Standing,
    Verdict,
)
from dpaudit.certificate.findings import MADE_UP, float_samplers
from dpaudit.certificate.verdicts import beyond_proof, contradicting
from dpaudit.mechanisms import Opaque
from dpaudit.reporting.curves import best_odds, proved_points
from dpaudit.reporting.wording import words

_SPEAKS_OF = {
    Scope.PLAN: "plan",
    Scope.CODE: "plan and the code",
    Scope.RELEASE: "release",
    Scope.SEALED: "plan and code, sealed",
}
_LABELS = {
    "certified": ("✓", "Certified"),
    "limited": ("◐", "Proved, limited protection"),
    "weak": ("!", "Proved, weak protection"),
    "unproven": ("?", "Unproven"),
    "refuted": ("✗", "Refuted"),
}
"""Sign and first words of each look."""

LIMITED, WEAK = 0.75, 0.9
"""Above these, what is proved of the best guess at even odds protects to a limit, or weakly."""

PROTECTION = words.PROTECTION.format(limited=percent(LIMITED), weak=percent(WEAK))
"""What the words of a label mean."""


@dataclass(frozen=True)
class Odds:
    """Success of the best guess between two equally likely cases; 0.5 is a coin toss.

    Attributes:
        proved: at most this, by the whole curve that is proved; None where nothing is proved of
            what runs.
        claimed: at most this, by the claim; None where there is none.
        contradicted: whether an attack exceeds the proof, which then is of no use to anybody.
    """

    proved: float | None
    claimed: float | None
    contradicted: bool = False

    def differ(self, claim: Claim | None) -> bool:
        """Whether the proof promises more than a claim of ε and δ that it proves."""
        if self.proved is None or self.claimed is None or claim is None or claim.risk is not None:
            return False
        return self.proved < self.claimed and percent(self.proved) != percent(self.claimed)


@dataclass(frozen=True)
class Headline:
    """The first screen of a report.

    Attributes:
        look: what colours it: the verdict; of a certified one how well what is proved protects.
        label: that in words, and of what.
        sign: a sign beside the label, so that colour is not needed to tell looks apart.
        sentence: what it means, in one sentence.
        details: further sentences, each of its own.
        open_points: how many findings need a decision; empty where none does.
        odds: the numbers behind the sentence.
    """

    look: str
    label: str
    sign: str
    sentence: str
    details: tuple[str, ...]
    open_points: str
    odds: Odds


def headline(certificate: Certificate) -> Headline:
    """Say what the verdict means for the protected party."""
    odds = _odds(certificate)
    write = {
        Verdict.CERTIFIED: _certified,
        Verdict.UNPROVEN: _unproven,
        Verdict.REFUTED: _refuted,
    }[certificate.verdict]
    if _of_audits_alone(certificate):
        return _headline_of_audits(certificate, odds)
    sentence, details = write(certificate, odds)
    unit = certificate.plan.unit
    meaning = (
        f"“You” stands for one {unit}; a person with several of them in the data is protected less."
    )
    seen = look(certificate, odds)
    sign, said = _LABELS[seen]
    return Headline(
        look=seen,
        label=f"{said}{_object(certificate)}",
        sign=sign,
        sentence=sentence,
        details=(
            *details,
            *passed_filter(certificate),
            *([] if certificate.checked is None else [checked(certificate)]),
            rests_on(certificate),
            *_noise_of_run(certificate),
            meaning,
        ),
        open_points=_open_points(certificate),
        odds=odds,
    )


def look(certificate: Certificate, odds: Odds) -> str:
    """The verdict; where it is certified and what is proved protects little, how little."""
    if certificate.verdict is not Verdict.CERTIFIED or odds.proved is None:
        return str(certificate.verdict)
    return "weak" if odds.proved > WEAK else "limited" if odds.proved > LIMITED else "certified"


def _of_audits_alone(certificate: Certificate) -> bool:
    """Tell whether there are attacks on a claim, and no plan, proof or rehearsal."""
    opaque = all(isinstance(each.mechanism, Opaque) for each in certificate.plan.invocations)
    nothing = certificate.guarantee is None and certificate.rehearsal is None
    attacked = certificate.claim is not None and bool(certificate.audits)
    return opaque and nothing and attacked and certificate.subject.code_hash is None


def _headline_of_audits(certificate: Certificate, odds: Odds) -> Headline:
    """Return what was attacked, which claim, with which result, and what would have been found."""
    refuting, verdict = strongest_refutation(certificate), certificate.verdict
    shown = refuting or max(certificate.audits, key=lambda audit: audit.runs)
    stated = "" if certificate.claim is None else words.stated(certificate.claim)
    made = shown.trainings or f"{shown.runs} runs on each of two neighbouring data sets"
    sentence = (
        f"An attack of {made} "
        f"{'refutes' if refuting else 'does not refute'} the claim that "
        f"{certificate.subject.name} satisfies {stated}."
    )
    if refuting:
        details = [f"It shows {_shown(shown, certificate.claim)}."]
        details.append(_promise(odds, "cannot be relied on"))
    else:
        details = [shown.power] if shown.power else []
        details.append("This is no proof: other data, or another attack, may show more.")
    details.append("Nothing else is known about it: there is no plan that could be proved.")
    label, points = "Refuted" if refuting else "Not refuted", _open_points(certificate)
    return Headline(verdict, label, _LABELS[verdict][0], sentence, tuple(details), points, odds)


def _object(certificate: Certificate) -> str:
    """What is certified: a proof for a plan says nothing about code that was not tested."""
    if certificate.verdict is not Verdict.CERTIFIED:
        return ""
    if _is_by_filter(certificate):
        return ": the releases that a privacy filter admitted, if its record is true"
    of = f": the {_SPEAKS_OF[certificate.scope]}"
    return f"{of}, if what others state is true" if _stated_laws(certificate) else of


def _is_by_filter(certificate: Certificate) -> bool:
    proved = certificate.guarantee
    return proved is not None and proved.accountant == FILTER


def _stated_laws(certificate: Certificate) -> str:
    """Return what of the proof is somebody's word, in a sentence; empty where nothing is."""
    laws = (each for each in certificate.assumptions if each.premise is Premise.LAWS)
    return "".join(each.evidence for each in laws if each.standing is not Standing.ENFORCED)


def _noise_of_run(certificate: Certificate) -> tuple[str, ...]:
    """Tell how a run came by its rows and its noise, where that is no deployment's way."""
    if any(each.rule == MADE_UP for each in certificate.findings):
        return ("Its results come from made-up rows; they only show what a release looks like.",)
    ledger = (certificate.run or {}).get("ledger", {})
    if ledger.get("seeded"):
        return (
            "The noise of its run follows from a stated seed: an experiment, not a deployment.",
        )
    if outside := ledger.get("external"):
        return (f"Other libraries drew noise for its run: {', '.join(map(quoted, outside))}.",)
    if float_samplers(ledger):
        return ("The noise of its run was drawn in floating point, by explicit choice.",)
    return ()


def passed_filter(certificate: Certificate) -> tuple[str, ...]:
    """Return what a privacy filter admitted, in a sentence, where there was one."""
    made = certificate.filtered
    if made is None:
        return ()
    budget = f"of ε = {plain(made.epsilon)} at δ = {plain(made.delta)}"
    return (f"A privacy filter {budget} admitted {made.releases(certificate.plan)} releases.",)


def checked(certificate: Certificate) -> str:
    """Return what the independent checker proves, in a sentence."""
    made = certificate.checked
    if made is None:
        return "No independent checker was asked."
    if made.epsilon is None:
        alone = " What is proved rests on the accountant alone." if certificate.guarantee else ""
        return f"The independent checker {made}.{alone}"
    beyond = " Only the accountant proves the other points of the curve."
    return f"The independent checker, which trusts no accountant, {made}.{beyond}"


def rests_on(certificate: Certificate) -> str:
    """Tell how the assumptions behind the proof are known to hold, in one sentence."""
    if not certificate.assumptions:
        return "This certificate is of an older kind, which says nothing about the code."
    laws = _stated_laws(certificate)
    if certificate.scope is Scope.RELEASE:
        return f"{words.RELEASE} {_known(certificate)} {laws}".rstrip()
    if certificate.subject.code_hash is None:
        return (
            "It speaks of the plan alone: the proof assumes code that does what the plan declares "
            f"and nothing else, and no code was tested. {laws}".rstrip()
        )
    said = f"{_known(certificate)} {laws}".rstrip()
    if certificate.scope is Scope.SEALED:
        made_up = certificate.seal and certificate.seal.made_up
        tried = words.SEAL["made_up"].format(rows=made_up) + " " if made_up else ""
        return f"{words.SEAL['all']} {tried}{said}"
    if certificate.scope is Scope.CODE:
        return f"It speaks of the plan and of the code that was rehearsed. {said}"
    return f"It speaks of the plan alone: whether code follows it was not tested. {said}"


def _known(certificate: Certificate) -> str:
    """How many assumptions are known in which way."""
    counted = Counter(each.standing for each in certificate.assumptions)
    known = [f"{n} {standing}" for standing in Standing if (n := counted.get(standing))]
    return f"Of the {len(certificate.assumptions)} premises of the proof: {', '.join(known)}."


def _open_points(certificate: Certificate) -> str:
    found = Counter(each.severity for each in certificate.all_findings)
    counted = {severity: found[severity] for severity in (Severity.ERROR, Severity.WARNING)}
    named = [f"{n} {s}{'' if n == 1 else 's'}" for s, n in counted.items() if n]
    total = sum(counted.values())
    return f"{' and '.join(named)} {'needs' if total == 1 else 'need'} a decision." if total else ""


def _odds(certificate: Certificate) -> Odds:
    proved, claim = certificate.guarantee, certificate.claim
    contradicted = any(beyond_proof(proved, audit) for audit in certificate.audits)
    disputed = contradicted or bool(certificate.disputed)
    nothing = proved is None or proved.epsilon == math.inf or disputed
    return Odds(
        None if proved is None or nothing else best_odds(proved_points(proved)),
        None if claim is None else (1 + claim.implied.delta(0.0).upper) / 2,
        contradicted,
    )


def _adversary(certificate: Certificate) -> str:
    plan = certificate.plan
    who = words.adversary(plan.trust)
    return f"{who} can improve a 50:50 guess about {words.secret(plan.relation)}"


def _certified(certificate: Certificate, odds: Odds) -> tuple[str, list[str]]:
    bound = 1.0 if odds.proved is None else odds.proved
    sentence = f"{_adversary(certificate)} to at most {percent(bound)}."
    if _is_by_filter(certificate):
        sentence = f"If every release passed the filter, {_lower_first(sentence)}"
    elif certificate.scope is Scope.PLAN:
        sentence = f"If the code does what the plan declares, {_lower_first(sentence)}"
    stated = "There is no claim to compare it with; this is what is proved."
    if certificate.claim is not None:
        stated = f"The claim ({certificate.claim}) is proved."
    if look(certificate, odds) != Verdict.CERTIFIED:
        stated = f"The verdict of the certificate is certified. {stated}"
    rejected = [  # a stronger statement, which says nothing against the claim
        f"An attack rejects ε = {plain(each.claim_epsilon)} at δ = {plain(each.delta)}, which is a "
        "stronger statement than the one above."
        for each in certificate.audits
        if each.refuted
    ]
    return sentence, [PROTECTION, stated, *rejected]


def _unproven(certificate: Certificate, odds: Odds) -> tuple[str, list[str]]:
    claim, proved = certificate.claim, certificate.guarantee
    who = words.adversary(certificate.plan.trust)
    about = words.secret(certificate.plan.relation)
    if odds.proved is None or proved is None:
        where = "" if proved is None else f" (at δ = {plain(proved.delta)})"
        details = [] if claim is None else [_promise(odds, "is not proved")]
        if certificate.disputed and proved is not None and proved.epsilon < math.inf:
            where, why = " about the code that runs", _unfounded_proof(certificate, odds)
            details = [why, *details]
        sentence = (
            f"Nothing is proved{where}: {who[0].lower()}{who[1:]} may be able to tell with "
            f"certainty {about}."
        )
        return sentence, details
    if claim is None:
        return f"{_adversary(certificate)} to at most {percent(odds.proved)}.", []
    details = [
        f"The claim is {claim}; the proof gives ε = {up(proved.epsilon)}, "
        f"δ = {plain(proved.delta)}. The truth may lie between them."
    ]
    limit, bound = percent(odds.claimed or 1.0), percent(odds.proved)
    if odds.proved <= (odds.claimed or 1.0) or limit == bound:
        return f"The claim is not proved. {_adversary(certificate)} to at most {bound}.", details
    sentence = (
        f"The claim is not proved: it promises that {_lower_first(_adversary(certificate))} to "
        f"at most {limit}, but the proof allows {bound}."
    )
    return sentence, details


def _unfounded_proof(certificate: Certificate, odds: Odds) -> str:
    """Tell why a proof for the declared plan is none for what runs."""
    proof = "The accountant’s proof speaks of the declared plan"
    if odds.contradicted:
        return (
            f"{proof}; an attack shows more than the proof allows, so the attacked code does not "
            "follow the plan."
        )
    rules = ", ".join(certificate.disputed)
    return f"{proof}, and the findings say that something else runs ({rules})."


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _promise(odds: Odds, fate: str) -> str:
    bound = 1.0 if odds.claimed is None else odds.claimed
    return f"The claim promises that a guess is right in at most {percent(bound)}; that {fate}."


def strongest_refutation(certificate: Certificate) -> AuditRecord | None:
    """The audit that contradicts what is stated with the largest lower bound."""
    refuting = contradicting(certificate.claim, certificate.guarantee, certificate.audits)
    return max(refuting, key=lambda audit: audit.epsilon_lower or 0.0, default=None)


def _refuted(certificate: Certificate, odds: Odds) -> tuple[str, list[str]]:
    audit, proved = strongest_refutation(certificate), certificate.guarantee
    if audit is None:
        return "The claim is refuted, but the certificate holds no audit that shows it.", []
    plan = certificate.plan
    sentence = (
        f"The claim does not hold: {_lower_first(words.adversary(plan.trust))} can learn more "
        f"about {words.secret(plan.relation)} than it allows."
    )
    how = (
        "An exact computation"
        if audit.confidence is None
        else f"An attack of {audit.trainings or f'{audit.runs} runs'}"
    )
    details = [f"{how} shows {_shown(audit, certificate.claim)}."]
    if beyond_proof(proved, audit):
        details.append(
            "This is more than the accountant’s proof for the declared plan allows, so the "
            "attacked code does not follow the plan."
        )
    elif certificate.disputed and proved is not None and proved.epsilon < math.inf:
        details.append(_unfounded_proof(certificate, odds))
    elif proved is not None and proved.epsilon < math.inf and audit.epsilon_lower is not None:
        details.append(
            "This attack does not contradict the proof for the declared plan, ε = "
            f"{up(proved.epsilon)} at δ = {plain(proved.delta)}."
        )
    if certificate.claim is not None:
        details.append(_promise(odds, "cannot be relied on"))
    return sentence, details


def _shown(audit: AuditRecord, claim: Claim | None) -> str:
    tested, at = plain(audit.claim_epsilon), f"at δ = {plain(audit.delta)}"
    exceeded = f"ε = {tested} {at}" if claim is None or claim.risk is None else f"{claim}"
    claimed = tested if claim is None or claim.risk is not None else plain(claim.epsilon)
    sure = "" if audit.confidence is None else f" (confidence {confidence(audit.confidence)})"
    if audit.epsilon_lower is None:
        return f"that {exceeded} is exceeded"
    if audit.refuted and audit.epsilon_lower <= audit.claim_epsilon:  # by a curve or by rates
        return f"that {exceeded}, with everything that follows from it, is exceeded{sure}"
    unbounded = audit.epsilon_lower == math.inf
    found = "no finite ε holds" if unbounded else f"ε is at least {down(audit.epsilon_lower)}"
    return f"that {found} {at}, where at most {claimed} is claimed{sure}"
