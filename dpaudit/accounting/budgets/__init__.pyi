from .adaptive import AdaptiveFilter as AdaptiveFilter
from .base import Filter as Filter
from .renyi import RenyiFilter as RenyiFilter
from .zcdp import ZcdpFilter as ZcdpFilter
