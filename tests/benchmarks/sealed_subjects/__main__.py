"""What a seal leaves of the mistakes of wrong subjects, and of right ones.

Run ``python -m tests.benchmarks.sealed_subjects``. Each wrong subject is written as its author
would most naturally write it sealed; that choice is a judgement, and all else is computed. It
*cannot be written* where the request, or the run, is refused; is *harmless* where no unit of its
example moves what is released by more than is declared; and *assumed* where this is so of the
units as named, but not of a person, or not of what its author made public. Two are truly sealed,
as their mistake comes before the run. Right subjects on whole numbers are run both ways at one
seed.
"""

from __future__ import annotations

from collections import Counter

from tests.benchmarks.sealed_subjects.outcomes import (
    SEALED_HERE,
    Found,
    outcome,
    sealed_kinds,
    sealed_outcome,
    typed_outcome,
)
from tests.benchmarks.sealed_subjects.right import PAIRS, both


def shown(found: Found) -> None:
    """Print one line."""
    print(f"{found.name:22}{found.outcome:19}{found.why}", flush=True)


def main() -> None:
    """Print both tables and the counts."""
    total: Counter[str] = Counter()
    for kind in sealed_kinds():
        found = outcome(kind)
        total[found.outcome] += 1
        shown(found)
    for name, target in SEALED_HERE.items():
        found = sealed_outcome(name, target)
        total[found.outcome] += 1
        shown(found)
    print(f"\n{total.total()} wrong subjects: " + ", ".join(f"{n} {s}" for s, n in total.items()))
    print("and where the author writes down what the file no longer tells the code:")
    shown(typed_outcome())
    equal = 0
    print("\nright subjects on whole numbers, at one seed")
    for pair in PAIRS:
        rows, handles = both(pair)
        equal += rows == handles
        print(f"{pair.of.__name__:22}{'same' if rows == handles else 'differs'}")
    print(f"\n{len(PAIRS)} right subjects: {equal} with the same releases")


if __name__ == "__main__":
    main()
