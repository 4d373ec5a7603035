"""Runs in the environment of a cell: observes one row, or asks an accountant or a calibrator.

``python -m audits.libraries.worker`` takes a task on stdin, and answers in JSON. What it imports of
others it imports where it is used, as no environment has all of it.
"""

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
from unittest import mock

Task = dict[str, Any]
Epsilon = Callable[[float, float, int, float], float]


def opacus_epsilon(kind: str) -> Epsilon:
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


ACCOUNTANTS: dict[str, Callable[[], Epsilon]] = {
    "opacus_rdp": lambda: opacus_epsilon("rdp"),
    "opacus_prv": lambda: opacus_epsilon("prv"),
    "opacus_gdp": lambda: opacus_epsilon("gdp"),
    "google_rdp": lambda: google("rdp"),
    "google_pld": lambda: google("pld"),
    "autodp_rdp": lambda: autodp_rdp,
    "prv": lambda: prv,
}


def asked(epsilon: Epsilon, setting: Task) -> Task:
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


def epsilons(task: Task) -> Task:
    """What an accountant says in each setting."""
    warnings.simplefilter("ignore")
    epsilon = ACCOUNTANTS[task["call"]]()
    return {"cells": {each["name"]: asked(epsilon, each) for each in task["settings"]}}


def opacus_noise(task: Task) -> float:
    """The least noise by one of opacus' accountants."""
    from opacus.accountants.utils import get_noise_multiplier

    return float(
        get_noise_multiplier(
            target_epsilon=task["epsilon"],
            target_delta=task["delta"],
            sample_rate=task["rate"],
            steps=task["steps"],
            accountant=task["call"].removeprefix("opacus_"),
        )
    )


def flower_noise(task: Task) -> float:
    """The noise that Flower's LocalDpMod adds to an update of sensitivity 1."""
    from flwr.supercore import differential_privacy as private

    with mock.patch.object(private, "add_gaussian_noise_inplace") as drawn:
        private.add_localdp_gaussian_noise_to_params(
            private.ndarrays_to_parameters([]), 1.0, task["epsilon"], task["delta"]
        )
    return float(drawn.call_args.args[1])


def sigma(task: Task) -> Task:
    """The noise that a calibrator answers for a target."""
    warnings.simplefilter("ignore")
    return {"sigma": (flower_noise if task["call"] == "flower" else opacus_noise)(task)}


def observed(task: Task) -> Task:
    """What ``dpaudit observe`` finds; beside the certificate what was charged, which it prints."""
    from dpaudit.observing.observed_code import observe_target

    seen = observe_target(task["name"], **task["options"])
    own, proved = seen.certificate, seen.certificate.guarantee
    return {
        "verdict": str(own.verdict),
        "epsilon": None if proved is None else _finite(proved.epsilon),
        "delta": None if proved is None else proved.delta,
        "word": _finite(seen.at_its_word),
        "usual": _finite(seen.usual),
        "overspent": seen.overspent,
        "charged": None if seen.charged is None else str(seen.charged),
        "findings": [[str(each.severity), each.rule, each.message] for each in own.findings],
        "releases": sum(each.invocation.releases for each in seen.noted),
    }


def _finite(number: float | None) -> float | None:
    return None if number is None or math.isinf(number) else number


KINDS: dict[str, Callable[[Task], Task]] = {
    "observe": observed,
    "epsilon": epsilons,
    "sigma": sigma,
    "version": lambda task: {},  # of its library, which each answer has
}


def main() -> None:
    """Answer the task of stdin."""
    from dpaudit.base.errors import DpAuditError

    task = json.load(sys.stdin)
    try:
        with redirect_stdout(sys.stderr):  # libraries print
            found = KINDS[task["kind"]](task)
    except DpAuditError as error:
        found = {"error": str(error)}
    if "library" in task:
        found = {"version": metadata.version(task["library"])} | found
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
