"""Command line: refute the claim, replay a counterexample, or compare what noise costs."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from audits.differences import differences
from audits.outsourced.attacks import attack, curators, pairs
from audits.outsourced.comparison import compared
from audits.outsourced.counterexample import DIMENSIONS, attack_curator, replay_audits
from audits.result_table import run, show
from dpaudit import AuditRecord
from dpaudit.certificate import load_certificate
from private_bo.outsourced import Curator

EPSILONS = (math.exp(1.1), 0.1)
REPORTS = Path(__file__).parents[2] / "reports" / "outsourced"


def refute(options: argparse.Namespace) -> int:
    """Attack both curators; 1 if a claim is refuted, as it should be for the paper's."""
    refuted = False
    for curator in options.curator:
        for problem in options.problem:
            for epsilon in EPSILONS:
                certificate = attack_curator(curator, problem, epsilon, seed=options.seed)
                name = f"{curator.lower()}-{problem}-epsilon-{epsilon:.4g}.json"
                options.folder.mkdir(parents=True, exist_ok=True)
                path = certificate.save(options.folder / name)
                show(f"{path}: {certificate.verdict}")
                for audit in certificate.audits:
                    show(f"  {_line(audit)}")
                refuted |= any(audit.refuted for audit in certificate.audits)
    return int(refuted)


def black_box(options: argparse.Namespace) -> int:
    """Attack with the generic engine alone; 1 if it refutes a certified curator."""
    wrong = False
    for curator in curators(options.epsilon):
        for pair in pairs(curator):
            audit = attack(curator, pair, runs=options.runs, seed=options.seed)
            show(f"{type(curator).__name__} ({curator.mechanism.kind}), {pair.why}:")
            show(f"  {_line(audit)} {audit.power}")
            wrong |= audit.refuted and not isinstance(curator, Curator)
    return int(wrong)


def replay(options: argparse.Namespace) -> int:
    """Draw every audit of a certificate again; 0 if each gives what is stated."""
    same = True
    for stated, found in replay_audits(load_certificate(options.file)):
        apart = differences(stated.to_dict(), found.to_dict())
        same = same and not apart
        show(f"{'same' if not apart else 'DIFFERENT'}: {_line(found)}")
        for difference in apart:
            show(f"  {difference}")
    return 0 if same else 1


def compare(options: argparse.Namespace) -> int:
    """Regret with the certified curator on the grid."""
    show(compared(options.trials, options.seed, options.workers))
    return 0


def _line(audit: AuditRecord) -> str:
    bound = "unknown" if audit.epsilon_lower is None else f"{audit.epsilon_lower:.3g}"
    words = f"{audit.verdict}, {audit.method}, {audit.runs} releases: ε >= {bound}"
    facts = {k: v for k, v in audit.details.items() if k in ("p_value", "sine_of_largest_angle")}
    facts |= {
        f"residual on {side} of {origin}": "{least:.2g} to {largest:.2g}".format(**spread)
        for origin, sides in (
            ("x", audit.details.get("residuals_on_x", {})),
            ("x'", audit.details.get("residuals_on_x_prime", {})),
        )
        for side, spread in sides.items()
    }
    shown = (f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in facts.items())
    return "; ".join([words, *shown])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is that of dpaudit (3 for wrong input)."""
    parser = argparse.ArgumentParser(prog="python -m audits.outsourced", description=__doc__)
    commands = parser.add_subparsers(required=True)
    refuting = commands.add_parser("refute", help="attack both curators and write certificates")
    refuting.add_argument(
        "--problem", nargs="+", choices=list(DIMENSIONS), default=["grid", "taipei"]
    )
    curators = ["Curator", "CertifiedCurator"]
    refuting.add_argument("--curator", nargs="+", choices=curators, default=curators)
    refuting.add_argument("--seed", type=int, default=0)
    refuting.add_argument("--folder", type=Path, default=REPORTS)
    refuting.set_defaults(command=refute)
    attacking = commands.add_parser(
        "black-box", help="attack both curators with the generic engine"
    )
    attacking.add_argument("--epsilon", type=float, default=EPSILONS[0])
    attacking.add_argument("--runs", type=int, default=10_000)
    attacking.add_argument("--seed", type=int, default=0)
    attacking.set_defaults(command=black_box)
    replaying = commands.add_parser("replay", help="draw a certificate's attacks again")
    replaying.add_argument("file", type=Path)
    replaying.set_defaults(command=replay)
    comparing = commands.add_parser("compare", help="regret with the certified curator")
    comparing.add_argument("--trials", type=int, default=50)
    comparing.add_argument("--seed", type=int, default=0)
    comparing.add_argument("--workers", type=int, default=2)
    comparing.set_defaults(command=compare)
    options = parser.parse_args(arguments)
    return run(lambda: options.command(options))


if __name__ == "__main__":
    sys.exit(main())
