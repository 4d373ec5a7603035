"""The author's modules in a template: those that a function can come to, and when they run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dpaudit.sealed.template import Code

FILES = {
    "own/__init__.py": "import no_such_library\nHELD = 3\n",
    "own/work.py": "import json\nfrom own.parts import two\nfrom . import parts\n"
    "def f(records, rng):\n    from .late import three\n    return two() + three()\n"
    "def g(records, rng):\n    import own\n    return own.HELD\n",
    "own/parts.py": "def two():\n    return 2\n",
    "own/late.py": "import colorsys\ndef three():\n    return 3\n",
    "own/beside.py": "import wave\n",
    "plain/__init__.py": "KEPT = 4\n",
    "plain/work.py": "from plain import KEPT\ndef f(records, rng):\n    return KEPT\n",
    "broken.py": "def f(:\n",
}


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    wanted = {str(tmp_path / name) for name in ("own/work.py", "plain/work.py")}
    found = Code.read([str(tmp_path)], [], wanted)
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    _forget("own", "plain", "wave", "colorsys")  # others may have modules of these names
    yield found
    _forget("own", "plain")


def _forget(*roots: str):
    for name in [each for each in sys.modules if each.partition(".")[0] in roots]:
        del sys.modules[name]


def test_what_no_function_comes_to_is_not_loaded(code, tmp_path):
    code.import_libraries()
    assert {"json", "colorsys"} <= sys.modules.keys()  # named within a function, too
    assert "wave" not in sys.modules
    assert code.find_spec("own.beside") is None
    assert code.find_spec("broken") is None
    assert code.find_spec("own.late") is not None
    assert not [name for name in sys.modules if name.startswith("own")]  # nothing has run


def test_a_package_runs_when_something_of_it_is_asked_for(code, tmp_path):
    work = str(tmp_path / "own" / "work.py")
    assert code.function(work, "f")({}, None) == 5  # though its own file cannot run
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        code.function(work, "g")({}, None)
    assert code.function(str(tmp_path / "plain" / "work.py"), "f")({}, None) == 4
