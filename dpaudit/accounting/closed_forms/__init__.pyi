from .bounded_range import BoundedRangeAccountant as BoundedRangeAccountant
from .gaussian import GaussianAccountant as GaussianAccountant
from .moments import MomentsAccountant as MomentsAccountant
from .pure import PureAccountant as PureAccountant
from .rdp import RdpAccountant as RdpAccountant
from .zcdp import ZcdpAccountant as ZcdpAccountant
