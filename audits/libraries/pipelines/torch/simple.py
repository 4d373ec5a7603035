"""Noise that people add by hand with torch."""

from __future__ import annotations

import torch
from torch.distributions import Laplace

SIZE = 60
"""A public number of rows."""


def column(rows, name="age"):
    """One column, within 0 and 100."""
    return torch.tensor([float(row[name]) for row in rows], dtype=torch.float64).clamp(0, 100)


def total(rows):
    """A sum of clamped values."""
    return float(column(rows).sum() + Laplace(0.0, 100.0).sample())


def mean(rows):
    """A mean of a public number of rows."""
    return float(column(rows).sum() / SIZE + torch.normal(0.0, 6.0, ()))


def both(rows):
    """Two means with Gaussian noise, of which each has its own."""
    means = torch.stack([column(rows).sum(), column(rows, "income").sum()]) / SIZE
    return (means + 6.3 * torch.randn(2)).tolist()


def steps(rows):
    """Five steps of DP-SGD by hand: clipped gradients, summed, with noise in place."""
    x, y = column(rows) / 100, column(rows, "income") / 100
    slope = 0.0
    for _ in range(5):
        gradient = (2 * x * (slope * x - y)).clamp(-1, 1).sum()
        gradient += torch.empty(()).normal_(std=9.0)
        slope -= 0.01 * float(gradient)
    return slope


def histogram(rows):
    """How many are from each region."""
    names = ("east", "north", "south", "west")
    counts = torch.tensor([sum(row["region"] == name for row in rows) for name in names])
    return (counts.double() + Laplace(torch.zeros(4), 1.0).sample()).tolist()


def one_noise(rows):
    """A mean and a sum of incomes with one draw of noise, stretched."""
    noise = torch.randn(())
    return [
        float(column(rows).mean() + 6 * noise),
        float(column(rows, "income").mean() + 6 * noise),
    ]


def unclipped(rows):
    """A sum that nobody clips."""
    ages = torch.tensor([float(row["age"]) for row in rows], dtype=torch.float64)
    return float(ages.sum() + Laplace(0.0, 100.0).sample())
