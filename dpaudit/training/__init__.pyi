from .gradients.handles import SealedTrainer as SealedTrainer
from .gradients.one_call import fit as fit
from .gradients.trainer import Adaptive as Adaptive
from .gradients.trainer import Trainer as Trainer
