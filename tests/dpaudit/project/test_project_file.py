"""Project files: what they say, and every way to write one wrongly."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dpaudit import AuditPair, Claim, InputError
from dpaudit.accounting import AccountantName
from dpaudit.project import Execution
from dpaudit.project.audit_request import REPEATABLE, AuditRequest
from dpaudit.project.project_file import BudgetEntry, checked_name, read_project_file

ENDINGS = (".html", ".json", ".md", ".sarif.json")
SUBJECT = '[[subject]]\nname = "one"\ntarget = "m:X"\n'


@pytest.fixture
def read(tmp_path):
    def read(text):
        (tmp_path / "dpaudit.toml").write_text(text)
        return read_project_file(tmp_path, ENDINGS)

    return read


def test_everything_that_a_file_can_say(read, tmp_path):
    found = read("""
        [project]
        reports = "out/privacy"
        formats = ["md", ".SARIF.json", "md"]
        [audit]
        runs = 500
        seed = 7
        [[subject]]
        name = "one"
        target = "m:X"
        set = { epsilon = 0.5, bins = [1, 2] }
        claim = { epsilon = 1, delta = 1e-6, source = "paper" }
        delta = 1e-7
        accountant = "rdp"
        [[subject.audit]]
        pair = [[1, 2], [1]]
        confidence = 0.9
        epsilon = 2
        [[subject.audit]]
        exact = true
        [[subject]]
        name = "two"
        target = "plans/p.toml"
        audit = []
        [[budget]]
        name = "all"
        epsilon = 3
        delta = 1e-6
        [[budget]]
        subjects = ["two"]
        epsilon = 1
    """)
    one, two = found.subjects
    assert found.root == tmp_path
    assert found.reports == tmp_path / "out" / "privacy"
    assert found.formats == (".json", ".md", ".sarif.json")
    assert one.settings == {"epsilon": 0.5, "bins": [1, 2]}
    assert one.claim == Claim(1.0, 1e-6, "paper")
    assert (one.delta, one.accountant) == (1e-7, AccountantName.RDP)
    pair = AuditPair([1, 2], [1], "given")
    drawn = Execution(runs=500, seed=7, confidence=0.99)
    assert one.audits == (
        AuditRequest(execution=replace(drawn, confidence=0.9), pair=pair, epsilon=2),
        AuditRequest(execution=drawn, exact=True),
    )
    assert two.audits == ()
    assert two.default_audit == AuditRequest(execution=drawn)
    assert found.budgets == (
        BudgetEntry("all", ("one", "two"), Claim(3.0, 1e-6, "dpaudit.toml")),
        BudgetEntry("budget 2", ("two",), Claim(1.0, 0.0, "dpaudit.toml")),
    )


def test_the_example_of_the_page(read):
    text = (Path(__file__).parents[3] / "docs" / "projects.md").read_text("utf-8")
    (example,) = [
        block for block in re.findall(r"```toml\n(.*?)```", text, re.S) if "[[bud" in block
    ]
    assert read(example).subjects[0].audits[0].pair == AuditPair(0, 10, "given")


def test_what_a_file_leaves_out_has_a_default(read, tmp_path):
    found = read(SUBJECT)
    assert found.reports == tmp_path / "reports"
    assert found.formats == (".json", ".html")
    assert found.subjects[0].audits is None
    assert found.subjects[0].default_audit == REPEATABLE
    assert found.budgets == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = [", "is not TOML"),
        ("", r"has no \[\[subject\]\]"),
        ("[[subjects]]", "unknown key 'subjects'; did you mean 'subject'"),
        ('[project]\nreport = "x"\n' + SUBJECT, "project has an unknown key 'report'; did you"),
        ("[project]\nreports = 3\n" + SUBJECT, "reports is 3"),
        ('[project]\nformats = ["htm"]\n' + SUBJECT, "'htm'; did you mean 'html'"),
        ('[project]\nformats = ["gif"]\n' + SUBJECT, "'gif'; it must be one of html, json, md"),
        ('[project]\nformats = "html"\n' + SUBJECT, "formats is 'html'; it must be an array"),
        ("[project]\nformats = [3]\n" + SUBJECT, "formats is '3'"),
        ("project = 3\n" + SUBJECT, "project is 3; it must be a table"),
        ("[audit]\nrun = 3\n" + SUBJECT, "audit has an unknown key 'run'; did you mean 'runs'"),
        ("[audit]\nruns = 1\n" + SUBJECT, "audit: runs is 1; it must be an integer of at least 2"),
        ("[audit]\nseed = -1\n" + SUBJECT, "seed is -1"),
        ("[audit]\npair = [1, 2]\n" + SUBJECT, "unknown key 'pair'"),
        ("[subject]\nname = 'x'", "subject is .* must be an array of tables"),
        ("subject = [3]", "subject 1 is 3; it must be a table"),
        ('[[subject]]\nname = "a"', "subject 1 lacks the key 'target'"),
        ('[[subject]]\ntarget = "a:B"', "subject 1 lacks the key 'name'"),
        (SUBJECT + "epsilom = 3", "subject 1 has an unknown key 'epsilom'"),
        ('[[subject]]\nname = "a"\ntarget = "survey"', "target is 'survey'; it must be module:"),
        ('[[subject]]\nname = "a"\ntarget = 3', "subject 'a': target is 3"),
        ('[[subject]]\nname = "a"\ntarget = "p.toml"\nset = {x = 1}', "set is given for a plan"),
        (SUBJECT + "set = 3", "set is 3"),
        (SUBJECT + "claim = 3", "states nothing; it must be a table like"),
        (SUBJECT + "claim = {}", "states nothing; it must be a table like"),
        (SUBJECT + "claim = {epsilon = nan}", "epsilon is nan"),
        (SUBJECT + "claim = {epsilon = 1, delt = 0}", "unknown key 'delt'; did you mean 'delta'"),
        (SUBJECT + "claim = {epsilon = 1, source = 3}", "source is 3"),
        (SUBJECT + "delta = 2", "subject 'one': delta is 2"),
        (SUBJECT + 'accountant = "zcpd"', "accountant is 'zcpd'; did you mean 'zcdp'"),
        (SUBJECT + "audit = 3", "subject.audit is 3"),
        (SUBJECT + "audit = [{ pairs = 3 }]", "audit 1 has an unknown key 'pairs'; did you mean"),
        (SUBJECT + "audit = [{}, { pair = [1] }]", "audit 2: pair is .* array of two data sets"),
        (SUBJECT + "audit = [{ pair = [1, inf] }]", "pair is .*; it may hold finite numbers"),
        (SUBJECT + "audit = [{ pair = [1, 2020-01-01] }]", "pair is .*; it may hold finite"),
        (SUBJECT + "audit = [{ every_pair = 1 }]", "every_pair is 1; it must be true or false"),
        (SUBJECT + "audit = [{ every_pair = true, pair = [1, 2] }]", "keep one of them"),
        (SUBJECT + 'audit = [{ code = "f.py:f" }]', "code is given without a pair"),
        (SUBJECT + 'audit = [{ code = "f:f", pair = [1, 2], exact = true }]', "exact and code"),
        (SUBJECT + "audit = [{ epsilon = -1 }]", "epsilon is -1"),
        (SUBJECT + "[[budget]]\ndelta = 0", "budget 1: the key 'epsilon' is missing"),
        (SUBJECT + "[[budget]]\nepsilon = -1", "budget 1: epsilon is -1"),
        (SUBJECT + "[[budget]]\nepsilon = 1\nsubjects = ['on']", "'on'; did you mean 'one'"),
        (SUBJECT + "[[budget]]\nepsilon = 1\nsubjects = []", "subjects is"),
        (SUBJECT + "[[budget]]\nepsilon = 1\nsubjects = ['one', 'one']", "twice"),
        (SUBJECT + 2 * "[[budget]]\nname = 'x'\nepsilon = 1\n", "budget has the name 'x' twice"),
        (SUBJECT + SUBJECT.replace("one", "ONE"), "subject has the name 'one' twice"),
        (SUBJECT.replace("one", "Index"), "'Index', which the index of reports has"),
        (
            '[project]\nformats = ["sarif.json"]\n' + SUBJECT + SUBJECT.replace("one", "one.sarif"),
            "subjects 'one' and 'one.sarif' write the same file",
        ),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(read, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", ".hidden", "-flag", "a\nb", "a\0b"),
        *("x" * 101, "dot.", "a b", "a:b", "~", 3, None),
    ],
)
def test_a_name_is_the_name_of_a_file_and_no_path(name):
    with pytest.raises(InputError, match="name is"):
        checked_name(name)


@pytest.mark.parametrize(
    "name", ["a", "sleep-histogram", "v1.2_x", "7", "Größe", "問卷", "x" * 100]
)
def test_names_that_are_fine(name):
    assert checked_name(name) == name
    assert Path(f"{name}.json").name == f"{name}.json"


def test_a_file_that_is_not_there_says_how_to_start(tmp_path):
    with pytest.raises(InputError, match=r"does not exist.*dpaudit init"):
        read_project_file(tmp_path, ENDINGS)
