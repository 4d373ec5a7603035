"""What Lemma 5 costs: its release attacked with the worst pair and the exact likelihood ratio."""

from __future__ import annotations

from dpaudit import AuditRecord
from dpaudit.auditing import LinearScore, audit_release
from private_bo.joint import LocalJointGPUCB

__all__ = ["audit"]


def audit(
    epsilon: float = 10.0, delta: float = 0.1, *, runs: int = 4_000_000, seed: int = 1
) -> AuditRecord:
    """Test the lemma's claim of (α, β) on the client's release.

    Args:
        epsilon: α.
        delta: β.
        runs: on each side.
        seed: of the experiment.
    """
    subject = LocalJointGPUCB(epsilon=epsilon, delta=delta, noise="paper", steps=1)
    pair = subject.audit_pairs()[0]
    narrow = subject._narrow(2)
    values = [narrow.encode(*subject._canary(side)) for side in (pair.x, pair.x_prime)]
    weights = LinearScore(tuple(float(w) for w in values[0] - values[1]))
    return audit_release(
        subject.audit_release,
        pair,
        epsilon=epsilon,
        delta=delta,
        runs=runs,
        seed=seed,
        score=weights,
        learn=False,
    )
