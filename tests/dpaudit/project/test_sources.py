"""Which files a code hash covers."""

import importlib
import sys

import pytest

from dpaudit.project.targets import code_hash, find_target

CODE = """
from dataclasses import dataclass
from dpaudit import *
import os, numpy
{imports}
@dataclass(frozen=True)
class Sum(Subject):
    def plan(self):
        use = Laplace(1.0), 1.0, PrivacyUnit("row"), ReplaceOne(), TrustModel.CENTRAL
        return Plan.of(Invocation(*use, at="a"))
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder to import from, whose modules are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("target", ["xmain.py:Sum", "xmain:Sum"])
@pytest.mark.parametrize(
    ("imports", "helper"),
    [
        ("import xhelp", "xhelp.py"),
        ("from xhelp import *", "xhelp.py"),
        ("import xpack.part as part", "xpack/part.py"),
        ("import xpack", "xpack/other/unused.py"),
        ("import xbetween", "xhelp.py"),
        ("def late(): import xhelp", "xhelp.py"),
    ],
)
def test_imported_helpers_are_code_of_the_subject(project, target, imports, helper):
    write(project / "xmain.py", CODE.format(imports=imports))
    write(project / "xhelp.py", "x = 1")
    write(project / "xbetween.py", "import xhelp, xmain")
    write(project / "xpack" / "__init__.py", "")
    write(project / "xpack" / "part.py", "")
    write(project / "xpack" / "other" / "unused.py", "")
    write(project / "xstranger.py", "")
    before = find_target(target, {}).record.code_hash
    assert find_target(target, {}).record.code_hash == before
    write(project / "xstranger.py", "x = 2")
    assert find_target(target, {}).record.code_hash == before
    write(project / helper, "x = 'another helper'")
    assert find_target(target, {}).record.code_hash != before


def test_a_helper_above_the_file_counts(project):
    write(project / "sub" / "xmain.py", CODE.format(imports="import xhelp"))
    write(project / "xhelp.py", "x = 1")
    before = find_target("sub/xmain.py:Sum", {}).record.code_hash
    write(project / "xhelp.py", "x = 22")
    assert find_target("sub/xmain.py:Sum", {}).record.code_hash != before


def test_a_package_and_its_neighbour(project):
    write(project / "xalgos" / "__init__.py", "")
    write(project / "xalgos" / "sums.py", CODE.format(imports="import xhelp\nfrom . import part"))
    write(project / "xalgos" / "part.py", "")
    write(project / "xhelp.py", "x = 1")
    hashes = {find_target("xalgos.sums:Sum", {}).record.code_hash}
    write(project / "xalgos" / "part.py", "x = 1")
    hashes.add(find_target("xalgos.sums:Sum", {}).record.code_hash)
    write(project / "xhelp.py", "x = 22")
    hashes.add(find_target("xalgos.sums:Sum", {}).record.code_hash)
    assert len(hashes) == 3


def test_installed_packages_and_other_projects_do_not_count(project, monkeypatch):
    names = "import xinstalled, xforeign, numpy, dpaudit, sys, xmissing"
    monkeypatch.syspath_prepend(str(project / ".venv" / "site-packages"))
    monkeypatch.syspath_prepend(str(project / "other"))
    write(project / ".venv" / "site-packages" / "xinstalled.py", "")
    write(project / "other" / "xforeign.py", "")
    write(project / "own" / "xmain.py", names)
    importlib.invalidate_caches()
    alone = code_hash("xmain", project / "own" / "xmain.py")
    write(project / "own" / "ymain.py", names)
    write(project / ".venv" / "site-packages" / "xinstalled.py", "x = 1")
    write(project / "other" / "xforeign.py", "x = 1")
    assert code_hash("ymain", project / "own" / "ymain.py") == alone
    assert "xforeign" not in sys.modules


def test_what_cannot_be_parsed_is_hashed_all_the_same(project):
    write(project / "xmain.py", "import xhelp")
    write(project / "xhelp.py", "not python (")
    importlib.invalidate_caches()
    before = code_hash("xmain", project / "xmain.py")
    write(project / "xhelp.py", "not python ((")
    assert code_hash("xmain", project / "xmain.py") != before
