"""Libraries as they are: what code draws by them, what that costs, and what they charge for it.

``dpaudit observe`` calls :func:`observe_target`. What was seen is certified as what ran, and as no
more; the plan is written as a file that a person can read, correct and declare.
"""

from __future__ import annotations

import inspect
import math
import random
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from dpaudit.accounting import guarantee
from dpaudit.auditing import BlackBox, progress_bar
from dpaudit.auditing.distinguishing.output_facts import canonical
from dpaudit.auditing.noise.conformance import Drawn, reused
from dpaudit.auditing.replaying.recording import own_copy
from dpaudit.base import files
from dpaudit.base.errors import InputError, PlanMismatchError, UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Certificate, Claim, Finding, SubjectRecord, certify
from dpaudit.certificate.claim import USUAL_DELTA
from dpaudit.certificate.records import OBSERVED
from dpaudit.ledger import FloatNoise, Ledger
from dpaudit.mechanisms import ApproximateBlackBox, Opaque, PureBlackBox
from dpaudit.observing import KNOWN, Noted, Notes, following, noting, plan_of
from dpaudit.observing.calls import Call
from dpaudit.plan import Plan, PrivacyUnit, ReplaceOne
from dpaudit.project import RunResult, Subject
from dpaudit.project.audit_request import parse_relation
from dpaudit.project.describing import plan_text
from dpaudit.project.foreign import foreign
from dpaudit.project.own_files import code_hash, imported_names, own_files
from dpaudit.project.plan_file import read_plan_file
from dpaudit.project.subject import read_data
from dpaudit.project.targets import load_function, parse_claim
from dpaudit.rehearsal.neighbours import literals
from dpaudit.rehearsal.rehearse import rehearse
from dpaudit.workflow.calibrating import claim_table


def plan_file(name: str, noted: Sequence[Noted], charged: Claim | None) -> str:
    """Return a plan file with comments.

    Args:
        name: of the code, as ``dpaudit observe`` takes it.
        noted: what it drew.
        charged: what the libraries say that it cost; None where they say nothing.
    """
    return "".join(_written(name, tuple(noted), charged))


def _written(name: str, noted: tuple[Noted, ...], charged: Claim | None) -> Iterator[str]:
    plan = plan_of(noted)
    yield f"# What `dpaudit observe {name}` saw. Correct it, and declare it:\n"
    yield "#   dpaudit certify PLAN.toml                        what the plan proves\n"
    yield f"#   dpaudit observe {name} --plan PLAN.toml     whether the code keeps to it\n\n"
    head = {"unit": str(plan.unit), "relation": plan.relation.to_dict(), "trust": str(plan.trust)}
    yield f"{plan_text({'plan': head})}\n"
    if charged is not None:
        yield f"{plan_text({'claim': claim_table(charged)})}\n"
    for each in noted:
        yield from _comments(each)
        yield f"{plan_text({'invocation': [_table(each)]})}\n"


def _comments(noted: Noted) -> Iterator[str]:
    call, own = noted.calls[0], noted.invocation
    yield f"# {call.reading.primitive} of {call.library} at {call.line}\n"
    if call.reading.unit != 1:
        yield "# in units of the sensitivity that the library uses here\n"
    if not noted.known:
        yield "# nobody states how far neighbours move the value: write sensitivity = …\n"
    elif isinstance(own.mechanism, Opaque):
        yield "# this cost is the library's word; nothing here proves it\n"
    if own.count < own.releases:
        yield f"# the library assumes that one {own.unit} moves {own.count} of {own.releases}\n"
    elif own.releases > 1:
        yield f"# if one {own.unit} moves only some of the {own.releases}, lower count\n"


def _table(noted: Noted) -> dict[str, Any]:
    own = noted.invocation
    mechanism = own.mechanism if noted.known else noted.calls[0].reading.mechanism
    written = mechanism.to_dict()
    made = {"mechanism": written.pop("kind"), **{k: v for k, v in written.items() if v is not None}}
    if noted.known:
        made["sensitivity"] = own.sensitivity
    return made | {"count": own.count, "total": own.releases, "at": own.at}


_found = FindingTable(__name__)
SLACK = 1e-9
"""By which a library's own sum of floats may fall short, relatively."""
HOME_MADE = ("torch", "numpy")
"""Libraries of which noise is added by hand; observed where the code imports no other."""
NOT_COVERED = (
    OBSERVED,
    "Whatever the code shows besides the releases that were recorded, unless it was rehearsed.",
)


@dataclass(frozen=True)
class Observation:
    """The outcome of a run of some code: what it drew.

    Attributes:
        name: of the code.
        noted: its invocations, with the calls that they stand for.
        certificate: of the plan that declares just that, or of the plan that was given.
        charged: what the libraries say that it cost; None where they say nothing.
        at_its_word: the ε of all that ran at the charged δ, if what libraries state is true; None
            where it is not known.
        usual: the same at a δ of 1e-5.
    """

    name: str
    noted: tuple[Noted, ...]
    certificate: Certificate
    charged: Claim | None
    at_its_word: float | None
    usual: float | None

    @property
    def overspent(self) -> bool:
        """Whether what ran is bounded by more than what was charged."""
        return any(each.rule == "charged-less" for each in self.certificate.findings)

    @property
    def text(self) -> str:
        """The plan as a file that a person can read, correct and declare."""
        return plan_file(self.name, self.noted, _loosened(self.charged))


def observe_target(
    name: str,
    *,
    data: str | None = None,
    libraries: Sequence[str] = (),
    unit: str = "row",
    relation: str | None = None,
    delta: float | None = None,
    claim: str | None = None,
    plan: str | None = None,
    rehearsed: bool = False,
    seed: int | None = None,
    no_nan: bool = False,
) -> Observation:
    """Run a script or a function, and note what libraries draw.

    Args:
        name: ``SCRIPT.py``, ``FILE.py:function`` or ``module:function``.
        data: file with the data of a function.
        libraries: that are observed; those that the code imports where none is named.
        unit: who is protected, in a word.
        relation: which data sets are neighbours; where not given, what a library states (OpenDP's
            unit of privacy), or else replace-one.
        delta: δ of the guarantee.
        claim: what is stated; what the libraries charge where not given.
        plan: file of the plan that the run must match.
        rehearsed: run a function on neighbours too, and compare values before noise.
        seed: of the run and the rehearsal; fresh noise without it.
        no_nan: whether the data hold no NaN, so that no neighbour has one; OpenDP's domains may
            state it as well.

    Raises:
        InputError: if an argument is wrong, or nothing is drawn.
        PlanMismatchError: if the run is not what the plan declares.
    """
    script = name.endswith(".py")
    if script and (data is not None or rehearsed):
        raise InputError("--data and --rehearse need a function; give FILE.py:function.")
    if plan is not None and (relation is not None or unit != "row" or claim is not None):
        raise InputError(
            "--plan is given with --relation, --unit or --claim, which the plan states; leave "
            "these out."
        )
    found = tuple(libraries) or _imported(name)
    for each in {"pandas", "torch"} & (_names(name) if ".py" in name else set()):
        with suppress(ImportError):
            import_module(each)  # as the code will, so that they take noise for what it is
    code = _Code(name, None if data is None else read_data(data))
    if plan is None:
        near, who = parse_relation(relation), PrivacyUnit(unit)
        with seeded(seed), noting(near, *found) as notes:
            code.run(seed)
        near = near or notes.relation or ReplaceOne()
        noted = notes.noted(who, near)
        declared, stated = plan_of(noted), parse_claim(claim)
        findings: tuple[Finding, ...] = notes.all_findings(noted)
    else:
        content = read_plan_file(plan)
        notes = _matched(content.plan, found, code, seed)
        noted = notes.noted(content.plan.unit, content.plan.relation)
        declared, stated = content.plan, content.claim
        findings = (*content.findings, *notes.all_findings(()))
    if not rehearsed:  # which looks at all that it draws
        drawn = (_drawn(call) for call in notes.calls if call.released is not None)
        findings += tuple(reused(list(drawn)))
    charged = notes.claim(USUAL_DELTA if delta is None else delta)
    cost = _cost(declared, charged)
    exact = not any(isinstance(each.mechanism, Opaque) for each in declared.invocations)
    if cost.excess and (stated is not None or not exact):  # else it is the claim that is exceeded
        facts = {"charged": charged, "relation": declared.relation, "proved": f"{cost.epsilon:.4g}"}
        findings = (*findings, _found("charged-less", **facts))
    stated = stated or _loosened(charged)
    if stated is None and delta is None:
        delta = 0.0 if _epsilon(declared, 0.0) is not None else USUAL_DELTA
    without = "--no-nan" if no_nan else notes.excludes_nan
    left_out = [f"Data with NaN: {without} states that there are none."] if without else []
    certificate = certify(
        declared,
        subject=code.record(),
        claim=stated,
        delta=delta,
        findings=findings,
        not_covered=(*NOT_COVERED, *left_out),
    )
    if rehearsed:
        certificate = _rehearsed(certificate, code, found, data or "", seed or 0, nan=not without)
    return Observation(name, noted, certificate, charged, cost.epsilon, cost.usual)


class _Code:
    """A script, or a function with its data."""

    def __init__(self, name: str, data: Any) -> None:
        self.name, self.data = name, data
        self.function: Callable[..., Any] | None = None
        self.unread: list[str] = []

    def run(self, seed: int | None) -> None:
        """Run it once, as a user would."""
        if self.name.endswith(".py"):
            _run_script(self.name)
            return
        self.function = load_function(self.name)
        with foreign(self.name):
            own = np.random.Generator(np.random.PCG64(seed))  # by what is not observed
            result = self.call(own_copy(self.data), own)
        self.unread = canonical(result, carried=True).unread

    def call(self, data: Any, rng: np.random.Generator) -> Any:
        """Return the function, on data where it takes any."""
        assert self.function is not None
        if data is None and not inspect.signature(self.function).parameters:
            return self.function()
        if data is None:
            raise InputError("--data is missing; the function takes data, so give a file.")
        return BlackBox(self.function).raw(data, 1, np.random.default_rng(rng))[0]

    def record(self) -> SubjectRecord:
        """Tell how a certificate names it."""
        file = Path(self.name)
        module, line = file.stem, 1
        if self.function is not None:
            inner = inspect.unwrap(self.function)
            file, module = Path(inspect.getsourcefile(inner) or ""), inner.__module__
            line = inspect.getsourcelines(inner)[1]
        return SubjectRecord(
            self.name, {}, code_hash=code_hash(module, file), location=f"{file.name}:{line}"
        )


def _run_script(name: str) -> None:
    files.read_text(name, what="script")
    folder = str(Path(name).resolve().parent)
    with (
        mock.patch.object(sys, "argv", [name]),
        mock.patch.object(sys, "path", [folder, *sys.path]),
        foreign(name),
    ):
        try:
            runpy.run_path(name, run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise


def _imported(name: str) -> tuple[str, ...]:
    """Return the libraries for privacy that the code imports itself, or else numpy."""
    home = name.rpartition(":")[0] or name
    if not home.endswith(".py"):
        raise InputError("--library is missing; it must be given where no file is named.")
    names = _names(name)
    found = tuple(each for each in KNOWN if each in names and each not in HOME_MADE)
    if found or not names & {"scipy", "mbi", *HOME_MADE}:
        if not found:
            raise InputError(f"{home} imports none of {', '.join(KNOWN)}; name one with --library.")
        return found
    return tuple(each for each in HOME_MADE if each in names) or ("numpy",)


def _names(name: str) -> set[str]:
    """Return what the files of the code import."""
    home = name.rpartition(":")[0] or name
    files.read_text(home, what="file")
    path = Path(home).resolve()
    return set[str]().union(*map(imported_names, own_files(path.stem, path)))


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Yield the generators that all code shares, seeded; and as they were afterwards."""
    if seed is None:
        yield
        return
    before = random.getstate(), np.random.get_state()  # noqa: NPY002 - of foreign code
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    torch = sys.modules.get("torch")
    kept = None if torch is None else torch.get_rng_state()
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        if torch is not None:
            torch.set_rng_state(kept)
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002


def _matched(plan: Plan, libraries: Sequence[str], code: _Code, seed: int | None) -> Notes:
    """Return the notes of a run that is what a plan declares."""
    ledger = Ledger(plan, noise=FloatNoise())
    with seeded(seed), following(ledger, *libraries) as notes:
        code.run(seed)
    if ledger.refused:
        raise PlanMismatchError(
            f"the code asked {ledger.refused} times for a release that the plan does not declare, "
            "and continued; declare every release."
        )
    ledger.check()
    return notes


# -- what it costs ---------------------------------------------------------------------------------


def _drawn(call: Call) -> Drawn:
    own = call.reading
    place, single = f"{call.at!r} ({call.line})", own.facts.get("dtype") == "float32"
    return Drawn(own.mechanism, own.value, call.released, call.at, place, single)


@dataclass(frozen=True)
class _Cost:
    """ε at the charged δ and at the usual one, and whether the charge is less."""

    epsilon: float | None = None
    usual: float | None = None
    excess: bool = False


def _cost(plan: Plan, charged: Claim | None) -> _Cost:
    """Return what a plan costs if the libraries' words are true."""
    own = _at_its_word(plan)
    if own is None:
        return _Cost()
    usual, allowed = _epsilon(own, USUAL_DELTA), _loosened(charged)
    if allowed is None or allowed.risk is not None:
        return _Cost(None, usual)
    proved = _epsilon(own, allowed.delta)
    return _Cost(proved, usual, proved is not None and proved > allowed.epsilon)


def _at_its_word(plan: Plan) -> Plan | None:
    """Put black boxes for what libraries state; None where something is not known."""
    made = []
    for each in plan.invocations:
        own = each.mechanism
        if not isinstance(own, Opaque):
            made.append(each)
            continue
        if own.is_unknown or each.sensitivity not in (0, 1):
            return None
        pure = PureBlackBox(own.epsilon)
        box = ApproximateBlackBox(own.epsilon, own.delta) if own.delta else pure
        made.append(replace(each, mechanism=box))
    return Plan.of(*made)


def _epsilon(plan: Plan, delta: float) -> float | None:
    try:
        proved = guarantee(plan, delta).epsilon
    except UnsupportedError:
        return None
    return proved if proved < math.inf else None


def _loosened(charged: Claim | None) -> Claim | None:
    """Return the charge as a claim, with room for the rounding of the library's own sum."""
    if charged is None or charged.risk is not None:
        return charged
    return replace(
        charged, epsilon=charged.epsilon * (1 + SLACK), delta=charged.delta * (1 + SLACK)
    )


# -- rehearsal -------------------------------------------------------------------------------------


def _rehearsed(
    certificate: Certificate,
    code: _Code,
    libraries: tuple[str, ...],
    data: str,
    seed: int,
    *,
    nan: bool,
) -> Certificate:
    constants = tuple(literals(getattr(code.function, "__code__", None)))
    subject = _subject(certificate.plan, code, libraries, constants, nan=nan)
    with progress_bar(f"rehearsal of {code.name}") as progress, foreign(code.name):
        outcome = rehearse(subject, code.data, data, seed=seed, progress=progress)
    findings = tuple(_undeclared(certificate.plan, each) for each in outcome.findings)
    outcome = replace(outcome, findings=findings)
    unread = (_found("result-unread", what=each) for each in code.unread[:1])
    return certificate.with_rehearsal(outcome.record, (*outcome.findings, *unread))


def _undeclared(plan: Plan, found: Finding) -> Finding:
    """Say of a value that moves, where nobody has declared how far, that it does."""
    declared = (each for each in plan.invocations if each.at == found.at)
    if found.rule != "sensitivity-understated" or not any(
        each.mechanism.is_unknown for each in declared
    ):
        return found
    return _found("moves-undeclared", found.at, at=found.at)


def _subject(
    plan: Plan,
    code: _Code,
    libraries: tuple[str, ...],
    constants: tuple[float, ...],
    *,
    nan: bool,
) -> Subject:
    """Return the function as a subject whose noise libraries draw."""

    @dataclass(frozen=True)
    class Observed(Subject):  # of no module, which is not loaded afresh
        constants: tuple[float, ...]
        may_hold_nan = nan

        def plan(self) -> Plan:
            return plan

        def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> RunResult:
            with seeded(int(rng.integers(2**32))), following(ledger, *libraries):
                form = canonical(code.call(data, rng), carried=True)
            shown: dict[str, Any] = {label: np.float64(it) for label, it in form.numbers.items()}
            shown |= {f"{label}{list(rest)}": it for (label, rest), it in form.blocks.items()}
            shown = {label: files.sha256(it.tobytes()) for label, it in shown.items()}  # each bit
            return RunResult({"facts": sorted(form.facts), **shown})

    return Observed(constants)
