"""Privacy claims as tests: ``assert_certified``, ``assert_private``, ``assert_rehearsed``.

pytest finds this plugin by itself once dpaudit is installed. A test calls the helper, as an import
or as the fixture of the same name::

    from dpaudit import AuditPair
    from dpaudit.pytest_plugin import assert_private

    def test_noisy_sum_is_private():
        assert_private(noisy_sum, claim=1.0, pair=AuditPair([1, 1], [1]))

    def test_the_release_of_a_table_keeps_its_claim():
        assert_certified("visits.toml")

    def test_survey_does_what_its_plan_says():
        assert_rehearsed(Survey())

The runs of an audit are, in this order: those that the call gives, ``--dp-runs``, those of the
marker (``@pytest.mark.dp_audit(runs=50_000)``), 10 000. Nothing but pytest is imported before the
first audit, so that other test suites start no slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pytest

if TYPE_CHECKING:
    from dpaudit.auditing import ExecutionFields
    from dpaudit.auditing.distinguishing.design import Given
    from dpaudit.certificate import AuditRecord, Certificate, Claim, Finding, Rehearsal
    from dpaudit.mechanisms import Mechanism
    from dpaudit.project import AuditPair, Subject

DEFAULT_RUNS = 10_000
OPTION = "--dp-runs"

_runs: dict[str, int | None] = {"option": None, "marker": None}


class PrivacyViolationError(AssertionError):
    """An audit refuted the claim, or a rehearsal found that the code does not follow its plan.

    Attributes:
        record: the audit; None where a rehearsal failed.
        findings: of the rehearsal.
    """

    def __init__(
        self, record: AuditRecord | None, findings: Sequence[Finding] = (), said: str = ""
    ) -> None:
        lines = [said] if said else []
        lines += [] if record is None else [explain(record)]
        lines += [f"{each.rule}: {each.message} {each.remedy}" for each in findings]
        super().__init__("\n".join(lines))
        self.record = record
        self.findings = tuple(findings)


def assert_private(
    target: Mechanism | Subject | Callable[..., Any],
    claim: Claim | float | tuple[float, float],
    pair: AuditPair | tuple[Any, Any] | None = None,
    *,
    score: Given | Sequence[Given] = (),
    stop_early: bool = False,
    **fields: Unpack[ExecutionFields],
) -> AuditRecord:
    """Attack a claim; fail the test if it is refuted.

    The seed is 0 unless the call says otherwise, so that the test gives the same answer every time.
    A true claim fails it with probability at most 1 − ``confidence`` (0.01 unless the call says
    otherwise), over the choice of the seed.

    Args:
        target: a mechanism, a subject, or a function ``f(data, rng)`` or ``f(data, rng, size)``.
        claim: the claim, or its ε, or (ε, δ).
        pair: two neighbours; a subject may do without.
        score: further scores, or functions of one output to a number, that are tried beside the
            target's own.
        stop_early: stop at the refutation.
        fields: fields of :class:`dpaudit.auditing.Execution`, such as ``runs=50_000``.

    Returns:
        The audit, if it refutes nothing.

    Raises:
        PrivacyViolationError: if the claim is refuted.
        InputError: if an argument is wrong or the target cannot be audited.
    """
    __tracebackhide__ = True
    from dpaudit.auditing.distinguishing.design import score_tuple
    from dpaudit.base.errors import DpAuditError
    from dpaudit.certificate import Claim
    from dpaudit.project import AuditPair, Execution
    from dpaudit.project.audit_request import AuditRequest
    from dpaudit.workflow.attacking import attack

    runs = next((runs for runs in _runs.values() if runs is not None), DEFAULT_RUNS)
    execution = Execution(runs=runs, confidence=0.99, seed=0, progress=_draw_nothing)
    if not isinstance(claim, Claim):
        claim = Claim(*claim) if isinstance(claim, tuple) else Claim(claim)
    request = AuditRequest(
        target,
        pair=AuditPair(*pair) if isinstance(pair, tuple) else pair,
        claim=claim,
        score=score_tuple(score),
        stop_early=stop_early,
        execution=execution.updated(fields),
    )
    try:
        record = attack(request)
    except DpAuditError as error:  # pytest shows the arguments of every call that led there
        raise error.with_traceback(None) from None
    if record.refuted:
        raise PrivacyViolationError(record)
    return record


def assert_certified(target: Path | str, *, rows: int = 1000) -> Certificate:
    """Certify a plan file, a release file or a subject; fail the test if its claim is not proved.

    A release, or a sealed subject, is also run on rows that are made up from its schema. Its table
    is not read.

    Args:
        target: path of the file, ``FILE.py:Object`` or ``module:Object``.
        rows: how many are made up for a release or a sealed subject; 0 for none.

    Returns:
        The certificate, with the results of a release on made-up rows.

    Raises:
        PrivacyViolationError: if the claim is not proved, or none is stated.
        InputError: if the target is wrong.
    """
    __tracebackhide__ = True
    from tempfile import TemporaryDirectory

    from dpaudit.certificate import Verdict
    from dpaudit.project.targets import certified
    from dpaudit.workflow.certifying import certify_target
    from dpaudit.workflow.releasing import release_table
    from dpaudit.workflow.running import tried_on_made_up_rows

    sealed = tried_on_made_up_rows(str(target), {}, f"synthetic {rows}") if rows else None
    if sealed is None:
        certificate = certify_target(str(target), (), None, "best")
    else:
        certificate = certified(sealed)
    if certificate.verdict is not Verdict.CERTIFIED or certificate.claim is None:
        stated = certificate.claim or "no claim, although one is required"
        raise PrivacyViolationError(None, certificate.findings, f"{target} states {stated}.")
    if certificate.release is None or not rows:
        return certificate
    with TemporaryDirectory(prefix="dpaudit-") as folder:
        made, _ = release_table(target, folder, synthetic=rows, witness=False)
    return made


def assert_rehearsed(
    subject: Subject, data: Any = None, *, name: str = "data", seed: int = 0
) -> Rehearsal:
    """Put the real run of a subject to the test; fail the test if it does not follow its plan.

    Args:
        subject: what is rehearsed, on neighbours of its data with equal releases.
        data: what :meth:`~dpaudit.project.Subject.run` takes; loaded where not given.
        name: of these data.
        seed: of the whole rehearsal.

    Returns:
        What was tested.

    Raises:
        PrivacyViolationError: if something does not hold, or nothing could be tested.
    """
    __tracebackhide__ = True
    from dpaudit.base.finding_table import FindingTable
    from dpaudit.certificate import Severity
    from dpaudit.workflow.rehearsing import rehearse_on, rehearse_subject

    kind = type(subject).__name__
    if data is None:
        outcome = rehearse_subject(subject, kind, seed=seed)
    else:
        outcome = rehearse_on(subject, kind, data, name, seed=seed)
    wrong = [each for each in outcome.findings if each.severity is Severity.ERROR]
    if not wrong and not outcome.record.done:
        wrong = [FindingTable(__name__)("not-rehearsed", reason=outcome.record.reason)]
    if wrong:
        raise PrivacyViolationError(None, wrong)
    return outcome.record


def _draw_nothing(done: int, total: int) -> None:
    """No bar: the terminal is pytest's."""


def explain(record: AuditRecord) -> str:
    """A refutation in a few lines, with what replays it."""
    claimed = f"ε = {record.claim_epsilon:g}, δ = {record.delta:g}"
    lines = [
        f"the claim {claimed} is refuted.",
        f"  lower bound  ε ≥ {record.bound()} with confidence {record.confidence:g}",
        f"  event        {record.event}",
        f"  method       {record.method}",
        f"  pair         x = {record.pair['x']!r:.200}",
        f"               x' = {record.pair['x_prime']!r:.200}",
        f"  replay       seed {record.seed}, {record.runs} runs on each side",
    ]
    counts = record.details.get("counts")
    if counts:
        seen = "{hits} of {runs} runs against {other_hits} of {other_runs}".format(**counts)
        lines.insert(3, f"  seen in      {seen}")
    return "\n".join(lines)


# -- hooks ----------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option ``--dp-runs``."""
    group = parser.getgroup("dpaudit", "privacy audits")
    group.addoption(
        OPTION,
        type=int,
        default=None,
        metavar="N",
        help="Runs on each side of every privacy audit that does not state its own.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker, and a check of the option."""
    config.addinivalue_line(
        "markers", "dp_audit(runs): a privacy audit; runs on each side where the call states none."
    )
    runs = config.getoption("dp_runs")
    if runs is not None and runs < 2:
        raise pytest.UsageError(f"{OPTION} is {runs}; it must be an integer of at least 2.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Set the runs of the test that is about to begin, and put back those of an outer session."""
    outer = dict(_runs)
    marker = item.get_closest_marker("dp_audit")
    _runs["option"] = item.config.getoption("dp_runs")
    _runs["marker"] = None if marker is None else marker.kwargs.get("runs")
    try:
        return (yield)
    finally:
        _runs.update(outer)


@pytest.fixture(name="assert_certified")
def _assert_certified_fixture() -> Callable[..., Certificate]:
    """The helper :func:`assert_certified`."""
    return assert_certified


@pytest.fixture(name="assert_rehearsed")
def _assert_rehearsed_fixture() -> Callable[..., Rehearsal]:
    """The helper :func:`assert_rehearsed`."""
    return assert_rehearsed


@pytest.fixture(name="assert_private")
def _assert_private_fixture() -> Callable[..., AuditRecord]:
    """The helper :func:`assert_private`."""
    return assert_private
