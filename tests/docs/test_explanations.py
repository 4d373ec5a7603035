"""Pages that explain, and how-tos: their code runs, and prints what stands below it."""

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from dpaudit.base.fields import Kinded
from dpaudit.cli.main import main

pytestmark = pytest.mark.pages
DOCS = Path(__file__).parents[2] / "docs"
EXPLANATIONS = (
    "certificates",
    "assumptions",
    "accountants",
    "checker",
    "what-audits-show",
    "floats",
)
HOW_TOS = ("choose-noise", "unit-and-relation", "write-a-mechanism", "cluster")
PAGES = dict.fromkeys(
    (*EXPLANATIONS, "compliance-report", "notebooks", "search"), 125
) | dict.fromkeys(HOW_TOS, 66)
"""Pages, and how many lines they may have."""
MODULES = ("survey", "my_code", "logistic", "noisy", "search")
"""What they import of their own."""

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"# ([\w.-]+\.\w+)\n")
_ANSWER = re.compile(r"# exit code (\d)")


def typed(text):
    """Run the lines of a shell; each ends with 0, or with the exit code that its comment states."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "dpaudit", line
        stated = _ANSWER.search(line)
        with pytest.raises(SystemExit) as left:
            main(words[1:])
        assert str(left.value.code or 0) == (stated[1] if stated else "0"), line


def marked(page):
    """Of one page the forecast of an audit is printed, which tests else abridge."""
    return pytest.param(page, marks=[pytest.mark.unabridged] * (page == "what-audits-show"))


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A folder with the examples; what is imported from it, and registered, is forgotten."""
    shutil.copytree(DOCS / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = {name: sys.modules.pop(name, None) for name in MODULES}
    for family in Kinded.__subclasses__():  # classes of a module that runs again register again
        # With all of this package's own: one that a page loads first would be forgotten too.
        monkeypatch.setattr(family, "_members", family.kinds())
    yield
    for name, module in before.items():
        sys.modules.pop(name, None)
        sys.modules.update({} if module is None else {name: module})


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_a_page_does_what_it_says(page, reader, capsys):
    for needed in ("opendp", "typst"):
        pytest.importorskip(needed)
    text = (DOCS / f"{page}.md").read_text("utf-8")
    assert len(text.splitlines()) <= PAGES[page]
    names, shown, ran = {}, "", 0
    for kind, block in _BLOCK.findall(text):
        if kind == "text":
            if not block.startswith("$ "):  # typed elsewhere
                assert block.split() == shown.split(), shown
            continue
        named = _NAMED.match(block)
        if named:
            assert Path(named[1]).stem in MODULES
            Path(named[1]).write_text(block, "utf-8")
        elif kind == "python":
            exec(block, names)
        elif kind == "sh":
            typed(block)
        shown, ran = capsys.readouterr().out, ran + (kind in ("python", "sh"))
    assert ran
