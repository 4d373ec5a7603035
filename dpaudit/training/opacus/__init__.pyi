from .attaching import Training as Training
from .attaching import attach as attach
from .loaders import FixedBatches as FixedBatches
from .loaders import PoissonLoader as PoissonLoader
from .step import ObservedStep as ObservedStep
