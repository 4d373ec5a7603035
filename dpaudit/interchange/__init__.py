"""Exchange of plans with dp-accounting, opacus and OpenDP, which are imported only where used."""

from dpaudit.interchange.dp_event import from_dp_event, to_dp_event
from dpaudit.interchange.opacus_history import from_opacus_history, to_opacus_history
from dpaudit.interchange.opendp_measurement import from_opendp_measurement

__all__ = [
    "from_dp_event",
    "from_opacus_history",
    "from_opendp_measurement",
    "to_dp_event",
    "to_opacus_history",
]
