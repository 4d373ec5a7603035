"""Private Bayesian optimisation: the algorithms of four papers as declared mechanisms.

The names below are the public interface, loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.subject import Subject
    from private_bo.baselines import ATAGPUCB as ATAGPUCB
    from private_bo.baselines import GPUCB as GPUCB
    from private_bo.baselines import TGPUCB as TGPUCB
    from private_bo.baselines import MoMAGPUCB as MoMAGPUCB
    from private_bo.federated import DPFTS as DPFTS
    from private_bo.federated import DPFTSDE as DPFTSDE
    from private_bo.federated import FTS as FTS
    from private_bo.federated import FTSDE as FTSDE
    from private_bo.federated import PlainTS as PlainTS
    from private_bo.joint import JointGPUCB as JointGPUCB
    from private_bo.local import LDPATAGPUCB as LDPATAGPUCB
    from private_bo.local import LDPTGPUCB as LDPTGPUCB
    from private_bo.local import LDPMoMAGPUCB as LDPMoMAGPUCB
    from private_bo.local_joint import LocalJointGPUCB as LocalJointGPUCB
    from private_bo.outsourced import CertifiedCurator as CertifiedCurator
    from private_bo.outsourced import Curator as Curator
    from private_bo.outsourced import Modeller as Modeller
    from private_bo.outsourced import Release as Release
    from private_bo.outsourced import RowNoise as RowNoise

    SUBJECTS: tuple[type[Subject], ...]

_SUBJECT_HOMES = {
    "private_bo.federated": ("DPFTS", "DPFTSDE"),
    "private_bo.joint": ("JointGPUCB",),
    "private_bo.local": ("LDPATAGPUCB", "LDPMoMAGPUCB", "LDPTGPUCB"),
    "private_bo.local_joint": ("LocalJointGPUCB",),
    "private_bo.outsourced": ("CertifiedCurator", "Curator"),
}
_HOMES = _SUBJECT_HOMES | {
    "private_bo.baselines": ("ATAGPUCB", "GPUCB", "MoMAGPUCB", "TGPUCB"),
    "private_bo.federated": ("DPFTS", "DPFTSDE", "FTS", "FTSDE", "PlainTS"),
    "private_bo.outsourced": ("CertifiedCurator", "Curator", "Modeller", "Release", "RowNoise"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "SUBJECTS"])


def __getattr__(name: str) -> Any:
    """A public name from its home; ``SUBJECTS`` is what can be certified, run and audited."""
    value: Any
    if name == "SUBJECTS":
        subjects = [subject for names in _SUBJECT_HOMES.values() for subject in names]
        value = tuple(__getattr__(subject) for subject in subjects)
    elif (home := _HOME_OF.get(name)) is not None:
        value = getattr(import_module(home), name)
    else:
        raise AttributeError(f"module 'private_bo' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
