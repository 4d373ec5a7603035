"""Asserts of the shared suites show their values, as those of a test do."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite(
    *(path.stem for path in (Path(__file__).parent / "support").glob("*.py"))
)
