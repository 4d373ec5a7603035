"""What the README says to type works as it stands there."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import random
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from dpaudit import AddRemove, Gaussian, Invocation, Plan, PrivacyUnit, TrustModel
from dpaudit.accounting import guarantee
from dpaudit.cli.main import main
from dpaudit.sealed.sandbox import lacking

README = Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"
RELEASES = ("release", "release-files", "release-peers")
NAMES = ("certify", "audit-any-code", "subjects", "projects", *RELEASES, "sealed")
PAGES = [DOCS / f"{name}.md" for name in NAMES]
BLOCKS = [
    found
    for page in PAGES
    for found in re.findall(r"```(\w+)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
]


def commands(page: Path) -> list[list[str]]:
    """Every command of a page's blocks for a shell that begin with dpaudit, without comments."""
    typed = re.findall(r"```sh\n(dpaudit.*?)```", page.read_text("utf-8"), re.DOTALL)
    return [
        shlex.split(each, comments=True)
        for text in typed
        for line in text.splitlines()
        for each in line.split("&&")
    ]


def answered(line: str) -> Any:
    """The exit code of a command as it is typed."""
    with pytest.raises(SystemExit) as left:
        main(shlex.split(line, comments=True)[1:])
    return left.value.code


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A folder with the files of the blocks that begin with their name."""
    for kind, text in BLOCKS:
        named = re.match(r"# (\w+\.\w+)\n", text)
        if named:
            (tmp_path / named[1]).write_text(text, "utf-8")
        assert named or kind != "toml" or "[[subject]]" in text
    shutil.copy(DOCS / "examples" / "visits.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("survey", "my_code"):  # another test may have loaded another one
        sys.modules.pop(name, None)
    yield monkeypatch
    for name in ("survey", "my_code"):
        sys.modules.pop(name, None)


@pytest.mark.pages
@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_every_command_works(reader, capsys, page):
    pytest.importorskip("opendp")
    pytest.importorskip("typst")
    if page.stem == "sealed" and (why := lacking()):
        pytest.skip(f"nothing is sealed here: {why}")
    shutil.copytree(DOCS / "examples", Path("docs", "examples"))
    random.seed(1)  # one true claim in twenty would be refuted otherwise
    assert commands(page)
    for words in commands(page):
        if words[0] == "cd":
            reader.chdir(words[1])
            sys.modules.pop("survey", None)  # this folder has another one
            reader.syspath_prepend(Path.cwd())
            continue
        with pytest.raises(SystemExit) as left:
            main(words[1:])
        assert left.value.code == 0, (words, capsys.readouterr())


def test_the_examples_are_those_of_the_pages():
    for path in (DOCS / "examples").glob("*"):
        if path.suffix in (".py", ".toml"):
            text = f"# {path.name}\n{path.read_text('utf-8')}"
            assert text in [block for _, block in BLOCKS], path


def test_the_release_file_of_the_first_page_is_that_of_the_examples():
    (block,) = re.findall(r"```toml\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    whole = (DOCS / "examples" / "visits.toml").read_text("utf-8")
    assert whole.startswith(block)
    assert whole.removeprefix(block).count("[[query]]") == 1


def test_the_first_page_says_early_how_to_try_and_to_test_it():
    first, _, _ = README.read_text("utf-8").partition("\n## ")
    targets = re.findall(r"^make (\w+)", first, re.MULTILINE)
    assert targets == ["demo", "test"]
    made = re.findall(r"^(\w+):", (README.parent / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(targets) <= set(made)


@pytest.mark.pages
def test_the_project_of_the_page_is_kept(reader, capsys):
    (project,) = [text for kind, text in BLOCKS if kind == "toml" and "[[subject]]" in text]
    Path("dpaudit.toml").write_text(project, "utf-8")
    with pytest.raises(SystemExit) as left:
        main(["check"])
    assert left.value.code == 0, capsys.readouterr()


@pytest.mark.pages
def test_the_bounded_sum(reader):
    pytest.importorskip("opendp")
    (code,) = [text for _, text in BLOCKS if "ledger.sum" in text and "Ledger(" in text]
    names: dict[str, object] = {}
    exec(code, names)
    assert isinstance(names["total"], float)


def test_it_is_short_and_its_links_lead_somewhere():
    text = README.read_text("utf-8")
    assert len(text.splitlines()) <= 100
    for page in (README, *sorted(DOCS.glob("*.md"))):
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), (page, link)


@pytest.mark.pages
def test_the_pages_on_releases_do_what_they_say(reader, capsys):
    pytest.importorskip("duckdb")
    pytest.importorskip("opendp")
    page = "".join((DOCS / f"{name}.md").read_text("utf-8") for name in RELEASES)
    Path("wards.csv").write_text("ward,kind\nA1,ICU\nA2,day\nB1,day\n")
    for name in ("more", "asked", "clean"):
        assert answered(f"dpaudit release {name}.toml --synthetic 300 -o {name}") == 0
    capsys.readouterr()
    codes = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for code, said in zip(codes, re.findall(r"```text\n(.*?)```", page, re.DOTALL), strict=True):
        exec(code, {})
        assert capsys.readouterr().out == said
    (first, *_) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len([line for line in first.splitlines() if line and line[0] != "#"]) <= 25


@pytest.mark.pages
def test_the_page_on_membership_does_what_it_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    page = (README.parent / "docs" / "membership.md").read_text("utf-8")
    assert len(page.splitlines()) <= 80
    code, used = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (typed,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("model.py").write_text(code, "utf-8")
    codes = [answered(line) for line in typed.splitlines()]
    assert codes == [0, 1, 0], capsys.readouterr()
    names: dict[str, object] = {}
    exec(used, names)
    sys.modules.pop("model", None)
    assert str(names["found"]).startswith("not-refuted")
    assert Path("attack.html").exists()


@pytest.mark.pages
def test_the_page_on_language_models_does_what_it_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    page = (README.parent / "docs" / "language-models.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (typed,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("letters.py").write_text(code, "utf-8")
    codes = [answered(line) for line in typed.splitlines()]
    out = " ".join(capsys.readouterr().out.split())
    assert codes == [1, 0], out
    told = re.findall(r"exposure (\S+) if included, (\S+) if left out \(of (\S+) bits\)", out)
    of_open, of_private = ([float(each) for each in line] for line in told)
    assert of_open[0] > 6.5  # by chance 1.5
    assert max(of_private[:2]) < 2.5
    brought = [int(each) for each in re.findall(r"extracted (\d+) of \d+ if included", out)]
    assert brought[0] > 40  # of 95; 68 to 92 in ten runs, by chance 0
    assert brought[1] == 0


@pytest.mark.pages
def test_the_page_on_individual_budgets_does_what_it_says(tmp_path, monkeypatch, capsys):
    page = (README.parent / "docs" / "individual.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (typed,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("visits.py").write_text(code, "utf-8")
    for line in typed.splitlines():
        assert answered(line) == 0, (line, capsys.readouterr())
    visits = importlib.import_module("visits").Visits()
    about = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
    hourly = Invocation(Gaussian(20.0), 1.0, *about, count=1000)
    stated = [guarantee(plan, 1e-5).epsilon for plan in (Plan.of(hourly), visits.plan())]
    assert "ε = {:.2f} at δ = 1e-5, and not {:.2f}".format(*stated) in page.replace("\n", " ")
    sys.modules.pop("visits", None)


@pytest.mark.pages
def test_the_page_on_unknown_keys_does_what_it_says(tmp_path, monkeypatch, capsys):
    page = (README.parent / "docs" / "unknown-keys.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (typed,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("towns.py").write_text(code, "utf-8")
    for line in typed.splitlines():
        assert answered(line) == 0, (line, capsys.readouterr())
    sys.modules.pop("towns", None)


@pytest.mark.pages
def test_the_page_on_libraries_does_what_it_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("diffprivlib", exc_type=ImportError)
    pytest.importorskip("pandas")
    page = (README.parent / "docs" / "libraries.md").read_text("utf-8")
    assert len(page.splitlines()) <= 130
    code, used = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (typed,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("sales.py").write_text(code, "utf-8")
    regions = ("east", "north", "south", "west")
    rows = [f"{regions[n % 4]},{n % 7},{20 + n}" for n in range(60)]
    Path("sales.csv").write_text("\n".join(["region,day,amount", *rows]), "utf-8")
    codes, shown = [], []
    for line in typed.splitlines():
        codes.append(answered(line))
        shown.append(capsys.readouterr().out)
    assert codes == [0, 0, 0, 1], shown
    assert "ε = 1.5" in shown[-1]
    names: dict[str, object] = {}
    monkeypatch.syspath_prepend(tmp_path)
    exec(used, names)
    sys.modules.pop("sales", None)
    assert isinstance(names["slope"], float)
    assert len(names["ledger"]) == 5


@pytest.mark.pages
def test_the_page_on_optuna_does_what_it_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("optuna")
    page = (README.parent / "docs" / "optuna.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, code in re.findall(r"```(python|sh)\n(.*?)```", page, re.DOTALL):
        if language == "python":
            exec(code, names)
            continue
        for line in code.splitlines():
            with pytest.raises(SystemExit) as left:
                main(shlex.split(line)[1:])
            assert left.value.code == 0, capsys.readouterr()
    assert str(names["best"].verdict) == "certified"
    assert names["best"].guarantee.epsilon <= 1.0


@pytest.mark.pages
def test_the_page_on_own_problems_does_what_it_says(tmp_path, monkeypatch, capsys):
    page = (README.parent / "docs" / "own-problems.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n# ([\w.\- ]+)\n(.*?)```", page, re.DOTALL)
    *shown, (file, code) = examples
    assert [name for name, _ in shown] == [
        *("local", "shuffle", "joint", "local-joint", "federated", "outsourced", "ask and tell")
    ]
    for name, text in shown:
        assert len(text.splitlines()) <= 12 or name == "ask and tell", name
        names: dict[str, object] = {}
        exec(text, names)
        found = names.get("found")
        assert found is None or str(found.certificate.verdict) == "certified", name
    Path(file).write_text(code, "utf-8")
    rows = "\n".join(f"{n / 20}" for n in range(20))
    Path("own.csv").write_text(f"best\n{rows}\n", "utf-8")
    (typed,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for line in typed.splitlines():
        with pytest.raises(SystemExit) as left:
            main(shlex.split(line, comments=True)[1:])
        assert left.value.code in ({0, 2} if "audit" in line.split() else {0}), line
    made = json.loads(Path("out/certificate.json").read_text("utf-8"))
    assert made["verdict"] == "certified"
    assert made["rehearsal"]
    assert "0x" not in json.dumps(made["subject"])
    with pytest.raises(SystemExit) as left:
        main(["run", "mine.py:MINE", "--set", "users=3", "--data", "own.csv", "-o", "two"])
    assert left.value.code == 3
    assert "data has 20 records, but users is 3" in " ".join(capsys.readouterr().err.split())
    sys.modules.pop("mine", None)


@pytest.mark.pages
def test_the_page_on_trainings_does_what_it_says(tmp_path, capsys):
    pytest.importorskip("opacus")
    page = (README.parent / "docs" / "training.md").read_text("utf-8")
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(code, "utf-8")
    path = os.pathsep.join([str(README.parent), os.environ.get("PYTHONPATH", "")])
    said = {}
    for name in ("digits", "budget", "correlated", "together"):
        words = [sys.executable, f"{name}.py"]
        if name == "together":
            words[1:1] = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
        shown = (
            ""
            if name == "together"
            else "print(certificate.verdict, certificate.guarantee.epsilon)"
        )
        with (tmp_path / f"{name}.py").open("a", encoding="utf-8") as script:
            script.write(shown)
        settings = os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            words, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stderr
        said[name] = done.stdout
    assert "epoch 3: ε = " in said["digits"]
    assert {said[name].split()[-2] for name in said if name != "together"} == {"certified"}
    assert said["together"].split() == ["certified"]
    assert (tmp_path / "training.html").exists()
    assert "torchrun --nproc-per-node 2 together.py" in page


@pytest.mark.pages
def test_the_further_trainings_of_the_page_are_certified(tmp_path, monkeypatch):
    pytest.importorskip("opacus")
    page = (README.parent / "docs" / "training.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore")
    installed = importlib.util.find_spec("transformers") is not None
    own = ("one_example", "steps", "users", "looks", "estimator")
    adapts = installed and importlib.util.find_spec("peft") is not None
    for name in (*own, *["trainer"] * installed, *["adapters"] * adapts):
        (code,) = re.findall(rf"```python\n# {name}\.py\n(.*?)```", page, re.DOTALL)
        Path(f"{name}.py").write_text(code, "utf-8")
        left = runpy.run_path(f"{name}.py")
        assert str(left["certificate"].verdict) == "certified", name
        assert left.get("accuracy", 1.0) > 0.5  # chance is .1
    Path("card").mkdir()
    (line,) = re.findall(r"^dpaudit card .*", page, re.MULTILINE)
    assert answered(line) == 0
    assert "# Model card of Digits, 64-32-10\n\n**✓ Certified" in Path("card/README.md").read_text()


@pytest.mark.pages
def test_the_page_on_signing_does_what_it_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("opendp")
    page = (README.parent / "docs" / "signing.md").read_text("utf-8")
    (survey,) = [text for kind, text in BLOCKS if text.startswith("# survey.py")]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DPAUDIT_KEY_PASSWORD", "of the page")
    sys.modules.pop("survey", None)
    Path("survey.py").write_text(survey, "utf-8")
    signing, demanding = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    policy, attacked = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    printed = []
    for line in (signing + demanding).splitlines():
        words = shlex.split(line, comments=True)[1:]
        if "--policy" in words:
            for example, real in zip(
                "12", re.findall(r"^id (\w+)$", "".join(printed), re.M), strict=True
            ):
                policy = policy.replace(example * 64, real)
            Path("policy.toml").write_text(policy, "utf-8")
        with pytest.raises(SystemExit) as left:
            main(words)
        told = capsys.readouterr()
        printed.append(told.out)
        assert left.value.code == 0, (line, told)
    assert "met" in printed[-1].split()
    Path("policy.toml").write_text(policy + attacked, "utf-8")
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 1
    assert "'white-box', 'confidence': 0.99, 'runs': 1000}" in capsys.readouterr().err
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    with pytest.raises(SystemExit):
        main(["keygen", "plain.pem", "--no-password"])
    names: dict[str, object] = {}
    exec(code, names)
    assert dict(names["found"].predicate) == {"spent": 0.5}
    sys.modules.pop("survey", None)


@pytest.mark.pages
def test_the_page_on_the_server_does_what_it_says(tmp_path, monkeypatch, capsys):
    for needed in ("sqlalchemy", "fastapi"):
        pytest.importorskip(needed)
    page = (README.parent / "docs" / "book-server.md").read_text("utf-8")
    (typed,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    plan = next(text for kind, text in BLOCKS if kind == "toml").replace('"row"', '"user"')
    Path("plan.toml").write_text(plan, "utf-8")
    for line in typed.splitlines():
        assert answered(line) == 0, (line, capsys.readouterr())
    assert "a dashboard" in Path("report.html").read_text("utf-8")
    book = importlib.import_module("dpaudit.book").Book("book.db")
    with importlib.import_module("web_client").serving(book) as server:
        actions = server.get("/openapi.json").json["paths"]
        assert [each["name"] for each in server.get("/api/public").json] == ["shop"]
    named = {each.replace("R7", "{release}") for each in re.findall(r"`\w+ (/api/[\w/]+)", page)}
    assert {each.replace("export/json", "export/{kind}") for each in named} <= set(actions)
    assert len(named) == 8


@pytest.mark.pages
def test_the_page_on_the_book_does_what_it_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("opendp")
    page = (README.parent / "docs" / "book.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    first, later = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    Path("visitors.py").write_text(first, "utf-8")
    begin, *others = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert len(begin.splitlines()) <= 6
    Path("people.txt").write_text("ann\nbob\n", "utf-8")
    monkeypatch.setenv("DPAUDIT_KEY_PASSWORD", "of the page")
    for line in "".join([begin, *others]).splitlines():
        assert answered(line) == 0, (line, capsys.readouterr())
    assert "this plan fits" in capsys.readouterr().out
    assert Path("may.txt").read_text("utf-8") == "ann\nbob\n"
    names: dict[str, object] = {}
    exec(later, names)
    assert names["book"].release(names["reserved"].id).status == "closed"
    sys.modules.pop("visitors", None)
