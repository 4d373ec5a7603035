"""A table on an existing cluster of ``dask.distributed``: its buckets are the tasks.

The table is read here, once, into buckets that lie in the folder of temporary files, which all
workers must see (set TMPDIR to a shared one). Each worker does with a bucket what is done without a
cluster, and whole numbers are added: the same integers by construction. Who runs the cluster sees
the rows and the key of the hash; the buckets are removed in the end.

Dask and not Spark: tasks are Python functions as they stand, where ``mapInArrow`` has them take and
give tables; no JVM is started nor tied to a version; and the package runs audits on it already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.base.optional_import import optional_import
from dpaudit.base.validate import shown
from dpaudit.tables.engines.duck import Layout, measured_bucket, staged
from dpaudit.tables.engines.sources import Source
from dpaudit.tables.measures import Measure, Measured, nothing

_UNSEEN = "they do not see the folder of temporary files; set TMPDIR to one that all machines share"
_SECONDS_TO_ANSWER = 10


@dataclass(frozen=True, repr=False)  # as workers log what they are given
class _Task:
    """What a worker does; what goes wrong is told in words, as errors hold what they were given."""

    layout: Layout
    measures: tuple[Measure, ...]
    secret: bytes

    def __call__(self, bucket: Path) -> Measured | str:
        try:
            if not any(bucket.glob("*.parquet")):
                return _UNSEEN
            return measured_bucket(bucket, self.layout, self.measures, self.secret, threads=1)
        except DpAuditError as error:
            return str(error).rstrip(".")
        except Exception as error:  # noqa: BLE001 - a message could hold a value
            return f"a worker failed ({type(error).__name__})"


def measured_on_cluster(
    source: Source, layout: Layout, measures: Sequence[Measure], secret: bytes, address: str
) -> Measured:
    """All measures of a table, as :func:`dpaudit.tables.engines.duck.measured`.

    Args:
        source: where the table is.
        layout: how it is read.
        measures: what is computed.
        secret: key of the hash that chooses among rows of a unit.
        address: of the scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises:
        InputError: if the table cannot be read as declared, no scheduler answers, or its workers
            do not see the folder of temporary files.
        UnsupportedError: if DuckDB or dask is not installed.
    """
    distributed = optional_import("cluster", "distributed", what="a release on a cluster")
    try:
        client = distributed.Client(address, timeout=_SECONDS_TO_ANSWER, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"cluster is {shown(address)}; no scheduler answers there ({type(error).__name__})."
        ) from None
    found, task = nothing(measures), _Task(layout, tuple(measures), secret)
    with client, staged(source, layout) as buckets:
        futures = client.map(task, buckets, pure=False, retries=0)
        try:
            for future in futures:
                done = future.result()
                if isinstance(done, str):
                    raise InputError(f"cluster at {shown(address)} gave up: {done}.")
                found.add(done)
        except DpAuditError:
            raise
        except Exception as error:
            raise InputError(
                f"cluster at {shown(address)} gave up ({type(error).__name__}): a worker ended, or "
                "has another version of dpaudit or DuckDB."
            ) from error
        finally:
            client.cancel(futures)
    return found
