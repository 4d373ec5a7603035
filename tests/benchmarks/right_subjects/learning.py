"""Right subjects on arrays, streams and devices: what one who learns from data would write."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    Gaussian,
    Invocation,
    Laplace,
    MetricBall,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    RunResult,
    Subject,
    TrustModel,
    ZeroOut,
)
from dpaudit.mechanisms import BinaryTree, ContinualGaussian
from dpaudit.project import Move
from tests.benchmarks.right_subjects.frames import zcdp_claim

Array = np.ndarray


def clipped(rows: Array, bound: float) -> Array:
    """Each row of a matrix scaled to a norm of at most the bound; what is no number counts as 0."""
    rows = np.nan_to_num(np.asarray(rows, dtype=np.float64), nan=0.0, posinf=1e6, neginf=-1e6)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, bound * (1 - 1e-12) / np.maximum(norms, 1e-300))


# -- DP-SGD ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoisyTraining(Subject):
    """Logistic regression by DP-SGD: Poisson batches of rows whose number is public.

    Right: a row's clipped gradient has norm ≤ 1 and is 0 for a row of zeros, each step draws every
    row with q by itself: the plan of DP-SGD under zero-out. Steps divide by the public qn.
    """

    steps: int = 15
    rate: float = 0.2
    noise_multiplier: float = 2.0
    learning_rate: float = 0.8

    def plan(self) -> Plan:
        return Plan.dp_sgd(
            noise_multiplier=self.noise_multiplier,
            sample_rate=self.rate,
            steps=self.steps,
            relation=ZeroOut(),
        )

    def claim(self) -> Claim:
        return zcdp_claim(self.steps / (2 * self.noise_multiplier**2))  # without amplification

    def load(self, source, rng):
        rows = rng.normal(size=(80, 4)).astype(np.float32)
        rows[:, 3] = rows[:, 0] + 0.3 * rng.normal(size=80) > 0  # the label, in the last column
        rows[5, 1] = np.nan
        return rows

    def neighbours(self, data, rng) -> Iterator[Move]:
        for place in rng.integers(len(data), size=5):
            other = data.copy()
            other[place] = 0
            yield Move(other, f"row {place} is zero")

    def run(self, data, ledger, rng):
        noise = self.plan().invocations[0].mechanism
        features, labels = np.nan_to_num(data[:, :3].astype(float)), data[:, 3] > 0.5
        weights, norms = np.zeros(3), []
        for step in range(self.steps):
            batch = rng.random(len(data)) < self.rate
            margins = np.clip(features[batch] @ weights, -30, 30)
            errors = 1 / (1 + np.exp(-margins)) - labels[batch]
            gradients = clipped(errors[:, None] * features[batch], 1.0)
            noisy = ledger.release(noise, gradients.sum(axis=0))
            weights -= self.learning_rate / (1 + step) ** 0.5 * noisy / (self.rate * len(data))
            norms.append(float(np.linalg.norm(weights)))
        right = np.mean((features @ weights > 0) == labels)
        return RunResult(
            {"weights": weights.tolist(), "rows": len(data)},
            series={"norm": norms},
            owner=RunResult({"accuracy on the training rows": float(right)}),
        )


# -- principal components --------------------------------------------------------------------------


@dataclass(frozen=True)
class PrincipalComponents(Subject):
    """Directions of largest variance from a noisy matrix of second moments.

    Right: ‖xxᵀ − yyᵀ‖_F ≤ √2 for norms ≤ 1, so under replace-one ρ = 2/2σ²; the upper triangle has
    no larger norm. Eigenvectors, their signs included, are functions of the release.
    """

    sigma: float = 8.0
    components: int = 2

    def plan(self) -> Plan:
        about = (PrivacyUnit("row"), ReplaceOne(), TrustModel.CENTRAL)
        return Plan.of(Invocation(Gaussian(self.sigma), math.sqrt(2), *about, at="moments"))

    def claim(self) -> Claim:
        return zcdp_claim(1 / self.sigma**2)

    def load(self, source, rng):
        return (rng.normal(size=(70, 5)) * [1, 0.5, 0.3, 0.1, 0.0]).astype(np.float32)

    def run(self, data, ledger, rng):
        rows = clipped(data, 1.0)
        upper = np.triu_indices(rows.shape[1])
        noisy = ledger.release(Gaussian(self.sigma), (rows.T @ rows)[upper], at="moments")
        matrix = np.zeros((rows.shape[1],) * 2)
        matrix[upper] = noisy
        matrix = matrix + np.triu(matrix, 1).T
        values, vectors = np.linalg.eigh(matrix / len(rows))
        best = vectors[:, np.argsort(values)[::-1][: self.components]]
        best = best * np.sign(best[np.abs(best).argmax(axis=0), range(self.components)])
        kept = float(np.var(rows @ best, axis=0).sum() / max(np.var(rows, axis=0).sum(), 1e-12))
        return RunResult(
            {"components": best.T.tolist(), "variances": np.maximum(values, 0).tolist()},
            owner=RunResult({"variance kept": kept}),
        )


# -- k-means ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoisyKMeans(Subject):
    """Lloyd's algorithm with noisy sums (DPLloyd), from public centres.

    Right: a point is in one cluster, where it adds (clipped x, 1) of L1 norm ≤ 2 + 1 = 3: ε = 3/b
    a step, and steps compose. Centres start at the rng's choice; empty clusters start again there.
    """

    clusters: int = 3
    steps: int = 4
    scale: float = 6.0

    def plan(self) -> Plan:
        about = (PrivacyUnit("point"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(Laplace(self.scale), 3.0, *about, count=self.steps, at="sums"))

    def claim(self) -> Claim:
        return Claim(self.steps * 3 / self.scale)

    def load(self, source, rng):
        middles = np.array([[-0.6, 0.5], [0.7, 0.6], [0.1, -0.7]])
        return middles[rng.integers(3, size=90)] + 0.1 * rng.normal(size=(90, 2))

    def run(self, data, ledger, rng):
        points = np.clip(np.nan_to_num(data), -1, 1)
        centres = rng.uniform(-1, 1, size=(self.clusters, 2))
        restarts = 0
        for _ in range(self.steps):
            distances = ((points[:, None] - centres) ** 2).sum(axis=2)
            nearest = distances.argmin(axis=1)
            sums = np.zeros((self.clusters, 3))
            np.add.at(sums, nearest, np.column_stack([points, np.ones(len(points))]))
            noisy = ledger.release(Laplace(self.scale), sums, at="sums")
            for place, (x, y, count) in enumerate(noisy):
                if count < 1:
                    centres[place], restarts = rng.uniform(-1, 1, size=2), restarts + 1
                else:
                    centres[place] = np.clip([x / count, y / count], -1, 1)
        cost = ((points[:, None] - centres) ** 2).sum(axis=2).min(axis=1, initial=9.0).mean()
        order = np.lexsort(centres.T)
        return RunResult(
            {"centres": centres[order].round(3).tolist(), "restarts": restarts},
            owner=RunResult({"cost": float(cost)}),
        )


# -- continual counting ----------------------------------------------------------------------------


@dataclass(frozen=True)
class DailyVisits(Subject):
    """How many visits there were up to each day, published every day, and the day of an alarm.

    Right: a visit counts on one day, in one of two columns, so it moves one step by 1: one
    participation in the tree, whose sensitivity is the mechanism's. Alarms follow from releases.
    """

    sigma: float = 4.0
    days: int = 16
    start: dt.date = field(default=dt.date(2024, 3, 1))

    @property
    def noise(self) -> ContinualGaussian:
        return ContinualGaussian(
            sigma=self.sigma, factorization=BinaryTree(self.days), participations=1
        )

    def plan(self) -> Plan:
        about = (PrivacyUnit("visit"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(self.noise, 1.0, *about, at="visits"))

    def claim(self) -> Claim:
        return zcdp_claim((math.log2(self.days) + 1) / (2 * self.sigma**2))

    def load(self, source, rng):
        offsets = rng.choice([0, 1, 2, 5, 6, 9, 15, 40, -3], size=70)
        return [
            (self.start + dt.timedelta(int(each)), bool(rng.random() < 0.5)) for each in offsets
        ]

    def run(self, data, ledger, rng):
        by_day: dict[dt.date, list[int]] = {}
        for day, child in data:
            by_day.setdefault(day, [0, 0])[int(child)] += 1
        stream, last, alarms, curve = ledger.stream(self.noise, (2,), at="visits"), 0.0, [], []
        for offset in range(self.days):
            day = self.start + dt.timedelta(offset)
            total = float(stream.add(by_day.get(day, [0, 0])).sum())
            if total - last > 12:
                alarms.append(day.isoformat())
            last = total
            curve.append(total)
        return RunResult(
            {"alarms": alarms, "first day": str(self.start)},
            series={"visits": np.maximum.accumulate(curve)},
            owner=RunResult(
                {"busiest": str(max(by_day, key=lambda day: sum(by_day[day])))} if by_day else {}
            ),
        )


# -- federated mean --------------------------------------------------------------------------------


@dataclass(frozen=True)
class FederatedMean(Subject):
    """Devices move a common model towards their own data; the server adds up clipped updates.

    Right: a device adds one vector of norm ≤ 1 to a round, bounded by the ledger, and nothing where
    it has no rows (zero-out): ρ = 1/2σ² a round. Devices work in threads, in a fixed order.
    """

    rounds: int = 5
    sigma: float = 3.0
    dimension: int = 3

    def plan(self) -> Plan:
        about = (PrivacyUnit("device"), ZeroOut(), TrustModel.JOINT)
        each = (Gaussian(self.sigma), Contribution(1.0))
        return Plan.of(
            *(Invocation.bounded(*each, *about, at=f"round {n}") for n in range(self.rounds))
        )

    def claim(self) -> Claim:
        return zcdp_claim(self.rounds / (2 * self.sigma**2))

    def load(self, source, rng):
        sizes = rng.integers(0, 6, size=20)  # some have none
        return {f"device {n}": rng.normal(1, 1, size=(k, 3)) for n, k in enumerate(sizes)}

    def neighbours(self, data, rng) -> Iterator[Move]:
        for name in rng.permutation(sorted(data))[:4]:
            yield Move({**data, str(name): np.empty((0, 3))}, "a device without its rows")
        far = {**data, "device 3": np.full((2, 3), 1e12)}
        yield Move({**far, "device 3": np.empty((0, 3))}, "a far device without", base=far)

    @staticmethod
    def update(rows: Array, model: Array) -> Array:
        return rows.mean(axis=0) - model if len(rows) else np.zeros_like(model)

    def run(self, data, ledger, rng):
        model = rng.normal(scale=0.1, size=self.dimension)
        names, way = sorted(data), [model.tolist()]
        with ThreadPoolExecutor(2) as pool:
            for n in range(self.rounds):
                updates = list(pool.map(lambda name, at=model: self.update(data[name], at), names))
                total = ledger.sum(np.array(updates), units=names, at=f"round {n}")
                model = model + total / len(names)
                way.append(model.tolist())
        return RunResult({"model": model.tolist(), "devices": names, "way": way})


# -- places ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlacesOfPhones(Subject):
    """How many phones are in each cell of a city, from places that the phones themselves blur.

    Right: the box clip brings no two places further apart, so 100 m move a place by ≤ √2·100 in L1:
    ε = 141.4/b for a metric ball of 100 m, each phone once. Cells are computed from blurred places.
    """

    scale: float = 200.0
    radius: float = 100.0
    phones: int = 40
    SIDE: ClassVar = 2000.0

    def plan(self) -> Plan:
        about = (PrivacyUnit("phone"), MetricBall(self.radius), TrustModel.LOCAL)
        far = math.sqrt(2) * self.radius
        return Plan.of(Invocation(Laplace(self.scale), far, *about, total=self.phones, at="place"))

    def claim(self) -> Claim:
        return Claim(math.nextafter(math.sqrt(2) * self.radius / self.scale, 1))

    def load(self, source, rng):
        places = rng.uniform(-300, 2300, size=(self.phones, 2))
        places[3] = 0.0
        return places

    def run(self, data, ledger, rng):
        places = np.clip(np.nan_to_num(data), 0, self.SIDE)
        blurred = [
            ledger.release(Laplace(self.scale), place, unit=f"phone {n}", at="place")
            for n, place in enumerate(places)
        ]
        cells = np.clip(np.floor(np.array(blurred) / 500), 0, 3).astype(int)
        counts = np.zeros((4, 4), dtype=np.int32)
        np.add.at(counts, (cells[:, 0], cells[:, 1]), 1)
        fullest = rng.choice(np.flatnonzero(counts == counts.max()))  # ties by lot
        moved = np.linalg.norm(np.array(blurred) - places, axis=1).mean()
        return RunResult(
            {"cells": counts.tolist(), "fullest": divmod(int(fullest), 4)},
            owner=RunResult({"mean error": float(moved)}),
        )
