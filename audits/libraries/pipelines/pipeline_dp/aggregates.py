"""Aggregations of PipelineDP on its local backend; each row is a privacy unit."""

from __future__ import annotations

import pipeline_dp
from pipeline_dp import Metrics, NoiseKind

REGIONS = ("east", "north", "south", "west")
EXTRACT = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1]["region"],
    value_extractor=lambda row: row[1]["age"],
)


def aggregated(rows, *metrics, kind=NoiseKind.LAPLACE, public=REGIONS, **bounds):
    """Numbers by region, for a budget of 1 and 1e-6."""
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
    usual = {"min_value": 0, "max_value": 100, "max_contributions_per_partition": 1}
    params = pipeline_dp.AggregateParams(
        metrics=list(metrics),
        noise_kind=kind,
        max_partitions_contributed=1,
        **usual | bounds,
    )
    told = None if public is None else list(public)
    found = engine.aggregate(list(enumerate(rows)), params, EXTRACT, public_partitions=told)
    budget.compute_budgets()
    return {name: [float(each) for each in values] for name, values in sorted(found)}


def total(rows):
    """Sums of clamped values."""
    return aggregated(rows, Metrics.SUM)


def count(rows):
    """Numbers of rows."""
    return aggregated(rows, Metrics.COUNT)


def people(rows):
    """Numbers of privacy units."""
    return aggregated(rows, Metrics.PRIVACY_ID_COUNT)


def mean(rows):
    """Means, of a count and a sum."""
    return aggregated(rows, Metrics.MEAN)


def variance(rows):
    """Variances, of a count, a sum and a sum of squares."""
    return aggregated(rows, Metrics.VARIANCE)


def several(rows):
    """Counts, sums and numbers of privacy units, which share one budget."""
    return aggregated(rows, Metrics.COUNT, Metrics.SUM, Metrics.PRIVACY_ID_COUNT)


def gaussian(rows):
    """Counts and sums with Gaussian noise."""
    return aggregated(rows, Metrics.COUNT, Metrics.SUM, kind=NoiseKind.GAUSSIAN)


def medians(rows):
    """Medians of a noisy tree."""
    return aggregated(rows, Metrics.PERCENTILE(50))


def private_regions(rows):
    """Counts of the regions that occur, which are private."""
    return aggregated(rows, Metrics.COUNT, public=None)
