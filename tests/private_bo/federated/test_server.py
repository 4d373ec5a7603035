"""What a server needs beside Algorithm 1: sampling and clipping."""

from collections.abc import Callable

import numpy as np
import pytest
from federations import SUBJECT, played, proper, without

from private_bo.federated import Refusal, Report
from private_bo.federated.draws import clip_to_norm

BAD: dict[str, tuple[Refusal, Callable[[int], object]]] = {
    "short": (Refusal.WRONG_DIMENSION, lambda t: Report(t, 0, np.ones(3))),
    "empty": (Refusal.WRONG_DIMENSION, lambda t: Report(t, 0, np.ones(0))),
    "long": (Refusal.WRONG_DIMENSION, lambda t: Report(t, 0, np.ones(400))),
    "nan": (Refusal.NOT_FINITE, lambda t: Report(t, 0, np.array([1, np.nan, 0, 0]))),
    "infinite": (Refusal.NOT_FINITE, lambda t: Report(t, 0, np.array([1, -np.inf, 0, 0]))),
    "unknown": (Refusal.UNKNOWN_AGENT, lambda t: Report(t, 6, np.ones(4))),
    "negative": (Refusal.UNKNOWN_AGENT, lambda t: Report(t, -1, np.ones(4))),
    "late": (Refusal.WRONG_ROUND, lambda t: Report(t - 1, 0, np.ones(4))),
    "early": (Refusal.WRONG_ROUND, lambda t: Report(t + 1, 0, np.ones(4))),
    "nothing": (Refusal.MALFORMED, lambda t: None),
    "text": (Refusal.MALFORMED, lambda t: "report"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_report_is_counted_and_is_as_if_nothing_was_sent(name: str) -> None:
    reason, bad = BAD[name]
    server, ledger, shown = played(lambda turn: [bad(turn), *without(0)(turn)])
    _, _, silent = played(without(0))
    assert server.refused == {reason: 5}
    assert server.missing == [1] * 5
    assert len(ledger) == 5
    assert ledger.spent().hash == SUBJECT.plan().hash
    for one, other in zip(shown, silent, strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_second_report_of_an_agent_is_refused() -> None:
    server, _, shown = played(lambda t: [*proper(t), Report(t, 2, np.full(4, 100.0))])
    clean = played(proper)[2]
    assert server.refused == {Refusal.DUPLICATE: 5}
    assert server.missing == [0] * 5
    assert [a.tobytes() for a in shown] == [b.tobytes() for b in clean]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e6, 1e300, 1.7e308])
def test_clipping_keeps_direction_and_bounds_the_norm(scale: float) -> None:
    vector = np.array([0.6, -0.8, 0.0]) * scale
    found = clip_to_norm(vector, 2.0)
    assert np.linalg.norm(found) <= 2.0 * (1 + 1e-15)
    assert np.allclose(found, vector if scale <= 1 else [1.2, -1.6, 0.0])
    assert clip_to_norm(np.zeros(3), 2.0).tolist() == [0.0, 0.0, 0.0]
