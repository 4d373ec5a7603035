from .attaching import ObservedStep as ObservedStep
from .attaching import Training as Training
from .attaching import attach as attach
from .history import from_opacus_history as from_opacus_history
from .history import to_opacus_history as to_opacus_history
