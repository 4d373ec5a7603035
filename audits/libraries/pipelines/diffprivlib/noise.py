"""Its mechanisms by themselves, around a sum of ages between 0 and 100."""

from __future__ import annotations

from diffprivlib import mechanisms


def smokers(rows):
    """A count."""
    return sum(row["smokes"] for row in rows)


def total(rows):
    """A sum of which one row moves at most 100."""
    return float(sum(min(max(row["age"], 0), 100) for row in rows))


def laplace(rows):
    """Laplace noise."""
    return mechanisms.Laplace(epsilon=1.0, sensitivity=100).randomise(total(rows))


def gaussian(rows):
    """Gaussian noise, by the classical bound."""
    return mechanisms.Gaussian(epsilon=0.9, delta=1e-5, sensitivity=100).randomise(total(rows))


def analytic(rows):
    """Gaussian noise, calibrated exactly."""
    noise = mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=100)
    return noise.randomise(total(rows))


def geometric(rows):
    """Geometric noise on a count."""
    return mechanisms.Geometric(epsilon=1.0, sensitivity=1).randomise(smokers(rows))


def staircase(rows):
    """Staircase noise."""
    return mechanisms.Staircase(epsilon=1.0, sensitivity=100).randomise(total(rows))


def truncated(rows):
    """Laplace noise with an end, which costs a δ."""
    noise = mechanisms.LaplaceBoundedNoise(epsilon=1.0, delta=1e-3, sensitivity=100)
    return noise.randomise(total(rows))


def commonest(rows):
    """The commonest region, by the exponential mechanism."""
    names = ["east", "north", "south", "west"]
    votes = [sum(row["region"] == name for row in rows) for name in names]
    noise = mechanisms.Exponential(epsilon=1.0, sensitivity=1, utility=votes, candidates=names)
    return noise.randomise()


def flipped(rows):
    """The same, by permute-and-flip."""
    names = ["east", "north", "south", "west"]
    votes = [sum(row["region"] == name for row in rows) for name in names]
    noise = mechanisms.PermuteAndFlip(epsilon=1.0, sensitivity=1, utility=votes, candidates=names)
    return noise.randomise()


def answer(rows):
    """Randomised response of the first one."""
    noise = mechanisms.Binary(epsilon=1.0, value0="no", value1="yes")
    return noise.randomise("yes" if rows[0]["smokes"] else "no")


def uniform(rows):
    """Uniform noise, which is (0, δ)."""
    return mechanisms.Uniform(delta=0.1, sensitivity=100).randomise(total(rows))


def snapping(rows):
    """The snapping mechanism."""
    noise = mechanisms.Snapping(epsilon=1.0, sensitivity=100, lower=0, upper=10_000)
    return noise.randomise(total(rows))
