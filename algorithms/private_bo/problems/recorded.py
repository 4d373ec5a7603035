"""The two real data sets of Zhou & Tan 2021, Section 6, read from files the user provides.

Both keep the data's own units throughout. Their B, R, v and c are statistics of the very readings
that are to be protected, as in the paper: ``bounds_are_public`` is false.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from dpaudit.base.errors import InputError
from private_bo.gp import FiniteDomain, TableKernel
from private_bo.gp.types import Array
from private_bo.problems.base import BanditProblem, RecordedRewards
from private_bo.problems.files import data_file


def light_sensors(path: str | Path | None = None) -> BanditProblem:
    """Which of 41 light sensors of the CMU Intelligent Workplace reads most on average?

    The mean of the test readings (192, 41) is f; a round draws one test reading of the chosen
    sensor; the kernel is the correlation matrix of the training readings (601, 41).

    Args:
        path: ``iw_data_all.mat``; by default ``light_sensor/iw_data_all.mat`` in the directory
            named by the environment variable ``DPAUDIT_DATA``.

    Raises:
        InputError: if the file is missing or is not that data set.
    """
    from scipy.io import loadmat

    file = data_file(path, "light_sensor/iw_data_all.mat")
    try:
        # mat_dtype: the file stores uint16, whose squares overflow.
        data = loadmat(file, squeeze_me=True, struct_as_record=False, mat_dtype=True)["data"]
        train = np.asarray(data.train.sensordata, dtype=np.float64)
        test = np.asarray(data.test.sensordata, dtype=np.float64)
    except Exception as wrong:
        raise InputError(
            f"path is {str(file)!r}, which has no data.train.sensordata and data.test.sensordata "
            "matrices; it must be the light sensor file iw_data_all.mat."
        ) from wrong
    labels = tuple(f"sensor {number}" for number in range(test.shape[-1]))
    return _recorded("light sensors", train, test, labels, file)


def stocks(path: str | Path | None = None) -> BanditProblem:
    """Which of 29 stocks has the largest mean price?

    The mean adjusted close over all days is f; a round draws one day's price of the chosen
    stock; the kernel is the correlation matrix of the prices.

    Args:
        path: ``fin.csv``, a header ``Date,TICKER,...`` and one line a day; by default
            ``stocks/fin.csv`` in the directory named by the environment variable ``DPAUDIT_DATA``.

    Raises:
        InputError: if the file is missing or is not such a table.
    """
    file = data_file(path, "stocks/fin.csv")
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            header, *days = [line for line in csv.reader(stream) if line]
        prices = np.array([[float(price) for price in day[1:]] for day in days])
    except (OSError, ValueError, csv.Error) as wrong:
        raise InputError(
            f"path is {str(file)!r}, which is not a table of prices; it must have a header "
            "Date,TICKER,... and one line of numbers a day."
        ) from wrong
    return _recorded("stocks", prices, prices, tuple(header[1:]), file)


def _recorded(
    name: str, past: Array, readings: Array, labels: tuple[str, ...], file: Path
) -> BanditProblem:
    """The problem of the largest column mean, with the past's correlations as kernel."""
    if readings.ndim != 2 or past.shape[1:] != readings.shape[1:] or len(past) < 2:
        raise InputError(
            f"path is {str(file)!r}, whose tables have shapes {past.shape} and {readings.shape}; "
            "they must be matrices with one column for each of the same arms."
        )
    deviation = past.std(axis=0)
    if not (np.isfinite(past).all() and np.isfinite(readings).all() and deviation.min() > 0.0):
        raise InputError(
            f"path is {str(file)!r}, which has a column that is constant or not finite; "
            "every arm must have varying, finite readings."
        )
    scores = (past - past.mean(axis=0)) / deviation
    correlation = scores.T @ scores / len(scores)
    # Rounding leaves the diagonal within 1e-15 of 1.
    np.fill_diagonal(correlation, 1.0)
    means = readings.mean(axis=0)
    noise = readings - means
    return BanditProblem(
        name=name,
        domain=FiniteDomain.indices(readings.shape[1]),
        kernel=TableKernel(correlation),
        f=means,
        B=float(np.abs(means).max()),
        R=float(np.abs(noise).max()),
        v=float(np.mean(readings**2)),
        c=float(np.mean(noise**2)),
        bounds_are_public=False,
        rewards=RecordedRewards([np.ascontiguousarray(column) for column in readings.T]),
        labels=labels,
    )
