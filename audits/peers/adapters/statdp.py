"""StatDP: an event chosen on half of the runs, and a p-value of the claimed ε on the other half."""

from __future__ import annotations

from typing import Any

from statdp.hypotest import hypothesis_test
from statdp.selectors import select_event


class _InProcess:  # worker processes would each begin the outputs anew
    _processes = 1
    imap_unordered = staticmethod(map)


def audit(task: dict[str, Any]) -> tuple[None, bool]:
    """No bound; whether the claim is refuted."""
    sides = [iter(task[name].tolist()) for name in ("score_x", "score_x_prime")]
    half = len(task["score_x"]) // 2 - 1  # each stage first asks for one more, to see its type

    def algorithm(_prng: Any, side: int) -> float:
        return next(sides[side])

    pool, epsilon = _InProcess(), task["epsilon"]
    *_, event = select_event(algorithm, [(0, 1, {})], epsilon, half, pool, quiet=True)
    p_value = hypothesis_test(algorithm, 0, 1, {}, event, epsilon, half, pool, report_p2=False)
    return None, p_value < 1 - task["confidence"]
