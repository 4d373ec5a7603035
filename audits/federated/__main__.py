"""``python -m audits.federated``: the table over q and z, and the running servers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from audits.catalogue.measuring import Row as CatalogueRow
from audits.catalogue.measuring import audit_entry
from audits.catalogue.papers import FEDERATED, RIGHT
from audits.federated.game import audit, canary_pair, certified_claim, white_box
from audits.federated.servers import EndToEnd
from audits.federated.table import ALPHA, SETTINGS, Row, entries, judge_server, rows
from dpaudit.auditing import audit_release
from dpaudit.base.errors import DpAuditError
from private_bo.federated import DPFTSDE

_HEAD = "    q    z  published  paper's Δ  true Δ   remove     add   share   seconds"


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _line(row: Row) -> str:
    setting, found = row.algorithm, row.bounds
    return (
        f"{setting.rate:5.2f} {setting.noise_multiplier:4.1f} {row.published:10.2f} "
        f"{row.paper:10.2f} {row.true:7.3f} {found.remove:8.3f} {found.add:7.3f} "
        f"{row.share:7.2f} {row.seconds:9.2f}"
    )


def _server_line(row: CatalogueRow) -> str:
    entry = row.entry
    return (
        f"{entry.name:<32} certified {entry.claim.epsilon:6.3f}  true {entry.true_epsilon:6.3g}  "
        f"shown {row.epsilon_lower:6.3f}  {row.verdict:<18} {row.runs:>6} runs "
        f"{row.seconds:6.2f} s"
    )


def table(options: argparse.Namespace) -> bool:
    """The white-box bounds; whether none is above what is certified."""
    _print(
        f"White-box game: N = 29, P = 4, T = {options.rounds}, δ = N^-1.1 = {29**-1.1:.4g}; "
        f"{options.runs} transcripts a side,\nboth bounds hold together at 95 % confidence."
    )
    _print(_HEAD)
    sound = True
    settings = SETTINGS[4:5] if options.quick else SETTINGS
    for row in rows(settings, rounds=options.rounds, runs=options.runs, seed=options.seed):
        _print(_line(row))
        sound &= row.bounds.epsilon <= row.true
    return sound


def servers(options: argparse.Namespace) -> bool:
    """Running servers, right and wrong; whether each is judged as it should be."""
    _print(
        f"Running servers (N = 29, q = 0.35, z = 1, T = 10), {options.seeds} seeds; verdicts and "
        f"bounds at an error rate of {ALPHA:g}."
    )
    sound = True
    for entry in entries():
        row = judge_server(entry, seed=options.seed, seeds=options.seeds)
        right = row.refuted == (0 if entry.right else row.audits)
        _print(_server_line(row) + ("" if right else "  UNEXPECTED"))
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
    _print(
        f"Whole algorithm, N = {subject.agents}, T = {subject.rounds}, q = {subject.rate}, "
        f"z = {subject.noise_multiplier}: certified {claim}."
    )
    _print(f"  simulated game, 100000 transcripts: ε >= {simulated.epsilon:.3f}")
    _print(f"  {runs} runs, mechanism known:  ε >= {known.epsilon_lower:.3f}")
    _print(f"  {runs} runs, score learned:    ε >= {learned.epsilon_lower:.3f}")
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
    _print(
        f"Small model of the catalogue ({len(FEDERATED.invocations)} invocation, 5 rounds, "
        f"δ = {entry.claim.delta:g}, {entry.runs} runs): certified {entry.claim.epsilon:.3f}, and "
        f"{certified_claim(game).epsilon:.3f} by the algorithm's plan."
    )
    _print(f"  other vectors unknown, linear score: ε >= {record.epsilon_lower:.3f}")
    _print(f"  exact likelihood ratio of the game:  ε >= {bounds.epsilon:.3f}")
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
    try:
        sound = [part(options) for part in parts]
    except DpAuditError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
