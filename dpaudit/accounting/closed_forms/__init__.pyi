from .additive import GaussianAccountant as GaussianAccountant
from .additive import PureAccountant as PureAccountant
from .additive import ZcdpAccountant as ZcdpAccountant
from .bounded_range import BoundedRangeAccountant as BoundedRangeAccountant
from .rdp import MomentsAccountant as MomentsAccountant
from .rdp import RdpAccountant as RdpAccountant
