"""Membership audits of models of handwritten digits.

Run ``python -m tests.benchmarks.membership [--seeds 20] [--part PART]``; each number is
computed in this run. The private trainings need the ``opacus`` extra.
"""

from __future__ import annotations

import argparse
import time
import warnings
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import AddRemove, Gaussian, Invocation, Plan, PoissonSampling, PrivacyUnit, TrustModel
from dpaudit.auditing.evidence.one_run import (
    fdp_rejects,
    fdp_strength,
    gaussian_family,
    gaussian_least,
    one_run_p_value,
)
from dpaudit.mechanisms import GaussianPair
from dpaudit.training.membership.attacks import (
    MembershipAttack,
    audit_membership,
    audit_one_run,
    audit_scores,
)
from dpaudit.training.membership.guessing import Rule, guess
from dpaudit.training.membership.shadow_scores import logit_confidence
from dpaudit.training.membership.shadows import DatasetScores, RangeScores

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

DELTA = 1e-5
CANARIES = 500


def one_run_lower_bound(canaries: int, guesses: int, correct: int, delta: float) -> float:
    """The ε up to which Theorem 5.2 of Steinke, Nasr and Jagielski 2023 rejects at 95 %."""
    grid = 0.005 * np.arange(4000)
    stands = bisect_left(
        grid, 0.05, key=lambda e: one_run_p_value(canaries, guesses, correct, e, delta)
    )
    return float(grid[max(0, stands - 1)])


def dp_sgd(noise: float, rate: float, steps: int) -> Plan:
    return Plan.of(
        Invocation(
            Gaussian(noise),
            1,
            PrivacyUnit("row"),
            AddRemove(),
            TrustModel.CENTRAL,
            count=steps,
            sampling=PoissonSampling(rate),
        )
    )


@dataclass(frozen=True)
class Digits:
    """The digits of scikit-learn; the first ``canaries`` of them, with wrong labels, are canaries.

    Attributes:
        canaries: how many.
        marks: further features, random for canaries and zero for all others, so that even a linear
            model can tell canaries apart.
        noise: noise multiplier of DP-SGD; None trains without privacy.
        rate: of Poisson sampling.
        steps: of DP-SGD.
    """

    canaries: int = CANARIES
    marks: int = 0
    noise: float | None = None
    rate: float = 0.05
    steps: int = 200

    @property
    def plan(self) -> Plan:
        """What the private training declares."""
        if self.noise is None:
            raise ValueError("a training without noise has no plan")
        return dp_sgd(self.noise, self.rate, self.steps)

    @cached_property
    def data(self) -> tuple[Floats, NDArray[np.int64]]:
        """Features and labels, the canaries first."""
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(labels))
        labels = labels[order]
        wrong = np.random.default_rng(1).integers(1, 10, size=self.canaries)
        labels[: self.canaries] = (labels[: self.canaries] + wrong) % 10
        marks = np.zeros((len(labels), self.marks))
        random = np.random.default_rng(2).normal(size=(self.canaries, self.marks))
        marks[: self.canaries] = 10.0 * random / max(1.0, self.marks**0.5)
        return np.hstack([images[order] / 16.0, marks]), labels

    def __call__(self, mask: Flags, rng: np.random.Generator) -> Floats:
        """Train once; logit of the confidence in the label of each canary."""
        images, labels = self.data
        kept = np.append(mask, np.ones(len(labels) - mask.size, dtype=bool))
        train = self._plainly if self.noise is None else self._privately
        losses = train(images[kept], labels[kept], rng)
        return logit_confidence(losses(images[: mask.size], labels[: mask.size]))

    def _plainly(
        self, images: Floats, labels: NDArray[np.int64], rng: np.random.Generator
    ) -> Callable[[Floats, NDArray[np.int64]], Floats]:
        from sklearn.neural_network import MLPClassifier

        model = MLPClassifier(
            (128,),
            alpha=0.0,
            learning_rate_init=0.005,
            max_iter=150,
            random_state=int(rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(images, labels)

        def losses(points: Floats, classes: NDArray[np.int64]) -> Floats:
            chances = model.predict_proba(points)[np.arange(len(classes)), classes]
            return -np.log(np.clip(chances, 1e-30, 1.0))

        return losses

    def _privately(
        self, images: Floats, labels: NDArray[np.int64], rng: np.random.Generator
    ) -> Callable[[Floats, NDArray[np.int64]], Floats]:
        import torch
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer

        torch.set_num_threads(1)
        torch.manual_seed(int(rng.integers(2**31)))
        model = GradSampleModule(torch.nn.Linear(64 + self.marks, 10))
        # The expected batch is public: it must not follow the number of canaries that are included.
        optimizer = DPOptimizer(
            torch.optim.SGD(model.parameters(), lr=2.0),
            noise_multiplier=self.noise,
            max_grad_norm=1.0,
            expected_batch_size=round(self.rate * len(self.data[1])),
            generator=torch.Generator().manual_seed(int(rng.integers(2**31))),
        )
        points, classes = torch.tensor(images, dtype=torch.float32), torch.tensor(labels)
        entropy = torch.nn.CrossEntropyLoss()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(self.steps):
                batch = torch.tensor(np.flatnonzero(rng.random(len(labels)) < self.rate))
                optimizer.zero_grad()
                entropy(model(points[batch]), classes[batch]).backward()
                optimizer.step()

        def losses(points: Floats, classes: NDArray[np.int64]) -> Floats:
            with torch.no_grad():
                logits = model(torch.tensor(points, dtype=torch.float32))
                each = torch.nn.functional.cross_entropy(
                    logits, torch.tensor(classes), reduction="none"
                )
            return each.numpy().astype(np.float64)

        return losses


def show_one_run(seeds: int) -> None:
    print(f"one run, {CANARIES} mislabelled canaries, δ = {DELTA:g}, 95 %")
    start = time.perf_counter()
    record = audit_one_run(Digits(), CANARIES, epsilon=1.0, delta=DELTA, seed=0)
    took = time.perf_counter() - start
    print(
        f"  without privacy: ε ≥ {record.epsilon_lower:.2f}, AUC {record.details['auc']:.3f}, "
        f"{took:.1f} s (≤ 60)"
    )
    for noise in (0.6, 1.0):
        private = Digits(noise=noise, marks=2000)
        rows = []
        start = time.perf_counter()
        for seed in range(seeds):
            found = audit_one_run(private, CANARIES, delta=DELTA, plan=private.plan, seed=seed)
            rows.append((found.epsilon_lower, found.details["family"]["epsilon_lower"], found))
        took = (time.perf_counter() - start) / seeds
        certified = rows[0][2].claim_epsilon
        bounds = np.array([row[:2] for row in rows], dtype=float)
        print(
            f"  noise {noise}: certified ε {certified:.3f}; lower bounds at most "
            f"{bounds[:, 0].max():.3f}, Gaussian family {bounds[:, 1].max():.3f}; above certified "
            f"{(bounds > certified).any(axis=1).sum()}/{seeds}; refuted "
            f"{sum(row[2].refuted for row in rows)}/{seeds}; AUC "
            f"{np.mean([row[2].details['auc'] for row in rows]):.3f}; {took:.1f} s each"
        )


class Linear:
    """Logistic regression on 500 digits, of which 200 canaries have wrong labels.

    Attributes:
        points: scores of so many turned copies of each canary, in place of the canary's own.
    """

    def __init__(self, points: int = 0) -> None:
        from sklearn.datasets import load_digits

        self.images, self.labels = load_digits(return_X_y=True)
        self.labels[:200] = (self.labels[:200] + 1) % 10
        self.points = points

    def __call__(self, mask: Flags, rng: np.random.Generator) -> Floats:
        from sklearn.linear_model import LogisticRegression

        kept = np.append(mask, np.ones(500 - mask.size, dtype=bool))
        model = LogisticRegression(max_iter=100, tol=1e-2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.images[:500][kept], self.labels[:500][kept])
        own = self.images[: mask.size]
        if not self.points:
            return self.logits(model, own)
        near = [own + rng.normal(size=own.shape) for _ in range(self.points)]
        return np.stack([self.logits(model, each) for each in near], axis=1)

    def logits(self, model: Any, images: Floats) -> Floats:
        logs = model.predict_log_proba(images)[np.arange(len(images)), self.labels[: len(images)]]
        return logit_confidence(-np.minimum(logs, 0.0))


def show_attacks(seeds: int) -> None:
    print(f"\nlogistic regression on digits, 200 mislabelled canaries, 16 shadows, {seeds} seeds")
    single, near, owners = Linear(), RangeScores(Linear(5), 0.2), np.repeat(np.arange(50), 4)
    rows: list[tuple[str, Any, int, str | None]] = [("one-run", single, 200, None)]
    rows += [(str(each), single, 200, each) for each in MembershipAttack]
    rows += [("rmia on ranges", near, 200, "rmia"), ("one-run on ranges", near, 200, None)]
    rows += [("one-run on data sets of 4", DatasetScores(single, owners), 50, None)]
    for name, train, canaries, attack in rows:
        start, found = time.perf_counter(), []
        for seed in range(seeds):
            options: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "seed": seed}
            if attack is None:
                found.append(audit_one_run(train, canaries, **options))
            else:
                options |= {"attack": attack, "shadows": 16}
                found.append(audit_membership(train, canaries, **options))
        auc = np.mean([each.details["auc"] for each in found])
        low = np.mean([each.details["tpr_at_fpr"]["0.01"] for each in found])
        bound = np.median([each.epsilon_lower for each in found])
        print(
            f"  {name:26} AUC {auc:.3f}  TPR at 1 % FPR {low:.3f}  ε ≥ {bound:.2f} (median)  "
            f"{(time.perf_counter() - start) / seeds:.1f} s"
        )


def gaussian_scores(mu: float, seed: int, canaries: int = 1000) -> tuple[Floats, Flags]:
    rng = np.random.default_rng(seed)
    members = rng.random(canaries) < 0.5
    return rng.normal(mu * members), members


def show_guesses(trials: int = 40) -> None:
    """Many numbers of guesses at once against each single one, the best of them in hindsight."""
    print(
        f"\nnumbers of guesses: Gaussian canaries, m = 1000, δ = {DELTA:g}, 95 %, {trials} trials"
    )
    singles = (62, 88, 125, 177, 250, 354, 500, 707, 1000)
    for mu in (1.0, 2.0, 4.0):
        true = GaussianPair(mu).least_epsilon(DELTA)
        together, free = [], []
        alone: dict[int, list[float]] = {size: [] for size in singles}
        for seed in range(trials):
            scores, members = gaussian_scores(mu, seed)
            record = audit_scores(scores, members, epsilon=true, delta=DELTA, seed=seed)
            together.append(record.epsilon_lower)
            free.append(record.details["if_independent"]["epsilon_lower"])
            for size in singles:
                rule = Rule(size - size // 2, size // 2)
                (right,) = guess(scores, members, [rule], np.random.default_rng(0)).values()
                alone[size].append(one_run_lower_bound(1000, size, right, DELTA))
        means = {size: np.mean(bounds) for size, bounds in alone.items()}
        best = max(means, key=lambda size: means[size])
        print(
            f"  μ {mu:g}, true ε {true:5.2f}: default {np.mean(together):.2f} (median "
            f"{np.median(together):.2f}); best single number in hindsight ({best}) "
            f"{means[best]:.2f} (median {np.median(alone[best]):.2f}); if canaries are independent "
            f"{np.mean(free):.2f} (median {np.median(free):.2f})"
        )


def show_alarms(audits: int = 400) -> None:
    """How often a right mechanism is refuted, and how often a bound is above the truth."""
    print(f"\nfalse alarms: {audits} audits of a Gaussian mechanism, m = 500, at 95 %")
    for mu in (0.0, 1.0):
        true, plan = GaussianPair(mu).least_epsilon(DELTA) if mu else 0.0, None
        if mu:
            row = PrivacyUnit("row")
            one = Invocation(Gaussian(1 / mu), 1, row, AddRemove(), TrustModel.CENTRAL)
            plan = Plan.of(one)
        counts = np.zeros(4, dtype=int)
        for seed in range(audits):
            scores, members = gaussian_scores(mu, seed, 500)
            by_point = audit_scores(
                scores, members, epsilon=true + 1e-6, delta=DELTA if mu else 0.0, seed=seed
            )
            counts[0] += by_point.refuted
            counts[1] += by_point.epsilon_lower > true + 1e-6
            if plan is not None:
                found = audit_scores(scores, members, plan=plan, delta=DELTA, seed=seed)
                counts[2] += found.refuted
                counts[3] += found.details["if_independent"]["epsilon_lower"] > true + 1e-6
        print(
            f"  μ {mu:g}: the true (ε, δ) refuted {counts[0]}, bounds above it {counts[1]}, its "
            f"curve refuted {counts[2]}, bounds for independent canaries above it {counts[3]}"
        )


def show_refinement(trials: int) -> None:
    """Exact Gaussian mechanisms, one for each canary, with abstentions."""
    print("\nGaussian canaries, m = 1000: Steinke et al. 2023 against the curve, δ = 1e-5, 95 %")
    rng = np.random.default_rng(0)
    family = gaussian_family()
    for mu in (0.5, 1.0, 2.0):
        for guesses in (62, 250, 1000):
            plain, refined, alarms = [], [], 0
            for trial in range(trials):
                members = rng.random(1000) < 0.5
                order = np.argsort(rng.normal(mu * members))
                low = guesses // 2
                right = int(members[order[1000 - (guesses - low) :]].sum())
                right += int((~members[order[:low]]).sum())
                alarms += fdp_rejects(1000, guesses, right, gaussian_least(mu), 0.05)
                if trial < 20:
                    plain.append(one_run_lower_bound(1000, guesses, right, DELTA))
                    strength = fdp_strength(1000, guesses, right, family, 0.95)
                    refined.append(family.epsilon(strength, DELTA))
            print(
                f"  μ {mu}, true ε {GaussianPair(mu).least_epsilon(DELTA):6.2f}, {guesses:4} "
                f"guesses: medians {np.median(plain):.2f} and {np.median(refined):.2f}; the true "
                f"curve refuted {alarms}/{trials}"
            )


PARTS: dict[str, Callable[[int], None]] = {
    "one-run": show_one_run,
    "attacks": show_attacks,
    "guesses": lambda _: show_guesses(),
    "alarms": lambda _: show_alarms(),
    "refinement": lambda _: show_refinement(2000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--part", choices=list(PARTS))
    options = parser.parse_args()
    for name, show in PARTS.items():
        if options.part in (None, name):
            show(options.seeds)


if __name__ == "__main__":
    main()
