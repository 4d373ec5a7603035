from .attaching import Training as Training
from .attaching import attach as attach
from .estimator import Privacy as Privacy
from .estimator import PrivateClassifier as PrivateClassifier
from .fixed_batches import FixedBatches as FixedBatches
from .step import ObservedStep as ObservedStep
from .units import PoissonLoader as PoissonLoader
