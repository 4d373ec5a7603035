"""Trainings that are cut off at random lines, by real processes, and gone on with.

Run ``python -m tests.benchmarks.training_crashes [rounds] [killed] [interrupted] [full]``.

Each round begins a training by one of five plans in a process of its own, up to three of which are
ended: *killed* by SIGKILL at a random line of dpaudit or torch; *interrupted* by an exception
there, after which the process itself tries to go on; or on a *full* disk, as files may not become
longer than a random number of bytes. A last process goes on undisturbed. From outside is checked
that no more was handed out than the journal charges, no noisy gradient twice, that the certificate
counts all of it, and that whatever was said is one sentence.
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dpaudit import DpAuditError, FloatNoise, Ledger, Plan, ZeroOut
from dpaudit.certificate import verify
from dpaudit.ledger.journal import read_journal
from dpaudit.training import Adaptive, fit

POISSON = {"noise_multiplier": 1.0, "sample_rate": 0.25, "steps": 12}
PHASES = {"noise_multiplier": [1.0, 2.0], "sample_rate": 0.25, "steps": [6, 6]}
CUT = {"batching": "truncated", "batch_size": 8, "dataset_size": 40}
PLANS = {
    "poisson": Plan.dp_sgd(**POISSON, relation=ZeroOut()),
    "phases": Plan.dp_sgd(**PHASES, relation=ZeroOut()),
    "disjoint": Plan.dp_sgd(noise_multiplier=1.0, batching="disjoint", steps=12, epochs=3),
    "truncated": Plan.dp_sgd(**POISSON, **CUT),
    "adaptive": Plan.dp_sgd(**POISSON),
}
DATA = torch.tensor(np.random.default_rng(0).normal(size=(40, 6)), dtype=torch.float32)
WAYS = ("killed", "interrupted", "full")
_TRACED = re.compile(r"/dpaudit/|/torch/(optim|serialization)")


def loss(parameters: Any, example: Any) -> Any:
    return (parameters["w"] * example).sum()


def trained(folder: Path, kind: str, told: Callable[[str], object]) -> None:
    """Begin, or go on; go on once more where somebody interrupts."""
    journal, parameters = folder / "steps.jsonl", {"w": torch.zeros(6, requires_grad=True)}

    class Told(torch.optim.SGD):
        def step(self, *given: Any) -> Any:
            told(f"gradient {parameters['w'].grad.numpy().tobytes().hex()}")  # type: ignore[union-attr]
            return super().step(*given)

    noise = FloatNoise()
    if journal.exists():
        ledger = Ledger.resume(journal, noise=noise)
    else:
        ledger = Ledger(PLANS[kind], noise=noise, journal=journal)
    given: dict[str, Any] = {"divisor": 10.0, "checkpoint": folder / "kept.pt", "every": 2}
    if kind == "adaptive":
        given |= {"adaptive": Adaptive(), "clip_norm": 1.0}
    optimizer = Told(parameters.values(), lr=0.1, momentum=0.9)
    try:
        made = fit(loss, parameters, DATA, ledger, optimizer=optimizer, **given)
    except KeyboardInterrupt:
        made = fit(loss, parameters, DATA, ledger, optimizer=optimizer, **given)
    ledger.close()
    certificate = made.certificate(1e-5, witness=False)
    verify(certificate)
    assert certificate.run is not None
    told(f"certificate {certificate.run['ledger']['entries']}")
    told(f"certificate {certificate.run['summary']['noisy_steps']}")


def disturb(way: str, limit: int) -> None:
    """End this process, or what it does, after so many lines, or bytes of a file."""
    if way == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return
    left = [limit]

    def at_line(_: Any, event: str, __: Any) -> Any:
        left[0] -= event == "line"
        if left[0] == 0:
            if way == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            sys.settrace(None)
            raise KeyboardInterrupt
        return at_line

    sys.settrace(lambda frame, *_: at_line if _TRACED.search(frame.f_code.co_filename) else None)


def in_process(folder: Path, kind: str, way: str = "", limit: int = 0) -> list[str]:
    """What a process of its own tells until its end."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.close(reading)
        try:
            if way:
                disturb(way, limit)
            trained(folder, kind, lambda line: os.write(writing, f"{line}\n".encode()))
            said = "done"
        except (DpAuditError, KeyboardInterrupt) as error:
            said = f"{type(error).__name__} {error}"
        except BaseException as error:  # noqa: BLE001  # which is what is looked for
            said = f"a traceback: {type(error).__name__} {error}"
        sys.settrace(None)
        os.write(writing, f"ended {said}\n".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        lines = file.read().splitlines()
    _, status = os.waitpid(child, 0)
    return [*lines, f"ended by signal {status}"] if status else lines


def wrong(folder: Path, lines: list[str]) -> list[str]:
    """What was promised and does not hold."""
    gradients = [each for each in lines if each.startswith("gradient")]
    counted = {int(each.split()[1]) for each in lines if each.startswith("certificate")}
    charged = 0
    if (folder / "steps.jsonl").exists():
        charged = len(read_journal(folder / "steps.jsonl").releases)
    found = [each for each in lines if "a traceback" in each]
    if len(gradients) > charged:
        found.append(f"{len(gradients)} handed out, {charged} charged")
    if len(set(gradients)) < len(gradients):
        found.append("one noisy gradient twice")
    if not counted <= {charged}:
        found.append(f"a certificate counts {counted} of {charged}")
    return found


def attack(way: str, rounds: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """How the processes ended, and what did not hold."""
    rng, endings, found = random.Random(f"{way} {seed}"), Counter[str](), []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as home:
            folder, kind, lines = Path(home), rng.choice(list(PLANS)), list[str]()
            for _ in range(rng.choice([1, 2, 3])):
                limit = rng.randint(0, 4000) if way == "full" else int(10 ** rng.uniform(1, 4.3))
                lines += in_process(folder, kind, way, limit)
            lines += in_process(folder, kind)
            found += [f"{way}, {kind}: {each}" for each in wrong(folder, lines)]
            said = [each[6:] for each in lines if each.startswith("ended")]
            endings.update(re.sub(r"'/.*?'", "FILE", each)[:90] for each in said)
    return endings, found


def main(words: list[str]) -> None:
    rounds = int(words.pop(0)) if words and words[0].isdigit() else 30
    with tempfile.TemporaryDirectory() as home:  # what is imported late is imported now
        trained(Path(home), "adaptive", str)
    for way in words or WAYS:
        endings, found = attack(way, rounds)
        print(f"{way}: {rounds} trainings, {endings.total()} processes, {len(found)} wrong")
        for said, number in endings.most_common():
            print(f"  {number:4} {said}")
        print(*found, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
