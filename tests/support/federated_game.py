"""Transcripts of a federated algorithm with and without its canary."""

from __future__ import annotations

import numpy as np

from audits.federated.game import (
    canary_pair,
)
from audits.federated.servers import (
    ClippedToWhole,
    EveryoneSampled,
    ForgottenLargestWeight,
    SilentWhenEmpty,
)

ALPHA = 1e-6
WRONG = (EveryoneSampled, SilentWhenEmpty, ForgottenLargestWeight, ClippedToWhole)


def outputs(subject, size, seed=0):
    pair = canary_pair(subject)
    return [
        subject.audit_release(data, size, np.random.default_rng([seed, side]))
        for side, data in enumerate((pair.x, pair.x_prime))
    ]
