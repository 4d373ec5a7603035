"""Bandit problems with known truth: synthetic functions and three real data sets."""

from __future__ import annotations

from private_bo.problems.another import AnotherAnswer
from private_bo.problems.base import BanditProblem, RecordedRewards, Response, RewardSource
from private_bo.problems.housing import (
    RealSellers,
    Sale,
    neighbourhood_prices,
    price_of_reward,
    recorded_sales,
)
from private_bo.problems.recorded import light_sensors, stocks
from private_bo.problems.synthetic import Noise, StudentNoise, UniformNoise, synthetic

__all__ = [
    "AnotherAnswer",
    "BanditProblem",
    "Noise",
    "RealSellers",
    "RecordedRewards",
    "Response",
    "RewardSource",
    "Sale",
    "StudentNoise",
    "UniformNoise",
    "light_sensors",
    "neighbourhood_prices",
    "price_of_reward",
    "recorded_sales",
    "stocks",
    "synthetic",
]
