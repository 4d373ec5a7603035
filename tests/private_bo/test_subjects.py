"""The public names of the package, and the subjects that it registers."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

import private_bo
from private_bo.local import LDPATAGPUCB, LDPTGPUCB, LDPMoMAGPUCB


def test_public_names() -> None:
    assert {LDPATAGPUCB, LDPMoMAGPUCB, LDPTGPUCB} < set(private_bo.SUBJECTS)
    assert len({subject.__name__ for subject in private_bo.SUBJECTS}) == len(private_bo.SUBJECTS)
    assert {"SUBJECTS", "GPUCB", "MoMAGPUCB"} <= set(private_bo.__all__) == set(dir(private_bo))
    for name in private_bo.__all__:
        assert getattr(private_bo, name) is not None
    with pytest.raises(AttributeError, match="attribute Nothing"):
        _ = private_bo.Nothing
    for kind in private_bo.SUBJECTS:
        assert replace(kind(), epsilon=2.0).claim().epsilon == 2.0
        assert all(field.init for field in fields(kind))
