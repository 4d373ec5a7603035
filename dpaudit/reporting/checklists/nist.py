"""The privacy hazards of NIST SP 800-226, "Guidelines for Evaluating Differential Privacy".

Near, Darais, Lefkovitz and Howarth mark 24 privacy hazards, in sections on the guarantee (2), the
algorithms (3) and the deployment (4). Hazards and section numbers were read in the initial public
draft (December 2023); of the final edition (March 2025) only summaries were at hand, which name the
same topics. An item is met where the certificate shows that the hazard is dealt with.
"""

from __future__ import annotations

from dpaudit.reporting.checklists import nist_algorithms, nist_deployment, nist_guarantee
from dpaudit.reporting.checklists.model import Source

__all__ = ["HAZARDS"]

HAZARDS = Source(
    "nist-sp-800-226",
    "NIST SP 800-226: privacy hazards",
    "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees (March 2025); "
    "hazards and section numbers as in its initial public draft (December 2023)",
    (*nist_guarantee.TEMPLATES, *nist_algorithms.TEMPLATES, *nist_deployment.TEMPLATES),
)
"""All hazards, in the order of the publication."""
