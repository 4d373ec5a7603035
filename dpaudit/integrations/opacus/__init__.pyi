from .attaching import ObservedStep as ObservedStep
from .attaching import Training as Training
from .attaching import attach as attach
from .fixed_batches import FixedBatches as FixedBatches
from .units import PoissonLoader as PoissonLoader
