"""A training whose members have higher scores, and the plan of which that is the law."""

from dpaudit.mechanisms import Gaussian
from dpaudit.plan import AddRemove, Invocation, Plan, PrivacyUnit, TrustModel

DELTA = 1e-5


def gaussian_plan(sigma, relation=None):
    row = PrivacyUnit("row")
    return Plan.of(Invocation(Gaussian(sigma), 1, row, relation or AddRemove(), TrustModel.CENTRAL))


class Shifted:
    """Every member's score is higher by ``shift``, in units of the noise: exactly GDP."""

    def __init__(self, shift):
        self.shift = shift

    def __call__(self, mask, rng):
        return self.shift * mask + rng.normal(size=mask.size)
