"""What a run reports."""

from __future__ import annotations

from collections.abc import Mapping

from dpaudit.project import RunResult
from private_bo.local.users import Outcome
from private_bo.problems import BanditProblem


def run_result(
    algorithm: str, problem: BanditProblem, outcome: Outcome, settings: Mapping[str, float]
) -> RunResult:
    """The recommendation; and for the owner the regret against the problem's known truth.

    Args:
        algorithm: its name.
        problem: where it ran.
        outcome: what it did.
        settings: named settings to show beside the result.
    """
    regret = problem.regret(outcome.choices)
    recommended, best = outcome.recommended, problem.best
    owner = RunResult(
        summary={
            "true best": _label(problem, best),
            "gap of the recommended to the best": float(problem.f[best] - problem.f[recommended]),
            "final regret": float(regret[-1]),
        },
        series={"cumulative regret": regret.tolist()},
    )
    summary = {
        "algorithm": algorithm,
        "problem": problem.name,
        "responses": int(outcome.choices.size),
        "recommended": _label(problem, recommended),
        "estimated mean of the recommended": float(outcome.mean[recommended]),
    }
    return RunResult(summary=summary | dict(settings), owner=owner)


def _label(problem: BanditProblem, index: int) -> str:
    """The point's name, or its coordinates."""
    if problem.labels:
        return problem.labels[index]
    return ", ".join(f"{x:g}" for x in problem.domain.points[index])
