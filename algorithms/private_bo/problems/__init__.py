"""Bandit problems with known truth: synthetic functions and three real data sets."""

from __future__ import annotations

from private_bo.problems.bandit import (
    AnotherAnswer,
    BanditProblem,
    Noise,
    RecordedRewards,
    Response,
    RewardSource,
    StudentNoise,
    UniformNoise,
    synthetic,
)
from private_bo.problems.sources import (
    RealSellers,
    Sale,
    light_sensors,
    neighbourhood_prices,
    price_of_reward,
    recorded_sales,
    stocks,
)

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
