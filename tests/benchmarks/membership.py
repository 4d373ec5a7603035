"""Membership audits of models of handwritten digits.

Run ``python -m tests.benchmarks.membership [--seeds 20] [--part PART]``; each number is
computed in this run. The private trainings need the ``opacus`` extra.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpaudit import AddRemove, Gaussian, Invocation, Plan, PoissonSampling, PrivacyUnit, TrustModel
from dpaudit.auditing.evidence.one_run import one_run_lower_bound
from dpaudit.auditing.evidence.one_run_families import gaussian_family, gaussian_least
from dpaudit.auditing.evidence.one_run_fdp import fdp_rejects, fdp_strength
from dpaudit.auditing.membership.attacks import audit_membership
from dpaudit.auditing.membership.lira import logit_confidence
from dpaudit.auditing.membership.one_run import audit_one_run
from dpaudit.mechanisms import GaussianPair

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

DELTA = 1e-5
CANARIES = 500


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


def show_shadows() -> None:
    print("\nshadow models, non-private training, 200 mislabelled canaries")
    for attack in ("loss-threshold", "lira-offline", "lira-online"):
        start = time.perf_counter()
        record = audit_membership(
            Digits(canaries=200), 200, attack=attack, shadows=16, epsilon=1.0, delta=DELTA, seed=0
        )
        low = record.details["tpr_at_fpr"]["0.01"]
        print(
            f"  {attack:15} AUC {record.details['auc']:.3f}  TPR at 1 % FPR {low:.3f}  "
            f"ε ≥ {record.epsilon_lower:.2f}  {time.perf_counter() - start:.1f} s"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--part", choices=["one-run", "shadows", "refinement"])
    options = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "one-run": lambda: show_one_run(options.seeds),
        "shadows": show_shadows,
        "refinement": lambda: show_refinement(2000),
    }
    for name, show in parts.items():
        if options.part in (None, name):
            show()


if __name__ == "__main__":
    main()
