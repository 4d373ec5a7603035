"""What tests of audits share."""

import pytest

from dpaudit.auditing.distinguishing import outcome


@pytest.fixture(autouse=True)
def few_forecasts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No forecast of what would have been found: it takes most of a short audit's time.

    Tests of what an audit says of that have the mark ``forecasts``.
    """
    if request.node.get_closest_marker("forecasts") is None:
        monkeypatch.setattr(outcome, "power_statement", lambda forecast: "")
