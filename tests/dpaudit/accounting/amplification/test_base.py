"""What all sampling schemes share, and the door for others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import mpmath as mp
import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import compose
from dpaudit.accounting.amplification import Amplification, DirectedPair, amplification
from dpaudit.accounting.amplification.poisson import PoissonAmplification
from dpaudit.accounting.closed_forms.pure import PureAccountant
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import DominatingPair, Gaussian, Laplace
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import FixedSizeSampling, PoissonSampling, ReplaceOne, Sampling


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.999])
def test_amplified_pure_epsilon_is_rounded_up(epsilon: float, rate: float) -> None:
    sampled = use(Laplace(1.0), epsilon, sampling=PoissonSampling(rate))
    found = PureAccountant().compose([sampled]).epsilon(0.0).upper
    with mp.workdps(50):
        exact = mp.log1p(mp.mpf(rate) * mp.expm1(epsilon))
    assert exact <= found <= exact * (1 + 1e-14)


def test_fixed_size_sampling_amplifies_under_replace_one() -> None:
    sampled = use(Laplace(1.0), 1.0, ReplaceOne(), sampling=FixedSizeSampling(10, 100))
    found = PureAccountant().compose([sampled]).epsilon(0.0).upper
    assert found == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=1e-14)


def test_amplification_never_raises_and_keeps_the_ends() -> None:
    drawn = PoissonAmplification(0.1)
    assert drawn.epsilon(Fraction(0)) == 0
    assert drawn.epsilon(math.inf) == math.inf
    assert drawn.epsilon(Fraction(1, 10**30)) <= Fraction(1, 10**30)
    assert PoissonAmplification(1 - 2**-53).epsilon(Fraction(1)) <= 1
    # Beyond e^700, where e^ε overflows: ε + ln q.
    assert drawn.epsilon(1e5) == pytest.approx(1e5 + math.log(0.1), rel=1e-14)
    assert drawn.epsilon(700.0) == pytest.approx(drawn.epsilon(701.0) - 1, rel=1e-12)


@dataclass(frozen=True)
class HalfSampling(Sampling):
    """Exactly one of two halves of the units, by a fair coin."""

    kind: ClassVar[str] = "test-half"


@dataclass(frozen=True)
class HalfAmplification(Amplification):
    """For the test: as Poisson sampling of rate 1/2, but for integer moments."""

    def directed(self, pair: DominatingPair) -> tuple[DirectedPair, DirectedPair]:
        return PoissonAmplification(self.rate).directed(pair)

    def log_moments(self, pair: DominatingPair) -> Floats:
        return PoissonAmplification(self.rate).log_moments(pair)


def test_a_scheme_takes_part_in_every_accountant_once_it_is_registered() -> None:
    half = use(Gaussian(2.0), sampling=HalfSampling(), count=3, at="x")
    with pytest.raises(UnsupportedError, match=r"gaussian at 'x' has .* no amplification is prov"):
        compose(plan(half), "pld")
    amplification.register(HalfSampling)(lambda sampling, invocation: HalfAmplification(0.5))
    same = use(Gaussian(2.0), sampling=poisson(0.5), count=3)
    for name in ("zcdp", "rdp", "pld"):
        found, known = (compose(plan(each), name).epsilon(1e-5) for each in (half, same))
        assert found == known
    with pytest.raises(UnsupportedError, match="at 'x': the moments accountant has no formula"):
        compose(plan(half), "moments")


def test_a_rate_is_between_the_ends() -> None:
    for rate in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(InputError, match="rate is"):
            PoissonAmplification(rate)
