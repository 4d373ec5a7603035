"""DP-FTS-DE over real processes: ``python -m private_bo.federated.flower --agents 4 --rounds 5``.

Starts a Flower SuperLink, the server and one SuperNode for each agent on the loopback interface,
runs every round, stops them all, and compares with the same run in one process.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dpaudit.base.errors import InputError
from dpaudit.certificate import Certificate, load_certificate
from dpaudit.ledger import read_journal
from private_bo.experiments import made_folder
from private_bo.federated import DPFTSDE
from private_bo.federated.flower.app import CERTIFICATE, JOURNAL, generators
from private_bo.federated.flower.run import (
    FederationError,
    FlowerRun,
    Trajectory,
    in_process,
    over_flower,
)

_DIFFERENT, _FAILED, _INPUT, _INTERRUPTED = 1, 2, 3, 130
_PUBLIC = ("agents", "rounds", "regions", "rate", "noise_multiplier", "delta")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m private_bo.federated.flower",
        description="DP-FTS-DE with server and agents as processes that talk over Flower.",
        epilog="Exit codes: 0 the same trajectory as in one process, 1 another one, 2 the "
        "federation failed, 3 wrong input.",
    )
    add = parser.add_argument
    add("--agents", type=int, default=4, help="N, each a SuperNode of its own")
    add("--rounds", type=int, default=5, help="T; a round takes about five seconds")
    add("--regions", type=int, default=2, help="P")
    add("--rate", type=float, default=0.5, help="q")
    add("--noise-multiplier", type=float, default=1.0, help="z")
    add("--delta", type=float, default=1e-5, help="of the certificate")
    add("--data", default="synthetic", help="synthetic, digits, or landmines (29 agents)")
    add("--seed", type=int, default=0, help="of everything")
    add("--patience", type=float, default=60.0, help="seconds that a round waits for agents")
    stop = "cut an agent off in an iteration: it is killed, and counted as missing"
    add("--stop", action="append", default=[], metavar="AGENT@ITERATION", help=stop)
    add("--folder", type=Path, help="new folder to keep everyone's files in")
    return parser.parse_args(arguments)


def _stops(texts: Sequence[str]) -> dict[int, int]:
    stops = {}
    for text in texts:
        found = re.fullmatch(r"(\d{1,9})@(\d{1,9})", text)
        if found is None:
            raise InputError(f"stop is {text!r:.40}; it must be AGENT@ITERATION, such as 1@2.")
        stops[int(found[1])] = int(found[2])
    return stops


def _report(run: FlowerRun, expected: Trajectory) -> str:
    """What happened, a line each."""
    journal = read_journal(run.server / JOURNAL)
    certificate = load_certificate(run.server / CERTIFICATE)
    same = "the same" if run.trajectory.digest == expected.digest else "DIFFERENT"
    lines = [
        f"over Flower    {run.trajectory.digest}",
        f"in one process {expected.digest}",
        f"trajectory     {same}",
        f"releases       {len(journal.entries)}, in a ledger that the server keeps, "
        f"{'closed' if journal.closed else 'left OPEN'}",
        f"certificate    {certificate.verdict}: {_epsilon(certificate)}",
        f"missing        {list(run.missing)} agents by round (the server's own knowledge)",
        f"refused        {sum(run.refused.values())} reports (likewise)",
        f"seconds        {run.seconds:.1f}, of which {run.start:.1f} to start",
    ]
    return "\n".join(lines) + "\n"


def _epsilon(certificate: Certificate) -> str:
    proved = certificate.guarantee
    return "no ε" if proved is None else f"ε = {proved.epsilon:.4g} at δ = {proved.delta:.3g}"


def _run(options: argparse.Namespace, folder: Path) -> int:
    algorithm = DPFTSDE(**{name: getattr(options, name) for name in _PUBLIC})
    stops = _stops(options.stop)
    problem = algorithm.load(options.data, generators(options.seed)[0])
    expected = in_process(algorithm, problem, options.seed, stops=stops)
    run = over_flower(
        algorithm, problem, options.seed, folder, patience=options.patience, stops=stops
    )
    sys.stdout.write(_report(run, expected))
    return 0 if run.trajectory.digest == expected.digest else _DIFFERENT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; see its help for the exit codes."""
    options = _options(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="dp-fts-de-") as temporary:
            return _run(options, made_folder(options.folder or Path(temporary) / "run", new=True))
    except (InputError, FederationError) as error:
        sys.stderr.write(f"{error}\n")
        return _INPUT if isinstance(error, InputError) else _FAILED
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; every process was stopped.\n")
        return _INTERRUPTED


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
