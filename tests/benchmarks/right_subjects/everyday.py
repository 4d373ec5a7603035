"""Right subjects that look like wrong ones: each value follows from its own unit's rows alone.

Purchases are bounded by the ledger: a customer moves the sum by at most the bound, whatever the
rows of others are. A subject that says no more is right for that reason: ε = bound/scale = ½.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    Gaussian,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    RandomizedResponse,
    ReplaceOne,
    RunResult,
    Subject,
    TrustModel,
)
from tests.benchmarks.right_subjects.frames import zcdp_claim

LOG = logging.getLogger(__name__)
ABOUT = (PrivacyUnit("customer"), AddRemove(), TrustModel.CENTRAL)
Row = Mapping[str, Any]


def number(value: Any) -> float:
    """A finite number; 0 for what is none."""
    return float(np.nan_to_num(float(value), posinf=1e9, neginf=-1e9))


def by_customer(rows: Sequence[Row]) -> dict[Any, list[Row]]:
    """The rows of each customer, in their order."""
    found: dict[Any, list[Row]] = {}
    for each in rows:
        found.setdefault(each["customer"], []).append(each)
    return found


@dataclass(frozen=True)
class Purchases(Subject):
    """A bounded sum of what each customer's own purchases make."""

    bound: float = 20.0

    def plan(self) -> Plan:
        noise, part = Laplace(2 * self.bound), Contribution(self.bound)
        return Plan.of(Invocation.bounded(noise, part, *ABOUT, at="sum"))

    def claim(self) -> Claim:
        return Claim(0.5)

    def load(self, source, rng):
        return [
            {
                "customer": f"c{rng.integers(15)}",
                "product": str(rng.choice(["green tea", "black tea", "cocoa"])),
                "day": int(rng.integers(1, 90)),
                "amount": float("nan") if rng.random() < 0.1 else float(rng.exponential(6)),
            }
            for _ in range(50)
        ]

    def run(self, data, ledger, rng):
        found = list(self.entries(data))
        units, values = [unit for unit, _ in found], [value for _, value in found]
        return RunResult({"sum": ledger.sum(values, units=units, at="sum")})

    def entries(self, rows: Sequence[Row]) -> Iterable[tuple[Any, float]]:
        """Whose each value of the sum is, and the value."""
        return [(each["customer"], number(each["amount"])) for each in rows]


@dataclass(frozen=True)
class OwnMeanImputed(Purchases):
    """Revenue, where a missing amount is the mean of the customer's own known ones."""

    def entries(self, rows):
        for customer, own in by_customer(rows).items():
            known = [number(each["amount"]) for each in own if each["amount"] == each["amount"]]
            mean = sum(known) / len(known) if known else 0.0
            for each in own:
                yield customer, number(each["amount"]) if each["amount"] == each["amount"] else mean


@dataclass(frozen=True)
class LatestOfEach(Purchases):
    """What each customer paid last; of several on one day, the largest."""

    def entries(self, rows):
        for customer, own in by_customer(rows).items():
            day = max(number(each["day"]) for each in own)
            last = [number(each["amount"]) for each in own if number(each["day"]) == day]
            yield customer, max(last)


@dataclass(frozen=True)
class HashedQuarter(Purchases):
    """Four times the revenue of a quarter of the customers, chosen by a hash of their names.

    Right: whether somebody is in the quarter follows from the own name and a public salt.
    """

    def entries(self, rows):
        for each in rows:
            digest = hashlib.sha256(f"2026 {each['customer']}".encode()).digest()
            yield each["customer"], 4 * number(each["amount"]) * (digest[0] < 64)


@dataclass(frozen=True)
class PublicWindow(Purchases):
    """Revenue of the thirty days before a day that the plan states."""

    until: int = 80

    def entries(self, rows):
        for each in rows:
            inside = self.until - 30 < number(each["day"]) <= self.until
            yield each["customer"], number(each["amount"]) * inside


@dataclass(frozen=True)
class PublicPrices(Purchases):
    """What was bought, at the prices of a public list."""

    PRICES: ClassVar = {"green tea": 3.0, "black tea": 2.5, "cocoa": 4.0}

    def entries(self, rows):
        return [(each["customer"], self.PRICES.get(each["product"], 0.0)) for each in rows]


@dataclass(frozen=True)
class OwnShares(Purchases):
    """How much of a customer's spending is the largest purchase, in percent of the own total."""

    bound: float = 100.0

    def entries(self, rows):
        for customer, own in by_customer(rows).items():
            amounts = [max(number(each["amount"]), 0.0) for each in own]
            yield customer, 100 * max(amounts) / (sum(amounts) or 1.0)


@dataclass(frozen=True)
class WeeksAsCustomer(Purchases):
    """Weeks between the first and the last purchase of each customer."""

    def entries(self, rows):
        for customer, own in by_customer(rows).items():
            days = [number(each["day"]) for each in own]
            yield customer, (max(days) - min(days)) / 7


@dataclass(frozen=True)
class ThreeOfEach(Purchases):
    """At most three random purchases of each customer, chosen by a keyed hash of the own rows.

    Right: the key is drawn for the run, and which rows are chosen follows from it and from the
    customer's own rows alone. Equal rows are chosen together.
    """

    def run(self, data, ledger, rng):
        key = rng.bytes(16)
        found = []
        for customer, own in by_customer(data).items():
            told = sorted(own, key=lambda row: hashlib.sha256(key + repr(row).encode()).digest())
            found += [(customer, number(each["amount"])) for each in told[:3]]
        units, values = [unit for unit, _ in found], [value for _, value in found]
        return RunResult({"sum": ledger.sum(values, units=units, at="sum")})


@dataclass(frozen=True)
class LoggedRatio(Purchases):
    """Mean amount as the ratio of two releases, which are logged, with a warning if it is small.

    Right: ε = 20/80 + 1/4 = ½ in sequence, and what is logged follows from the releases.
    """

    def plan(self) -> Plan:
        return Plan.of(
            Invocation.bounded(Laplace(80.0), Contribution(20.0), *ABOUT, at="sum"),
            Invocation.bounded(Laplace(4.0), Contribution(1.0), *ABOUT, at="count"),
        )

    def run(self, data, ledger, rng):
        units = [each["customer"] for each in data]
        amounts = [number(each["amount"]) for each in data]
        mean = ledger.mean(amounts, units=units)
        LOG.info("mean %.3f", mean)
        if mean < 1:
            LOG.warning("the mean is small: %.3f", mean)
        return RunResult({"mean": round(float(mean), 2)})


@dataclass(frozen=True)
class SampledBaskets(Purchases):
    """A hundred synthetic baskets, drawn from a noisy histogram of public products.

    Right: a customer adds at most 2 in L2 to the counts: ρ = ½(2/8)²; the rest is a sample.
    """

    PRODUCTS: ClassVar = ("green tea", "black tea", "cocoa", "mate")

    def plan(self) -> Plan:
        return Plan.of(Invocation.bounded(Gaussian(8.0), Contribution(2.0), *ABOUT, at="products"))

    def claim(self) -> Claim:
        return zcdp_claim(1 / 32)

    def run(self, data, ledger, rng):
        products = [each["product"] for each in data]
        units = [each["customer"] for each in data]
        noisy = ledger.histogram(products, self.PRODUCTS, units=units, at="products")
        weights = np.maximum(noisy, 0) + 1e-3
        drawn = rng.choice(len(weights), 100, p=weights / weights.sum())
        return RunResult({"baskets": [self.PRODUCTS[place] for place in drawn]})


@dataclass(frozen=True)
class Rating:
    """What one visitor says."""

    stars: int
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class StarRatings(Subject):
    """Stars and words of ratings that are dataclasses, against a public vocabulary.

    Right: a rating moves stars by ≤ 5 and the share of known words by ≤ 1, 6 in L1: ε = 6/12.
    """

    KNOWN: ClassVar = frozenset({"warm", "cold", "good"})

    def plan(self) -> Plan:
        about = (PrivacyUnit("rating"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(Laplace(12.0), 6.0, *about, at="both"))

    def claim(self) -> Claim:
        return Claim(0.5)

    def load(self, source, rng):
        words = np.array(["warm", "cold", "soup", "good", "late"])
        return [
            Rating(int(rng.integers(1, 6)), tuple(map(str, rng.choice(words, 3))))
            for _ in range(25)
        ]

    def run(self, data, ledger, rng):
        stars = sum(min(max(number(each.stars), 0.0), 5.0) for each in data)
        shares = [len(self.KNOWN & set(each.words)) / len(self.KNOWN) for each in data]
        both = ledger.release(Laplace(12.0), [stars, math.fsum(shares)], at="both")
        return RunResult({"stars": float(both[0]), "words": float(both[1])})


@dataclass(frozen=True)
class PollByPhone(Subject):
    """A yes or no of each phone, flipped on it with a known probability, and the mean unbiased.

    Right: a randomised response of ε = ln 3 is all that leaves a phone.
    """

    phones: int = 40

    def flip(self) -> RandomizedResponse:
        return RandomizedResponse.calibrated(epsilon=math.log(3), k=2)

    def plan(self) -> Plan:
        about = (PrivacyUnit("phone"), ReplaceOne(), TrustModel.LOCAL)
        return Plan.of(Invocation(self.flip(), 1, *about, total=self.phones, at="answer"))

    def claim(self) -> Claim:
        return Claim(math.log(3) * (1 + 1e-9))

    def load(self, source, rng):
        return {f"phone {n}": int(rng.random() < 0.3) for n in range(self.phones)}

    def run(self, data, ledger, rng):
        told = [
            ledger.release(self.flip(), int(answer > 0), unit=phone, at="answer")
            for phone, answer in data.items()
        ]
        return RunResult({"yes": (np.mean(told) - 0.25) / 0.5})
