"""A new copy of a module has forgotten what earlier runs left in the old one."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from dpaudit.auditing.rehearsal.afresh import afresh
from dpaudit.auditing.rehearsal.rehearse import rehearse
from dpaudit.mechanisms import Mechanism
from dpaudit.project.targets import find_subject

CODE = """
from dataclasses import dataclass
from functools import cache
import numpy as np
from dpaudit import *

NOISE = Laplace(1.0)
KEPT = {}

@dataclass(frozen=True)
class Cached(Subject):
    scale: float = 1.0

    def plan(self):
        facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation.bounded(NOISE, Contribution(1.0), *facts, at="sum"))

    def run(self, rows, ledger, rng):
        mean = KEPT.setdefault("mean", float(np.mean(rows)) if len(rows) else 0.0)
        return RunResult({"sum": ledger.sum(rows), "mean": mean})
"""


def test_a_cache_is_not_shared(tmp_path):
    (tmp_path / "cached.py").write_text(CODE)
    subject = find_subject(f"{tmp_path}/cached.py:Cached", {"scale": 2.0})
    copied = afresh(subject)
    assert copied.scale == 2.0
    assert type(copied) is not type(subject)
    assert copied.plan() == subject.plan()
    assert sys.modules[type(subject).__module__].Cached is type(subject)
    found = rehearse(subject, np.random.default_rng(0).uniform(0, 1, 20)).findings
    assert [each.rule for each in found] == ["result-not-from-releases"]
    assert "by a new copy of the module" in found[0].message


HELPER = """
KEPT = {}

def mean(rows):
    return KEPT.setdefault("mean", float(sum(rows)) / max(len(rows), 1))
"""
PACKED = (
    CODE.replace("KEPT = {}", "from {} import mean")
    .replace(CODE[CODE.index("        mean = KEPT") : CODE.index("        return RunResult")], "")
    .replace('"mean": mean', '"mean": mean(rows)')
)


@pytest.mark.parametrize("packed", [False, True])
def test_a_cache_in_another_module_of_the_project_is_not_shared(tmp_path, monkeypatch, packed):
    name = f"{tmp_path.name}_{packed}"
    folder = tmp_path / f"{name}_package" if packed else tmp_path
    folder.mkdir(exist_ok=True)
    helper = f"{name}_helper"
    (folder / f"{helper}.py").write_text(HELPER)
    (folder / f"{name}.py").write_text(PACKED.replace("{}", f".{helper}" if packed else helper))
    monkeypatch.syspath_prepend(tmp_path)
    if packed:
        (folder / "__init__.py").write_text(f"from .{name} import Cached")
    subject = find_subject(f"{folder.name}.{name}:Cached" if packed else f"{name}:Cached", {})
    before = dict(sys.modules)
    assert afresh(subject) is not None
    assert sys.modules == before
    found = rehearse(subject, np.random.default_rng(0).uniform(0, 1, 20)).findings
    assert [each.rule for each in found] == ["result-not-from-releases"]


def test_what_has_no_file_is_rehearsed_as_it_is():
    class Local:
        pass

    assert afresh(Local()) is None


def test_what_a_module_reads_when_it_is_loaded_is_no_finding(tmp_path):
    (tmp_path / "facts.json").write_text("[1]")
    code = CODE.replace("KEPT = {}", f"KEPT = {{}}; open({str(tmp_path / 'facts.json')!r}).close()")
    code = code.replace('"mean": mean', '"mean": 1')
    (tmp_path / "reader.py").write_text(code)
    subject = find_subject(f"{tmp_path}/reader.py:Cached", {})
    assert rehearse(subject, np.random.default_rng(0).uniform(0, 1, 20)).findings == ()


OWN_MECHANISM = """
from dataclasses import dataclass
from typing import ClassVar
from dpaudit import *

@dataclass(frozen=True)
class Own(Laplace):
    kind: ClassVar[str] = "own-{}"

@dataclass(frozen=True)
class Uses(Subject):
    def plan(self):
        facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation(Own(1.0), 1.0, *facts))
"""


def test_a_mechanism_of_the_module_stays_the_registered_one(tmp_path):
    (tmp_path / "own.py").write_text(OWN_MECHANISM.format(tmp_path.name))
    subject = find_subject(f"{tmp_path}/own.py:Uses", {})
    assert afresh(subject) is None
    plan = subject.plan()
    assert Mechanism.kinds()[f"own-{tmp_path.name}"] is type(plan.invocations[0].mechanism)


OWN_CLASSES = """
import enum

class Vote(enum.Enum):
    YES = 1

class Voted(Cached):
    def run(self, data, ledger, rng):
        return RunResult({"yes": ledger.sum([float(each is Vote.YES) for each in data])})
"""


def test_instances_of_the_module_s_classes_are_not_those_of_a_copy(tmp_path):
    (tmp_path / "votes.py").write_text(CODE + OWN_CLASSES)
    subject = find_subject(f"{tmp_path}/votes.py:Voted", {})
    yes = sys.modules[type(subject).__module__].Vote.YES
    assert afresh(subject, [1.0, "yes", None], np.ones(3), {"x": (1,)}) is not None
    objects = np.array([None, yes], dtype=object)
    for held in (yes, [1.0, yes], {"a": ((yes,),)}, objects, type(yes), [lambda: 1]):
        assert afresh(subject, held) is None
    assert afresh(replace(subject, scale=yes)) is None
    assert rehearse(subject, [yes] * 20).findings == ()
