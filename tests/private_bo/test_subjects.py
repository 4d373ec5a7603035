"""The public names of the package, and the subjects that it registers."""

from __future__ import annotations

import pkgutil
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import private_bo
from dpaudit.rehearsal.models import model_findings
from private_bo.federated import DPFTSDE
from private_bo.joint import JointGPUCB, LocalJointGPUCB, Noise
from private_bo.local import LDPATAGPUCB, LDPTGPUCB, LDPMoMAGPUCB, LDPOneBitGP
from private_bo.outsourced import CertifiedCurator, Curator


def test_public_names() -> None:
    assert {LDPATAGPUCB, LDPMoMAGPUCB, LDPOneBitGP, LDPTGPUCB} < set(private_bo.SUBJECTS)
    assert len({subject.__name__ for subject in private_bo.SUBJECTS}) == len(private_bo.SUBJECTS)
    assert {"SUBJECTS", "GPUCB", "MoMAGPUCB"} <= set(private_bo.__all__) == set(dir(private_bo))
    for name in private_bo.__all__:
        assert getattr(private_bo, name) is not None
    with pytest.raises(AttributeError, match="attribute Nothing"):
        _ = private_bo.Nothing
    for kind in private_bo.SUBJECTS:
        assert replace(kind(), epsilon=2.0).claim().epsilon == 2.0
        assert all(field.init for field in fields(kind))


@pytest.mark.parametrize("room", ["federated", "joint", "local", "outsourced"])
def test_the_page_of_a_paper_names_code_that_is_there(room) -> None:
    page = (Path(private_bo.__file__).parent / room / "README.md").read_text(encoding="utf-8")
    table = page.partition("| paper | code |")[2].partition("\n\n")[0]
    names = re.findall(r"`([a-z_]+\.[\w.]+)`", table)
    assert len(names) >= 4
    for name in names:
        assert pkgutil.resolve_name(
            name if name.startswith("private_bo.") else f"private_bo.{room}.{name}"
        )


@pytest.mark.parametrize(
    ("subject", "runs"),
    [
        (LDPTGPUCB(steps=8), 100),
        (LDPOneBitGP(steps=8), 100),
        (CertifiedCurator(queries=10, output_epsilon=1.0), 40),
        (Curator(queries=10), 40),
        (JointGPUCB(steps=8), 40),
        (JointGPUCB(steps=8, noise=Noise.PAPER), 40),
        (LocalJointGPUCB(steps=8), 40),
        (DPFTSDE(agents=8, rounds=3, rate=0.5, initial=3), 40),
    ],
    ids=lambda given: type(given).__name__,
)
def test_models_draw_what_runs_release(subject, runs, monkeypatch) -> None:
    """On as many real runs, in whatever time, as tell a model with three times the noise."""
    monkeypatch.setattr("dpaudit.rehearsal.models.MOST_COMPARED", runs)
    monkeypatch.setattr("dpaudit.rehearsal.models.MODEL_SECONDS", np.inf)

    class Louder(type(subject)):
        """A model with three times the noise of the run."""

        def audit_release(self, data, size, rng):
            drawn = np.asarray(super().audit_release(data, size, rng))
            return 3.0 * drawn - 2.0 * drawn.mean(axis=0)

    assert model_findings(subject, 0, 1e-6) == []
    public = {each.name: getattr(subject, each.name) for each in fields(subject) if each.init}
    (found,) = model_findings(Louder(**public), 0, 1e-6)
    assert found.rule == "model-differs"
