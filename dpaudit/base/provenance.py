"""What is of this package: classes by where they are defined, samplers by their names.

Certificates and policies ask it, so that nothing is trusted for what it calls itself.
"""

from __future__ import annotations

EXACT = ", exact"
"""How the names of exact samplers end; those of other libraries may not."""


def is_exact(sampler: str) -> bool:
    """Tell whether that is the name of an exact sampler of this package."""
    return sampler.startswith("opendp ") and sampler.endswith(EXACT)


def is_own(thing: object) -> bool:
    """Tell whether something is of a class of this package, whatever it calls itself."""
    return type(thing).__module__.partition(".")[0] == __name__.partition(".")[0]
