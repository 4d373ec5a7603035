"""What forgeries of signed certificates come to, by kind: ``python -m tests.benchmarks.forgeries``.

The last column is of edits alone: how many an unsigned certificate hides from ``verify`` if all its
hashes are made anew. That is what signatures are for.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import warnings
from collections import defaultdict
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from export_forgeries import right_exports  # noqa: E402
from forgeries import FORGERIES, Forgery, World, payload_of, rehashed, right  # noqa: E402

from dpaudit.cli.main import _outcome  # noqa: E402


def told(words: list[str]) -> tuple[int, str]:
    """Exit code, and what was said of it."""
    out, err = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        code = _outcome(["verify", *words])
    return code, err.getvalue()


def hidden(forgery: Forgery, world: World, folder: Path) -> bool:
    """Whether the same edit, of a certificate without a signature, is taken."""
    source, change = forgery.edit
    record = payload_of(world.read(source))["predicate"]
    record.pop("signed_at")
    try:
        change(record)
    except KeyError:  # there is no time to edit
        return False
    path = folder / "edited.json"
    path.write_text(json.dumps(rehashed(record)), "utf-8")
    return told([str(path)])[0] == 0


def main() -> None:
    """Print one row for each kind."""
    rows = defaultdict(list)
    with tempfile.TemporaryDirectory() as home:
        world = World(Path(home))
        for forgery in FORGERIES:
            with tempfile.TemporaryDirectory() as folder:
                code, said = told(forgery.make(world, Path(folder)))
                lines = said.splitlines()
                clean = all(each.startswith("dpaudit: ") and each[-1] == "." for each in lines)
                unsigned = forgery.edit and hidden(forgery, world, Path(folder))
                rows[forgery.kind].append(
                    (code == 0, clean and "fault of" not in said, code, unsigned)
                )
        passed = [told(words)[0] == 0 for words in (right(world) | right_exports(world)).values()]
    head = ("kind", "tried", "passed", "exit 3", "exit 1", "in sentences", "unsigned")
    form = "{:<42} {:>6} {:>7} {:>7} {:>7} {:>13} {:>9}"
    print(form.format(*head))
    for kind, found in [*rows.items(), ("all", [each for row in rows.values() for each in row])]:
        took, clean, codes, unsigned = zip(*found, strict=True)
        edits = [each for each in unsigned if each is not None]
        shown = f"{sum(edits)}/{len(edits)}" if edits else ""
        counts = (sum(took), codes.count(3), codes.count(1), sum(clean), shown)
        print(form.format(kind, len(found), *counts))
    print(f"{len(rows)} kinds; of {len(passed)} right ones {sum(passed)} pass")


if __name__ == "__main__":
    main()
