import pytest
from projects import CODE, PLAN

from dpaudit.workflow.checking import check_project


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write a project file into a folder of its own, with plans and code, and check it."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "code.py").write_text(CODE)
    for name, facts in {
        "laplace": ("laplace", 2, 1, "scale = 2"),
        "response": ("randomized-response", 1, 1, "p = 0.5\nk = 2"),
        "opaque": ("opaque", 1, 1, 'label = "sketch"\nepsilon = 1'),
        "normal": ("gaussian", 1, 1, "sigma = 4"),
    }.items():
        mechanism, claim, count, rest = facts
        text = PLAN.format(mechanism=mechanism, claim=claim, count=count, rest=rest)
        if name == "normal":
            text = text.replace("[claim]\n", "[claim]\ndelta = 1e-6\n")
        if name == "response":
            text = text.replace("sensitivity = 1\n", "").replace("epsilon = 1", "epsilon = 1.1")
        (root / f"{name}.toml").write_text(text)
    monkeypatch.chdir(tmp_path)

    def check(*entries, since=None, **more):
        start = "" if "[project]" in entries[0] else "[project]\nformats = []\n"
        text = start + "[audit]\nruns = 1000\nseed = 1\n" + "\n".join(entries)
        (root / "dpaudit.toml").write_text(text)
        return check_project(root, since=since, **more)[0]

    check.root = root
    return check
