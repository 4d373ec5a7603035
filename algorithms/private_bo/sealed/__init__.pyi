from .joint import JointGPUCB as JointGPUCB
from .joint import LocalJointGPUCB as LocalJointGPUCB
from .local import LDPATAGPUCB as LDPATAGPUCB
from .local import LDPTGPUCB as LDPTGPUCB
from .local import LDPMoMAGPUCB as LDPMoMAGPUCB
from .local import LDPOneBitGP as LDPOneBitGP
from .local import LocalStudy as LocalStudy
