"""Counts and sums by 100 public keys in other libraries, as each of their manuals has it.

``python peers.py NAME TABLE`` answers by one of the functions below, and prints seconds and sums as
JSON; it runs in the library's own environment, by the standard library alone. At most five rows of
a unit count, ε is 1 under add-remove of units, and amounts are within 0 and 1000; a docstring says
where a library has no such bound. Seconds are those after its import: of a Spark, with its start.
"""

from __future__ import annotations

import csv
import json
import sys
import time
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

KEYS = [f"k{number}" for number in range(100)]
ROWS, LOW, HIGH = 5, 0.0, 1000.0
Answer = dict[str, tuple[float, float]]


def dpaudit(path: str) -> Callable[[], Answer]:
    """This library, by the release file beside the table, without its certificate and report."""
    for late in ("duckdb", "opendp.measurements", "pyarrow.csv", "scipy.special", "sqlglot"):
        import_module(late)  # it loads them where they are used, which is not work either
    from dpaudit import read_release
    from dpaudit.ledger import Ledger

    def answer() -> Answer:
        text = Path(path).with_suffix(".toml").read_text(encoding="utf-8")
        release = read_release(tomllib.loads(text))
        counts, sums = release.run(release.load(), Ledger(release.plan()))
        pairs = zip(counts.estimates, sums.estimates, strict=True)
        return {count.cell[0]: (count.value, total.value) for count, total in pairs}

    return answer


def opendp(path: str) -> Callable[[], Answer]:
    """OpenDP with Polars; it must be told how many rows there are at most."""
    import opendp.prelude as dp
    import polars as pl

    def answer() -> Answer:
        dp.enable_features("contrib")
        schema = {"unit": pl.String, "key": pl.String, "amount": pl.Float64}
        context = dp.Context.compositor(
            data=pl.scan_csv(path, schema=schema),
            privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("unit")),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=10**8, max_groups=len(KEYS))],
        )
        amount = pl.col("amount").fill_null(0.0).fill_nan(0.0)
        asked = context.query().truncate_per_group(ROWS).group_by("key")
        asked = asked.agg(dp.len(), amount.dp.sum((LOW, HIGH)))
        table = asked.with_keys(pl.LazyFrame({"key": KEYS})).release().collect()
        return {key: (count, total) for key, count, total in table.rows()}

    return answer


def smartnoise(path: str) -> Callable[[], Answer]:
    """SmartNoise SQL on pandas, which it puts into SQLite; keys are those of the data."""
    import pandas as pd
    import snsql

    def answer() -> Answer:
        columns = {
            "unit": {"type": "string", "private_id": True},
            "key": {"type": "string"},
            "amount": {"type": "float", "lower": LOW, "upper": HIGH},
        }
        reader = snsql.from_df(
            pd.read_csv(path),
            privacy=snsql.Privacy(epsilon=0.5, delta=1e-9),
            metadata={"": {"": {"visits": {"max_ids": ROWS, "censor_dims": False, **columns}}}},
        )
        asked = "SELECT key, COUNT(*) AS n, SUM(amount) AS total FROM visits GROUP BY key"
        return {key: (count, total) for key, count, total in reader.execute(asked)[1:]}

    return answer


def _pipeline(rows: Any, backend: Any) -> Answer:
    """By PipelineDP on one of its backends; the results are fetched by iteration or collect()."""
    import pipeline_dp as dp

    accountant = dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=0)
    asked = dp.AggregateParams(
        metrics=[dp.Metrics.COUNT, dp.Metrics.SUM],
        noise_kind=dp.NoiseKind.LAPLACE,
        max_contributions=ROWS,
        min_value=LOW,
        max_value=HIGH,
    )
    columns = dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    found = dp.DPEngine(accountant, backend).aggregate(rows, asked, columns, public_partitions=KEYS)
    accountant.compute_budgets()
    cells = found.collect() if hasattr(found, "collect") else found
    return {key: (cell.count, cell.sum) for key, cell in cells}


def pipelinedp(path: str) -> Callable[[], Answer]:
    """PipelineDP on lists of Python, its local runner."""
    import pipeline_dp

    def answer() -> Answer:
        with Path(path).open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            next(lines)
            rows = [(unit, key, float(amount)) for unit, key, amount in lines]
        return _pipeline(rows, pipeline_dp.LocalBackend())

    return answer


def _spark_table(path: str) -> Any:
    """The table in a Spark that is as large as this machine."""
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    spark = made.config("spark.driver.memory", "6g").getOrCreate()
    return spark.read.csv(path, header=True, schema="unit STRING, key STRING, amount DOUBLE")


def pipelinedp_spark(path: str) -> Callable[[], Answer]:
    """PipelineDP on Spark."""
    import pipeline_dp

    def answer() -> Answer:
        rows = _spark_table(path).rdd
        return _pipeline(rows, pipeline_dp.SparkRDDBackend(rows.context))

    return answer


def tumult(path: str) -> Callable[[], Answer]:
    """Tumult Analytics, which is on Spark; each aggregate is a query of its own."""
    from tmlt import analytics as tmlt

    def answer() -> Answer:
        table, half = _spark_table(path), tmlt.PureDPBudget(0.5)
        session = tmlt.Session.from_dataframe(
            tmlt.PureDPBudget(1), "visits", table, tmlt.AddRowsWithID("unit")
        )
        rows = tmlt.QueryBuilder("visits").enforce(tmlt.MaxRowsPerID(ROWS))
        groups = rows.groupby(tmlt.KeySet.from_dict({"key": KEYS}))
        counts = dict(map(tuple, session.evaluate(groups.count(), half).collect()))
        sums = dict(map(tuple, session.evaluate(groups.sum("amount", LOW, HIGH), half).collect()))
        return {key: (counts[key], sums[key]) for key in KEYS}

    return answer


def diffprivlib(path: str) -> Callable[[], Answer]:
    """diffprivlib on pandas; it bounds no unit: all rows count, and ε is of one row."""
    import pandas as pd
    from diffprivlib import tools

    def answer() -> Answer:
        rows = pd.read_csv(path).groupby("key")["amount"]
        return {
            key: (
                tools.count_nonzero(own.notna().to_numpy(), epsilon=0.5),
                tools.sum(own.to_numpy(), epsilon=0.5, bounds=(LOW, HIGH)),
            )
            for key, own in rows
        }

    return answer


def main() -> None:
    """Answer, and print how long it took and what came of it."""
    _, name, path = sys.argv
    answer = globals()[name](path)
    start = time.perf_counter()
    found = answer()
    seconds = time.perf_counter() - start
    counts, sums = (float(sum(each)) for each in zip(*found.values(), strict=True))
    print(json.dumps({"work": seconds, "cells": len(found), "count": counts, "sum": sums}))


if __name__ == "__main__":
    main()
