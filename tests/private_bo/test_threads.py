"""One BLAS thread, where it can be had."""

import sys

from threadpoolctl import threadpool_info

from private_bo.gp.types import single_threaded


def test_linear_algebra_runs_on_one_thread():
    with single_threaded():
        blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
    assert blas
    assert {each["num_threads"] for each in blas} == {1}


def test_without_the_library_the_environment_decides(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with single_threaded():
        pass
