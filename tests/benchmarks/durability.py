"""What the ledger survives, and what that costs.

Run ``python -m tests.benchmarks.durability [--kills 2000] [--flips 20000]``; each number is
computed in this run. Killed are processes that release as fast as they can, at a random moment;
what they were given, by their own account through a pipe, must be charged in the journal, and the
journal must go on. Flipped are single bits of journals and certificates.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path

import numpy as np

from dpaudit import (
    AddRemove,
    Certificate,
    DpAuditError,
    Durability,
    FloatNoise,
    Gaussian,
    Invocation,
    Ledger,
    Plan,
    PrivacyUnit,
    SecureNoise,
    TrustModel,
    certify,
)
from dpaudit.base.files import canonical_json, parse_json
from dpaudit.certificate import SubjectRecord
from dpaudit.ledger import read_journal

NOISE = Gaussian(1.0)


def plan(releases: int) -> Plan:
    invocation = Invocation(
        NOISE,
        1.0,
        PrivacyUnit("user"),
        AddRemove(),
        TrustModel.CENTRAL,
        count=releases,
        total=releases,
        at="mean",
    )
    return Plan.of(invocation)


# -- kill -9 ---------------------------------------------------------------------------------------


def victim(path: Path, pipe: int, again: bool) -> None:
    """Release without end, telling the pipe of every value that came back."""
    source = {"noise": FloatNoise()}
    ledger = Ledger.resume(path, **source) if again else Ledger(plan(10**9), journal=path, **source)
    for number in count():
        ledger.release(NOISE, 0.0, unit=f"user {number % 7}", at="mean")
        os.write(pipe, bytes([number % 7]))


def killed_at_random(path: Path, rng: random.Random, again: bool) -> Counter[str]:
    """What a killed process was given, by unit."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        victim(path, writing, again)
    os.close(writing)
    time.sleep(rng.uniform(0.0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    given: Counter[str] = Counter()
    while data := os.read(reading, 65536):
        given.update(f"user {number}" for number in data)
    os.close(reading)
    return given


def kills(runs: int, seed: int) -> tuple[int, int, int]:
    """Violations, releases that were given, and releases that were charged."""
    rng, violations, all_given, all_charged = random.Random(seed), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for run in range(runs):
            path, given = Path(folder) / f"{run}.jsonl", Counter[str]()
            for again in (False, True):
                if again and not path.exists():
                    continue
                try:
                    given += killed_at_random(path, rng, again)
                    charged = Counter(entry.unit for entry in read_journal(path).releases)
                    read_journal(path).account()
                except DpAuditError as error:
                    empty = path.exists() and b"\n" not in path.read_bytes()
                    violations += not (empty and not given) and path.exists()
                    if path.exists() and not empty:
                        print(f"  run {run}: {error}")
                    break
                violations += not given <= charged
            all_given += given.total()
            all_charged += charged.total() if path.exists() and given else 0
            path.unlink(missing_ok=True)
    return violations, all_given, all_charged


# -- flipped bits ----------------------------------------------------------------------------------


def flips(flipped: int, seed: int) -> tuple[int, int]:
    """Undetected flips in a journal, and in a certificate."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        with Ledger(plan(9), journal=path, noise=FloatNoise()) as ledger:
            for number in range(9):
                ledger.release(NOISE, 0.0, unit=f"Zoë {number}", at="mean") if number else None
                if not number:
                    ledger.release(NOISE, 0.0, at="mean")
        data = path.read_bytes()
        unseen = 0
        for _ in range(flipped):
            path.write_bytes(_flipped(data, rng))
            unseen += _accepted(lambda: read_journal(path).account())
    certificate = certify(plan(9), subject=SubjectRecord("benchmark"), delta=1e-6)
    text = canonical_json(certificate.to_dict()).encode()
    lost = 0
    for _ in range(flipped):
        damaged = _flipped(text, rng)  # 1e-6 and 1E-6 say the same
        lost += _accepted(lambda data=damaged: _certificate(data)) and _differ(damaged, text)
    return unseen, lost


def _differ(one: bytes, other: bytes) -> bool:
    return bool(parse_json(one.decode(), what="one") != parse_json(other.decode(), what="other"))


def _flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _accepted(read: object) -> bool:
    try:
        read()  # type: ignore[operator]
    except (DpAuditError, UnicodeDecodeError):
        return False
    return True


def _certificate(data: bytes) -> Certificate:
    return Certificate.from_dict(parse_json(data.decode(), what="certificate"))


# -- releases a second -----------------------------------------------------------------------------


def rate(releases: int, entries: int, together: bool, noise: object, journal: object) -> float:
    """Releases a second."""
    value = 0.0 if entries == 1 else np.zeros(entries)
    names = [f"user {number % 1000}" for number in range(releases)]
    with tempfile.TemporaryDirectory() as folder:
        options = {"journal": Path(folder) / "j", "durability": journal} if journal else {}
        ledger = Ledger(plan(releases), noise=noise, **options)  # type: ignore[arg-type]
        start = time.perf_counter()
        if together:
            ledger.release_each(NOISE, [value] * releases, units=names)
        else:
            for name in names:
                ledger.release(NOISE, value, unit=name)
        return releases / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--flips", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"{'releases a second':34}{'no journal':>12}{'process':>12}{'power':>12}")
    for name, noise, entries, releases in (
        ("float, numbers", FloatNoise(), 1, 4000),
        ("float, vectors of 1000", FloatNoise(), 1000, 2000),
        ("exact, numbers", SecureNoise(), 1, 1000),
        ("exact, vectors of 1000", SecureNoise(), 1000, 40),
    ):
        for together in (False, True):
            rates = [
                rate(min(releases, 500) if level is Durability.POWER else releases, entries,
                     together, noise, level)
                for level in (None, *Durability)
            ]  # fmt: skip
            how = f"{name}, {'release_each' if together else 'release'}"
            print(f"{how:34}" + "".join(f"{each:12.0f}" for each in rates))
    unseen, lost = flips(arguments.flips, arguments.seed)
    print(
        f"{arguments.flips} flipped bits each: undetected {unseen} (journal), {lost} (certificate)"
    )
    violations, given, charged = kills(arguments.kills, arguments.seed)
    print(
        f"{arguments.kills} journals, each killed and resumed and killed: {violations} violations; "
        f"{given} releases given, {charged} charged"
    )


if __name__ == "__main__":
    main()
