"""What dp-accounting says of a certificate's plan, held against what the certificate states.

Both sides state bounds on one number, the least ε of the composition at δ. Upper bounds may differ
by any amount and both hold; what cannot be is a lower bound of one above the upper bound of the
other.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from importlib import metadata
from io import StringIO
from itertools import chain

from dpaudit.accounting.accountant import Guarantee
from dpaudit.accounting.guarantees import undominated
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.numbers import down, plain, up
from dpaudit.certificate import Certificate, SecondOpinion
from dpaudit.certificate.records import TOLERANCE, exceeds
from dpaudit.interchange.dp_accounting.laws import (
    Grid,
    Use,
    grid_epsilon,
    has_renyi_curve,
    loss,
    renyi_epsilon,
    unsupported,
    uses,
)

LIBRARY = "dp-accounting"

_PLD = "privacy loss distributions"
_RDP = "Rényi DP"
_DISTINCT_LAWS = 64
_MOST_COMPOSED = 10**6
_LEAST_DELTA = 1e-12
"""Of a grid of dp-accounting: below, the rounding of its Fourier transforms is seen."""
_POINTS_OF_ONE = 400_000
_POINTS = 2_000_000
"""Of the grids of all laws: some ten seconds."""
_DISTINCT_CURVES = 2_000
_SAMPLED_CURVES = 32


def second_opinion(certificate: Certificate) -> SecondOpinion:
    """Compose the plan of a certificate with dp-accounting, and compare.

    Its privacy loss distributions are used where there are few distinct events, its Rényi
    divergences where there are many. Disjoint groups of units compose in parallel: the largest ε
    counts. Work that would take minutes is refused.
    """
    proved = certificate.guarantee
    if proved is None or proved.epsilon == math.inf:
        return _none(None, "the certificate proves no finite ε to compare with")
    try:
        return _opinion(certificate, proved)
    except UnsupportedError as error:
        return _none(proved, str(error).removesuffix("."))


def _opinion(certificate: Certificate, proved: Guarantee) -> SecondOpinion:
    """Return the opinion."""
    if proved.delta == 0:
        raise UnsupportedError("dp-accounting gives no finite ε at δ = 0.")
    groups = [uses(group) for group in undominated(certificate.plan.by_unit())]
    composed = list(chain.from_iterable(groups))
    if not composed:
        raise UnsupportedError("the plan releases nothing that depends on the data.")
    lawless = _lawless(composed, proved.delta)
    lower = None
    with _silence():
        if lawless is None:
            grid = Grid(_interval(composed, proved))
            upper = _largest(groups, proved.delta, grid)
            if exceeds(upper, proved.epsilon):
                lower = _largest(groups, proved.delta, replace(grid, pessimistic=False))
        else:
            _require_curves(composed, lawless)
            upper = max(renyi_epsilon(group, proved.delta) for group in groups)
    if not math.isfinite(upper):
        raise UnsupportedError(f"dp-accounting gives no finite ε at δ = {plain(proved.delta)}.")
    return _compared(proved, _RDP if lawless else _PLD, upper, lower)


@contextmanager
def _silence() -> Iterator[None]:
    """Silence dp-accounting, which prints and warns of what the comparison says better."""
    nowhere = StringIO()
    with warnings.catch_warnings(), redirect_stdout(nowhere), redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        yield


def _largest(groups: Sequence[Sequence[Use]], delta: float, grid: Grid) -> float:
    """Return ε of disjoint groups, by privacy loss distributions."""
    try:
        return max(grid_epsilon(group, delta, grid) for group in groups)
    except OverflowError:  # of e^loss; then the trivial bound is left
        return math.inf if grid.pessimistic else 0.0


def _lawless(composed: Sequence[Use], delta: float) -> UnsupportedError | None:
    """Tell why privacy loss distributions are not used, if so."""
    for use in composed:
        if loss(use.event, use) == math.inf:
            return unsupported(use)
        if use.count > _MOST_COMPOSED:
            return UnsupportedError(
                f"{use.invocation.describe()} occurs {use.count} times, which would take "
                "dp-accounting too long."
            )
    if len(composed) > _DISTINCT_LAWS:
        return _too_many(composed)
    if delta < _LEAST_DELTA:
        return UnsupportedError(f"δ = {plain(delta)} is below what dp-accounting's grids resolve.")
    return None


def _require_curves(composed: Sequence[Use], lawless: UnsupportedError) -> None:
    """Refuse what has no Rényi divergences, or would take minutes."""
    if any(not has_renyi_curve(use) for use in composed):
        raise lawless
    sampled = sum(use.invocation.sampling is not None for use in composed)
    if sampled > _SAMPLED_CURVES or len(composed) > _DISTINCT_CURVES:
        raise _too_many(composed)


def _too_many(composed: Sequence[Use]) -> UnsupportedError:
    return UnsupportedError(
        f"the plan has {len(composed)} distinct events, which would take dp-accounting too long."
    )


def _interval(composed: Sequence[Use], proved: Guarantee) -> float:
    """Return the interval between two losses of a grid as fine as the work allows."""
    spans = [2 * loss(use.event, use) for use in composed]
    likely = [point.epsilon for point in proved.curve if point.delta > 0]
    whole = 4 * max([proved.epsilon, *likely])
    return max((max(spans) + whole) / _POINTS_OF_ONE, (sum(spans) + len(spans) * whole) / _POINTS)


# -- the comparison -------------------------------------------------------------------------------


def _compared(
    proved: Guarantee, accountant: str, upper: float, lower: float | None
) -> SecondOpinion:
    agrees, outcome = _outcome(proved, accountant, upper, lower)
    return SecondOpinion(
        LIBRARY,
        metadata.version(LIBRARY),
        accountant,
        upper,
        lower,
        proved.delta,
        _ours(proved),
        agrees,
        f"{LIBRARY} {metadata.version(LIBRARY)} ({accountant}) gives ε = {up(upper)} at "
        f"δ = {plain(proved.delta)} and dpaudit ({proved.accountant}) proves "
        f"ε = {up(proved.epsilon)}: {outcome}.",
    )


def _outcome(
    proved: Guarantee, accountant: str, upper: float, lower: float | None
) -> tuple[bool, str]:
    """Tell whether the bounds of both can hold, and in words."""
    ours, floor = proved.epsilon, _ours(proved)[0]
    if lower is not None and exceeds(lower, ours):
        return False, (
            f"they contradict each other, because {LIBRARY} also computes that ε is at least "
            f"{down(lower)}: one of them is wrong, and nobody should rely on this certificate"
        )
    if floor is not None and exceeds(floor, upper):
        return False, (
            f"dpaudit also proves that no ε below {down(floor)} holds for this composition, "
            "so one of them is wrong; if dpaudit is, its ε is larger than necessary"
        )
    if exceeds(upper, ours):
        share = _percent(1 - ours / upper)
        from_below = "" if lower is None else f", and {LIBRARY}'s own lower end is {down(lower)}"
        return True, f"both are upper bounds, and dpaudit's is {share} tighter{from_below}"
    if exceeds(ours, upper):
        share = _percent(1 - upper / ours)
        return True, (
            f"both are upper bounds, and {LIBRARY}'s is {share} tighter: the certificate "
            "promises less than could be proved"
        )
    return True, f"they agree within {TOLERANCE:.0%}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _ours(proved: Guarantee) -> tuple[float | None, float]:
    """Return the interval that the certificate states."""
    bound = proved.error_bound
    return None if bound is None else max(proved.epsilon - bound, 0.0), proved.epsilon


def _none(proved: Guarantee | None, reason: str) -> SecondOpinion:
    """Give no opinion, and say why."""
    version = metadata.version(LIBRARY)
    delta, ours = (None, (None, None)) if proved is None else (proved.delta, _ours(proved))
    sentence = f"{LIBRARY} {version} gives none: {reason}."
    return SecondOpinion(LIBRARY, version, None, None, None, delta, ours, None, sentence)
