"""Runs in the row's environment: observes or attacks one row, and says what was found as JSON.

``python -m audits.libraries.worker`` takes a task on stdin. It does what the printed command does;
observing it says beside the certificate what was charged, which the command prints as text.
"""

from __future__ import annotations

import json
import math
import sys
from contextlib import redirect_stdout
from importlib import metadata
from typing import Any

from dpaudit.base.errors import DpAuditError


def observed(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """What ``dpaudit observe`` finds."""
    from dpaudit.observing.observed_code import observe_target

    seen = observe_target(name, **options)
    own, proved = seen.certificate, seen.certificate.guarantee
    return {
        "verdict": str(own.verdict),
        "epsilon": None if proved is None else _finite(proved.epsilon),
        "delta": None if proved is None else proved.delta,
        "word": _finite(seen.at_its_word),
        "usual": _finite(seen.usual),
        "overspent": seen.overspent,
        "charged": None if seen.charged is None else str(seen.charged),
        "findings": [[str(each.severity), each.rule, each.message] for each in own.findings],
        "releases": sum(each.invocation.releases for each in seen.noted),
    }


def _finite(number: float | None) -> float | None:
    return None if number is None or math.isinf(number) else number


def main() -> None:
    """Answer the task of stdin."""
    task = json.load(sys.stdin)
    try:
        with redirect_stdout(sys.stderr):  # libraries print
            found = observed(task["name"], task["options"])
    except DpAuditError as error:
        found = {"error": str(error)}
    found["version"] = metadata.version(task["library"])
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
