"""Right subjects on tables, lists and mappings: what an analyst or a survey would write."""

from __future__ import annotations

import importlib
import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from types import ModuleType
from typing import ClassVar

import numpy as np

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    DiscreteLaplace,
    Gaussian,
    InputError,
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
from dpaudit.mechanisms import ExponentialMechanism
from dpaudit.project import Move

LOG = logging.getLogger(__name__)
DELTA = 1e-6


def zcdp_claim(rho: float) -> Claim:
    """ρ-zCDP gives ε = ρ + 2√(ρ ln 1/δ)."""
    return Claim(rho + 2 * math.sqrt(rho * math.log(1 / DELTA)), DELTA, "Bun and Steinke 2016")


def library(name: str) -> ModuleType:
    """A library that is no dependency of this project."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"{name} is missing; install it to run this subject.") from None


# -- a pandas frame --------------------------------------------------------------------------------


@dataclass(frozen=True)
class RegionReport:
    """What is published of one region."""

    region: str
    rows: float
    mean: float | None


@dataclass(frozen=True)
class RevenueByRegion(Subject):
    """Mean revenue by region and the median basket, of a frame with several rows a customer.

    Right: the ledger bounds all that a customer adds to the vector of sums (L2 ≤ 60) and of counts
    (L2 ≤ 2), and one row of each to the median (utility ≤ ½): ρ = ½(60/240)² + ½(2/8)² + ε²/8.
    """

    REGIONS: ClassVar = ("north", "east", "south", "west", "islands")  # nobody lives there
    CITIES: ClassVar = {"Oslo": "north", "Wien": "east", "Rom": "south", "Brest": "west"}

    def plan(self) -> Plan:
        about = (PrivacyUnit("customer"), AddRemove(), TrustModel.CENTRAL)
        choice = ExponentialMechanism(0.5, utility_sensitivity=0.5)
        return Plan.of(
            Invocation.bounded(Gaussian(240.0), Contribution(60.0, rows=4), *about, at="revenue"),
            Invocation.bounded(Gaussian(8.0), Contribution(2.0, rows=4), *about, at="rows"),
            Invocation.bounded(choice, Contribution(1.0, rows=1), *about, at="median"),
        )

    def claim(self) -> Claim:
        return zcdp_claim(0.5 * 0.25**2 + 0.5 * 0.25**2 + 0.5**2 / 8)

    def load(self, source, rng):
        pd = library("pandas")
        n = 160
        frame = pd.DataFrame(
            {
                "customer": [f"c{each:03d}" for each in rng.integers(60, size=n)],
                "invoice": np.arange(n, dtype=np.uint32),
                "city": pd.Categorical(rng.choice([*self.CITIES, "Paris"], size=n)),
                "amount": rng.gamma(2.0, 15.0, size=n).astype(np.float32),
                "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(90, size=n), "D"),
            }
        )
        frame.loc[frame.sample(9, random_state=1).index, "amount"] = np.nan
        return frame

    def run(self, data, ledger, rng):
        frame = data.drop_duplicates(["customer", "invoice"]).sort_values("day", kind="stable")
        frame = frame.assign(region=frame["city"].astype(object).map(self.CITIES))
        frame = frame[frame["region"].notna()]
        places = {name: place for place, name in enumerate(self.REGIONS)}
        rows = np.zeros((len(frame), len(places)), dtype=np.float32)
        rows[np.arange(len(frame)), frame["region"].map(places).to_numpy(dtype=int)] = frame[
            "amount"
        ]
        LOG.info("%d public regions", len(places))
        who = frame["customer"].to_numpy()
        revenue = ledger.sum(rows, units=who, at="revenue")
        counts = ledger.histogram(frame["region"].tolist(), self.REGIONS, units=who, at="rows")
        steps = np.linspace(0, 100, 21)
        median = ledger.quantile(frame["amount"], 0.5, steps, units=who, at="median")
        reports = [
            RegionReport(name, round(float(n), 1), float(total / n) if n >= 1 else None)
            for name, total, n in zip(self.REGIONS, revenue, counts, strict=True)
        ]
        true = frame.groupby("region")["amount"].mean().round(2).to_dict()
        return RunResult(
            {"regions": [asdict(each) for each in reports], "median basket": median},
            owner=RunResult({"true means": true, "customers": int(frame["customer"].nunique())}),
        )


# -- a polars frame --------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def dyadic(levels: int) -> tuple[tuple[int, int], ...]:
    """The nodes of a complete binary tree over 2^levels public cells, without the root."""
    return tuple((level, node) for level in range(1, levels + 1) for node in range(2**level))


@dataclass(frozen=True)
class IncomeQuantiles(Subject):
    """Quantiles of incomes by a tree of noisy counts, of a polars frame with nulls.

    Right: a row is in one node of each of 4 levels, so all counts together move by 4 in L1 under
    add-remove: ε = 4/b. Quantiles, ties by the algorithm's rng included, follow from the counts.
    """

    scale: float = 8.0
    levels: int = 4
    top: int = 160_000

    @cached_property
    def noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale)

    def plan(self) -> Plan:
        about = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(self.noise, self.levels, *about, at="tree"))

    def claim(self) -> Claim:
        return Claim(self.levels / self.scale)

    def load(self, source, rng):
        pl = library("polars")
        incomes = rng.lognormal(10.6, 0.6, size=120).astype(int).tolist()
        incomes[7] = incomes[30] = None
        return pl.DataFrame({"income": incomes, "sector": rng.choice(["a", "b"], 120)})

    def run(self, data, ledger, rng):
        incomes = data.drop_nulls("income")["income"].clip(0, self.top - 1).to_numpy()
        cells = incomes * 2**self.levels // self.top
        counts = [
            np.bincount(cells >> up, minlength=2 ** (self.levels - up)) for up in (3, 2, 1, 0)
        ]
        noisy = ledger.release(self.noise, np.concatenate(counts), at="tree")
        tree = dict(zip(dyadic(self.levels), np.maximum(noisy, 0).tolist(), strict=True))
        found = {f"{share:.0%}": self._descend(tree, share, rng) for share in (0.25, 0.5, 0.9)}
        return RunResult({"quantiles": found, "levels": self.levels})

    def _descend(self, tree: Mapping[tuple[int, int], float], share: float, rng) -> float:
        node = 0
        for level in range(1, self.levels + 1):
            left, right = tree[level, 2 * node], tree[level, 2 * node + 1]
            wanted = share * (left + right)
            tie = left == wanted and rng.random() < 0.5
            share = wanted / left if wanted < left else (wanted - left) / max(right, 1)
            node = 2 * node + (wanted >= left and not tie)
            share = min(max(share, 0.0), 1.0)
        return (node + share) * self.top / 2**self.levels


# -- a list of records, by local randomisers -------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What one person sends, and a name that is public."""

    person: str
    fruit: str


@dataclass(frozen=True)
class FruitSurvey(Subject):
    """Frequencies of categories, where everybody randomises the own answer.

    Right: an answer is one of k, known ones mapped by a public table, others to "other", and leaves
    its owner by k-ary randomised response of ε, once. The rest is computed from the responses.
    """

    epsilon: float = 1.5
    FRUITS: ClassVar = {"apple": 0, "pear": 1, "plum": 2, "fig": 3, "other": 4}

    def noise(self) -> RandomizedResponse:
        return RandomizedResponse.calibrated(epsilon=self.epsilon, k=len(self.FRUITS))

    def plan(self) -> Plan:
        about = (PrivacyUnit("person"), ReplaceOne(), TrustModel.LOCAL)
        return Plan.of(Invocation(self.noise(), 1, *about, total=80, at="answer"))

    def claim(self) -> Claim:
        return Claim(self.epsilon)

    def load(self, source, rng):
        said = rng.choice(
            ["apple", "pear", "plum", "durian", ""], size=80, p=[0.5, 0.2, 0.1, 0.1, 0.1]
        )
        return [Answer(f"person {n}", str(fruit)) for n, fruit in enumerate(said)]

    def neighbours(self, data, rng) -> Iterator[Move]:
        for place, fruit in ((0, "pear"), (41, "fig"), (79, "apple"), (12, "??")):
            other = [*data[:place], Answer(data[place].person, fruit), *data[place + 1 :]]
            yield Move(other, f"answer {place} is another", extreme=fruit == "??")

    def run(self, data, ledger, rng):
        k, noise = len(self.FRUITS), self.noise()
        coded = [self.FRUITS.get(each.fruit.strip().lower(), k - 1) for each in data]
        said = ledger.release_each(noise, coded, units=[each.person for each in data], at="answer")
        seen = Counter(int(answer) for answer in said)
        shares = np.array([seen[code] / len(data) for code in range(k)])
        estimate = np.clip((shares - noise.p / k) / (1 - noise.p), 0, None)
        estimate /= estimate.sum()
        drawn = rng.choice(list(self.FRUITS), size=10, p=estimate)  # a synthetic sample
        return RunResult(
            {
                "shares": dict(zip(self.FRUITS, estimate.tolist(), strict=True)),
                "like": drawn.tolist(),
            },
            series={"raw shares": shares},
            owner=RunResult({"true": Counter(each.fruit for each in data).most_common()}),
        )


# -- a mapping of lists ----------------------------------------------------------------------------


@dataclass(frozen=True)
class BestSellers(Subject):
    """The best products by the exponential mechanism, and what is spent on each: adaptive.

    Right: a customer moves each number of buyers by ≤ 1 (three choices of ε = ⅓), and the spending
    on the three chosen products, clipped to 20 together, by ≤ 20 in L2: ρ = 3·ε²/8 + ½(20/80)².
    """

    PRODUCTS: ClassVar = ("tea", "coffee", "cocoa", "mate", "water")
    choice: ClassVar = ExponentialMechanism(1 / 3)
    noise: ClassVar = Gaussian(80.0)

    def plan(self) -> Plan:
        about = (PrivacyUnit("customer"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(
            Invocation(self.choice, 1.0, *about, count=3, at="best"),
            Invocation(self.noise, 20.0, *about, at="spending"),
        )

    def claim(self) -> Claim:
        return zcdp_claim(3 / 9 / 8 + 0.5 * (20 / 80) ** 2)

    def load(self, source, rng):
        def basket() -> list[tuple[str, float]]:
            bought = rng.choice(
                self.PRODUCTS, size=rng.integers(0, 5), p=[0.4, 0.3, 0.2, 0.06, 0.04]
            )
            return [(str(each), float(rng.gamma(2, 3))) for each in bought]

        data = {f"customer {n}": basket() for n in range(60)}
        data["customer 5"] = [("tea", math.nan), ("tea", 1e6)]
        return data

    def neighbours(self, data, rng) -> Iterator[Move]:
        for name in ("customer 5", "customer 0", "customer 31"):
            yield Move({key: data[key] for key in data if key != name}, "a customer removed")
        for basket in ([("tea", 1e9), ("mate", 3.0)], [], [("cocoa", -5.0), ("gin", math.inf)]):
            yield Move({"new": basket, **data}, "a customer added at the front")
            yield Move({**data, "new": basket}, "a customer added at the end")

    def run(self, data, ledger, rng):
        buyers = Counter(product for basket in data.values() for product in {p for p, _ in basket})
        left, best = list(self.PRODUCTS), []
        for _ in range(3):
            utilities = [buyers[product] for product in left]
            best.append(left.pop(ledger.release(self.choice, utilities, at="best")))
        total = np.zeros(3)
        for basket in data.values():
            spent = dict.fromkeys(best, 0.0)
            for product, amount in basket:
                if product in spent and math.isfinite(amount):
                    spent[product] += min(max(amount, 0.0), 20.0)
            part = np.fromiter(spent.values(), dtype=float)
            total += part * min(1.0, (20 - 1e-9) / max(np.linalg.norm(part), 1e-12))
        spending = ledger.release(self.noise, total, at="spending")
        if spending[0] < 0:  # a release decides what is shown
            return RunResult({"best": best})
        return RunResult(
            {"best": best, "spending": dict(zip(best, spending.tolist(), strict=True))}
        )


# -- a list of texts, in rounds that may end early -------------------------------------------------


@dataclass(frozen=True)
class HeavyHitters(Subject):
    """Frequent words by their prefixes: rounds go on while a released count is above the threshold.

    Right: a word is in at most one counted prefix of a round, so the counts move by 1 in L1: ε a
    round, at most 6 rounds. Which prefixes are counted next follows from releases alone.
    """

    epsilon: float = 0.5
    rounds: int = 6
    threshold: float = 6.0
    ALPHABET: ClassVar = "abc"

    def noise(self) -> Laplace:
        return Laplace.calibrated(epsilon=self.epsilon, sensitivity=1)

    def plan(self) -> Plan:
        about = (PrivacyUnit("word"), AddRemove(), TrustModel.CENTRAL)
        one = Contribution(1)
        return Plan.of(
            Invocation.bounded(self.noise(), one, *about, count=self.rounds, at="prefixes")
        )

    def claim(self) -> Claim:
        return Claim(self.epsilon * self.rounds)

    def load(self, source, rng):
        words = ["abca", "abcb", "cab", "b", "", "ccccc", "zebra", "Ábc"]
        return [str(each) for each in rng.choice(words, size=120, p=[0.4, 0.2, 0.2, *[0.04] * 5])]

    def run(self, data, ledger, rng):
        prefixes, found = [""], {}
        for length in range(1, self.rounds + 1):
            public = sorted(prefix + letter for prefix in prefixes for letter in self.ALPHABET)
            keys = [word[:length].lower() for word in data]
            noisy = ledger.histogram(keys, public, at="prefixes")
            prefixes = [
                each for each, count in zip(public, noisy, strict=True) if count > self.threshold
            ]
            found |= {each: float(count) for each, count in zip(public, noisy, strict=True)}
            if not prefixes:
                break
        return RunResult(
            {"frequent": {each: round(found[each]) for each in prefixes}, "rounds": length}
        )


# -- columns, as a matrix of counts ----------------------------------------------------------------


@dataclass(frozen=True)
class SyntheticPatients(Subject):
    """A noisy contingency table, and patients drawn from it.

    Right: a patient has one cell of 1, and a replaced one moves two: L1 ≤ 2, ε = 2/b. The number of
    patients is public under replace-one. The synthetic patients follow from the table and the rng.
    """

    scale: float = 4.0
    AGES: ClassVar = (0, 18, 40, 65)

    def plan(self) -> Plan:
        about = (PrivacyUnit("patient"), ReplaceOne(), TrustModel.CURATOR)
        table = Invocation.bounded(DiscreteLaplace(self.scale), Contribution(1), *about, at="table")
        return Plan.of(table)

    def claim(self) -> Claim:
        return Claim(2 / self.scale)

    def load(self, source, rng):
        ages = rng.integers(-1, 100, size=90)  # −1 is "not asked"
        return {"age": ages.astype(np.int16), "smokes": rng.random(90) < 0.3}

    def run(self, data, ledger, rng):
        age, smokes = np.asarray(data["age"]), np.asarray(data["smokes"], dtype=bool)
        group = np.clip(np.searchsorted(self.AGES, age, side="right") - 1, 0, None)
        cells = np.zeros((len(age), len(self.AGES), 2), dtype=np.uint8)
        cells[np.arange(len(age)), group, smokes.astype(int)] = 1
        noisy = ledger.sum(cells, at="table")
        weights = np.clip(noisy, 0, None).ravel() + 1e-9
        drawn = rng.multinomial(len(age), weights / weights.sum()).reshape(noisy.shape)
        rows = [
            {"from": start, "smokes": bool(smoke), "patients": int(drawn[place, smoke])}
            for place, start in enumerate(self.AGES)
            for smoke in (0, 1)
        ]
        rng.shuffle(rows)
        return RunResult(
            {"patients": len(age), "table": noisy.astype(int).tolist(), "synthetic": rows}
        )
