"""``dpaudit check`` and ``dpaudit init`` as a pipeline calls them."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LAPLACE = """
[plan]
relation = "add-remove"
[claim]
epsilon = {claim}
[[invocation]]
mechanism = "{mechanism}"
{rest}
sensitivity = 1
"""


def project(*claims, scale=2.0, more=""):
    """Plans of ε = 1/scale with these claims, as a project in the current folder."""
    text = more + "\n[project]\nformats = []\n"
    for number, claim in enumerate(claims):
        plan = LAPLACE.format(claim=claim, mechanism="laplace", rest=f"scale = {scale}")
        Path(f"plan{number}.toml").write_text(plan)
        text += f'[[subject]]\nname = "s{number}"\ntarget = "plan{number}.toml"\n'
    Path("dpaudit.toml").write_text(text)


def add(text):
    with Path("dpaudit.toml").open("a") as file:
        file.write(text)


def test_certified_is_exit_0(call):
    project(1, 2)
    code, out, err = call("check")
    assert code == 0
    assert err == ""
    assert "2 certified" in out
    assert "reports/index.html" in out


def test_a_folder_that_the_locale_cannot_read_is_checked(tmp_path, monkeypatch):
    folder = tmp_path / "prüfung"
    folder.mkdir()
    monkeypatch.chdir(folder)
    project(1)
    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    called = [sys.executable, "-m", "dpaudit", "check"]
    made = subprocess.run(called, env=os.environ | locale, capture_output=True, check=False)
    assert (made.returncode, made.stderr) == (0, b"")
    assert (folder / "reports" / "s0.json").exists()
    called += ["-o", "berichte-ä"]
    made = subprocess.run(called, env=os.environ | locale, capture_output=True, check=False)
    assert made.returncode == 3
    assert b"set PYTHONUTF8=1" in made.stderr


def test_exceeded_is_exit_1(call):
    project(1, 0.4)
    call("check").says(1, "exceeded")


def test_unproven_is_exit_2(call):
    project(1)
    opaque = LAPLACE.format(claim=1, mechanism="opaque", rest='label = "x"\nepsilon = 1')
    Path("opaque.toml").write_text(opaque)
    add('[[subject]]\nname = "opaque"\ntarget = "opaque.toml"\n')
    assert call("check")[0] == 2


def test_an_exceeded_budget_is_exit_1(call):
    project(1, 1)
    add("[[budget]]\nepsilon = 1\n")
    assert call("check")[0] == 0
    add("[[budget]]\nname = 'tight'\nepsilon = 0.9\n")
    call("check").says(1, "tight")


def test_the_worst_is_an_error(call):
    project(1, 0.4)
    add('[[subject]]\nname = "gone"\ntarget = "gone.toml"\n')
    call("check").says(3, "gone: plan file 'gone.toml' does not exist")
    assert {"s0.json", "s1.json"} < {path.name for path in Path("reports").iterdir()}


def test_worse_than_before_is_exit_1_though_the_claim_holds(call):
    project(1, scale=2.0)
    call("check")
    assert call("check", "--since", "reports")[0] == 0
    project(1, scale=1.5)
    call("check", "--since", "reports/s0.json").says(1, "ε at δ = 0: 0.5 → 0.666667 (worse)")
    for _ in range(2):  # asked again, it is not the new reports that it is compared with
        assert call("check", "--since", "reports")[0] == 1
    assert Path("reports-worse/s0.json").exists()
    Path("dpaudit.toml").write_text('[[subject]]\nname = "s0"\ntarget = "gone.toml"\n')
    assert call("check", "--since", "reports")[0] == 3
    assert Path("reports/s0.json").exists()
    project(1, scale=4.0)
    call("check", "--since", "reports").says(0, "(better)")


def test_json_for_pipelines(call):
    project(1, 0.4)
    add("[[budget]]\nepsilon = 3\n")
    code, out, err = call("check", "--json")
    answer = json.loads(out)
    assert (code, err) == (1, "")
    assert answer["status"] == "exceeded"
    assert [row["status"] for row in answer["subjects"]] == ["certified", "exceeded"]
    assert answer["subjects"][0]["guarantee"] == {
        "epsilon": 0.5, "delta": 0.0, "accountant": "pure",
    }  # fmt: skip
    assert answer["budgets"][0]["guarantee"]["epsilon"] == 1.0
    assert all(Path(path).exists() for path in answer["files"])


def test_the_table_fits_80_columns_whatever_the_names(call):
    project(1)
    add(
        f'[[subject]]\nname = "{"x" * 100}"\ntarget = "plan0.toml"\n'
        "claim = { epsilon = 1e-300 }\n"
    )
    add(f'[[budget]]\nname = "{"budget " * 30}"\nepsilon = 1e-300\n')
    _, out, _ = call("check")
    assert max(map(len, out.splitlines())) <= 80


def test_another_folder_and_another_file(call, tmp_path, monkeypatch):
    project(1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert call("check", tmp_path / "dpaudit.toml", "-o", "mine")[0] == 0
    assert (elsewhere / "mine" / "s0.json").exists()
    assert not (tmp_path / "reports").exists()
    assert call("check", tmp_path)[0] == 0
    assert (tmp_path / "reports" / "s0.json").exists()


def test_what_a_subject_prints_is_not_the_answer(call):
    Path("talkative_plan.py").write_text(
        "from dataclasses import dataclass\nfrom dpaudit import *\nprint('hello')\n"
        "@dataclass(frozen=True)\nclass S(Subject):\n"
        "    def plan(self):\n        print('world')\n"
        "        return Plan.of(Invocation(Laplace(1.0), 1, PrivacyUnit('row'), AddRemove(), "
        "TrustModel.CENTRAL))\n"
    )
    Path("dpaudit.toml").write_text(
        '[[subject]]\nname = "s"\ntarget = "talkative_plan:S"\naudit = []\ncode = "not rehearsed"\n'
    )
    code, out, err = call("check", "--json")
    assert code == 0
    assert json.loads(out)["status"] == "certified"
    assert "hello" in err
    assert "world" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "does not exist"),
        ("x = [", "is not TOML"),
        ('[[subject]]\nname = "../x"\ntarget = "p.toml"', "name is '../x'"),
        ('[[subject]]\nname = "x"\ntarget = "p.toml"\nclaims = 1', "did you mean 'claim'?"),
        (
            '[project]\nformats = ["hmtl"]\n[[subject]]\nname = "x"\ntarget = "p"',
            "must be module:Object",
        ),
        (
            '[project]\nreports = "dpaudit.toml/x"\n[[subject]]\nname = "x"\ntarget = "p.toml"',
            "not a f",
        ),
    ],
)
def test_bad_project_files_are_exit_3_and_one_sentence(call, text, message):
    if text is not None:
        Path("dpaudit.toml").write_text(text)
    code, out, err = call("check")
    assert (code, out) == (3, "")
    assert message in err
    assert err.count("\n") == 1
    assert not Path("reports").exists()


def test_bad_older_certificates_are_exit_3(call):
    project(1)
    Path("old.json").write_text("{")
    code, out, err = call("check", "--since", "old.json")
    assert (code, out) == (3, "")
    assert "old.json" in err
    assert not Path("reports").exists()


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_writes_nothing(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time\nfrom pathlib import Path\nfrom dataclasses import dataclass\n"
        "from dpaudit import Subject\n@dataclass(frozen=True)\nclass S(Subject):\n"
        "    def plan(self):\n        Path('begun').touch()\n        time.sleep(1000)\n"
    )
    (tmp_path / "plan.toml").write_text(
        LAPLACE.format(claim=1, mechanism="laplace", rest="scale = 2")
    )
    (tmp_path / "dpaudit.toml").write_text(
        '[[subject]]\nname = "first"\ntarget = "plan.toml"\n'
        '[[subject]]\nname = "slow"\ntarget = "slow.py:S"\n'
    )
    with subprocess.Popen(
        [sys.executable, "-m", "dpaudit", "check"], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        try:
            deadline = time.monotonic() + 120
            while not (tmp_path / "begun").exists():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert not (tmp_path / "reports").exists()


def test_init(call):
    call("init", "my-study").says(
        0, "cd my-study && dpaudit release visits.toml --plan && dpaudit check"
    )
    assert Path("my-study/dpaudit.toml").exists()
    code, out, err = call("init", "my-study")
    assert (code, out) == (3, "")
    assert "not empty" in err


@pytest.mark.parametrize(("missing", "installs"), [("torch", True), ("diffprivlib", False)])
def test_init_says_what_to_install_first(call, monkeypatch, missing, installs):
    there = importlib.util.find_spec
    found = lambda name: None if name == missing else there(name)  # noqa: E731
    monkeypatch.setattr("dpaudit.cli.show.find_spec", found)
    code, out, _ = call("init", "my-study", "--training")
    assert code == 0
    assert ("my-study && pip install -r requirements.txt && dpaudit check" in out) == installs


@pytest.mark.parametrize("names", [True, False])
def test_a_missing_library_leads_to_the_requirements(call, names):
    Path("code.py").write_text("import no_such_library_here")
    if names:
        Path("requirements.txt").write_text("no-such-library-here")
    code, _, err = call("certify", "code.py:Subject")
    assert code == 3
    assert "No module named 'no_such_library_here'" in err
    assert ("pip install -r requirements.txt" in err) == names


@pytest.mark.parametrize("name", ["../x", ".", "a/b", ""])
def test_init_refuses_paths(call, name):
    code, out, err = call("init", name)
    assert (code, out) == (3, "")
    assert "name is" in err
    assert not list(Path().iterdir())
