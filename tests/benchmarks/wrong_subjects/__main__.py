"""How wrong subjects stand whose bounded query is given rows that were made of everybody's.

Run ``python -m tests.benchmarks.wrong_subjects [--seeds 3] [NAME...]``. Each subject is certified
with its code rehearsed, as ``dpaudit certify --rehearse`` does; its premises that do not hold must
not read *enforced*. *Found* is not certified, and *moved* how many times what is declared one unit
moves what is released, on the subject's own example.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from dpaudit.certificate import Certificate, Standing, Verdict
from dpaudit.project.targets import certified, find_target
from dpaudit.workflow.rehearsing import rehearse_subject
from tests.benchmarks.wrong_subjects import caps, files, kept, values, whose
from tests.benchmarks.wrong_subjects.shop import Wrong

ROOMS = (kept, values, whose, files, caps)


def subjects(names: Sequence[str] = ()) -> list[type[Wrong]]:
    """All subjects, or those of these names or rooms."""
    return [
        kind
        for room in ROOMS
        for kind in vars(room).values()
        if isinstance(kind, type)
        and issubclass(kind, Wrong)
        and kind.__module__ == room.__name__
        and (not names or {kind.__name__, room.__name__.rpartition(".")[2]} & set(names))
    ]


def certificate_of(kind: type[Wrong], seed: int = 0) -> Certificate:
    """The certificate of a subject, its code rehearsed on the purchases with a seed."""
    target = find_target(f"{kind.__module__}:{kind.__name__}", {})
    assert target.subject is not None
    shown = rehearse_subject(target.subject, target.record.name, plan=target.plan, seed=seed)
    return certified(target).with_rehearsal(shown.record, shown.findings)


def stated(kind: type[Wrong], certificate: Certificate) -> Standing:
    """The best standing of the premises that do not hold."""
    standings = [each.standing for each in certificate.assumptions if each.premise in kind.breaks]
    return min(standings, key=lambda each: each.rank)


def main() -> None:
    """Print the table, and how often each standing is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print(f"{'subject':22}{'moved':>7}  {'found':>8}  stated, and rules")
    total: Counter[str] = Counter()
    wrongly = 0
    for kind in subjects(given.names):
        made = [certificate_of(kind, seed) for seed in range(given.seeds)]
        found = [each for each in made if each.verdict is not Verdict.CERTIFIED]
        known = [stated(kind, each) for each in made if each.verdict is Verdict.CERTIFIED]
        wrongly += sum(standing is Standing.ENFORCED for standing in known)
        said = "found" if len(found) == len(made) else max(known, key=lambda each: -each.rank)
        total[str(said)] += 1
        rules = sorted({f.rule for c in made for f in c.findings if f.severity != "note"})
        print(
            f"{kind.__name__:22}{kind().excess():7.1f}  {len(found):3} of {len(made)}"
            f"  {said}: {', '.join(rules)}",
            flush=True,
        )
    print(f"\n{total.total()} wrong subjects: " + ", ".join(f"{n} {s}" for s, n in total.items()))
    print(f"certified with a broken premise enforced: {wrongly}")


if __name__ == "__main__":
    main()
