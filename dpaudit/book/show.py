"""What the commands of the book print, for people and with ``--json`` for programs.

Texts of people are escaped, and the hash of a token is never shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.book import Release, RemainingBudget, Status, Token
from dpaudit.book.booking import Fit
from dpaudit.book.costs import ReleaseCosts
from dpaudit.book.limits import EVER, used_note
from dpaudit.book.records import NOTHING
from dpaudit.cli.show import answered, answering, escape, grid, say, table


@answering()
def releases(listed: Sequence[Release], costs: ReleaseCosts | None = None) -> None:
    """Print releases, one a row; with what each costs on its own, if that is given."""
    if answered("releases", {"releases": [each.to_dict() for each in listed]}):
        return
    rows = table("release", "status", "data set", "made", "by", "approved", "purpose", "plan")
    if costs is not None:
        rows.add_column("cost on its own", overflow="fold")
    for each in listed:
        cells = (each.id, each.word, each.dataset, each.made[:10], each.by, each.approved)
        more = () if costs is None else (costs.everywhere(each),)
        rows.add_row(*map(escape, (*cells, each.purpose, each.plan[:7], *more)))
    for column in rows.columns:
        texts = (str(column.header), *map(str, column.cells))
        words = (len(word) for each in texts for word in each.split())
        column.min_width = min(max(words, default=0), 16)  # so that no word is broken
    say(rows, soft_wrap=True)  # else a terminal too narrow would get a part


def reserved(release: Release) -> None:
    """Print a release that is charged, and how its charge is given back if nothing runs."""
    releases([release])
    if release.status is Status.RESERVED:
        _remark(
            f"{release.id} is charged to {_charged(release)}. If nothing of it runs, "
            f'dpaudit book close {release.id} --withdraw "WHY" gives the charge back'
        )


def ended(release: Release) -> None:
    """Print a release that ended, and what of its charge stays."""
    releases([release])
    if release.ran == NOTHING:
        _remark(f"{release.id} released nothing: its whole charge was given back")
    elif release.ran:
        _remark(
            f"{release.id} gave back the charge of the releases that did not run, according to "
            "its journal"
        )
    else:
        _remark(f"{release.id} stays charged in full to {_charged(release)}")


def _charged(release: Release) -> str:
    """Say to which budgets and times it was charged."""
    return ", ".join(
        f"{name} ({', '.join(buckets).replace(EVER, 'all time')})"
        for name, (buckets, _) in release.charged.items()
    )


@answering()
def _remark(said: str) -> None:
    say(escape(said), soft_wrap=True)  # so that no command in it is broken


@answering()
def tokens(listed: Sequence[Token]) -> None:
    """Print who has a token, and whether it holds."""
    told = ({k: v for k, v in vars(each).items() if k != "hash"} for each in listed)
    if answered("tokens", {"tokens": [*told]}):
        return
    rows = table("name", "role", "until", "")
    for each in listed:
        rows.add_row(escape(each.name), each.role, each.until, "revoked" if each.revoked else "")
    say(rows)


@answering()
def status(rooms: Sequence[RemainingBudget], fit: Fit | None) -> None:
    """Print what is left; and of a plan, where one is asked for, how often it fits."""
    records = [each.to_dict() for each in rooms]
    if answered("room", {"datasets": records, "plan": None if fit is None else vars(fit)}):
        return
    for each in rooms:
        counted = ", ".join(f"{n} {name}" for name, n in sorted(each.words.items()))
        name, protects = escape(each.dataset.name), escape(each.dataset.protects)
        say(f"[bold]{name}[/] {protects}; {counted or 'no releases'}")
        rows = table("budget", "limit", "over", "reached", "used")
        for own in each.left:
            cells = own.budget.name, str(own.budget.limit), own.bucket, own.described, own.used
            rows.add_row(*map(escape, cells))
        say(rows)
    if note := used_note(own.budget.limit for each in rooms for own in each.left):
        say(note)
    if fit is not None:
        facts = grid()
        facts.add_row("this plan fits", f"{fit.times} ×" if fit.times is not None else "always")
        for at, (name, value) in (fit.noise or {}).items():
            facts.add_row(f"least noise that fits, {escape(at)}", f"{name} = {value!r}")
        say(facts)
