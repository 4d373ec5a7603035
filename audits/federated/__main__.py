"""``python -m audits.federated``: the table over q and z, and the running servers."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from audits.catalogue.measuring import audit_entry, audit_repeatedly
from audits.catalogue.papers import FEDERATED, RIGHT
from audits.federated.game import (
    audit,
    canary_pair,
    certified_claim,
    landmines,
    proved_epsilon,
    white_box,
)
from audits.federated.servers import EndToEnd, entries
from audits.result_table import run, show
from dpaudit.auditing import audit_release
from private_bo.federated import DPFTSDE, Sensitivity

ALPHA = 1e-6
"""Error rate of every verdict on a server."""
SETTINGS = (
    *((rate, 1.0) for rate in (0.1, 0.15, 0.2, 0.25, 0.35)),
    *((0.35, noise) for noise in (1.6, 2.0, 3.0, 4.0)),
)
"""q and z of the paper's landmine experiment (Figure 3)."""


def table(options: argparse.Namespace) -> bool:
    """The white-box bounds, setting by setting; whether none is above what is certified.

    Beside each stands the ε that is published, by the classic moments accountant, and those of the
    PLD with the paper's sensitivity and with the true one, against which the attack is held.
    """
    show(
        f"White-box game: N = 29, P = 4, T = {options.rounds}, δ = N^-1.1 = {29**-1.1:.4g}; "
        f"{options.runs} transcripts a side,\nboth bounds hold together at 95 % confidence."
    )
    show("    q    z  published  paper's Δ  true Δ   remove     add   share   seconds")
    sound = True
    for rate, noise in SETTINGS[4:5] if options.quick else SETTINGS:
        algorithm = landmines(rate, noise, rounds=options.rounds)
        coarse = replace(algorithm, declared=Sensitivity.PAPER).plan()
        paper, true = proved_epsilon(coarse, algorithm.target_delta), certified_claim(algorithm)
        start = time.perf_counter()
        found = white_box(algorithm, runs=options.runs, seed=options.seed)
        seconds = time.perf_counter() - start
        show(
            f"{rate:5.2f} {noise:4.1f} {algorithm.published_loss:10.2f} {paper:10.2f} "
            f"{true.epsilon:7.3f} {found.remove:8.3f} {found.add:7.3f} "
            f"{found.epsilon / true.epsilon:7.2f} {seconds:9.2f}"
        )
        sound &= found.epsilon <= true.epsilon
    return sound


def servers(options: argparse.Namespace) -> bool:
    """Running servers, right and wrong; whether each is judged as it should be."""
    show(
        f"Running servers (N = 29, q = 0.35, z = 1, T = 10), {options.seeds} seeds; verdicts and "
        f"bounds at an error rate of {ALPHA:g}."
    )
    sound = True
    for entry in entries():
        row = audit_repeatedly(entry, options.seed, options.seeds, confidence=1 - ALPHA, whole=True)
        right = row.refuted == (0 if entry.right else row.audits)
        show(
            f"{entry.name:<32} certified {entry.claim.epsilon:6.3f}  true "
            f"{entry.true_epsilon:6.3g}  shown {row.epsilon_lower:6.3f}  {row.verdict:<18} "
            f"{row.runs:>6} runs {row.seconds:6.2f} s{'' if right else '  UNEXPECTED'}"
        )
        sound &= right
    return sound


def black_box(options: argparse.Namespace) -> bool:
    """Whole runs, with and without knowledge of the mechanism; whether neither is refuted."""
    subject = EndToEnd()
    claim = certified_claim(subject)
    runs = options.end_to_end
    known = audit(subject, runs=runs, seed=options.seed)
    learned = audit_release(
        subject.audit_release,
        canary_pair(subject),
        epsilon=claim.epsilon,
        delta=claim.delta,
        runs=runs,
        seed=options.seed,
    )
    simulated = white_box(_shadow(subject), runs=100_000, seed=options.seed)
    show(
        f"Whole algorithm, N = {subject.agents}, T = {subject.rounds}, q = {subject.rate}, "
        f"z = {subject.noise_multiplier}: certified {claim}."
    )
    show(f"  simulated game, 100000 transcripts: ε >= {simulated.epsilon:.3f}")
    show(f"  {runs} runs, mechanism known:  ε >= {known.epsilon_lower:.3f}")
    show(f"  {runs} runs, score learned:    ε >= {learned.epsilon_lower:.3f}")
    return not (known.refuted or learned.refuted)


def _shadow(subject: DPFTSDE) -> DPFTSDE:
    """The algorithm of the same public facts, whose game is simulated."""
    names = ("agents", "regions", "rounds", "rate", "reliance", "clip", "noise_multiplier")
    return DPFTSDE(**{name: getattr(subject, name) for name in names})


def catalogue(options: argparse.Namespace) -> bool:
    """The small model in the catalogue of mechanisms, beside the game of the same facts."""
    (entry,) = [entry for entry in RIGHT if entry.curve is not None and "federated" in entry.name]
    game = DPFTSDE(agents=20, regions=1, rate=0.25, rounds=5, delta=entry.claim.delta)
    record = audit_entry(entry, options.seed)
    bounds = white_box(game, runs=entry.runs, seed=options.seed)
    show(
        f"Small model of the catalogue ({len(FEDERATED.invocations)} invocation, 5 rounds, "
        f"δ = {entry.claim.delta:g}, {entry.runs} runs): certified {entry.claim.epsilon:.3f}, and "
        f"{certified_claim(game).epsilon:.3f} by the algorithm's plan."
    )
    show(f"  other vectors unknown, linear score: ε >= {record.epsilon_lower:.3f}")
    show(f"  exact likelihood ratio of the game:  ε >= {bounds.epsilon:.3f}")
    return not record.refuted


def main(arguments: Sequence[str] | None = None) -> int:
    """Print everything; 0 if all is as it should be, 1 if not, 3 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m audits.federated", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="T of the table")
    parser.add_argument("--runs", type=int, default=100_000, help="transcripts a side")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="audits of each server")
    parser.add_argument("--end-to-end", type=int, default=2_000, help="whole runs a side")
    parser.add_argument("--quick", action="store_true", help="q = 0.35, z = 1 alone; no servers")
    options = parser.parse_args(arguments)
    parts = (table,) if options.quick else (table, catalogue, servers, black_box)
    return run(lambda: int(sum(not part(options) for part in parts) > 0))


if __name__ == "__main__":
    sys.exit(main())
