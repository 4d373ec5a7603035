"""Every test of the book needs its extra."""

import pytest

pytest.importorskip("sqlalchemy")
