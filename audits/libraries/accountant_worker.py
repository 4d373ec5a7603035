"""Asks one accountant of somebody for ε, in the environment that it needs; imports none of ours."""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import metadata
from typing import Any

Epsilon = Callable[[float, float, int, float], float]


def opacus(kind: str) -> Epsilon:
    """One of opacus."""
    from opacus.accountants import create_accountant

    def epsilon(rate: float, noise: float, steps: int, delta: float) -> float:
        accountant = create_accountant(kind)
        accountant.history = [(noise, rate, steps)]
        return float(accountant.get_epsilon(delta))

    return epsilon


def google(accountant: str) -> Epsilon:
    """One of dp-accounting."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    made = {"rdp": RdpAccountant, "pld": PLDAccountant}[accountant]

    def epsilon(rate: float, noise: float, steps: int, delta: float) -> float:
        event = dp_accounting.GaussianDpEvent(noise)
        event = event if rate == 1 else dp_accounting.PoissonSampledDpEvent(rate, event)
        return float(made().compose(event, steps).get_epsilon(delta))

    return epsilon


def autodp_rdp(rate: float, noise: float, steps: int, delta: float) -> float:
    """The analytical accountant of autodp."""
    from autodp import rdp_acct, rdp_bank

    accountant = rdp_acct.anaRDPacct()

    def curve(order: float) -> float:
        return rdp_bank.RDP_gaussian({"sigma": noise}, order)

    if rate == 1:
        accountant.compose_mechanism(curve, coeff=steps)
    else:
        accountant.compose_poisson_subsampled_mechanisms(curve, rate, coeff=steps)
    return float(accountant.get_eps(delta))


def prv(rate: float, noise: float, steps: int, delta: float) -> float:
    """The upper bound of prv-accountant."""
    from prv_accountant import GaussianMechanism, PoissonSubsampledGaussianMechanism, PRVAccountant

    made = (
        GaussianMechanism(noise)
        if rate == 1
        else PoissonSubsampledGaussianMechanism(sampling_probability=rate, noise_multiplier=noise)
    )
    accountant = PRVAccountant(
        prvs=[made], max_self_compositions=[steps], eps_error=0.01, delta_error=delta / 1000
    )
    return float(accountant.compute_epsilon(delta, num_self_compositions=[steps])[2])


CALLS: dict[str, Callable[[], Epsilon]] = {
    "opacus_rdp": lambda: opacus("rdp"),
    "opacus_prv": lambda: opacus("prv"),
    "opacus_gdp": lambda: opacus("gdp"),
    "google_rdp": lambda: google("rdp"),
    "google_pld": lambda: google("pld"),
    "autodp_rdp": lambda: autodp_rdp,
    "prv": lambda: prv,
}


def asked(epsilon: Epsilon, setting: dict[str, Any]) -> dict[str, Any]:
    """One cell; a failure of the accountant is an answer too."""
    before = time.perf_counter()
    given = (setting[name] for name in ("rate", "noise", "steps", "delta"))
    try:
        found = epsilon(*given)
    except Exception as error:  # noqa: BLE001 - whatever a foreign library raises
        return {"error": f"{type(error).__name__}: {error}"[:160]}
    if not math.isfinite(found):
        return {"error": f"it says {found}"}
    return {"epsilon": found, "seconds": round(time.perf_counter() - before, 2)}


def main() -> None:
    """Answer the task of stdin."""
    task = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    with redirect_stdout(sys.stderr):
        epsilon = CALLS[task["call"]]()
        cells = {each["name"]: asked(epsilon, each) for each in task["settings"]}
    found = {"version": metadata.version(task["library"]), "cells": cells}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
