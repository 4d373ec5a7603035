"""Asks one calibrator of somebody for noise; imports none of ours."""

from __future__ import annotations

import json
import sys
import warnings
from contextlib import redirect_stdout
from typing import Any
from unittest import mock


def opacus(task: dict[str, Any]) -> float:
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


def flower(task: dict[str, Any]) -> float:
    """The noise that Flower's LocalDpMod adds to an update of sensitivity 1."""
    from flwr.supercore import differential_privacy as private

    with mock.patch.object(private, "add_gaussian_noise_inplace") as drawn:
        private.add_localdp_gaussian_noise_to_params(
            private.ndarrays_to_parameters([]), 1.0, task["epsilon"], task["delta"]
        )
    return float(drawn.call_args.args[1])


def main() -> None:
    """Answer the task of stdin."""
    task = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    with redirect_stdout(sys.stderr):
        sigma = (flower if task["call"] == "flower" else opacus)(task)
    sys.stdout.write(json.dumps({"sigma": sigma}))


if __name__ == "__main__":
    main()
