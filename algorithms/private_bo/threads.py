"""One BLAS thread: the matrices are small, and more threads make runs slow and hard to repeat."""

from __future__ import annotations

from contextlib import AbstractContextManager

__all__ = ["single_threaded"]


def single_threaded() -> AbstractContextManager[object]:
    """A context in which numpy's and scipy's linear algebra runs on one thread.

    Sums then have one order, so that a seed gives the same run on every number of cores; and on a
    busy machine threads that wait for each other slow small products down a hundredfold.
    """
    import scipy.linalg  # noqa: F401 - only libraries that are loaded can be limited
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits
