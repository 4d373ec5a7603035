"""One BLAS thread: the matrices are small, and more threads make runs slow and hard to repeat."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


def single_threaded() -> AbstractContextManager[object]:
    """A context in which numpy's and scipy's linear algebra runs on one thread.

    Sums then have one order, so that a seed gives the same run on every number of cores; and on a
    busy machine threads that wait for each other slow small products down a hundredfold.

    Where threadpoolctl is missing (it comes with ``dpaudit[learn]``), the number of threads is that
    of the environment, such as ``OMP_NUM_THREADS=1``.
    """
    import scipy.linalg  # noqa: F401 - only libraries that are loaded can be limited

    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits
