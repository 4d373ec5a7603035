from .estimator import Privacy as Privacy
from .estimator import PrivateClassifier as PrivateClassifier
from .gradients.handles import SealedTrainer as SealedTrainer
from .gradients.trainer import Adaptive as Adaptive
from .gradients.trainer import Trainer as Trainer
from .gradients.trainer import fit as fit
