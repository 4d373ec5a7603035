"""Subjects on data frames; for those who have pandas."""

from __future__ import annotations

import numpy as np

from dpaudit import Laplace
from tests.support.mutants.base import CITIES, Base, RunResult, central, dataclass

try:
    import pandas as pd
except ModuleNotFoundError:
    pd = None

__all__ = ["RIGHT", "WRONG"]


@dataclass(frozen=True)
class Framed(Base):
    """Base of them: orders of users."""

    def declared(self):
        return [central(Laplace(50.0), 50, unit="user", at="spent")]

    def load(self, source, rng):
        users = [f"u{n % 30}" for n in range(60)]
        amounts = rng.gamma(2, 8, 60)
        city = [CITIES[int(n)] for n in rng.integers(0, 4, 60)]
        return pd.DataFrame({"user": users, "amount": amounts, "city": city})

    def amounts(self, data):
        """Finite amounts of at least 0."""
        found = pd.to_numeric(data["amount"], errors="coerce").to_numpy(dtype=float)
        return np.clip(np.nan_to_num(found), 0, 1e6)


class FrameRowsCapped(Framed):
    """Clips the column, not the user."""

    def run(self, data, ledger, rng):
        total = float(np.clip(self.amounts(data), 0, 50).sum())
        return RunResult({"spent": ledger.release(Laplace(50.0), total, at="spent")})


class FrameGroupedByTwo(Framed):
    """Caps each user in each city."""

    def run(self, data, ledger, rng):
        own = data.assign(amount=self.amounts(data)).groupby(["user", "city"])["amount"].sum()
        total = float(own.clip(0, 50).sum())
        return RunResult({"spent": ledger.release(Laplace(50.0), total, at="spent")})


class FrameCategories(Framed):
    """Publishes how many cities the frame knows."""

    def run(self, data, ledger, rng):
        own = data.assign(amount=self.amounts(data)).groupby("user")["amount"].sum()
        noisy = ledger.release(Laplace(50.0), float(own.clip(0, 50).sum()), at="spent")
        return RunResult({"spent": noisy, "cities": int(data["city"].nunique())})


class FrameUsersCapped(Framed):
    """Caps the total of each user."""

    def run(self, data, ledger, rng):
        own = data.assign(amount=self.amounts(data))
        own = own.groupby("user", dropna=False)["amount"].sum()
        total = float(own.clip(0, 50).sum())
        return RunResult({"spent": ledger.release(Laplace(50.0), total, at="spent")})


WRONG = () if pd is None else (FrameRowsCapped, FrameGroupedByTwo, FrameCategories)
RIGHT = () if pd is None else (FrameUsersCapped,)
