"""Code whose noise libraries draw, as routines that tests replay and attack."""

from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.observing import through


def routine(code, plan, library):
    """Code on data, of which a ledger of the plan observes what a library draws."""

    def run(data, ledger, _):
        with through(ledger, library):
            return code(data)

    return Routine(plan, run)


def replayed(routine, one, two):
    """Rules of what differs between two neighbours, with the releases of the first."""
    return {finding.rule for finding in replay(routine, one, two).findings}
