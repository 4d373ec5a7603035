"""Messages: exact on the wire, and refused where they are none."""

from collections.abc import Callable

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.federated import Broadcast, Report


def test_messages_survive_the_wire_exactly() -> None:
    numbers = np.array([0.1, -0.0, 5e-324, 1.7976931348623157e308, np.pi, np.nan, np.inf])
    report = Report.from_dict(Report(3, 4, numbers).to_dict())
    assert (report.round, report.agent) == (3, 4)
    assert report.vector.tobytes() == numbers.tobytes()
    broadcast = Broadcast(2, np.random.default_rng(0).normal(size=(3, 5)))
    again = Broadcast.from_dict(broadcast.to_dict())
    assert again.round == 2
    assert again.vectors.tobytes() == broadcast.vectors.tobytes()
    assert Broadcast.none_yet(2, 3).vectors.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Broadcast(-2, np.ones((1, 1))), "round is -2"),
        (lambda: Broadcast(0, np.ones(3)), "must be \\(P, M\\)"),
        (lambda: Broadcast(0, np.full((1, 1), np.nan)), "NaN"),
        (lambda: Report(0.5, 0, np.ones(2)), "round is 0.5"),  # type: ignore[arg-type]
        (lambda: Report(0, True, np.ones(2)), "agent is True"),
        (lambda: Report(0, 0, np.ones((2, 2))), "must be a vector"),
        (lambda: Report(0, 0, np.array(["a"])), "must be a vector"),
        (lambda: Report(0, 0, [[1.0], [1.0, 2.0]]), "ragged"),  # type: ignore[arg-type]
        (lambda: Report.from_dict({"round": 0}), "report has the fields"),
        (lambda: Report.from_dict([]), "report has the fields"),  # type: ignore[arg-type]
        (lambda: Report.from_dict({"round": 0, "agent": 0, "vector": b"123"}), "bytes"),
        (lambda: Report.from_dict({"round": 0, "agent": 0, "vector": "x"}), "bytes"),
        (lambda: Broadcast.from_dict({"round": 0, "shape": [1], "vectors": b""}), "pair"),
        (lambda: Broadcast.from_dict({"round": 0, "shape": [1, 2], "vectors": b"\0" * 8}), "asks"),
    ],
)
def test_wrong_messages_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        make()
    assert "\n" not in str(refused.value)
