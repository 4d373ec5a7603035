from .filters import AdaptiveFilter as AdaptiveFilter
from .filters import Filter as Filter
from .filters import RenyiFilter as RenyiFilter
from .filters import ZcdpFilter as ZcdpFilter
from .odometer import Odometer as Odometer
