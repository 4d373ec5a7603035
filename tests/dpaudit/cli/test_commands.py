"""The command line, called as a pipeline calls it: words in, exit code and text out."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import dpaudit
from dpaudit.base.files import digest
from dpaudit.certificate import SecondOpinion, load_certificate
from dpaudit.cli import show
from dpaudit.observing import KNOWN
from dpaudit.workflow.verifying import Verification

GAUSSIAN = """
[plan]
unit = "row"
relation = "add-remove"
trust = "central"
[claim]
epsilon = {epsilon}
delta = 1e-5
[[invocation]]
mechanism = "gaussian"
sigma = 20
sensitivity = 1
count = 500
"""


def plan(epsilon=5):
    Path("plan.toml").write_text(GAUSSIAN.format(epsilon=epsilon))
    return "plan.toml"


def test_certify_a_plan(call):
    answer = call("certify", plan(), "--json").record(0)
    assert answer["verdict"] == "certified"
    assert answer["claim"] == {"epsilon": 5.0, "delta": 1e-5, "source": ""}
    assert answer["guarantee"]["epsilon"] == pytest.approx(4.98331, abs=1e-4)
    assert {"epsilon", "delta", "accountant", "error_bound", "native", "curve"} <= set(
        answer["guarantee"]
    )
    assert [finding["rule"] for finding in answer["findings"]] == ["float-noise"]


def test_an_exceeded_claim_is_exit_1(call):
    code, out, _ = call("certify", plan(epsilon=4), "--json")
    assert code == 1
    assert json.loads(out)["verdict"] == "unproven"
    code, out, _ = call("certify", plan(epsilon=4), "-o", "c.json")
    assert "unproven: the claim is exceeded" in out
    call("verify", "c.json").says(0, "valid, and it says: unproven")


def test_what_the_checker_proves_decides_where_that_is_wanted(call):
    assert call("certify", plan(), "--checked", "-o", "made.json")[0] == 0
    record = json.loads(Path("made.json").read_text())
    assert record["checked"]["epsilon"] == pytest.approx(record["guarantee"]["epsilon"], rel=1e-3)
    call("verify", "made.json", "--checked").says(0, "independently: the checker proves ε ≤")
    sampled = GAUSSIAN.format(epsilon=2.25).replace("sigma = 20", "sigma = 1")
    Path("near.toml").write_text(
        sampled.replace("500", '30\nsampling = { scheme = "poisson", rate = 0.05 }')
    )
    assert call("certify", "near.toml", "--checked", "-o", "near.json")[0] == 0  # 2.2446
    assert call("verify", "near.json", "--checked")[0] == 0
    assert call("certify", "near.toml", "--no-witness", "-o", "near.json")[0] == 0
    code, _, err = call("verify", "near.json", "--checked")  # 39.8 without samples
    assert (code, "and the claim is ε = 2.25" in err) == (1, True)
    bare = call("certify", "plan.toml", "--no-witness", "-o", "bare.json")
    assert bare[0] == 0
    assert json.loads(Path("bare.json").read_text())["checked"] is None


def test_the_checker_is_a_file_that_needs_python_alone(call):
    assert call("certify", plan(), "-o", "made.json")[0] == 0
    assert call("checker", "alone.py")[0] == 0
    alone = subprocess.run(
        [sys.executable, "-I", "-S", "alone.py", "made.json"], capture_output=True, text=True
    )
    assert alone.returncode == 0
    assert alone.stdout.startswith("proved: ε ≤ ")


def test_a_card_is_written_of_what_verifies_and_replaces_nothing(call):
    call("certify", plan(), "-o", "made.json")
    assert call("card", "made.json", "--name", "a model", "--utility", "accuracy=0.85,0.91")[0] == 0
    card = Path("README.md").read_text()
    assert "# Model card of a model\n\n**✓ Certified: the plan.** If the code does" in card
    call("card", "made.json").refuses("exists already")
    assert Path("README.md").read_text() == card
    assert call("card", "made.json", "-o", "model/card/README.md")[0] == 0
    assert "# Model card of plan.toml" in Path("model/card/README.md").read_text()
    assert call("card", "made.json", "--force")[0] == 0
    assert "# Model card of plan.toml" in Path("README.md").read_text()


def test_an_opaque_plan_is_exit_2(call):
    Path("p.toml").write_text(
        '[plan]\nrelation = "replace-one"\n[[invocation]]\nmechanism = "opaque"\n'
        'label = "sketch"\nepsilon = 1\n'
    )
    answer = call("certify", "p.toml", "--json").record(2)
    assert answer["verdict"] == "unproven"
    assert answer["guarantee"] is None


@pytest.mark.parametrize("accountant", ["best", "gaussian", "zcdp", "rdp", "moments", "pld"])
def test_every_accountant_bounds_the_exact_value(call, accountant):
    code, out, _ = call("certify", plan(epsilon=9), "--accountant", accountant, "--json")
    epsilon = json.loads(out)["guarantee"]["epsilon"]
    assert code == 0
    assert 4.98330 < epsilon < 6.7


def test_subjects_take_settings(call):
    answer = call("certify", "examples:Answers", "--set", "epsilon=1", "--json").record(0)
    assert answer["guarantee"]["epsilon"] == 1.0
    assert answer["guarantee"]["delta"] == 0.0
    assert answer["subject"]["configuration"] == {"epsilon": 1, "users": 3}
    assert len(answer["subject"]["code_hash"]) == 64
    assert answer["not_covered"] == ["That somebody answered at all."]


def test_run_writes_ledger_certificate_and_report(call):
    answer = call(
        "run", "examples:Answers", "--data", "numbers", "--seed", 3, "-o", "here", "--json"
    ).record(0)
    assert answer["run"]["summary"]["releases"] == 3
    assert answer["seed"] == 3
    assert "seeded-noise" in [finding["rule"] for finding in answer["findings"]]
    assert sorted(path.name for path in Path("here").iterdir()) == [
        "certificate.json",
        "ledger.jsonl",
        "owner",
        "report.html",
    ]
    assert call("verify", "here/certificate.json")[0] == 0
    assert call("verify", "here/ledger.jsonl", "--json").record(0)["releases"] == 3
    call("run", "examples:Answers", "--data", "numbers", "--seed", 3, "-o", "here").refuses(
        "exists already"
    )


def test_secure_noise_has_no_float_finding_and_no_seed(call):
    pytest.importorskip("opendp", reason="the extra 'secure' is not installed")
    runs = []
    for to in ("a", "b"):
        code, out, _ = call(
            "run", "examples:Answers", "--data", "numbers", "-o", to, "--json",
        )  # fmt: skip
        assert code == 0
        runs.append(json.loads(out))
        assert runs[-1]["findings"] == []
        assert list(runs[-1]["run"]["ledger"]["samplers"].values()) == [3]
        assert call("verify", f"{to}/certificate.json")[0] == 0
    assert runs[0]["run"] != runs[1]["run"]


def test_float_noise_of_a_deployment_is_chosen_and_told(call):
    answer = call(
        "run", "examples:Answers", "--data", "numbers", "--float-noise", "-o", "here", "--json"
    ).record(0)
    assert [each["rule"] for each in answer["findings"]] == ["float-noise", "float-sampler"]
    assert not answer["run"]["ledger"]["seeded"]
    call("run", "examples:Answers", "--seed", 3, "--float-noise").refuses(
        "float_noise is given with a seed"
    )


def test_a_deployment_without_exact_samplers_is_told_which_extra(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.measurements", None)
    call("run", "examples:Answers", "--data", "numbers").refuses(
        "install it with pip install 'dpaudit[secure]'"
    )
    assert not Path("out/ledger.jsonl").exists()


def test_certificate_and_ledger_belong_together(call):
    for to in "ab":
        arguments = ("run", "examples:Answers", "--data", "numbers", "--float-noise", "-o", to)
        assert call(*arguments, "--anchor", f"{to}.anchor")[0] == 0
    assert call("verify", "a/certificate.json", "--ledger", "a/ledger.jsonl")[0] == 0
    verified = ("--ledger", "a/ledger.jsonl", "--anchor", "a.anchor")
    assert call("verify", "a/certificate.json", *verified)[0] == 0
    for arguments, message in [
        (("a/certificate.json", "--ledger", "b/ledger.jsonl"), "differ in head"),
        (("a/ledger.jsonl", "--ledger", "b/ledger.jsonl"), "give it only with a certificate"),
        (("a/certificate.json", "--anchor", "a.anchor"), "without a ledger"),
    ]:
        call("verify", *arguments).refuses(message)
    made = load_certificate("a/certificate.json")
    assert made.run is not None
    for name, other in (("journal", "0" * 32), ("lines", 99)):
        run = made.run | {"ledger": made.run["ledger"] | {name: other}}
        replace(made, run=run).save(Path("a/other.json"))
        call("verify", "a/other.json", "--ledger", "a/ledger.jsonl").refuses(f"differ in {name}")
    lines = Path("a/ledger.jsonl").read_text().splitlines(keepends=True)
    Path("a/ledger.jsonl").write_text("".join(lines[:-2]))
    assert call("verify", "a/ledger.jsonl")[0] == 0  # the chain alone cannot tell
    call("verify", "a/ledger.jsonl", "--anchor", "a.anchor").refuses("last lines were dropped")
    call("verify", "a/certificate.json", "--ledger", "a/ledger.jsonl").refuses(
        "differ in head: the ledger is incomplete, or belongs to another run"
    )


def test_what_is_verified_is_told_in_words(capsys):
    facts = {"closed": True, "open": False, "broken": [], "signed_by": ["ann", "bob"]}
    show.verification(Verification("ledger", facts))
    said = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [each[1].strip() for each in said[1:4]] == ["yes", "no", "none"]
    assert " ".join(said[4]).split() == ["signed", "by", "ann,", "bob"]


def test_the_same_seed_gives_the_same_run(call):
    runs = [
        json.loads(
            call("run", "examples:Answers", "--data", "numbers", "--seed", 3, "-o", to, "--json")[1]
        )["run"]
        for to in ("a", "b")
    ]
    assert runs[0] == runs[1]


def test_a_run_that_does_less_than_its_plan_says_so(call):
    record = call("run", "examples:Careless", "--data", "numbers", "--seed", "0", "--json").record(
        0
    )
    (note,) = (each for each in record["findings"] if each["rule"] == "less-than-declared")
    assert note["severity"] == "note"
    assert "laplace at 'answer' is declared 3 times and ran 2 times" in note["message"]
    assert record["run"]["ledger"]["entries"] == 2
    assert record["guarantee"]["epsilon"] == 1.0  # of what is declared


def test_a_run_that_releases_nothing_is_exit_1(call):
    call("run", "examples:Idle", "--data", "numbers", "--no-rehearsal", "-o", "to").refuses(
        "laplace at 'answer' is declared 3 times and ran 0 times; declare what runs", code=1
    )
    assert not list(Path("to").glob("*"))


def test_verify_tolerates_a_cut_last_line_and_says_so(call):
    call("run", "examples:Answers", "--data", "numbers", "-o", "here")
    path = Path("here/ledger.jsonl")
    path.write_text(path.read_text()[:-10])
    code, _, err = call("verify", path)
    assert code == 0
    assert "last line was cut off" in err
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:1] + lines[2:]))
    call("verify", path).refuses("line 2 of journal 'here/ledger.jsonl' does not follow line 1")


def test_verify_says_that_gaussian_noise_needs_a_delta(call):
    path = Path(plan())
    path.write_text(re.sub(r"delta = .*", "", path.read_text()))
    call("certify", path, "-o", "c.json")
    said = call("verify", "c.json", "--json").record(0)["checked"]
    assert said.endswith("; state a claim with a δ above 0, and certify again")


def test_verify_detects_an_edited_certificate(call):
    call("certify", plan(), "-o", "c.json")
    text = Path("c.json").read_text()
    Path("c.json").write_text(text.replace('"count": 500', '"count": 5'))
    call("verify", "c.json").refuses(
        "'c.json': certificate was edited: its digest does not match its content; ask its issuer"
    )


def test_verify_says_what_else_a_file_is_and_which_command_takes_it(call):
    call("certify", plan(), "-o", "c.json")
    text = Path("c.json").read_text()
    written = {
        "cut.json": text[: len(text) // 2],
        "empty.json": "",
        "plan.json": json.dumps(json.loads(text)["plan"]),
        "release.toml": "[data]",
        "dpaudit.toml": "[[subject]]",
    }
    for name, content in written.items():
        Path(name).write_text(content)
    for name, told in {
        "plan.toml": "is a plan, not a certificate; dpaudit certify plan.toml makes",
        "release.toml": "is a release file, not a certificate; dpaudit release release.toml makes",
        "dpaudit.toml": "is a project file, not a certificate; dpaudit check dpaudit.toml makes",
        "plan.json": "is a plan as JSON, not a certificate; certify its plan file, or its code",
        "cut.json": "'cut.json' is cut off before its end; copy the whole file",
        "empty.json": "'empty.json' is empty",
    }.items():
        call("verify", name).refuses(told)


def test_no_certificate_is_lost_without_a_word(call):
    first = ["certify", plan(), "-o", "c.json"]
    call(*first)
    assert call(*first)[2] == ""  # the same again
    settings = ["--set", "epsilon=2.0", "-o", "c.json"]
    said = call("certify", "examples:Answers", *settings)[2]
    assert said == "dpaudit: 'c.json' replaced an earlier certificate, of 'plan.toml'.\n"
    call("run", "examples:Answers", "--data", "numbers", "--seed", 1, "-o", "ran")
    held = Path("ran/certificate.json").read_text()
    for command in ("certify", "audit"):
        for name, told in {
            "ran/certificate.json": "the certificate of a run, which cannot be made again",
            "plan.toml": "'plan.toml' exists already; give another file with -o",
        }.items():
            call(command, "examples:Answers", "-o", name).refuses(told)
    assert Path("ran/certificate.json").read_text() == held


WRITTEN = {
    "report c.json -o r.html": "<html>",
    "report c.json -o r.json": "{}",
    "report c.json -o r.md": "# My notes",
    "checker r.py": "print()",
    "calibrate laplace --claim epsilon=1 -o r.toml": "[project]",
    "book export -o r.csv": "name,age",
    "book report -o r.html": "<html>",
}


@pytest.mark.parametrize("command", WRITTEN)
def test_a_file_that_can_be_made_again_is_replaced_and_no_other(call, command):
    call("certify", plan(), "-o", "c.json")
    call("book", "init")
    words, name = command.split(), command.split()[-1]
    call(*words).says(0, f"wrote {name}")
    call(*words).says(0, f"replaced {name}")
    Path(name).write_text(WRITTEN[command])
    call(*words).refuses(f"output '{name}' exists already, and this command does not write such a")
    assert Path(name).read_text() == WRITTEN[command]


def test_no_record_of_a_run_is_replaced_by_a_report(call):
    call("certify", plan(), "-o", "c.json")
    call("run", "examples:Answers", "--data", "numbers", "--seed", 1, "-o", "ran")
    held = Path("ran/certificate.json").read_text()
    call("report", "c.json", "-o", "ran/certificate.json").refuses("the certificate of a run")
    Path("ledger.json").write_bytes(Path("ran/ledger.jsonl").read_bytes())
    call("report", "c.json", "-o", "ledger.json").refuses("does not write such a file")
    assert Path("ran/certificate.json").read_text() == held


def test_an_error_of_a_certificate_names_its_file(call):
    call("certify", plan(), "-o", "c.json")
    record = json.loads(Path("c.json").read_text())
    del record["scope"], record["digest"]
    Path("bad.json").write_text(json.dumps(record))
    for command in (["verify", "bad.json"], ["report", "c.json", "bad.json", "-o", "r.html"]):
        call(*command).refuses("certificate 'bad.json': certificate does not follow the schema: ")


def test_what_the_checker_does_not_prove_is_said_with_what_it_means(call):
    path = Path(plan())
    path.write_text(re.sub(r"delta = .*", "", path.read_text()))
    call("certify", path, "-o", "c.json")
    call("verify", "c.json").says(0, "proves nothing: the rules prove no ε for normal at δ = 0")
    call("checker", "checker.py")
    done = subprocess.run([sys.executable, "checker.py", "c.json"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout.endswith(". What the file states rests on its accountant alone.\n")


def test_a_finding_is_explained_or_near_ones_are_named(call):
    call("explain", "float-nois").refuses("did you mean 'float-noise'?")
    call("explain", "sampling").refuses("did you mean 'sampling-differs' or 'sampling-not-obs")
    call("explain", "nosuch").refuses("no finding has this name; dpaudit explain lists all")


def forge(name, **changes):
    """Edit the guarantee and name other versions; the digest fits."""
    record = json.loads(Path(name).read_text())
    record["guarantee"] |= changes
    record["versions"] = {"dpaudit": "0.0.1"}
    record.pop("digest")
    Path(name).write_text(json.dumps(record | {"digest": digest(record)}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"curve": [[0.0, 1e-9]]}, "guarantee.curve"), ({"epsilon": 0.1}, "guarantee.epsilon")],
)
def test_a_forged_certificate_is_neither_verified_nor_reported(call, changes, message):
    call("certify", plan(), "-o", "c.json")
    forge("c.json", **changes)
    for words in (["verify"], ["report", "-o", "c.html"], ["card", "-o", "c.md"]):
        call(*words, "c.json").refuses(message)
    assert not Path("c.html").exists()
    assert not Path("c.md").exists()


def test_verify_says_that_audits_are_not_run_again(call):
    call("audit", "examples:Answers", "--runs", 500, "--seed", 1, "-o", "c.json")
    code, out, err = call("verify", "c.json")
    assert code == 0
    assert "valid" in out
    assert "1 audit is taken as stated and compared with claim and proof, not re-run" in err


def test_a_second_opinion_agrees(call):
    call("certify", plan(), "-o", "c.json")
    told = call("verify", "c.json", "--second-opinion")
    told.says(0, "they agree within 1%")
    assert told.err == ""
    record = call("verify", "c.json", "--second-opinion", "--json").record(0)
    assert record["second_opinion"]["agrees"] is True
    assert record["second_opinion"]["epsilon"] == pytest.approx(4.98331, rel=0.01)
    assert "second_opinion" not in json.loads(call("verify", "c.json", "--json")[1])


def test_a_second_opinion_that_contradicts_leaves_the_claim_open(call, monkeypatch):
    said = SecondOpinion("other", "1", "exact", 9.1, 9.0, 1e-5, (4.9, 4.98331), False, "ε ≥ 9.")
    monkeypatch.setattr(
        "dpaudit.interchange.dp_accounting.second_opinion", lambda certificate: said
    )
    call("certify", plan(), "-o", "c.json")
    assert call("verify", "c.json")[0] == 0
    code, _, err = call("verify", "c.json", "--second-opinion")
    assert (code, err) == (2, "dpaudit: ε ≥ 9.\n")


def test_a_second_opinion_in_a_report(call):
    call("certify", plan(), "-o", "c.json")
    assert call("report", "c.json", "-o", "c.md", "--second-opinion")[0] == 0
    assert "- Second opinion: dp-accounting" in Path("c.md").read_text()
    code, _, err = call("report", "c.json", "-o", "c.xml", "--second-opinion")
    assert (code, err.count("\n")) == (3, 1)
    assert "shows no second opinion" in err
    assert not Path("c.xml").exists()


def test_a_ledger_has_no_second_opinion(call):
    call("run", "examples:Answers", "--data", "numbers", "-o", "here")
    call("verify", "here/ledger.jsonl", "--second-opinion").refuses(
        "give it only with a certificate"
    )


@pytest.mark.parametrize("command", ["certify", "verify"])
def test_dp_accounting_is_imported_for_a_second_opinion_alone(call, command):
    call("certify", plan(), "-o", "c.json")
    words = {"certify": ["certify", "plan.toml"], "verify": ["verify", "c.json"]}[command]
    code = (
        "import sys; from dpaudit.cli.main import _outcome; assert _outcome(sys.argv[1:]) == 0;"
        "assert not {'dp_accounting', 'matplotlib', 'jinja2'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)


def test_report_of_several(call):
    for epsilon in ("1.0", "2.0"):
        settings = ("--set", f"epsilon={epsilon}", "-o", f"{epsilon}.json")
        call("certify", "examples:Answers", *settings)
    call("report", "1.0.json", "2.0.json", "-o", "all.pdf").says(0, "wrote all.pdf")
    assert Path("all.pdf").read_bytes().startswith(b"%PDF")


def test_report_of_a_folder(call):
    Path("made").mkdir()
    call("report", "made", "-o", "all.md").refuses("'made' holds no certificate")
    for name in ("a", "b"):
        call("certify", "examples:Answers", "-o", f"made/{name}.json")
    Path("made/other.json").write_text("{}")
    assert call("report", "made", "-o", "all.md")[0] == 0
    assert "2 certified" in Path("all.md").read_text("utf-8")


FUNCTIONS = """
import time
import numpy as np

def good(data, rng):
    return data + rng.laplace(scale=1.0)

def batch(data, rng, size):
    return data + rng.laplace(scale=1.0, size=size)

def half(data, rng, size):
    return data + rng.laplace(scale=0.5, size=size)

def talks(data, rng, size):
    print("hello")
    return half(data, rng, size)

def raises(data, rng):
    raise ValueError("no such thing")

def nothing(data, rng):
    return None

value = 3
"""


@pytest.fixture
def functions(tmp_path):
    path = tmp_path / "functions.py"
    path.write_text(FUNCTIONS)
    return str(path)


def attack(call, target, *more, epsilon=1, runs=2000):
    return call(
        "audit", target, "--pair", "0", "1", "--epsilon", epsilon, "--delta", 0,
        "--runs", runs, "--seed", 1, "--json", *more,
    )  # fmt: skip


def test_audit_of_a_correct_function(call, functions):
    for name in ("good", "batch"):
        answer = attack(call, f"{functions}:{name}").record(0)
        assert answer["verdict"] == "not-refuted"
        assert 0.5 < answer["epsilon_lower"] <= 1.0
        assert answer["confidence"] == 0.95
        assert answer["runs"] <= 2000
        assert answer["seed"] == 1
        assert answer["event"]
        assert answer["power"]


def test_what_a_function_prints_does_not_spoil_the_answer(call, functions):
    code, out, err = attack(call, f"{functions}:talks")
    assert code == 1
    assert json.loads(out)["verdict"] == "refuted"
    assert "hello" in err


def test_audit_of_a_wrong_function(call, functions):
    answer = attack(call, f"{functions}:half", "-o", "c.json").record(1)
    assert answer["verdict"] == "refuted"
    assert answer["epsilon_lower"] > 1
    assert json.loads(Path("c.json").read_text())["verdict"] == "refuted"
    assert call("verify", "c.json")[0] == 0


def test_audit_of_a_subject_uses_its_own_claim_and_pairs(call):
    answer = call("audit", "examples:Answers", "--runs", 2000, "--seed", 1, "--json").record(0)
    assert answer["claim_epsilon"] == 1.0
    assert answer["pair"] == {"x": 2.0, "x_prime": -2.0}
    code, _, _ = call(
        "audit", "examples:Answers", "--epsilon", 0.3, "--runs", 2000, "--seed", 1, "--json",
        "-o", "c.json",
    )  # fmt: skip
    assert code == 1
    kept = json.loads(Path("c.json").read_text())
    assert kept["claim"]["epsilon"] == 1.0
    assert kept["verdict"] == "certified"  # the subject does not claim ε = 0.3
    assert kept["audits"][0]["verdict"] == "refuted"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["certify", "nowhere.toml"], "does not exist"),
        (["certify", "plan"], "must be module:Object"),
        (["certify", "no.such.module:X"], "cannot be imported"),
        (["run", "nowhere:X"], "so give its place, such as FOLDER/nowhere.py:NAME"),
        (["certify", "examples:Nothing"], "has no 'Nothing'"),
        (["certify", "examples:LAPLACE"], "is not a subject"),
        (["certify", "examples:Answers", "--set", "colour=1"], "has no field 'colour'"),
        (["certify", "examples:Answers", "--set", "epsilon"], "key=value"),
        (["certify", "examples:Answers", "--set", "epsilon=-1"], "epsilon is -1"),
        (["certify", "examples:Answers", "--set", "epsilon=NaN"], "epsilon is nan"),
        (["certify", "examples:Answers", "--set", 'epsilon="x"'], "epsilon"),
        (["certify", "examples:Answers", "--set", "users=1", "--set", "users=2"], "twice"),
        (["certify", "examples:Answers", "--accountant", "magic"], "accountant is 'magic'"),
        (["certify", "examples:Answers", "--delta", "2"], "delta is 2"),
        (["certify", "examples:Answers", "--delta", "x"], "'x' is not a number"),
        (["certify", "examples:Answers", "-o", "no/such/folder.json"], "cannot be written"),
        (["run", "examples:Answers", "--data", "letters"], "raised InputError at examples.py:"),
        (["report", "none.json", "-o", "x.html"], "does not exist"),
        (["verify", "none.json"], "does not exist"),
        (["frobnicate"], "frobnicate"),
        (["certify"], "argument"),
    ],
)
def test_bad_input_is_exit_3_and_one_sentence(call, arguments, message):
    code, out, err = call(*arguments)
    assert code == 3
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("name", "pair", "message"),
    [
        ("raises", ("0", "1"), "raised ValueError in runs 1 to 4 on x at functions.py:"),
        ("nothing", ("0", "1"), "returned nothing in every run"),
        ("value", ("0", "1"), "must be a function"),
        ("absent", ("0", "1"), "has no 'absent'"),
        ("good", ("0", "{"), "not JSON"),
        ("good", ('{"a": 1, "a": 2}', "1"), "key 'a' twice"),
        ("good", ("NaN", "1"), "NaN"),
        ("good", ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}'), "--pair gives the same data twice"),
    ],
)
def test_bad_functions_and_pairs(call, functions, name, pair, message):
    call("audit", f"{functions}:{name}", "--pair", *pair, "--epsilon", 1, "--runs", 500).refuses(
        message
    )


@pytest.mark.parametrize(
    "options",
    [
        ["--runs", "0"],
        ["--runs", "1000000001"],
        ["--epsilon", "nan"],
        ["--epsilon", "-1"],
        ["--delta", "1"],
        ["--confidence", "1"],
        ["--seed", "-1"],
    ],
)
def test_bad_audit_numbers(call, functions, options):
    words = {"--epsilon": "1", "--runs": "500"} | dict([options])
    flat = [word for item in words.items() for word in item]
    code, _, err = call("audit", f"{functions}:good", "--pair", "0", "1", *flat)
    assert code == 3
    assert options[0].strip("-") in err


def test_workers_and_a_journal_change_nothing(call, functions):
    alone = attack(call, f"{functions}:half")[1]
    assert attack(call, f"{functions}:half", "--workers", 2)[1] == alone
    journalled = attack(call, f"{functions}:half", "--journal", "runs")
    assert journalled[1] == alone
    assert attack(call, f"{functions}:half", "--journal", "runs")[1] == alone


def test_an_audit_needs_a_subject(call):
    call("audit").refuses("SUBJECT")


def test_a_module_that_fails_to_import_is_one_sentence(call):
    Path("broken.py").write_text("raise SystemExit('boom')")
    call("audit", "broken.py:f", "--pair", "0", "1", "--epsilon", "1").refuses("boom")


def test_list(call):
    content = call("list", "--json").record(0)
    names = {item["name"] for item in content["subjects"]}
    assert {"private_bo.local:LDPMoMAGPUCB", "private_bo.own:LocalStudy"} < names
    assert "gaussian" in [item["name"] for item in content["mechanisms"]]
    code, out, _ = call("list")
    assert code == 0
    assert {"poisson", "banded-toeplitz"} < set(out.replace(",", "").split())
    starts = {len(line) - len(line.lstrip()) for line in out.splitlines() if line.strip()}
    assert starts == {0, 2, 4}, "a long description is wrapped to its own column"
    assert all(" " not in line.rstrip() for line in out.splitlines() if line[:1] != " ")


def test_words_that_are_offered_are_those_that_are_accepted(call):
    Path("code.py").write_text("def f(data, rng):\n    return data[0]")
    about = ("audit", "code.py:f", "--epsilon", "1")
    assert "each" in call(*about, "--relation", "foo")[2]
    assert "one-run" in call(*about, "--canaries", "9", "--attack", "foo")[2]
    assert "each" not in call(*about, "--canaries", "9", "--relation", "foo")[2]
    said = re.sub(r"[\s│]+", " ", call("observe", "--help")[1])
    assert f"{', '.join(KNOWN[:-1])} or {KNOWN[-1]}; by default, what" in said


def test_the_version_and_the_help_are_no_errors(call):
    assert call("--version") == (0, f"dpaudit {dpaudit.__version__}\n", "")
    code, out, err = call()
    assert (code, err) == (0, "")
    assert "Usage: dpaudit" in out


def test_a_command_goes_on_where_nobody_reads_its_words():
    code = "import sys; from dpaudit.cli import show; "
    code += "[show.say('x' * 10**5) for _ in range(9)]; print('end', file=sys.stderr)"
    command = f'{sys.executable} -c "{code}" | true; exit ${{PIPESTATUS[0]}}'
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "end\n")


def test_a_closed_pipe_is_not_the_fault_of_audited_code():
    command = f"{sys.executable} -m dpaudit --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")


def test_help_needs_no_heavy_library():
    code = (
        "import sys; from dpaudit.cli.main import _outcome; _outcome(['--help']);"
        "heavy = {'scipy', 'matplotlib', 'sklearn', 'dp_accounting', 'torch', 'jinja2'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("certify", "\udcff.toml"),
        ("certify", "x" * 5000 + ".toml"),
        ("check", "--since", "x" * 5000),
        ("check", "nul\0byte"),
        ("verify", "x" * 5000),
        ("verify", "nul\0byte"),
        ("run", "examples:Answers", "-o", "a/" + "x" * 300),
        ("certify", "examples:Answers", "-o", "nul\0byte"),
        ("audit", "\udcff:f", "--pair", "0", "1", "--epsilon", "1"),
        ("init", "x" * 300),
    ],
)
def test_arguments_that_no_file_system_holds_are_one_sentence(call, arguments):
    code, _, err = call(*arguments)
    assert code == 3
    assert len(err) < 400
    assert err.count("\n") == 1


def test_a_subject_that_raises_shows_no_data(call):
    Path("mine.py").write_text(
        """
from examples import Answers

class Broken(Answers):
    def run(self, data, ledger, rng):
        raise KeyError("HIV+ ann")
"""
    )
    code, _, err = call("run", "mine.py:Broken", "--data", "numbers", "--seed", 1)
    assert code == 3
    assert "mine.py:Broken raised KeyError at mine.py:6" in err
    assert "HIV" not in err


def test_groups_of_units_are_told(call):
    group = (
        'group = "round {}"\n[[invocation]]\nmechanism = "laplace"\nscale = 4\nsensitivity = 1\n'
    )
    text = GAUSSIAN.format(epsilon=5) + group.format(1) + group.format(2).split("[[")[0]
    Path("plan.toml").write_text(text)
    told = call("certify", "plan.toml")
    told.says(0, "500 in all; group round 1", "groups 2, and no row belongs to two")


def test_a_plan_alone_says_in_one_line_what_it_rests_on(call):
    told = call("certify", plan())
    told.says(0, "the proof assumes code that does what the plan declares")
    assert "not applicable" not in told.out


def test_of_code_each_premise_is_told_with_what_it_rests_on(call):
    bounded = "tests.benchmarks.wrong_subjects.kept:OutliersRemoved"
    rows = (
        "assumed values within the sensitivity (on: each value from its own unit's data alone; "
        "units and groups as named)",
        "assumed control flow from public facts and releases",
    )
    call("certify", bounded, "-o", "certificate.json").says(0, *rows)
    call("verify", "certificate.json").says(0, *rows)
    first, *_ = call("verify", "certificate.json", "--json").record(0)["assumptions"]
    assert (first["standing"], first["alone"]) == ("assumed", "enforced")
    assert len(first["rests_on"]) == 2


@pytest.mark.parametrize("command", ["list", "explain", "calibrate"])
def test_examples_of_the_help_can_be_typed(call, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    plan()
    shown = call(command, "--help")[1].partition("Examples:")[2]
    typed = re.findall(rf"^ *(dpaudit {command}\b.*?) *$", shown, re.MULTILINE)
    assert len(typed) >= 2
    for line in typed:
        assert call(*shlex.split(line)[1:])[0] == 0, line
