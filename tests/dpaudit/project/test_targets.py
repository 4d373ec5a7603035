"""What a command line names: settings, subjects and functions, and what it says of wrong ones.

A subject that is not there is answered with what may have been meant.
Which files a code hash covers.
"""

import importlib
import math
import sys
from dataclasses import dataclass

import pytest
from examples import response_plan

from dpaudit import InputError, Subject
from dpaudit.project import targets
from dpaudit.project.own_files import code_hash
from dpaudit.project.targets import find_subject, find_target


@dataclass(frozen=True)
class Survey(Subject):
    scale: float = 1.0
    shape: tuple[int, ...] = ()

    def plan(self):
        return response_plan()


@dataclass(frozen=True)
class Sized(Survey):
    size: int = None  # type: ignore[assignment]

    def __post_init__(self):
        if self.size == 0:
            raise ArithmeticError("no size")


READY = Survey(scale=3.0)


@pytest.fixture
def here(monkeypatch):
    """The module of this test by a name that can be typed."""
    import sys

    monkeypatch.setitem(sys.modules, "survey_module", sys.modules[__name__])
    return "survey_module"


def test_settings_are_json_where_they_can_be():
    given = ["a=1", "b=[1, 2]", "c=text", "d=null", "e=x=y", "f="]
    assert targets.parse_settings(given) == {
        "a": 1, "b": [1, 2], "c": "text", "d": None, "e": "x=y", "f": ""
    }  # fmt: skip
    assert targets.parse_settings(["a=NaN"])["a"] is not None
    tables = ['a={ kind = "binary-tree", steps = 16 }', "b=2026-01-02"]
    assert targets.parse_settings(tables) == {
        "a": {"kind": "binary-tree", "steps": 16}, "b": "2026-01-02"
    }  # fmt: skip
    assert math.isnan(targets.parse_settings(["a=NaN"])["a"])


@pytest.mark.parametrize(
    ("given", "message"),
    [(["a"], "form key=value"), (["=1"], "form key=value"), (["a=1", "a=2"], "a is given twice")],
)
def test_bad_settings(given, message):
    with pytest.raises(InputError, match=message):
        targets.parse_settings(given)


def test_settings_go_over_the_defaults_and_over_an_instance(here):
    assert targets.find_subject(f"{here}:Survey", {"shape": [1, [2]]}).shape == (1, (2,))
    found = targets.find_subject(f"{here}:READY", {"shape": [1]})
    assert (found.scale, found.shape) == (3.0, (1,))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("Survey", {"scala": 1}, "no field 'scala'; its fields are scale, shape"),
        ("Nobody", {}, "has no 'Nobody'"),
        ("math", {}, "is not a subject"),
        ("Sized", {"size": 0}, "cannot be made with"),
    ],
)
def test_what_is_wrong_with_a_subject(here, name, settings, message):
    with pytest.raises(InputError, match=message):
        targets.find_subject(f"{here}:{name}", settings)


@pytest.mark.parametrize("name", ["", "x", ":x", "x:", "no such module:x", "nowhere_at_all:x"])
def test_names_that_lead_nowhere(name):
    with pytest.raises(InputError, match=r"^(subject|module) is |cannot be imported"):
        targets.load_function(name)


def test_a_function_can_be_called(here):
    assert targets.load_function("math:sqrt") is math.sqrt
    with pytest.raises(InputError, match=r"math:pi is a float; it must be a function"):
        targets.load_function("math:pi")


def test_the_record_of_a_subject_is_its_public_fields(tmp_path):
    (tmp_path / "sized.py").write_text(
        "from dataclasses import dataclass\nfrom examples import Answers\n"
        "@dataclass(frozen=True)\nclass Sized(Answers):\n"
        "    scale: float = 1.0\n    shape: tuple = ()\n"
    )
    settings = {"scale": math.inf, "shape": [1], "users": 2}
    record = find_target(f"{tmp_path}/sized.py:Sized", settings).record
    assert record.configuration == {"epsilon": 1.0, "users": 2, "scale": "inf", "shape": [1]}
    assert record.location == "sized.py:3"
    assert record.code_hash


def test_a_plan_that_fails_says_why(tmp_path):
    code = "from examples import Answers\nclass Bad(Answers):\n def plan(self):\n  return {}['x']\n"
    (tmp_path / "bad_plan.py").write_text(code)
    with pytest.raises(InputError, match=r"KeyError at bad_plan.py:4: 'x'"):
        targets.find_target(f"{tmp_path}/bad_plan.py:Bad", {})


METHODS = """
from dataclasses import dataclass
import numpy as np
import beside_it

@dataclass(frozen=True)
class Shifted:
    by: float = 1.0
    def release(self, data):
        import beside_it as again
        return data + self.by + again.MORE

class Plain:
    def release(self, data):
        return data + beside_it.MORE
    @staticmethod
    def alone(data):
        return data
    class Inner:
        def release(self, data):
            return -data

class Needs:
    def __init__(self, what):
        self.what = what
    def release(self, data):
        return data

class Fails(Plain):
    def __init__(self):
        raise OSError("no disk")
"""


@pytest.fixture
def methods(tmp_path, monkeypatch):
    known = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(targets, "FOLDERS", set())
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "methods.py").write_text(METHODS)
        (folder / "beside_it.py").write_text(f"MORE = {number}00")
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_methods_of_an_instance(methods):
    def called(name, settings=None):
        return targets.load_function(f"{methods}/1/methods.py:{name}", settings)(5)

    assert called("Shifted.release") == 106
    assert called("Shifted.release", {"by": 3.0}) == 108
    assert called("Plain.release") == 105
    assert called("Plain.alone") == 5
    assert called("Plain.Inner.release") == -5


def test_siblings_are_those_of_the_own_folder(methods):
    one, two = (
        targets.load_function(f"{methods}/{number}/methods.py:Plain.release") for number in (1, 2)
    )
    assert (one(0), two(0)) == (100, 200)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("Shifted.release", {"of": 1}, "no field 'of'; its fields are by"),
        ("Plain.release", {"of": 1}, "no field 'of'; its fields are none"),
        ("Needs.release", {}, "cannot be made with .*what"),
        ("Fails.release", {}, "raised OSError"),
        ("Plain", {}, "is a class, not a subject; give a method of it"),
        ("Plain.alone", {"x": 1}, "--set is given for the function"),
        ("Plain.nothing", {}, "has no 'Plain.nothing'"),
    ],
)
def test_what_is_no_method(methods, name, settings, message):
    with pytest.raises(InputError, match=message) as caught:
        targets.load_function(f"{methods}/1/methods.py:{name}", settings)
    assert "\n" not in str(caught.value)


def test_functions_and_subjects_of_modules():
    assert isinstance(targets.find_code("examples:Answers", {}).subject, Subject)
    assert targets.find_code("math:sqrt", {}) is math.sqrt
    with pytest.raises(InputError, match="is a subject"):
        targets.load_function("examples:Answers")


CODE = """
from dataclasses import dataclass
from dpaudit import Subject

@dataclass(frozen=True)
class Survey(Subject):
    pass
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("survey_of_hints:Survey", "no file survey_of_hints.py is here, so give its place, such as "
         "mine/survey_of_hints.py:NAME."),
        ("nowhere_at_all:Survey", "so give its place, such as FOLDER/nowhere_at_all.py:NAME."),
        ("mine/survey_of_hints:Survey", "did you mean mine/survey_of_hints.py?"),
        ("mine/survey_of_hints.py", "name an object in it, mine/survey_of_hints.py:NAME."),
        ("mine/survey_of_hint.py:Survey", "did you mean 'mine/survey_of_hints.py'?"),
        ("mine/survey_of_hints.py:survye", "has no 'survye'; did you mean 'Survey'?"),
        ("mine/survey_of_hints.py:Survey.pln", "did you mean 'plan'?"),
        ("private_bo.locl:LDPTGPUCB", "No module named 'private_bo.locl'; did you mean 'local'?"),
        ("private_bo.local:LDPTGPUCBB", "did you mean 'LDPTGPUCB'?"),
        ("gaussian", "it is a mechanism; dpaudit list gaussian shows a plan file with it."),
        ("nothing", "it must be module:Object, FILE.py:object or PLAN.toml."),
        ("a b:c", "which is not a dotted name; give a .py file."),
        ("unmade:Survey", "unmade is a folder; name a file in it, unmade/FILE.py:Survey."),
        ("./mine:Survey", "it is a folder; name a file in it, mine/FILE.py."),
        ("mine", "it is a folder; name a file in it, mine/PLAN.toml or mine/FILE.py:NAME."),
        ("mine/ours.py:MIN", "has no 'MIN'; did you mean 'MINE'?"),
    ],
)  # fmt: skip
def test_what_was_meant(tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "unmade").mkdir()
    (tmp_path / "mine" / "survey_of_hints.py").write_text(CODE)
    (tmp_path / "mine" / "ours.py").write_text("from examples import Answers\nMINE = Answers()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError) as caught:
        find_subject(name, {})
    assert str(caught.value).endswith(said)


CODE_OF = """
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
    write(project / "xmain.py", CODE_OF.format(imports=imports))
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
    write(project / "sub" / "xmain.py", CODE_OF.format(imports="import xhelp"))
    write(project / "xhelp.py", "x = 1")
    before = find_target("sub/xmain.py:Sum", {}).record.code_hash
    write(project / "xhelp.py", "x = 22")
    assert find_target("sub/xmain.py:Sum", {}).record.code_hash != before


def test_a_package_and_its_neighbour(project):
    write(project / "xalgos" / "__init__.py", "")
    write(
        project / "xalgos" / "sums.py", CODE_OF.format(imports="import xhelp\nfrom . import part")
    )
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


def test_a_file_that_is_nested_too_deeply_is_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own.py").write_text("def f():\n    import deep\n")
    (tmp_path / "deep.py").write_text(f"x = {'-' * 20_000}1\n")
    with pytest.raises(InputError, match=r"deep.py' is nested too deeply to be read"):
        code_hash("own", tmp_path / "own.py")
