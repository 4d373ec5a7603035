"""Audits as they are asked on the command line, by runs that a test chooses."""

from dataclasses import replace

from dpaudit.project import Execution
from dpaudit.project.audit_request import AuditRequest
from dpaudit.workflow.attacking import AuditOutcome, audit


def audited(name: str, *, execution: Execution | None = None, **options: object) -> AuditOutcome:
    """The outcome of ``dpaudit audit NAME`` with these options, each as it is typed."""
    request = AuditRequest.of_options({"target": name, **options})
    return audit(request if execution is None else replace(request, execution=execution))
