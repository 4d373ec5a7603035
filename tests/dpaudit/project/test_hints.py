"""A subject that is not there is answered with what may have been meant."""

import pytest

from dpaudit.base.errors import InputError
from dpaudit.project.targets import find_subject

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
        ("mine/survey_of_hints.py", "say which object of it, mine/survey_of_hints.py:NAME."),
        ("mine/survey_of_hint.py:Survey", "did you mean 'mine/survey_of_hints.py'?"),
        ("mine/survey_of_hints.py:survye", "has no 'survye'; did you mean 'Survey'?"),
        ("mine/survey_of_hints.py:Survey.pln", "did you mean 'plan'?"),
        ("private_bo.locl:LDPTGPUCB", "No module named 'private_bo.locl'; did you mean 'local'?"),
        ("private_bo.local:LDPTGPUCBB", "did you mean 'LDPTGPUCB'?"),
        ("gaussian", "that is a mechanism, and dpaudit list gaussian shows a plan file with it."),
        ("nothing", "it must be module:Object, FILE.py:object or PLAN.toml."),
        ("a b:c", "which is no dotted name; give a .py file."),
        ("unmade:Survey", "unmade has no 'Survey'; check the name."),
    ],
)  # fmt: skip
def test_what_was_meant(tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "unmade").mkdir()
    (tmp_path / "mine" / "survey_of_hints.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError) as caught:
        find_subject(name, {})
    assert str(caught.value).endswith(said)
