"""Right subjects on whole numbers, written sealed: they publish the same at equal seed."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import Contribution, Invocation, Plan, RunResult, SealedSubject, Subject, Table
from dpaudit.ledger import Ledger
from tests.benchmarks.right_subjects import containers, everyday, learning
from tests.benchmarks.sealed_subjects.outcomes import run

Rows = Sequence[dict[str, Any]]
TEAS = ("green tea", "black tea", "cocoa")
PURCHASE = {
    "product": {"type": "text", "values": [*TEAS, "mate"]},
    "day": {"type": "integer", "range": [0, 100]},
    "amount": {"type": "integer", "range": [-100, 1000]},
}


@dataclass(frozen=True)
class Pair:
    """A right subject, and what it is when its author seals it.

    Attributes:
        of: the subject that holds rows.
        unit: column of these.
        columns: what they hold.
        rows: made with a generator.
        data: the same as the subject holds them.
        asked: its ``run`` on handles.
        bound: of a contribution that only the sealed plan states; None where the plan has it.
    """

    of: type[Subject]
    unit: str
    columns: dict[str, dict[str, Any]]
    rows: Callable[[np.random.Generator], Rows]
    data: Callable[[Rows], Any]
    asked: Callable[[Any, Any, Any], dict[str, Any]]
    bound: float | None = None

    def plan(self) -> Plan:
        """That of the subject, with the contribution of which a sealed sum is bounded."""
        declared = self.of().plan()
        if self.bound is None:
            return declared
        (one,) = declared.invocations
        about = (one.unit, one.relation, one.trust)
        part = Contribution(self.bound)
        return Plan.of(Invocation.bounded(one.mechanism, part, *about, at=one.at))


@dataclass(frozen=True)
class SealedPair(SealedSubject):
    """The sealed one of a pair."""

    pair: Pair
    folder: str
    roster: tuple[str, ...] = ()

    def table(self) -> Table:
        source = str(Path(self.folder) / "rows.csv")
        return Table(source, self.pair.unit, self.pair.columns, roster=self.roster)

    def plan(self) -> Plan:
        return self.pair.plan()

    def run(self, data, ledger, rng):
        return RunResult(self.pair.asked(data, ledger, rng))


def both(pair: Pair, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the subject publishes on rows, and on handles of the same rows, at one seed."""
    rows = pair.rows(np.random.default_rng(seed))
    subject = pair.of()
    ledger = Ledger(subject.plan(), rng=np.random.default_rng(1))
    plain = subject.run(pair.data(rows), ledger, np.random.default_rng(2))
    with tempfile.TemporaryDirectory() as folder:
        local = str(subject.plan().invocations[0].trust) == "local"
        roster = tuple(each[pair.unit] for each in rows) if local else ()
        sealed = run(SealedPair(pair, folder, roster), rows, [pair.unit, *pair.columns])
    return plain.to_dict()["summary"] | _series(plain), sealed


def _series(result: RunResult) -> dict[str, Any]:
    return {name: np.asarray(each).tolist() for name, each in result.series.items()}


def purchases(rng: np.random.Generator) -> Rows:
    """Whole amounts; some customers have many, and some are large or negative."""
    return [
        {
            "customer": f"c{rng.integers(15)}",
            "product": str(rng.choice(TEAS)),
            "day": int(rng.integers(1, 90)),
            "amount": int(rng.integers(-5, 30)),
        }
        for _ in range(60)
    ]


def of_purchases(kind: type[Subject], asked: Callable[[Any, Any, Any], dict[str, Any]]) -> Pair:
    """A pair on purchases, which are held as they are."""
    return Pair(kind, "customer", PURCHASE, purchases, list, asked)


# -- purchases -------------------------------------------------------------------------------------


def revenue(data, ledger, rng):
    return {"sum": ledger.sum(data.vector("amount"), at="sum")}


def window(data, ledger, rng):
    inside = data.filter("day > 50 AND day <= 80")
    return {"sum": ledger.sum(inside.vector("amount"), at="sum")}


def prices(data, ledger, rng):
    known = everyday.PublicPrices.PRICES.items()
    cases = " ".join(f"WHEN product = '{name}' THEN {price}" for name, price in known)
    return {"sum": ledger.sum(data.vector(f"CASE {cases} ELSE 0 END"), at="sum")}


def ratio(data, ledger, rng):
    return {"mean": round(float(ledger.mean(data.vector("amount"))), 2)}


def baskets(data, ledger, rng):
    noisy = ledger.histogram(data, "product", at="products")
    weights = np.maximum(noisy, 0) + 1e-3
    drawn = rng.choice(len(weights), 100, p=weights / weights.sum())
    return {"baskets": [everyday.SampledBaskets.PRODUCTS[place] for place in drawn]}


# -- answers of devices ----------------------------------------------------------------------------


def phones(rng: np.random.Generator) -> Rows:
    return [{"phone": f"phone {n}", "yes": int(rng.random() < 0.3)} for n in range(40)]


def poll(data, ledger, rng):
    return {"yes": (np.mean(ledger.answers(data.vector("yes"), at="answer")) - 0.25) / 0.5}


# -- rows that are their own units -----------------------------------------------------------------


def ballots(rng: np.random.Generator) -> Rows:
    return [{"row": f"r{n}", "said": str(rng.choice(["yes", "no"]))} for n in range(30)]


def yes(data, ledger, rng):
    return {"yes": ledger.count(data.filter("said = 'yes'"), at="yes")}


def voters(rng: np.random.Generator) -> Rows:
    said = rng.choice(["a", "b"], 30)
    ages = rng.integers(10, 90, 30)
    return [{"row": f"r{n}", "age": int(ages[n]), "vote": str(said[n])} for n in range(30)]


def votes(data, ledger, rng):
    adults = data.filter("age >= 18")
    return {"votes": ledger.histogram(adults, "vote", at="votes").tolist()}


def comments(rng: np.random.Generator) -> Rows:
    return [
        {"comment": f"r{n}", "long": int(rng.integers(2)), "stars": int(rng.integers(1, 6))}
        for n in range(30)
    ]


def rated(data, ledger, rng):
    good = "CASE WHEN stars > 3 THEN 1 ELSE 0 END"
    both_counts = ledger.sum(data.vector(["long", good]), at="counts")
    return {"long": int(both_counts[0]), "good": int(both_counts[1])}


def visits(rng: np.random.Generator) -> Rows:
    days = rng.choice([0, 1, 2, 5, 6, 9, 15, 40], 70)
    return [
        {"visit": f"r{n}", "day": int(days[n]), "child": int(rng.integers(2))} for n in range(70)
    ]


def by_date(rows: Rows) -> Any:
    start = learning.DailyVisits().start
    return [(start + dt.timedelta(each["day"]), bool(each["child"])) for each in rows]


def daily(data, ledger, rng):
    subject, last, alarms, curve = learning.DailyVisits(), 0.0, [], []
    stream = ledger.stream((2,), at="visits")
    for offset in range(subject.days):
        today = data.filter(f"day = {offset}")
        total = float(stream.add(today.vector(["1 - child", "child"])).sum())
        if total - last > 12:
            alarms.append((subject.start + dt.timedelta(offset)).isoformat())
        last = total
        curve.append(total)
    first = {"alarms": alarms, "first day": str(subject.start)}
    return first | {"visits": np.maximum.accumulate(curve).tolist()}


def users(rng: np.random.Generator) -> Rows:
    return [
        {"user": f"user {rng.integers(9)}", "value": int(rng.integers(-4, 5))} for _ in range(40)
    ]


def total(data, ledger, rng):
    return {"sum": ledger.sum(data.vector("value"), at="sum")}


def said(values: Sequence[str]) -> dict[str, Any]:
    return {"type": "text", "values": list(values)}


def whole(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "range": [low, high]}


PAIRS = (
    of_purchases(everyday.Purchases, revenue),
    of_purchases(everyday.PublicWindow, window),
    of_purchases(everyday.PublicPrices, prices),
    of_purchases(everyday.LoggedRatio, ratio),
    of_purchases(everyday.SampledBaskets, baskets),
    Pair(
        everyday.PollByPhone,
        "phone",
        {"yes": whole(0, 1)},
        phones,
        lambda rows: {each["phone"]: each["yes"] for each in rows},
        poll,
    ),
    Pair(
        containers.BallotsOfAnEnum,
        "row",
        {"said": said(["yes", "no"])},
        ballots,
        lambda rows: [containers.Vote(each["said"]) for each in rows],
        yes,
        bound=1.0,
    ),
    Pair(
        containers.PollInColumns,
        "row",
        {"age": whole(0, 110), "vote": said(["a", "b"])},
        voters,
        lambda rows: {name: [each[name] for each in rows] for name in ("age", "vote")},
        votes,
        bound=1.0,
    ),
    Pair(
        containers.RatedComments,
        "comment",
        {"long": whole(0, 1), "stars": whole(1, 5)},
        comments,
        lambda rows: [{"text": "x" * (50 * e["long"]), "stars": e["stars"]} for e in rows],
        rated,
        bound=2.0,
    ),
    Pair(
        learning.DailyVisits,
        "visit",
        {"day": whole(0, 100), "child": whole(0, 1)},
        visits,
        by_date,
        daily,
    ),
    Pair(
        containers.UsersInArrays,
        "user",
        {"value": whole(-10, 10)},
        users,
        lambda rows: {name: np.array([e[name] for e in rows]) for name in ("user", "value")},
        total,
    ),
)
