"""Proves an ε of a certificate's plan, trusting nothing but Python's integers and this file.

``python3 checker.py certificate.json`` works where nothing is installed. The file imports nothing
of the package that made the certificate. It reads the plan, derives the law of each mechanism from
its parameters, composes, and prints the ε that it proves at the δ of the certificate. Integers,
fractions and intervals that are rounded outwards decide; no float does.

What is proved. Let H_t(P‖Q) = sup_A P(A) − t Q(A). A mechanism is (ε, δ)-private if H_t ≤ δ at
t = e^ε for all neighbours, both ways. A *curve* D is a bound on H_t for all t ≥ 0 and all
neighbours. H is convex and falls in t, with H_0 = 1; of unsampled neighbours P and Q may change
places, so that h(t) = 1 − t + t h(1/t) gives the curve below 1 from the one above.

*Composition.* Let D₁, D₂ be the curves of two measures on losses, the second whatever the first
step released. Then their product bounds the composition (Zhu, Dong and Wang 2022, *Optimal
accounting of differential privacy via characteristic function*, Theorem 10). Proof. Given the
first output o with ratio u = dQ/dP, the second step contributes at most g(u) = D₂(tu). As g is
convex, falls, and ends at a constant c ≥ 0, it is c + ∫ (v − u)₊ dν(v) with ν ≥ 0, and
E_P (v − u)₊ = v H_{1/v} ≤ v D₁(1/v). So E_P g(u) is at most its value under the first measure, if
that has D₁(0) ≥ 1. Nothing else is asked of it: more mass than 1 is only a larger bound. ∎

*Grid.* Mass p at the loss x contributes p (1 − t e^−x)₊ to a curve, which hence is linear in t
between the points of a grid of losses, and on (0, t₀) if t₀ is the first. A curve that is convex in
t is below it everywhere if it is at the points, if the mass is at least 1, and if the mass at
infinity is at least H at the last point (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022,
*Connect the dots*). So masses are made from upper ends of the true curve, from the top down, each
the least with which that holds. A witness chooses the grid alone: a bad one proves little, and
none proves what is false. What is done afterwards can only raise a curve: mass is moved to larger
losses, mass is rounded up, and mass at one point is split to both neighbours with its P- and
Q-mass kept (Jensen: (1 − tu)₊ is convex in u = e^−x).
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("checker.py needs Python 3.11 or newer.")
if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the folder of this file, so that nothing beside it is imported

import json
import math
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate, combinations, pairwise
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

SCHEMA = "dpaudit-witness/1"
MOST_POINTS, MOST_BITS = 40_000, 4096
"""Of a grid and of a mass."""
MOST_WORK, MOST_TEXT = 6 * 10**7, 16 * 2**20
"""Of a proof in about microseconds, and characters of a certificate."""
LEAST, SLACK = Fraction(1, 10**300), 1 + Fraction(1, 10**12)
"""The least ρ that a search starts from; and by how much a stated ε may be exceeded, as it is a
decimal, which floats meet only nearly."""


class NoProofError(Exception):
    """Nothing is proved: the sentence says why."""


class MissingError(NoProofError):
    """A part of the plan has no rule here, or no witness."""


class RefusedError(NoProofError):
    """A witness does not prove what it says, or a plan contradicts itself."""


class InputError(Exception):
    """The file is no certificate."""


class Proof(NamedTuple):
    """What is proved of a certificate.

    Attributes:
        epsilon: ε, an exact number; None where nothing is proved.
        delta: δ, the decimal that the certificate states.
        rules: what the proof uses, one sentence for each set of invocations.
        reason: why nothing is proved.
        refused: whether a witness does not hold, and not only lacks.
    """

    epsilon: Fraction | None
    delta: Fraction
    rules: tuple[str, ...] = ()
    reason: str = ""
    refused: bool = False

    def holds(self, claimed: Fraction) -> bool:
        """Whether a claimed ε is proved: ε ≤ claim · (1 + 1e-12)."""
        return self.epsilon is not None and self.epsilon <= claimed * SLACK


def stop(wrong: object, sentence: str, kind: type[Exception]) -> None:
    """Raises where something is wrong."""
    if wrong:
        raise kind(sentence)


LEFT = threading.local()
"""What a proof may still spend of MOST_WORK; and what its witness says of the runs of selections,
in the order of the plan."""


def spend(work: float) -> None:
    """Counts about so many microseconds, so that no file takes longer, whatever is in it."""
    LEFT.work = getattr(LEFT, "work", math.inf) - work
    stop(LEFT.work < 0, "the proof takes too much work.", MissingError)


def printable(text: str) -> str:
    """Without what moves a terminal, as names of a file stand in sentences."""
    return "".join(each if each.isprintable() else "?" for each in text)


def decimal_up(value: Fraction, digits: int = 17) -> str:
    """A number in decimals, rounded up.

    >>> decimal_up(Fraction(1, 3), 4), decimal_up(Fraction(10**20 + 1), 3)
    ('0.3334', '1.01E+20')
    """
    context = Context(digits, ROUND_CEILING, -(10**6), 10**6)
    found = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return str(found.normalize(context))


# -- arithmetic ----------------------------------------------------------------------------------
# A number at scale w is an integer that stands for itself over 2^w. Functions return both ends.

Ends = tuple[int, int]


def up(numerator: int, denominator: int) -> int:
    """A quotient rounded up, the denominator above 0."""
    return -(-numerator // denominator)


@lru_cache(maxsize=512)
def log_two(w: int) -> Ends:
    """Ln 2 = Σ 2/((2k + 1) 3^(2k+1)); each of n terms is rounded down, by less than 2 units."""
    power, total, k = (2 << (w + 16)) // 3, 0, 1
    while power:
        total, power, k = total + power // k, power // 9, k + 2
    return total >> 16, (total + 4 * k + 8 >> 16) + 1


@lru_cache(maxsize=512)
def root_of_two_pi(w: int) -> Ends:
    """√2π, with π = 2 Σ k!/(1·3·…·(2k + 1)) (Euler).

    Terms are at most half of the one before. Rounded down, each is short by less than 2; what is
    left after the last is below 6.
    """
    g, total, k = w + 32, 0, 1
    term = 2 << g
    while term:
        total, term, k = total + term, term * k // (2 * k + 1), k + 1
    ends = [math.isqrt(each << (g + 1)) >> 32 for each in (total, total + 2 * k + 8)]
    return ends[0], ends[1] + 1


def exp(numerator: int, denominator: int, w: int) -> Ends:
    """e^(numerator/denominator) at scale w.

    x = n ln 2 + y with 0 ≤ y < 2, and Taylor's series at y. Let its terms be rounded down: the
    k-th is short by e_k with e_{k+1} ≤ e_k y/(k + 1) + 2, so by 5 at most; and what follows the
    last is at most twice that. An error of y counts e² < 8 times.
    """
    spend(4 + (w / 65) ** 2)
    if numerator < -w * denominator:
        return 0, 1
    stop(numerator > 4000 * denominator, "a loss above 4000 is not computed.", MissingError)
    n = numerator * 14426950 // (denominator * 10**7) - (numerator < 0)
    g = w + max(n, 0) + 24
    both = [n * end for end in log_two(g)]
    least = (numerator << g) // denominator - max(both)
    width = max(both) - min(both) + 1
    assert 0 <= least < 2 << g
    term, total, k = 1 << g, 0, 0
    while term:
        total, k = total + term, k + 1
        term = (term * least >> g) // k
    shift = g - w - n
    return total >> shift, (total + 5 * k + 16 + 8 * width >> shift) + 1


def log(value: int, w: int) -> Ends:
    """Ln of a number of at least 1 at scale w.

    m 2^e with 1 ≤ m < 2, and ln m = 2 Σ z^(2k+1)/(2k + 1), z = (m − 1)/(m + 1) < 1/3. Powers are
    short by e with e' ≤ e/9 + 1 + 1/9 < 3, quotients by 1 more, and what is left is below 4.
    """
    spend(4 + (w / 55) ** 2)
    e = value.bit_length() - 1 - w
    one, g = 1 << (w + e), w + 24
    z = (value - one << g) // (value + one)
    square, power, total, k = z * z >> g, z, 0, 1
    while power:
        total, power, k = total + power // k, power * square >> g, k + 2
    low, high = log_two(g)
    return (2 * total + e * low) >> 24, (2 * (total + 4 * k + 8) + e * high >> 24) + 1


def odd_series(z: int, g: int, *, above: bool) -> int:
    """Σ z^(2n+1)/(1·3·…·(2n + 1)) for z ≥ 0 at scale g, all rounded one way.

    It is (Φ(z) − 1/2)/φ(z), as both solve y' = 1 + zy (Abramowitz and Stegun 1964, 26.2.11). From
    2n + 3 ≥ 2z² on each term is at most half of the one before, so that those that are left add up
    to at most twice the next. Two units make up for what two quotients are rounded down.
    """
    term, total, k = z, 0, 1
    square = (z * z >> g) + above
    while term > 4 * above or (above and k << g < 2 * square):
        total, k = total + term, k + 2
        term = (term * square >> g) // k + 2 * above
    spend(k * g / 2000)
    return total + 2 * term * above


# -- curves of mechanisms -------------------------------------------------------------------------


class Law(NamedTuple):
    """What one use costs, as one of the rules below and its exact numbers."""

    rule: str
    numbers: tuple[Fraction, ...]


def normal(numbers: tuple[Fraction, ...], t: int, w: int) -> int:
    """N(μ, 1) against N(0, 1), of which the number is μ².

    With x = ln t the curve is Φ(a) − t Φ(−b) for a = μ/2 − x/μ, b = μ/2 + x/μ (Balle and Wang
    2018, *Improving the Gaussian mechanism*, Theorem 8). As t φ(b) = φ(a), and Φ(z) = 1/2 + φ(z)
    S(z), it is (1 − t)/2 + φ(a)(S(a) + S(b)). It rises with μ and falls with x: so μ is rounded up
    to a multiple 2m of the last place, and x/μ down to a multiple y, after which a and b are exact.
    For a large b, t Φ(−b) ≥ t φ(b) b/(1 + b²) = φ(a) b/(1 + b²) (Gordon 1941) is subtracted.
    """
    (square,) = numbers
    if square == 0:
        return 0
    small = max(square.denominator.bit_length() - square.numerator.bit_length(), 0) // 2
    g = max(t.bit_length(), w) + small + 40
    m = math.isqrt(up(square.numerator << (2 * g), 4 * square.denominator)) + 1
    y = (log(t << (g - w), g)[0] << g) // (2 * m)
    a, b = m - y, m + y
    if a > 40 << g:
        return 1 << w
    if a < 0 and a * a > 7 * w << (2 * g) >> 2:  # e^(−a²/2)/2 < 2^−w bounds Φ(a)
        return 1
    total = odd_series(abs(a), g, above=a > 0) * (1 if a > 0 else -1)
    if b > 16 << g:
        value = 1 << (w - 1)
        total -= (b << 2 * g) // ((1 << 2 * g) + b * b)
    else:
        value = up((1 << w) - exp(2 * y * m, 1 << (2 * g), w)[0], 2)
        total += odd_series(b, g, above=True)
    p = w + 16 + max(total.bit_length() - g, 0)
    low, high = exp(-a * a, 2 << (2 * g), p)
    least, most = root_of_two_pi(p)
    density = (low << p) // most if total < 0 else up(high << p, least)
    return max(value + up(density * total, 1 << (p + g - w)), 1)


@lru_cache(maxsize=1024)
def decay(epsilon: Fraction, w: int) -> Ends:
    """e^−ε at scale w."""
    return exp(-epsilon.numerator, epsilon.denominator, w)


def laplace(numbers: tuple[Fraction, ...], t: int, w: int) -> int:
    """Laplace noise of scale 1, shifted by ε: 1 − √(t e^−ε) from t = 1 to e^ε.

    A vector of independent noises with the whole shift ε in L1 is dominated by one coordinate
    (group privacy along the way, Dong, Roth and Su 2022, *Gaussian differential privacy*, Theorem
    2.14; as the likelihood ratio is monotone, the steps make one long step). So is any mechanism
    that is sε-private for values s ≤ 1 apart in a convex set: k steps of ε/k have the trade-off
    curve of ε/k composed k times with itself, which tends to this one (Proposition 2.15).
    """
    return max((1 << w) - math.isqrt(t * decay(numbers[0], w)[0]), 0)


def bounded_range(numbers: tuple[Fraction, ...], t: int, w: int) -> int:
    """Losses within some interval of length ε: (1 − √(t e^−ε))²/(1 − e^−ε).

    Dong, Durfee and Rogers 2020, *Optimal differential privacy composition for exponential
    mechanisms*: of losses in [s − ε, s] the worst law has two, with H_t = (e^−s − r)(e^s − t)/(1 −
    r), r = e^−ε; it is the largest at e^s = √(t/r). It rises with ε: r is rounded down.
    """
    low, one = decay(numbers[0], w + 16)[0], 1 << (w + 16)
    if t * low >= one << w or low == one:
        return 0
    gap = one - math.isqrt((t << 16) * low)
    return up(gap * gap, one - low << 16)


def response(numbers: tuple[Fraction, ...], t: int, w: int) -> int:
    """All that is (ε, δ)-private: at most δ + (1 − t e^−ε)/(1 + e^−ε).

    The failure of probability δ is charged whole, beside a pure response. Kairouz, Oh and Viswanath
    2015, *The composition theorem for differential privacy*, Theorem 3.3.
    """
    epsilon, delta = numbers
    low, one = decay(epsilon, w)[0], 1 << w
    pure = max(up((one << w) - t * low, one + low), 0)
    return min(up((one * delta.numerator), delta.denominator) + pure, one)


def two_sided(numbers: tuple[Fraction, ...], t: int, w: int) -> int:
    """Two outputs of chances p > q that change places, all else alike: p − t q."""
    return max(math.ceil(numbers[0] * (1 << w) - t * numbers[1]), 0)


def geometric(numbers: tuple[Fraction, ...], t: int, w: int) -> int:
    """Discrete Laplace noise of mass ∝ r^|k|, r = e^−c, shifted by s; numbers c and s.

    At the output k the loss is (2k − s)c, for 0 ≤ k ≤ s, so that the best event is K ≥ j with the
    least j for which that exceeds x = ln t. P[K ≥ j] = 1 − r^(s−j+1)/(1 + r), Q[K ≥ j] = r^j/(1 +
    r). Vectors as for Laplace noise.
    """
    c, s, one = numbers[0], int(numbers[1]), 1 << w
    first, last = ((Fraction(end, one) / c + s) / 2 // 1 + 1 for end in log(t, w))
    stop(last - first > 8, "the steps of a discrete law are too short.", MissingError)
    places, top = range(int(first), min(int(last), s) + 1), one + decay(c, w)[1]
    lost = [(decay(c * (s - j + 1), w)[0] << w) + t * decay(c * j, w)[0] for j in places]
    return max([0, *(one - each // top for each in lost)])


@lru_cache(maxsize=8)
def tails(square: Fraction, w: int, bound: int = 10**9) -> tuple[int, list[int], list[int]]:
    """R, and both ends of Σ_{k ≥ m} e^(−k²/2σ²) for m = −R, …, R + 1, where σ² is the square.

    Noise that ends at a bound B has R ≤ B and nothing beyond B.

    Beyond R the terms are below 2^−w, and their sum is at most the integral ∫_R e^(−y²/2σ²) dy ≤
    (σ²/R) e^(−R²/2σ²), on either side.
    """
    n, d = square.numerator, square.denominator
    reach = min(math.isqrt(up(3 * w * n, 2 * d)) + 2, bound)
    stop(reach * w > 10**7, "discrete Gaussian noise is too wide for a table.", MissingError)
    ends = [exp(-k * k * d, 2 * n, w) for k in range(reach + 1)]
    beyond = up(ends[-1][1] * n, d * reach) if reach < bound else 0
    terms = [ends[abs(k)] for k in range(reach, -reach - 1, -1)]
    least = [*accumulate((low for low, _ in terms), initial=0)]
    most = [*accumulate((high for _, high in terms), initial=beyond)]
    most[-1] += beyond
    return reach, least[::-1], most[::-1]


def lattice(numbers: tuple[Fraction, ...], t: int, w: int) -> int:
    """Discrete Gaussian noise on one integer, shifted by s; numbers σ² and s.

    Canonne, Kamath and Steinke 2020. The loss at k is (2ks − s²)/2σ², which increases: so the best
    event is K ≥ j with the least j for which it exceeds ln t.
    """
    square, s, *ends = numbers
    bound = int(ends[0]) if ends else 10**9
    reach, least, most = tails(square, w + 32, bound)
    both = (math.floor(Fraction(end, 1 << w) * square / s + s / 2) for end in log(t, w))
    first, last = (min(each, bound) for each in both)
    stop(last - first > 6, "the steps of a discrete law are too short.", MissingError)
    best = (1 << w) * (s > 2 * bound)
    for j in range(first, last + 2):
        ahead, behind = (min(max(m + reach, 0), 2 * reach + 1) for m in (j - int(s), j))
        best = max(best, up((most[ahead] << w) - t * least[behind], least[0]))
    return best


def staircase(numbers: tuple[Fraction, ...], t: int, w: int) -> int:
    """Noise whose density falls by r = e^−ε at γΔ, Δ + γΔ, …, with γ = 1/(1 + e^(ε/2)).

    Geng and Viswanath 2014, *The optimal mechanism in differential privacy*. Within Δ the density
    has at most one step, so that losses are −ε, 0 and ε, of which the last has the mass p, and H_t
    = p(1 − tr). As the density is symmetric and falls with |x|, half the shift s parts where one of
    two neighbours is the likelier: (1 − r)p = P[|noise| < s/2], which is the largest for s = Δ.
    Then p = (γ + r(1/2 − γ))/(γ + (1 − γ)r) = 1 − e^(−ε/2)/2, with γ = b/(1 + b) and r = b².
    """
    low, half, one = decay(numbers[0], w)[0], decay(numbers[0] / 2, w)[0], 1 << w
    return max(up((2 * one - half) * ((one << w) - t * low), 2 * one << w), 0)


def cut_lattice(numbers: tuple[Fraction, ...], t: int, w: int) -> int:
    """The same for noise on −B…B, the third number: beyond B the loss is infinite."""
    return lattice(numbers, t, w)


Rule = Callable[[tuple[Fraction, ...], int, int], int]


def profile(numbers: tuple[Fraction, ...], t: int, w: int) -> int:
    """The least of what each (ε, δ) of a list proves; numbers are ε, δ, ε, δ and so on."""
    points = zip(numbers[::2], numbers[1::2], strict=True)
    return min(response(point, t, w) for point in points)


_RULES: tuple[Rule, ...] = (normal, laplace, bounded_range, staircase, response, two_sided, profile)
_RULES += (geometric, lattice, cut_lattice)
RULES = {rule.__name__.replace("_", " "): rule for rule in _RULES}


def base_curve(law: Law, t: int, w: int) -> int:
    """The curve of an unsampled use at t, both at scale w, rounded up; 1 − t for t ≤ 0.

    Below 1 by h(t) = 1 − t + t h(1/t), as A and its complement change places.
    """
    stop(law.rule not in RULES, f"{law.rule} has no curve.", MissingError)
    one, rule = 1 << w, RULES[law.rule]
    if t >= one or t <= 0:
        return min(rule(law.numbers, t, w), one) if t > 0 else one - t
    return one - t + up(t * min(rule(law.numbers, (one << w) // t, w), one), one)


# -- sampling -------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Uses of one law under one scheme of sampling, of rate q: "all", "poisson", "half", "known".

    See :func:`curve`.
    """

    law: Law
    scheme: str
    rate: Fraction


def removed(law: Law, rate: Fraction, t: int, w: int) -> int:
    """H_t((1 − q)Q + qP ‖ Q) = q H_{(t−1+q)/q}(P‖Q).

    As (1 − q)Q(A) + qP(A) − tQ(A) = q(P(A) − (t − 1 + q)/q Q(A)).
    """
    a, b = rate.numerator, rate.denominator
    return up(a * base_curve(law, (t * b - (b - a << w)) // a, w), b)


def added(law: Law, rate: Fraction, t: int, w: int) -> int:
    """H_t(Q ‖ (1 − q)Q + qP) = c H_{tq/c}(Q‖P) with c = 1 − t(1 − q), and 0 where that is not > 0.

    As Q(A) − t(1 − q)Q(A) − tqP(A) = c(Q(A) − tq/c P(A)).
    """
    a, b = rate.numerator, rate.denominator
    left = (b << w) - t * (b - a)
    return up(left * base_curve(law, (t * a << w) // left, w), b << w) if left > 0 else 0


def curve(part: Part, way: str, t: int, w: int) -> int:
    """The curve of one use at t, both at scale w, rounded up; ``way`` is "remove" or "add".

    *poisson*: who is drawn, with probability q, takes part, and who is not is as one that is
    absent: (1 − q)Q + qP against Q and the reverse (Zhu, Dong and Wang 2022, Theorem 11).

    *half*: both neighbours have a part without the unit, of weight 1 − q, in common. For t ≥ 1 the
    curve is that of *remove*, for t < 1 that of *add* (Balle, Barthe and Gaboardi 2018, *Privacy
    amplification by subsampling*, Theorems 2 and 9): the larger of both bounds it, and is convex.

    *known*: both neighbours draw the unit alike, and who is drawn is told: with probability q the
    curve of a use, else two equal laws.
    """
    law, scheme, rate = part
    if scheme in ("all", "known"):
        rest = (rate.denominator - rate.numerator) * max((1 << w) - t, 0)
        return up(rate.numerator * base_curve(law, t, w) + rest, rate.denominator)
    ways = {"remove": [removed], "add": [added]}[way] if scheme == "poisson" else [removed, added]
    return max(each(law, rate, t, w) for each in ways)


# -- laws on a grid -------------------------------------------------------------------------------


class Losses(NamedTuple):
    """Masses at the losses (low + i) 2^−k, and at infinity; all of them over 2^bits."""

    k: int
    low: int
    masses: list[int]
    rest: int


Grid = tuple[int, int, int]
"""The exponent k of a step 2^−k, the first and the last point."""


def step_of(k: int, multiple: int = 1) -> tuple[int, int]:
    """A multiple of 2^−k as a quotient."""
    return (multiple, 1 << k) if k >= 0 else (multiple << -k, 1)


def grid_law(part: Part, way: str, grid: Grid, bits: int) -> Losses:
    """Masses whose curve is at least that of a use at each point from low to high, and so between.

    With r = e^−h, and A and B the sums of p_j and of p_j r^(j−i−1) over j > i, the mass p at i must
    make D(t_{i−1}) = rest + A + p − r(p + rB) at least the target. Above the last point D is the
    mass at infinity, which is the target there, and below the first a line to D(0) ≥ 1.
    """
    k, low, high = grid
    w = bits + 64 + max(k, 0)
    one = 1 << w
    ratio = exp(*step_of(k, -1), w)[1]
    targets = [curve(part, way, exp(*step_of(k, i), w)[0], w) for i in range(low, high + 1)]
    rest, total, weighted, masses = targets[-1], 0, 0, []
    for target in reversed(targets[:-1]):
        need = target - rest - total + up(up(ratio * ratio, one) * weighted, one)
        mass = max(up(need << w, one - ratio), 0)
        masses.append(mass)
        total, weighted = total + mass, mass + up(ratio * weighted, one)
    masses.append(max(one - rest - total, 0))
    cut = one >> bits
    return Losses(k, low, [up(mass, cut) for mass in reversed(masses)], up(rest, cut))


def product(one: Losses, other: Losses, bits: int) -> Losses:
    """Two independent losses added up: one product of integers (Kronecker 1882), then rounded up.

    Digits are wide enough for each sum of products, so that none runs into the next.
    """
    count = len(one.masses) + len(other.masses) - 1
    widest = max(one.masses).bit_length() + max(other.masses).bit_length() + count.bit_length()
    size = widest // 8 + 1
    spend(count + (size * count) ** 1.5 / 1800)
    packed = [b"".join(m.to_bytes(size, "little") for m in each.masses) for each in (one, other)]
    first, second = (int.from_bytes(each, "little") for each in packed)
    digits = (first * second).to_bytes(size * count, "little")
    places = range(0, size * count, size)
    masses = [-(-int.from_bytes(digits[at : at + size], "little") >> bits) for at in places]
    sums = sum(one.masses), sum(other.masses)
    rest = -(-(one.rest * (sums[1] + other.rest) + other.rest * sums[0]) >> bits)
    stop(sum(masses) >> (bits + 1), "the witness has too few bits for a product.", RefusedError)
    stop(rest >> bits, "all mass of the witness is at infinity.", MissingError)
    return Losses(one.k, one.low + other.low, masses, rest)


def trimmed(law: Losses, allowed: int) -> Losses:
    """Mass of at most so much is moved from the top to infinity, and from the bottom upwards."""
    masses, last = law.masses, len(law.masses) - 1
    top = min(bisect_right([*accumulate(reversed(masses))], allowed), last)
    bottom = min(bisect_right([*accumulate(masses)], allowed), last - top)
    kept = masses[bottom : last + 1 - top]
    kept[0] += sum(masses[:bottom])
    return Losses(law.k, law.low + bottom, kept, law.rest + sum(masses[last + 1 - top :]))


def coarser(law: Losses, bits: int) -> Losses:
    """The same on every second point: 1/(1 + r) of the mass between goes up, r/(1 + r) down.

    That keeps the Q-mass: e^h r/(1 + r) + r/(1 + r) = 1, with r = e^−h. What goes up is rounded up.
    """
    one = 1 << bits
    spend(len(law.masses) + 4)
    share = up(one << bits, one + exp(*step_of(law.k, -1), bits)[0])
    start = law.low // 2
    masses = [0] * ((law.low + len(law.masses)) // 2 + 1 - start)
    for index, mass in enumerate(law.masses, law.low):
        at, odd = divmod(index, 2)
        raised = min(-(-mass * share >> bits), mass) * odd
        masses[at - start] += mass - raised
        masses[at + odd - start] += raised
    return Losses(law.k - 1, start, masses, law.rest)


def joined(one: Losses, other: Losses, limit: int, bits: int) -> Losses:
    """The product on the coarser of two grids, made coarser until it has few points."""
    same = one is other
    while one.k > other.k:
        one = coarser(one, bits)
    while other.k > one.k:
        other = coarser(other, bits)
    while len(one.masses) + len(other.masses) > 2 * limit:
        one = coarser(one, bits)
        other = one if same else coarser(other, bits)
    return product(one, other, bits)


def composed(law: Losses, count: int, limit: int, bits: int, share: Fraction) -> Losses:
    """So many uses, by squaring; of each power only so much of the mass is moved, for each use."""
    if count == 1:
        return law
    half = composed(law, count // 2, limit, bits, share)
    total = trimmed(joined(half, half, limit, bits), int(share * (count - count % 2)))
    if count % 2:
        total = trimmed(joined(total, law, limit, bits), int(share * count))
    return total


def epsilon_of(law: Losses, delta: Fraction, bits: int) -> Fraction:
    """The least ε ≥ 0 at which the curve of a law is at most δ, rounded up.

    D(t_i) = rest + A − C with A and C the sums of p_j and p_j r^(j−i) over j > i. The curve is
    linear in t between two points, hence below the line through upper ends at both. Below the first
    point no less ε is looked for.
    """
    w = bits + 64
    most, ratio = delta * (1 << w), exp(*step_of(law.k, -1), w)[0]
    total, lost, here = 0, 0, law.rest << 64
    stop(here > most, "the grid of the witness ends too early for that δ.", MissingError)
    first = max(law.low, 0)
    for i in range(law.low + len(law.masses) - 1, first, -1):
        mass, above = law.masses[i - law.low] << 64, here
        total, lost = total + mass, (lost + mass) * ratio >> w
        here = (law.rest << 64) + total - lost
        if here > most:
            grown = exp(*step_of(law.k, 1), w)[1] - (1 << w)
            inside = math.ceil((here - most) / (here - above) * grown)
            nearer = Fraction(log((1 << w) + inside, w)[1], 1 << w)
            return Fraction(*step_of(law.k, i - 1)) + nearer
    return Fraction(*step_of(law.k, first))


# -- reading a plan -------------------------------------------------------------------------------
# What is not known here is missing, never left out: every key, kind, scheme and relation.

Fields = dict[str, Any]
_NUMBERS, _RANGE = (int, float, Decimal), 10**308

READERS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "+": ("a number of at least 0", lambda x: type(x) in _NUMBERS and 0 <= x <= _RANGE),
    ">": ("a number above 0", lambda x: type(x) in _NUMBERS and 0 < x <= _RANGE and float(x) > 0),
    "%": ("a probability", lambda x: type(x) in _NUMBERS and 0 <= x <= 1),
    "#": ("a whole number from 1 to 10^15", lambda x: type(x) is int and 0 < x <= 10**15),
    "!": ("true or false", lambda x: type(x) is bool),
    "~": ("a short text", lambda x: type(x) is str and len(x) <= 1000),
    "=": ("anything", lambda x: True),
    "*": ("a list of numbers", lambda x: isinstance(x, list) and len(x) <= 10**4),
    "^": ("a number", lambda x: type(x) in _NUMBERS and abs(x) <= _RANGE),
}
"""What a value must be, by the sign of its reader."""


def read_as(sign: str, value: Any, what: str) -> Any:
    """A value of a field. Numbers of a plan are the floats that run, each exactly."""
    meant, right = READERS[sign]
    stop(not right(value), f"{what} must be {meant}.", InputError)
    if sign == "*":
        return [read_as("^", each, what) for each in value]
    return Fraction(float(value)) if sign in "+>%^" else value


def stated(record: Any, what: str) -> Fraction:
    """A number that somebody states: the decimal as it is written, not the float next to it."""
    value = record.get(what) if isinstance(record, dict) else None
    read_as("%" if what == "delta" else "+", value, what)
    return Fraction(str(value))


def fields(record: Any, what: str, spec: str) -> Fields:
    """The fields of a JSON object, None for each that may lack and does.

    Each word of ``spec`` is a key and the sign of its reader; "?" before it says that it may lack.
    """
    stop(not isinstance(record, dict), f"{what} is not a JSON object.", InputError)
    words = {word.strip("?")[:-1]: word for word in spec.split()}
    odd = [str(key)[:40] for key in record if key not in words]
    stop(odd, f"{what} has the key {odd[:1]}, for which there is no rule.", MissingError)
    found: Fields = {}
    for name, word in words.items():
        value = record.get(name)
        stop(value is None and word[0] != "?", f"{what} lacks {name}.", InputError)
        found[name] = None if value is None else read_as(word[-1], value, name)
    return found


def name_in(record: Any, key: str) -> str:
    """The text that says which kind of thing a JSON object is."""
    return str(read_as("~", record.get(key) if isinstance(record, dict) else None, key))


Uses = list[tuple[Law, int]]
Costs = list[tuple[Part, int]]
Maker = Callable[[Fields, Fraction], Uses]


def use(rule: str, *facts: Fraction | int, times: int = 1) -> Uses:
    """So many uses of a law."""
    return [(Law(rule, tuple(map(Fraction, facts))), times)]


def lies(p: Fraction, k: int) -> Uses:
    """The truth with chance 1 − p + p/k, each other answer with p/k."""
    return use("two sided", 1 - p + p / k, p / k)


def bits_of(p: Fraction, q: Fraction) -> Uses:
    """Two answers differ in their own two bits, whose law is a product."""
    return use("two sided", max(p * (1 - q), q * (1 - p)), min(p * (1 - q), q * (1 - p)))


def several_bits(own: Fields, _: Fraction) -> Uses:
    """Of vectors with so many ones: as many randomised responses as bits may differ."""
    differing = min(2 * own["ones"], own["bits"])
    return [(law, differing) for law, _ in lies(own["p"], 2)]


def subsets(own: Fields, _: Fraction) -> Uses:
    """Subset selection: the chances that of two answers one alone is told, the true or not."""
    p, k, size = own["p"], own["k"], own["members"]
    stop(size >= k, "members must be below k.", InputError)
    low = p * size * (k - size) / (k * (k - 1))
    return use("two sided", low + (1 - p) * (k - size) / (k - 1), low)


def noisy_choice(own: Fields, _: Fraction) -> Uses:
    """A choice by noise on utilities: the rule of that noise, see below."""
    rules = {"laplace": "laplace", "exponential": "laplace", "gumbel": "bounded range"}
    stop(own["noise"] not in rules, "there is no rule for this noise of a choice.", MissingError)
    return use(rules[own["noise"]], own["epsilon"])


def coordinates(own: Fields, moved: Fraction) -> list[Fraction]:
    """By how many of its scales each coordinate of a box moves."""
    shifts, scales = own["sensitivities"], own["scales"]
    wrong = len(scales) != len(shifts) or min([*scales, 1]) <= 0 or min([*shifts, 0]) < 0
    stop(wrong, "scales must be above 0, and as many as sensitivities.", InputError)
    return [moved * shift / scale for shift, scale in zip(shifts, scales, strict=True) if shift]


def steps_of(m: Fields, moved: Fraction) -> Uses:
    """Staircase noise: all that is known of it is ε where its share is chosen."""
    stop(moved > m["width"], "there is no rule for staircase noise beyond its width.", MissingError)
    return use("staircase", m["epsilon"]) if m["share"] is None else stated_law(m, moved)


def cut_off(m: Fields, moved: Fraction) -> Uses:
    """Truncated Laplace noise, of density ∝ e^−|x| on [−u, u], shifted by e ≤ u.

    Losses are at most e but beyond u, where there is δ = (e^−(u−e) − e^−u)/2(1 − e^−u).
    """
    e, u = (Fraction(each / m["scale"]) for each in (moved, m["bound"]))
    stop(e > u, "there is no rule for truncated noise shifted beyond its bound.", MissingError)
    ends = [exp(*each.as_integer_ratio(), 1200) for each in (e, u)]
    beyond = Fraction(ends[0][1] - (1 << 1200), 2 * max(ends[1][0] - (1 << 1200), 1))
    return use("response", e, min(beyond, Fraction(1)))


def ended(m: Fields, moved: Fraction) -> Uses:
    """Discrete Gaussian noise within a bound."""
    return use("cut lattice", m["sigma"] ** 2, moved, m["bound"])


STREAM = "factorization= participations# ?min_separation# ?fixed_steps! ?cyclic! ?symmetric! "
BOX = "scales* sensitivities*"
SUMS: dict[str, tuple[str, Maker]] = {
    "gaussian": ("sigma> ?clip_norm>", lambda m, s: use("normal", (s / m["sigma"]) ** 2)),
    "individual-gaussian": ("sigma> steps#", lambda m, s: use("normal", (s / m["sigma"]) ** 2)),
    "laplace": ("scale> ?clip*", lambda m, s: use("laplace", s / m["scale"])),
    "discrete-laplace": ("scale>", lambda m, s: use("geometric", 1 / m["scale"], s)),
    "discrete-gaussian": ("sigma>", lambda m, s: use("lattice", m["sigma"] ** 2, s)),
    "truncated-discrete-gaussian": ("sigma> bound#", ended),
    "staircase": ("epsilon> width> ?share%", steps_of),
    "truncated-laplace": ("scale> bound>", cut_off),
    "laplace-vector": (BOX, lambda m, s: [(Law("laplace", (e,)), 1) for e in coordinates(m, s)]),
    "gaussian-vector": (BOX, lambda m, s: use("normal", sum(e**2 for e in coordinates(m, s)))),
    "continual-gaussian": (STREAM + "sigma>", lambda m, s: stream(m, s, "sigma")),
    "continual-laplace": (STREAM + "scale>", lambda m, s: stream(m, s, "scale")),
}
"""Noise that is added to a sum, by its fields and the distance of neighbours. Who contributes zero
is as one who is absent. *individual-gaussian*: a filter keeps what each unit's own parts
move, added up over all steps in squares, within one release of the stated sensitivity (Koskela,
Tobaben and Honkela 2023, *Individual privacy accounting with Gaussian differential privacy*)."""
NUMBERS = {kind for kind in SUMS if not kind.endswith("-vector")}
"""Those whose sensitivity is a distance; of a box it is 0 or 1, as of whatever takes an input."""


def keys(m: Fields, _: Fraction) -> Uses:
    """A noisy count of each key that a unit may have, told from τ ≥ 2 on; with c = 1/b.

    Counts k and k − 1 above 0 differ by a shift of discrete Laplace noise by 1, hence by c. A count
    of 1 is told with probability δ = e^−c(τ−1)/(1 + e^−c) ≤ 1/2 and one of 0 never: it is (0, δ)-
    private for who leaves, and for who joins. *key_sensitivity* is how many counts may differ
    between neighbours, of the keys of both.
    """
    c, far = 1 / m["scale"], math.ceil(m["threshold"]) - 1
    stop(far < 1, "threshold must be above 1, or a key of one unit would be released.", InputError)
    told = Fraction(decay(c * far, 1200)[1], (1 << 1200) + decay(c, 1200)[0])
    return use("response", c, told, times=m["key_sensitivity"])


def normal_keys(m: Fields, _: Fraction) -> Uses:
    """The same with discrete Gaussian noise, and counts that differ by c < τ at most.

    Beside each count an event of the probability P[noise ≥ τ − c]: of l keys that one of two
    neighbours has P(A) − tQ(A) ≤ 1 − (1 − q)^l + (1 − q)^l (R(A) − tS(A)), R and S of the others.
    """
    square, moved, times = m["scale"] ** 2, m["count_sensitivity"] or 1, m["key_sensitivity"]
    far = math.ceil(m["threshold"]) - moved
    stop(far < 1, "threshold must be above the count of one unit.", InputError)
    reach, least, most = tails(square, 256)
    told = Fraction(most[min(far, reach + 1) + reach], least[0])
    return use("response", 0, told, times=times) + use("lattice", square, moved, times=times)


def stated_law(m: Fields, _: Fraction) -> Uses:
    """All that is known of a black box."""
    return use("response", m["epsilon"], m.get("delta") or 0)


def concentrated(m: Fields, _: Fraction) -> Uses:
    """ρ of zCDP alone: what has a ξ beside it has no rule."""
    stop(m["xi"], "there is no rule for a ξ in addition to ρ.", MissingError)
    return use("zcdp", m["rho"])


def listed(m: Fields, _: Fraction) -> Uses:
    """Each stated (ε, δ) of a black box, the least δ last."""
    short = isinstance(m["curve"], list) and 0 < len(m["curve"]) <= 1000
    pairs = [read_as("*", point, "curve") for point in m["curve"]] if short else [[]]
    wrong = any(len(two) != 2 or min(two) < 0 or two[1] > 1 for two in pairs)
    stop(wrong, "curve is not a list of pairs of an ε and a δ.", InputError)
    pairs.sort(key=lambda point: (-point[1], point[0]))
    return use("profile", *(number for point in pairs for number in point))


CHOICE = "epsilon> ?utility_sensitivity> "
MONOTONIC = CHOICE + "?monotonic! "
KEYS = "scale> threshold> key_sensitivity#"
VECTOR = "epsilon> threshold^ ?cutoff# ?query_sensitivity> ?monotonic! ?answers_share% "
INPUTS: dict[str, tuple[str, Maker]] = {
    "exponential": (CHOICE, lambda m, _: use("bounded range", m["epsilon"])),
    "noisy-max": (MONOTONIC + "noise~", noisy_choice),
    "permute-and-flip": (MONOTONIC, lambda m, _: use("laplace", m["epsilon"])),
    "top-k": (MONOTONIC + "k#", lambda m, _: use("bounded range", m["epsilon"], times=m["k"])),
    "sparse-vector": (VECTOR + "?threshold_share%", lambda m, _: use("laplace", m["epsilon"])),
    "pure-black-box": ("epsilon+", stated_law),
    "approximate-black-box": ("epsilon+ delta%", stated_law),
    "concentrated-black-box": ("rho+ ?xi+", concentrated),
    "randomized-response": ("p% k#", lambda m, _: lies(m["p"], m["k"])),
    "bit-vector-response": ("p% bits# ones#", several_bits),
    "unary-encoding": ("k# lie% keep%", lambda m, _: bits_of(m["keep"], m["lie"])),
    "subset-selection": ("k# p% members#", subsets),
    "stable-histogram": (KEYS, keys),
    "gaussian-histogram": (KEYS + " ?count_sensitivity#", normal_keys),
    "profile-black-box": ("curve=", listed),
    "private-selection": ("run= runs=", lambda m, _: selection(m)),
}
"""Mechanisms that protect their whole input: the sensitivity is 0 or 1.

*exponential*, and any choice with Gumbel noise: bounded range. Others choose by Laplace or
exponential noise, or tell what is above a threshold: sε-private for utilities or queries that move
by s times their sensitivity (Dwork and Roth 2014, Claim 3.9, whose argument with noise of twice the
scale serves utilities that may rise and fall; McKenna and Sheldon 2020; Lyu, Su and Li 2017,
Theorems 4 and 5), hence the Laplace curve. *top-k* is k choices among what is left, each at the
stated ε (Durfee and Rogers 2019, Lemma 4.2). Two answers of a randomised response or an encoding
are told apart by their own two bits alone. *stable-histogram*: the noise of several keys is
independent. *private-selection*: see :func:`selection`.
"""


FACTORS = {"binary-tree": "steps# ?release_root!", "honaker-tree": "steps# ?release_root!"}
FACTORS |= {"square-root-toeplitz": "steps#", "banded-toeplitz": "steps# bands#"}
FACTORS |= {"buffered-toeplitz": "steps# pole_rates* ?zero_rates*", "own-matrix": "rows="}
FACTORS |= {"own-toeplitz": "steps# coefficients* ?inverse!"}


def factors_of(mechanism: Fields) -> Fields:
    """The fields of a factorisation, and of one's own how many diagonals it has."""
    kind = name_in(record := mechanism.get("factorization"), "kind")
    stop(kind not in FACTORS, f"there is no rule for the factorization {kind}.", MissingError)
    own = fields(record, kind, "kind~ " + FACTORS[kind])
    if kind == "own-toeplitz" and not own["inverse"]:
        own["bands"] = len(own["coefficients"])
    if kind == "own-matrix":
        few = isinstance(own["rows"], list) and 0 < len(own["rows"]) <= 500
        rows = [read_as("*", row, "row") for row in own["rows"]] if few else [[]]
        wrong = any(len(row) != n or min(row) < 0 or not row[-1] for n, row in enumerate(rows, 1))
        wrong = wrong or max(map(max, rows)) > 10**9
        stop(wrong, "rows must be those of a triangle without negative entries.", InputError)
        within = (n - row.index(next(filter(None, row))) for n, row in enumerate(rows))
        own |= {"rows": rows, "steps": len(rows), "bands": max(within) + 1}
    return own


def column(own: Fields) -> list[int]:
    """The first column of a Toeplitz matrix C, at scale 96, rounded up; it is not to increase.

    *square root*: f_k = f_{k−1}(1 − 1/2k), those of 1/√(1 − x) (Fichtenberger, Henzinger and
    Upadhyay 2023). *banded*: its first entries. *buffered*: ∏ (1 − λ_i x)/∏ (1 − θ_j x) with θ =
    1/(1 + p), λ = 1/(1 + q) and p₁ < q₁ < p₂ < … (Dvijotham et al. 2024). Then (1 − λx)/(1 − θx) =
    1 + (θ − λ) x/(1 − θx) has positive terms, so that all products may be rounded up, and a partial
    fraction with positive weights shows that the column falls. *own*: as it is written, or the
    inverse series of c₀(1 − Σ d_k x^k), of which c_n = Σ d_k c_{n−k} is not above c₀ if Σ d ≤ 1.
    """
    steps, one = own["steps"], 1 << 96
    stop(steps > 10**5, "there is no rule for more than 100 000 steps.", MissingError)
    spend(steps * len(own.get("pole_rates") or own.get("coefficients") or "1") / 6)
    entries = [one] + [0] * (steps - 1)
    if own["kind"] == "own-toeplitz":
        first, *others = own["coefficients"] or [Fraction(0)]
        falls = min(first + sum(others), -max(others, default=0)) >= 0
        if not own["inverse"]:
            falls = all(low >= high for low, high in pairwise((first, *others, 0)))
        stop(not falls or first <= 0, "the column of coefficients must not increase.", InputError)
        if not own["inverse"]:
            scaled = [math.ceil(each * one) for each in (first, *others)]
            return [*scaled[:steps], *entries[len(scaled) :]]
        entries[0], shares = math.ceil(one / first), [math.ceil(-d / first * one) for d in others]
        for n in range(1, steps):
            past = entries[max(n - len(shares), 0) : n]
            entries[n] = -(-sum(map(mul, shares, reversed(past))) >> 96)
        return entries
    if own["kind"] != "buffered-toeplitz":
        for k in range(1, min(own.get("bands", steps), steps)):
            entries[k] = up(entries[k - 1] * (2 * k - 1), 2 * k)
        return entries
    poles, zeros = own["pole_rates"], own["zero_rates"] or []
    turns = [0, *(each for pair in zip(poles, zeros, strict=False) for each in pair), *poles[-1:]]
    wrong = not 1 <= len(poles) <= 16 or len(zeros) != len(poles) - 1
    wrong = wrong or any(before >= after for before, after in pairwise(turns))
    stop(wrong, "pole_rates and zero_rates must interlace.", InputError)
    for pole, zero in zip(poles, [*zeros, None], strict=True):
        theta, tail = 1 / (1 + pole), 0
        gain = math.ceil((theta - (0 if zero is None else 1 / (1 + zero))) * one)
        decayed = math.ceil(theta * one)
        for k, entry in enumerate(entries):
            entries[k] = entry - (-gain * tail >> 96)
            tail = entry - (-decayed * tail >> 96)
    return entries


def heaviest(weights: list[int], count: int, gap: int) -> int:
    """The largest total of so many weights that are at least so far apart."""
    best = [0] * (len(weights) + 1)
    for _ in range(count):
        ends = (weight + best[max(at + 1 - gap, 0)] for at, weight in enumerate(weights))
        best = [*accumulate(ends, max, initial=0)]
    return best[-1]


def moved_nodes(mechanism: Fields, norm: int) -> Fraction:
    """By how much the nodes of a stream move at most if each step moves by 1: L1, or L2 squared.

    C has no negative entry, so that contributions of one direction are the worst (Choquette-Choo,
    McMahan, Rush and Thakurta 2023). *Trees*: a step is in at most ⌊log₂T⌋ + 1 nodes, or
    max(1, ⌈log₂T⌉) without the root. Of k steps n_i are in node i of a level, Σ n_i² of which is
    the largest where as few nodes as can be hold as many as fit. *Toeplitz* with a column that
    falls: k steps from the first on, as near as may be (Kalinin and Lampert 2024, Theorem 2), and
    sums of columns fall; where it does not, the least one above it that does. *Own matrices*: with
    X = CᵀC at most Σ_i r_i over a pattern, r_i the largest Σ_j X_ij over one that i is in.
    """
    own = factors_of(mechanism)
    steps, gap = own["steps"], mechanism["min_separation"] or 1
    count = min(mechanism["participations"], 1 + (steps - 1) // gap)
    if own["kind"] in ("binary-tree", "honaker-tree"):
        levels = steps.bit_length() if own["release_root"] else max(1, (steps - 1).bit_length())
        if norm == 1:
            return Fraction(levels * count)
        total = 0
        for level in range(levels):
            nodes = up(steps >> level, 1 + (own["kind"] == "binary-tree" and level < levels - 1))
            fits = up(1 << level, gap)
            full = min(count // fits, nodes)
            rest = min(fits, count - full * fits) if full < nodes else 0
            total += full * fits**2 + rest**2
        return Fraction(total)
    if own["kind"] == "own-matrix":
        spend(steps**2 * (steps + 2 * count * (norm - 1)) / 6)
        rows = [[math.ceil(each * 2**96) for each in row] + [0] * steps for row in own["rows"]]
        columns = [*zip(*(row[:steps] for row in rows), strict=True)]
        if norm == 1:
            return Fraction(heaviest([*map(sum, columns)], count, gap), 1 << 96)
        worst = list[int]()
        for i, one in enumerate(columns):
            x = [sum(map(mul, one, other)) for other in columns]
            far = [value * (abs(i - j) >= gap) for j, value in enumerate(x)]
            worst.append(x[i] + heaviest(far, count - 1, gap))
        return Fraction(heaviest(worst, count, gap), 1 << 192)
    entries = column(own)
    if norm == 1:
        sums = [0, *accumulate(entries)]
        return Fraction(sum(sums[steps - at * gap] for at in range(count)), 1 << 96)
    if count > 1:
        entries = [*accumulate(reversed(entries), max)][::-1]
    for at in range(gap, steps):  # from now on with all those so many gaps before it
        entries[at] += entries[at - gap]
    before = [0] * min(count * gap, steps) + entries
    square = sum((entry - other) ** 2 for entry, other in zip(entries, before, strict=False))
    return Fraction(square, 1 << 192)


def stream(own: Fields, moved: Fraction, scale: str) -> Uses:
    """A stream of prefix sums with noise B z, A = B C: as one release of C x + z.

    For Gaussian z of adaptively chosen streams too (Denisov, McMahan, Rush, Smith and Thakurta
    2022, Theorem 2.1), for Laplace z by composing nodes. A symmetric release draws (V + Vᵀ)/√2 of
    independent entries of deviation σ: in the norm that counts an entry off the diagonal twice that
    is noise of deviation √2σ in each direction.
    """
    if scale == "scale":
        return use("laplace", moved * moved_nodes(own, 1) / own[scale])
    square = moved_nodes(own, 2) * (moved / own[scale]) ** 2
    return use("normal", square / 2 if own["symmetric"] else square)


def rounded_up(value: Fraction, bits: int) -> Fraction:
    """To so many significant bits."""
    unit = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - bits)
    return math.ceil(value / unit) * unit


def sum_of(values: list[Fraction]) -> Fraction:
    """A sum, of many numbers rounded up, as exact denominators would grow with each."""
    return sum((rounded_up(each, 256) if len(values) > 99 else each for each in values), Fraction())


def in_all(cost: Callable[[Any], Fraction | None], uses: Iterable[tuple[Any, int]]) -> Any:
    """What a cost of laws or parts adds up to, None if any has none."""
    found = [(cost(each), times) for each, times in uses]
    known = [value * times for value, times in found if value is not None]
    return sum_of(known) if len(known) == len(found) else None


def together(uses: Uses) -> Law:
    """One law for several uses, as samples and groups of units need it.

    The normal laws of a box are one already. Laplace noise on coordinates, and choices, are
    s Σ ε-private for data s ≤ 1 steps apart: the Laplace curve. Others are (Σ ε, Σ δ)-private.
    """
    if len(uses) == 1 and uses[0][1] == 1:
        return uses[0][0]
    total, failure = in_all(pure_of, uses), in_all(failure_of, uses)
    stop(total is None, "sampling of several uses needs a pure ε of each.", MissingError)
    if all(law.rule in ("laplace", "bounded range") for law, _ in uses):
        return Law("laplace", (total,))
    return Law("response", (total, min(failure, Fraction(1))))


def uses_of(mechanism: Fields, sensitivity: Fraction, steps: int, *, drawn: bool) -> Uses:
    """The laws of one use for data so many steps of the relation apart.

    k steps move a value k times as far (triangle inequality). Of other mechanisms they cost kε and
    δ(1 + e^ε + … + e^((k−1)ε)): with k − 1 steps of kε − ε and δ', one more makes P(A) ≤ e^ε P'(A)
    + δ ≤ e^kε Q(A) + e^ε δ' + δ (the proof of Lemma 2.2 in Vadhan 2017, *The complexity of
    differential privacy*); and k²ρ (Bun and Steinke 2016, Proposition 1.9).
    """
    kind = mechanism["kind"]
    stop(kind not in SUMS and kind not in INPUTS, f"there is no rule for {kind}.", MissingError)
    stop(kind not in NUMBERS and sensitivity != 1, f"{kind} has sensitivity 0 or 1.", InputError)
    broken = "discrete-" in kind and sensitivity.denominator != 1
    stop(broken, f"sensitivity of {kind} must be whole.", InputError)
    spec, made = SUMS[kind] if kind in SUMS else INPUTS[kind]
    found = made(fields(mechanism, kind, "kind~ " + spec), sensitivity * steps)
    if found and (drawn or steps > 1):
        found = [(together(found), 1)]
    if kind in SUMS or steps == 1:
        return found
    ((law, _),) = found
    if law.rule == "zcdp":
        return use("zcdp", steps * steps * law.numbers[0])
    epsilon, delta = pure_of(law), failure_of(law)
    if epsilon is None or steps > 1000:
        raise MissingError(f"there is no rule for {kind} on data {steps} steps apart.")
    far = [before * epsilon for before in range(steps if delta else 0)]
    grown = Fraction(sum(exp(*each.as_integer_ratio(), 64)[1] for each in far), 1 << 64)
    return use("response", steps * epsilon, min(delta * grown, Fraction(1)))


def clipped(mechanism: Fields, factor: int) -> Fraction:
    """By how much a mechanism's own clip lets one number move; from 0 where it is not replaced."""
    clip, norm = mechanism.get("clip"), mechanism.get("clip_norm")
    if norm is not None:
        return Fraction(factor * read_as(">", norm, "clip_norm"))
    if clip is None:  # one answer may become any other
        return Fraction(mechanism["kind"] in INPUTS)
    ends = read_as("*", clip, "clip")
    stop(len(ends) != 2 or ends != sorted(ends), "clip must be two numbers that rise.", InputError)
    zero = min(max(ends[0], Fraction(0)), ends[1])
    return Fraction(ends[1] - ends[0] if factor == 2 else max(ends[1] - zero, zero - ends[0]))


TRUST = ("local", "central", "joint", "curator")
RELATIONS = ("add-remove", "replace-one", "zero-out", "metric-ball")


def relation_of(record: Any) -> tuple[str, Fraction]:
    """The name of a relation, and the radius of a metric ball."""
    own = fields({"kind": record} if type(record) is str else record, "relation", "kind~ ?radius>")
    name, radius = own["kind"], own["radius"] or Fraction(0)
    wrong = name not in RELATIONS or (name == "metric-ball") != bool(radius)
    stop(wrong, "there is no rule for the relation.", MissingError)
    return name, radius


def charges_of(own: Fields) -> Costs:
    """What an invocation costs a unit that it touches.

    A local value is its owner's alone, who may move it to wherever a clip allows.

    Raises:
        RefusedError: if it contradicts itself.
    """
    relation, radius = relation_of(own["relation"])
    factor = 2 if relation in ("replace-one", "metric-ball") else 1
    moved, bound, kind = own["sensitivity"], None, name_in(own["mechanism"], "kind")
    stop(own["trust"] not in TRUST, "there is no rule for the trust model.", MissingError)
    if own["trust"] == "local":
        open_draw = own["sampling"] is not None or relation == "add-remove"
        stop(open_draw, "under local trust nothing hides who takes part.", RefusedError)
        needed = min(clipped(own["mechanism"], factor), radius or Fraction(3 * _RANGE))
        less = needed > moved * (1 + Fraction(1, 10**9))
        stop(less, "the sensitivity is below what the clip allows.", RefusedError)
        moved = max(moved, needed)
    stop((own["total"] or own["count"]) < own["count"], "total is below the count.", InputError)
    if own["contribution"] is not None:
        bound = fields(own["contribution"], "contribution", "bound> ?rows#")["bound"]
        less = kind in NUMBERS and moved < factor * bound
        stop(less, "the sensitivity is below what the contribution allows.", RefusedError)
    found = charged(own, moved or Fraction(kind not in NUMBERS), bound)
    return found if moved else []


def charged(own: Fields, moved: Fraction, bound: Fraction | None) -> Costs:
    """The parts of an invocation whose sensitivity is above 0, by its sampling.

    *Poisson*: see :func:`curve`; of a stream one draw for the whole of it, not one a step. A zeroed
    unit is as one that is absent where noise is added to a sum. A unit that is replaced, of
    contributions of norm c at most, moves a sum by 2c and is within that of none: the part without
    the unit is in common. c is stated by the sample, or else by the contribution of the invocation,
    and no sensitivity may be above 2c. Else both neighbours are drawn alike. *Rows* of a unit that
    are drawn each on its own: any of k rows is drawn with probability at most kq, and then the
    others are within k steps of none. *Random shares* of a part: any that is drawn counts as all.

    *Subsets of fixed size*, q = m/n. Replaced: the part without the unit is in common. Under
    add-remove another unit has its place where it is absent: two steps away, given the others, so
    that the release is (1 − q)A + qB in place of A. A zeroed unit of a sum, and the one in its
    place, are within two steps of each other: a replacement.

    *Random allocation* to k of T releases: who is told in which, which costs more, is charged k
    uses in each T. *Turns*: where a unit's turns are at least the bands of C apart, they share no
    row, so that each is a sampled release of a column (Choquette-Choo et al. 2023, Theorem 4).

    *Streams*: where a unit may be replaced by one that contributes at other steps, a node moves by
    at most max(a, b)Δ, a and b the weights of the steps of the one and of the other: √2 times as
    far in L2, as max(a, b)² ≤ a² + b², and 2 times in L1.
    """
    mechanism, count, sampling = own["mechanism"], own["count"], own["sampling"]
    kind, relation = mechanism["kind"], relation_of(own["relation"])[0]
    replaces, sums = relation in ("replace-one", "metric-ball"), kind in SUMS
    absent = relation == "add-remove" or (relation == "zero-out" and sums)
    scheme = "none" if sampling is None else name_in(sampling, "scheme")
    streams = kind in ("continual-gaussian", "continual-laplace")
    strays = streams and replaces and (scheme == "fixed-size" or not mechanism.get("fixed_steps"))

    def parts(way: str, q: Fraction, k: int = 1, far: Fraction = moved, n: int = count) -> Costs:
        stop(not q, "the rate of a sample must be above 0.", InputError)
        drawn, found = way != "all" and q < 1, []
        for law, uses in uses_of(mechanism, far, k, drawn=drawn):
            if strays:
                law = Law(law.rule, (2 * law.numbers[0],))  # of normal laws the square of μ
            found.append((Part(law, way if drawn else "all", q), uses * n))
        return found

    every = Fraction(1)
    if sampling is None:
        return parts("all", every)
    if scheme == "poisson":
        given = fields(sampling, scheme, "scheme~ rate% ?rows# ?contribution>")
        clash = given["rows"] and own["contribution"] is not None
        stop(clash, "samples of rows take no contribution of a whole unit.", RefusedError)
        rows, bound = given["rows"] or 1, given["contribution"] or bound
        clash = replaces and kind in NUMBERS and moved > 2 * (given["contribution"] or moved)
        stop(clash, "the sensitivity is above twice the contribution of the sample.", RefusedError)
        rate = min(given["rate"] * rows, every)
        if replaces and bound is not None and kind in NUMBERS and rate < 1:
            return parts("half", rate, rows, 2 * bound)
        return parts("poisson" if absent else "known", rate, rows)
    if scheme == "mixture":
        given = fields(sampling, scheme, "scheme~ shares* rates*")
        odd = any(not 0 < each <= 1 for each in given["shares"] + given["rates"])
        odd |= len(given["shares"]) != len(given["rates"])
        stop(odd, "shares and rates must be equally many, above 0 and at most 1.", InputError)
        return parts("poisson" if absent else "known", min(sum_of(given["rates"]), every))
    if scheme == "fixed-size":
        given = fields(sampling, scheme, "scheme~ size# population#")
        rate = Fraction(given["size"], given["population"])
        stop(rate > 1, "size must be at most the population.", InputError)
        half = "half" if absent or relation == "replace-one" else "known"
        return parts("poisson" if relation == "add-remove" else half, rate, 2 if absent else 1)
    if scheme == "random-allocation":
        given = fields(sampling, scheme, "scheme~ steps# ?times#")
        steps, drawn = given["steps"], given["times"] or 1
        stop(count % steps or drawn > steps, "count or times do not fit the steps.", InputError)
        return parts("all", every, n=count // steps * drawn)
    if scheme == "cyclic-poisson" and streams:
        given = fields(sampling, scheme, "scheme~ rate% groups#")
        matrix = factors_of(mechanism)
        steps, groups = matrix["steps"], given["groups"]
        turns, gap = up(steps, groups), mechanism.get("min_separation") or 1
        fewer = read_as("#", mechanism.get("participations"), "participations") < turns
        apart = fewer or read_as("#", gap, "min_separation") > groups
        stop(apart, "the participations are not those of groups that take turns.", RefusedError)
        if strays or matrix.get("bands", steps) > groups:
            return parts("all", every)
        mechanism = mechanism | {"participations": 1, "min_separation": 1}
        return parts("poisson" if absent else "known", given["rate"], n=count * turns)
    raise MissingError(f"there is no rule for the sampling {scheme}.")


Charges = dict[Part, int]


def added_up(*charges: Mapping[Part, int]) -> Charges:
    """The sum of charges, with all unsampled normal laws as one.

    Their losses add up to that of Σ μ² (Dong, Roth and Su 2022, Corollary 3.3).
    """
    total, squares = Charges(), list[Fraction]()
    spend(3 * sum(map(len, charges)))
    for part, times in (pair for each in charges for pair in each.items()):
        if part.law.rule == "normal" and part.scheme == "all":
            squares.append(part.law.numbers[0] * times)
        else:
            total[part] = total.get(part, 0) + times
    if squares:
        total[Part(Law("normal", (sum_of(squares),)), "all", Fraction(1))] = 1
    return total


def group_of(record: object) -> tuple[str, bool]:
    """The name of a group, and whether a unit's own value decides who is in it."""
    named = {"name": record} if isinstance(record, str) else record
    own = fields(named, "group", "name~ ?membership~")
    odd = own["membership"] not in (None, "position", "value")
    stop(odd, "there is no rule for this membership of a group.", MissingError)
    return own["name"], own["membership"] == "value"


INVOCATION = "mechanism= sensitivity+ unit~ relation= trust~ count# ?total# ?group= ?sampling= "
INVOCATION += "?contribution= ?at~"


def sets_of(plan: object) -> list[Charges]:
    """What one unit's change can be charged, for each kind of unit that there is.

    Groups of units are disjoint, so that a unit is charged what concerns all, and one group; or two
    of those groups that its own value decides, where it may change (McSherry 2009, *Privacy
    integrated queries*, Theorem 4). The worst counts. A unit that is zeroed adds nothing to another
    group of sums. It may leave one of these for a group of other mechanisms, which see it there.
    """
    invocations = fields(plan, "plan", "invocations=")["invocations"]
    few = isinstance(invocations, list) and 1 <= len(invocations) <= 20_000
    stop(not few, "plan has no list of invocations.", InputError)
    groups: dict[tuple[str, bool] | None, list[Charges]] = {None: []}
    alike, seen = set[Any](), set[Any]()
    for record in invocations:
        own = fields(record, "invocation", INVOCATION)
        alike |= {(relation_of(own["relation"]), own["unit"]), *inside(own["mechanism"])}
        group = None if own["group"] is None else group_of(own["group"])
        groups.setdefault(group, []).extend({part: times} for part, times in charges_of(own))
        seen.update({group} if own["mechanism"]["kind"] not in SUMS else ())
    everyone = added_up(*groups.pop(None))
    stop(len(alike) > 1, "the plan mixes relations or units.", RefusedError)
    both = len({group and group[0] for group in groups}) < len(groups)
    stop(both, "a group is declared by position and by value.", RefusedError)
    relation = alike.pop()[0][0]
    moves = relation in ("replace-one", "metric-ball")
    moves |= relation == "zero-out" and any(group and group[1] for group in seen)
    stay, move = list[Charges](), list[Charges]()
    for group, parts in groups.items():
        charges = added_up(*parts)
        kind, twice = (move, 2) if group and group[1] and moves else (stay, 1)
        if kind.count(charges) < twice:
            kind.append(charges)
        stop(len(kind) > 60, "the groups are too many.", MissingError)
    pairs = [added_up(*two) for two in combinations(move, 2)] or move
    return [added_up(everyone, each) for each in [*stay, *pairs] or [{}]]


def inside(mechanism: object) -> Iterator[tuple[Any, str]]:
    """The relations and units of the runs of a selection."""
    run = mechanism.get("run") if isinstance(mechanism, dict) else None
    listed = run.get("invocations", []) if isinstance(run, dict) else []
    stop(not isinstance(listed, list), "a run has no list of invocations.", InputError)
    for record in listed:
        own = fields(record, "invocation", INVOCATION)
        yield relation_of(own["relation"]), own["unit"]
        yield from inside(own["mechanism"])


def selection(m: Fields) -> Uses:
    """The best of K runs, of which each is (ε, δ)-private for many ε and δ.

    Let Q and Q' be what a run releases, f(x) = E[x^K], and q, q' the chances of one quantile of
    scores. The best has the density f'(q) to Q. Where f'(q) ≤ R f'(q'), and as f' ≤ E[K],
    H_{Rt}(A‖A') = sup ∫ f'(q) dQ − R t f'(q') dQ' ≤ E[K] H_t(Q‖Q'). By any (ε, δ) of a run

    - of K of mass ∝ (1 − γ)^k Π_{l<k} (l + η)/(l + 1), f' ∝ (1 − (1 − γ)x)^(−1−η): as 1 − q' ≤
      e^ε (1 − q) + δ, R = (e^ε + (1/γ − 1)δ)^(1+η) (Papernot and Steinke 2022, *Hyperparameter
      tuning with Rényi differential privacy*). E[K] rises with η, hence is at most that of ⌈η⌉;
    - of a Poisson K, f' ∝ e^(μx): R = e^(μT), T = (e^ε − 1 + 2δ)/(e^ε + 1) ≥ q − q'.
    """
    known, law = list[dict[Fraction, Fraction]](), name_in(m["runs"], "law")
    witnesses = next(getattr(LEFT, "runs", iter(())), None)
    sets = sets_of(m["run"])
    given = witnesses if isinstance(witnesses, list) and witnesses else [None] * len(sets)
    stop(len(given) != len(sets), "the witness does not fit the runs of this plan.", RefusedError)
    for charges, witness in zip(sets, given, strict=True):
        laws, bits = on_grids(charges, witness) if witness is not None else ([], 0)
        ladder = [Fraction(0), *(Fraction(1, 1 << j) for j in range(72, 2, -1))]
        ends = {delta: [epsilon for epsilon, _ in closed(charges, delta)] for delta in ladder}
        for delta in ladder[1:] if laws else ():
            with suppress(NoProofError):
                ends[delta].append(max(epsilon_of(each, delta, bits) for each in laws))
        known.append({delta: min(found) for delta, found in ends.items() if found})
    shared = [delta for delta in known[0] if all(delta in each for each in known)]
    both = {delta: max(each[delta] for each in known) for delta in shared}
    both = {delta: epsilon for delta, epsilon in both.items() if epsilon < 1000}
    stop(not both, "there is no rule for the runs of this selection.", MissingError)
    above = {delta: exp(*epsilon.as_integer_ratio(), 96)[1] for delta, epsilon in both.items()}
    tops = [(Fraction(end, 2**96), delta) for delta, end in above.items()]
    if law == "poisson":
        mean = fields(m["runs"], "runs", "law~ mean>")["mean"]
        grown = min(mean * (e - 1 + 2 * delta) / (e + 1) for e, delta in tops)
    else:
        stop(law != "negative-binomial", "there is no rule for this law of the runs.", MissingError)
        own = fields(m["runs"], "runs", "law~ gamma% ?shape^")
        gamma, shape = own["gamma"], Fraction(1) if own["shape"] is None else own["shape"]
        wrong = not 0 < gamma < 1 - Fraction(1, 10**9) or not -1 < shape <= 100
        stop(wrong, "gamma is not within 0 and 1, or shape not above −1.", MissingError)
        n, odds = math.ceil(shape), 1 / gamma - 1
        least = Fraction(log(math.floor(1 / gamma * 2**96), 96)[0], 2**96)
        mean = n * odds / (1 - gamma**n) if n > 0 else odds / least
        grown = min((1 + shape) * log_of(e + odds * delta) for e, delta in tops)
    points = [(epsilon + grown, min(mean * delta, Fraction(1))) for delta, epsilon in both.items()]
    points.reverse()  # the least δ is the last
    return use("profile", *(rounded_up(end, 128) for point in points for end in point))


# -- what has a closed form -----------------------------------------------------------------------


def log_of(value: Fraction) -> Fraction:
    """Ln of a number of at least 1, rounded up."""
    w = 96 + value.denominator.bit_length()
    return Fraction(log(max(math.ceil(value * (1 << w)), 1 << w), w)[1], 1 << w)


@lru_cache(maxsize=1024)
def pure_of(law: Law) -> Fraction | None:
    """The pure ε of a use apart from its failure; None where there is none."""
    first, *others = law.numbers
    if law.rule == "profile":
        return law.numbers[-2]
    if law.rule in ("normal", "zcdp", "lattice", "cut lattice"):
        return None if first else Fraction(0)
    if law.rule == "two sided":
        return log_of(first / others[0]) if others[0] else None
    return first * (others[0] if law.rule == "geometric" else 1)


def failure_of(law: Law) -> Fraction:
    """The probability of an infinite loss, which is charged apart."""
    return law.numbers[-1] if law.rule in ("response", "profile") else Fraction(0)


def sampled_pure(part: Part) -> Fraction | None:
    """Ln(1 + q(e^ε − 1)), rounded up (Balle, Barthe and Gaboardi 2018, Theorems 8 and 9)."""
    epsilon = pure_of(part.law)
    if epsilon is None or part.scheme in ("all", "known") or epsilon > 1000:
        return epsilon
    w = 96 + epsilon.denominator.bit_length() + part.rate.denominator.bit_length()
    grown = Fraction(exp(*epsilon.as_integer_ratio(), w)[1] - (1 << w), 1 << w)
    return min(epsilon, log_of(1 + part.rate * grown))


def concentration_of(part: Part) -> Fraction | None:
    """ρ of zCDP: μ²/2, s²/2σ², ε²/2 and, of bounded range, ε²/8; sampling makes it no larger.

    Bun and Steinke 2016, Propositions 1.4 and 1.6; Canonne, Kamath and Steinke 2020, Theorem 4;
    Cesar and Rogers 2021, *Bounding, concentrating, and truncating*, Lemma 3.2.
    """
    law = part.law
    if law.rule in ("zcdp", "normal"):
        return law.numbers[0] / (1 if law.rule == "zcdp" else 2)
    if law.rule == "lattice":
        return law.numbers[1] ** 2 / law.numbers[0] / 2
    epsilon, half = sampled_pure(part), law.rule == "bounded range" and part.scheme == "all"
    return epsilon and epsilon**2 / (8 if half else 2)


def from_concentration(rho: Fraction, delta: Fraction) -> Fraction:
    """The least of ρα + ln(1 − 1/α) − ln(δα)/(α − 1) over some α > 1, rounded up.

    Canonne, Kamath and Steinke 2020, Proposition 12. Any α will do: floats choose some.
    """
    found, spread = [], float(log_of(1 / delta)) + 1e-3
    for shift in range(-8, 9):
        step = math.sqrt(spread / float(min(max(rho, LEAST), 1 / LEAST))) * 2 ** (shift / 4)
        alpha = 1 + Fraction(min(max(step, 1e-6), 1e12))
        less = Fraction(log(math.floor(alpha / (alpha - 1) * 2**96), 96)[0], 2**96)
        left = log_of(1 / (delta * alpha)) if delta * alpha < 1 else Fraction(0)
        found.append(max(rho * alpha - less + left / (alpha - 1), Fraction(0)))
    return min(found)


def inverted(part: Part, delta: Fraction) -> Fraction:
    """The least ε at which the curve of a single use is at most δ, to 2^−40 of itself."""
    w = 96 + delta.denominator.bit_length() - delta.numerator.bit_length()

    def at(n: int) -> Fraction:
        return Fraction((1 << 40) + n % (1 << 40)) * Fraction(2) ** ((n >> 40) - 104) * (n > 0)

    def holds(n: int) -> bool:
        t = exp(*at(n).as_integer_ratio(), w)[0]
        most = max(curve(part, way, t, w) for way in ways_of((part,)))
        return most * delta.denominator <= delta.numerator << w

    return at(bisect_left(range(80 << 40), True, key=holds))


def ways_of(parts: Iterable[Part]) -> tuple[str, ...]:
    """Both ways where they differ: joining and leaving cost the same but for Poisson samples."""
    return ("remove", "add") if any(part.scheme == "poisson" for part in parts) else ("remove",)


def closed(charges: Mapping[Part, int], delta: Fraction) -> Iterator[tuple[Fraction, str]]:
    """Each ε that follows without a witness, and by what rule.

    Failures are added up and taken from δ: with probability of at least 1 − Σ δ_i none occurs, and
    H_t ≤ Σ δ_i + H_t of the rest.
    """
    left = delta - sum(failure_of(part.law) * part.rate * n for part, n in charges.items())
    pure = in_all(sampled_pure, charges.items())
    if left >= 0 and pure is not None:
        yield pure, "pure ε and failures add up"
    rho = in_all(concentration_of, charges.items())
    if left > 0 and rho is not None:
        yield from_concentration(rho, left), "ρ of zCDP adds up"
    if delta and sum(charges.values()) == 1:
        (part,) = charges
        with suppress(MissingError):
            yield inverted(part, delta), f"the curve of one use of {part.law.rule}, {part.scheme}"


# -- proof ----------------------------------------------------------------------------------------


def by_grid(charges: Mapping[Part, int], delta: Fraction, witness: object) -> Fraction:
    """ε by the grids that a witness names, both ways."""
    laws, bits = on_grids(charges, witness)
    return max(epsilon_of(law, delta, bits) for law in laws)


def on_grids(charges: Mapping[Part, int], witness: object) -> tuple[list[Losses], int]:
    """The composed law on the grids that a witness names, each way, and the bits of its masses.

    A witness of a set: ``bits`` of a mass, ``limit`` of points, ``cut`` (mass of 2^−cut may be
    moved at the ends), ``round`` (laws are rounded up to so many significant bits, so that those
    that are almost alike become one), and of each law, in their order, ``grids`` of [k, low, high],
    one for remove and, where it differs, one for add.
    """
    own = fields(witness, "witness", "bits# limit# cut# round# grids=")
    bits, limit, rounded = own["bits"], own["limit"], rounded_charges(charges, own["round"])
    wrong = bits > MOST_BITS or not 16 <= limit <= MOST_POINTS
    stop(wrong, "the witness has too many bits, or too few or many points.", RefusedError)
    wrong = not isinstance(own["grids"], list) or not 0 < len(own["grids"]) == len(rounded)
    stop(wrong, f"the witness has no grids for each of {len(rounded)} laws.", RefusedError)
    found = []
    for at, way in enumerate(ways_of(rounded)):
        laws = []
        for (part, times), both in zip(rounded.items(), own["grids"], strict=True):
            law, share = grid_law(part, way, grid_of(both, at), bits), (1 << bits) >> own["cut"]
            laws.append(composed(law, times, limit, bits, Fraction(share, times)))
        found.append(reduce(lambda one, other: joined(one, other, limit, bits), laws))
    return found, bits


def grid_of(both: object, way: int) -> Grid:
    """The exponent of the step, and the first and the last point."""
    grid: Any = both[min(way, len(both) - 1)] if isinstance(both, list) and both else None
    whole = isinstance(grid, list) and [type(each) for each in grid] == [int, int, int]
    stop(not whole, "a grid of the witness must be [k, low, high].", RefusedError)
    k, low, high = grid
    right = -10 <= k <= 2048 and -(10**6) < low < high < 10**6 and high - low < MOST_POINTS
    stop(not right, "a grid of the witness has no step, no points or too many.", RefusedError)
    return k, low, high


def rounded_charges(charges: Mapping[Part, int], bits: int) -> Charges:
    """The charges, the one number of a law rounded up where a larger one costs more."""
    total: Charges = {}
    for part, times in charges.items():
        law, value = part.law, part.law.numbers[0]
        if law.rule in ("normal", "laplace", "bounded range") and value:
            part = part._replace(law=Law(law.rule, (rounded_up(value, min(bits, 64)),)))
        total[part] = total.get(part, 0) + times
    return total


def proof_of(record: Mapping[str, Any]) -> Proof:
    """As :func:`prove`; NoProofError says why nothing is proved."""
    given = [each for key in ("claim", "guarantee") if (each := record.get(key)) is not None]
    stop(not given, "the file has neither claim nor guarantee.", InputError)
    said = record.get("claim")
    odd = isinstance(said, dict) and {*said} - {"source"} != {"epsilon", "delta"}
    stop(odd, "there are rules only for claims of an ε and a δ.", MissingError)
    delta = min(stated(each, "delta") for each in given)
    own: Fields = {"schema": SCHEMA, "sets": None, "epsilon": None, "runs": None}
    if record.get("witness") is not None:
        own = fields(record["witness"], "witness", "schema~ sets= ?epsilon= ?runs=")
    stop(own["schema"] != SCHEMA, "there is no rule for the schema of the witness.", MissingError)
    LEFT.runs = iter(own["runs"] if isinstance(own["runs"], list) else ())
    sets = sets_of(record.get("plan"))
    if record.get("witness") is None:
        own["sets"] = [None] * len(sets)
    wrong = not isinstance(own["sets"], list) or len(own["sets"]) != len(sets)
    stop(wrong, f"the witness does not fit the {len(sets)} sets of this plan.", RefusedError)
    found = []
    for charges, witness in zip(sets, own["sets"], strict=True):
        ways = list(closed(charges, delta))
        if witness is not None:
            ways.append((by_grid(charges, delta, witness), f"grids of {len(charges)} laws"))
        names = ", ".join(sorted({part.law.rule for part in charges}))
        said = f"the rules prove no ε for {names} at δ = {decimal_up(delta)} without a witness."
        stop(not ways, said, MissingError)
        found.append(min(ways))
    rules = tuple(f"{rule}: ε ≤ {decimal_up(epsilon)}" for epsilon, rule in found)
    proof = Proof(worst := max(found)[0], delta, rules)
    less = own["epsilon"] is not None and not proof.holds(stated(own, "epsilon"))
    stop(less, f"the witness states less than the proved ε ≤ {decimal_up(worst)}.", RefusedError)
    return proof


def prove(record: Mapping[str, Any]) -> Proof:
    """What is proved of the plan of a certificate, at the smaller δ of its claim and guarantee.

    Args:
        record: the JSON object of the certificate, of which ``plan``, ``claim``, ``guarantee`` and
            ``witness`` are read.

    Raises:
        InputError: if it is no certificate.
    """
    LEFT.work = MOST_WORK
    try:
        return proof_of(record)
    except NoProofError as error:
        return Proof(None, Fraction(0), (), printable(str(error)), isinstance(error, RefusedError))
    except (ArithmeticError, RecursionError):
        return Proof(None, Fraction(0), (), "a number or a depth is beyond what a rule computes.")
    finally:
        LEFT.work = math.inf


def number(text: str) -> Decimal:
    """A number that is not whole, as it is written; below the least of floats it is 0."""
    value = float(text)
    stop(len(text) > 400 or not math.isfinite(value), "a number has no use.", InputError)
    return Decimal(text if value else 0)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, no key of which is there twice."""
    found = dict(pairs)
    stop(len(found) < len(pairs), "an object has a key twice.", InputError)
    return found


def read(path: Path) -> dict[str, Any]:
    """The JSON object of a file.

    Raises:
        InputError: if there is none.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_TEXT + 1)
        stop(len(text) > MOST_TEXT, "the file is too long.", InputError)
        record = json.loads(text, object_pairs_hook=once, parse_float=number, parse_constant=number)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"the file cannot be read as JSON: {type(error).__name__}.") from None
    stop(not isinstance(record, dict), "the file is not a JSON object.", InputError)
    return dict(record)


def main(arguments: Sequence[str]) -> int:
    """0: the claim is proved, or there is none; 1: more than it is; 2: no proof; 3: no input."""
    say = sys.stdout.write
    try:
        stop(len(arguments) != 1, "usage: checker.py certificate.json", InputError)
        proof, claim = prove(record := read(Path(arguments[0]))), record.get("claim")
        exceeded = bool(claim and proof.rules) and not proof.holds(stated(claim, "epsilon"))
    except InputError as error:
        say(f"no certificate: {printable(str(error))}\n")
        return 3
    if proof.epsilon is None:
        alone = "" if proof.refused else " What the file states rests on its accountant alone."
        say(f"{'refused' if proof.refused else 'no proof'}: {proof.reason}{alone}\n")
        return 2
    head = f"proved: ε ≤ {decimal_up(proof.epsilon)} at δ = {decimal_up(proof.delta)}"
    say("\n  ".join([head, *proof.rules, *["that is more than the claim"] * exceeded]) + "\n")
    return int(exceeded)


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
