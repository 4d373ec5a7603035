"""What may be missing, what is found by name, and what belongs to one process."""

import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from dpaudit import Severity, UnsupportedError
from dpaudit.base.finding_table import FindingTable, explained_at
from dpaudit.base.optional_import import LIBRARIES, lacking, optional_import, require
from dpaudit.base.processes import ending, fork, uninterrupted

# -- optional libraries, there and missing ---------------------------------------------------------


ROOT = Path(__file__).parents[3]


def test_a_library_that_is_there_is_handed_over():
    assert optional_import("learn", "json.decoder", what="a report").JSONDecoder


def test_a_missing_one_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(UnsupportedError) as caught:
        optional_import("learn", "sklearn.linear_model", what="a learned score")
    assert str(caught.value) == (
        "a learned score needs scikit-learn, which is not installed; install it with pip install "
        "'dpaudit[learn]'."
    )


def test_one_that_lacks_a_library_of_its_own_names_that_one(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import surely_not_installed.deeply\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnsupportedError, match="needs surely_not_installed, which"):
        optional_import("learn", "half_there", what="a learned score")


def test_the_table_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {"": project["dependencies"], **project["optional-dependencies"]}
    for extra, modules in LIBRARIES.items():
        named = {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in wanted[extra]}
        renamed = {"scikit_learn": "sklearn", "pyyaml": "yaml"}
        assert set(modules) == {renamed.get(name, name) for name in named}, extra
    assert set(wanted) - set(LIBRARIES) == {"all", "dev", "docs"}


@pytest.mark.parametrize(
    ("missing", "shown", "wanted"),
    [
        ("dp_accounting.pld", "dp-accounting", "dpaudit"),
        ("dp-accounting", "dp-accounting", "dpaudit"),
        ("yaml", "pyyaml", "dpaudit"),
        ("sklearn.svm", "scikit-learn", "'dpaudit[learn]'"),
        ("torch", "torch", "'dpaudit[opacus]'"),
        ("fontpkg_noto_sans_thai", "fontpkg-noto-sans-thai", "'dpaudit[pdf]'"),
    ],
)
def test_a_missing_library_says_what_installs_it(missing, shown, wanted):
    assert str(lacking(ModuleNotFoundError(name=missing), "it")) == (
        f"it needs {shown}, which is not installed; install it with pip install {wanted}."
    )


def test_a_distribution_that_is_not_installed_is_named_too():
    assert "needs dp-accounting," in str(lacking(PackageNotFoundError("dp-accounting")))


@pytest.mark.parametrize("name", ["my_module", None])
def test_what_is_not_ours_is_left_alone(name):
    assert lacking(ModuleNotFoundError(name=name)) is None


def test_a_library_is_looked_for_without_an_import(monkeypatch):
    require("pdf", "json", what="a report")
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(UnsupportedError, match=r"a report needs typst, .*'dpaudit\[pdf\]'"):
        require("pdf", "typst", what="a report")


CODE = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from dpaudit.cli.main import main
for words in " ".join(sys.argv[2:]).split(" then "):
    try:
        main(words.split())
    except SystemExit as left:
        if left.code:
            raise
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    (made / "plan.toml").write_text(
        '[plan]\nunit = "row"\nrelation = "add-remove"\ntrust = "central"\n'
        '[[invocation]]\nmechanism = "gaussian"\nsigma = 2.0\nsensitivity = 1.0\n'
    )
    (made / "release.py").write_text(
        "def release(data, rng, size):\n    return sum(data) + rng.laplace(0, 1, size)\n"
    )
    assert without("", made, "certify plan.toml --delta 1e-5 -o c.json").returncode == 0
    return made


def without(missing, folder, words):
    """Run a command in a process in which these modules cannot be imported."""
    line = [sys.executable, "-c", CODE, missing or "no_module", *shlex.split(words)]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("missing", "words", "wanted"),
    [
        ("matplotlib", "report c.json -o c.html", "dpaudit"),
        ("dp_accounting", "verify c.json --second-opinion", "dpaudit"),
        ("typst", "report c.json -o c.pdf", "'dpaudit[pdf]'"),
        ("sqlalchemy", "book init", "'dpaudit[book]'"),
        (
            "distributed",
            "audit release.py:release --pair [1] [2] --epsilon 1 --runs 10 --dask tcp://x:1",
            "'dpaudit[cluster]'",
        ),
        ("cryptography", "sign c.json --key key.pem -o c.dsse.json", "'dpaudit[sign]'"),
    ],
)
def test_a_command_without_its_library_ends_in_one_sentence(folder, missing, words, wanted):
    ended = without(missing, folder, words)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.endswith(f"is not installed; install it with pip install {wanted}.\n")


EXTRAS = (
    "sklearn,joblib,threadpoolctl,opendp,opacus,distributed,dask,flwr,typst,fontpkg,cryptography,"
    "sqlalchemy,psycopg"
)
"""All but torch, which scipy looks for among the loaded modules."""


def test_the_core_alone_certifies_verifies_reports_and_audits(folder):
    commands = (
        "certify plan.toml --delta 1e-5",
        "verify c.json --second-opinion",
        "report c.json -o c.html",
        "audit release.py:release --pair [1] [2] --epsilon 1.01 --runs 1000 --seed 1",
        "list",
    )
    ended = without(EXTRAS, folder, " then ".join(commands))
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_needs_opacus_says_so():
    code = (
        "import sys; sys.modules['opacus'] = sys.modules['torch'] = None\n"
        "from dpaudit.training import opacus\n"
        "from dpaudit.base.errors import UnsupportedError\n"
        "try:\n    opacus.attach\n"
        "except UnsupportedError as error:\n    print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("opacus.attach needs ")
    assert ended.stdout.endswith("install it with pip install 'dpaudit[opacus]'.\n")


# -- processes are started out of reach of Ctrl-C, and say how they ended --------------------------


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        done.append(True)
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("status", [0, 7])
def test_a_copy_ends_with_its_status(status):
    child = fork()
    if child == 0:
        os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ending(code) == f"exit status {status}"


def test_signals_have_their_names():
    assert [ending(-9), ending(-63), ending(None)] == ["SIGKILL", "signal 63", "in an unknown way"]


# -- findings whose words stand in tables ----------------------------------------------------------


PACKAGES = (
    "dpaudit.auditing.noise",
    "dpaudit",
    "dpaudit.rehearsal",
    "dpaudit.auditing.replaying",
    "dpaudit.certificate",
    "dpaudit.training.opacus",
    "dpaudit.project",
    "dpaudit.workflow",
)


def test_a_finding_has_the_words_of_its_section_and_the_facts_of_the_call():
    table = FindingTable("dpaudit.rehearsal.rehearse")
    found = table("does-not-end", "sum", seconds=7.0)
    assert (found.rule, found.severity, found.at) == ("raises-on-neighbour", Severity.ERROR, "sum")
    assert "does not end within 7 seconds, and" in found.message
    assert found.remedy == "Bound every loop by public numbers."
    assert (
        FindingTable("dpaudit.auditing.noise.conformance")(
            "float-lsb", hits=1, others=0, draws=2, direction="x to x'", p_value=0.5
        ).severity
        is Severity.WARNING
    )


def test_a_fact_that_is_missing_is_an_error():
    with pytest.raises(KeyError):
        FindingTable("dpaudit.rehearsal.rehearse")("does-not-end")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_section_is_whole_and_used(package):
    folder = resources.files(package)
    rows = tomllib.loads(folder.joinpath("findings.toml").read_text("utf-8"))
    code = "".join(each.read_text("utf-8") for each in folder.iterdir() if each.suffix == ".py")
    keys = {"message", "remedy", "rule", "severity", "about"}
    for name, row in rows.items():
        assert {"message", "remedy"} <= row.keys() <= keys
        assert Severity(row.get("severity", "error"))
        assert all(text.strip() == text and "\n" not in text for text in row.values())
        assert f'"{name}"' in code


def test_a_package_that_is_not_installed_has_no_site(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "metadata", missing)
    explained_at.cache_clear()
    assert explained_at("generator-seeded") == ""
    explained_at.cache_clear()
