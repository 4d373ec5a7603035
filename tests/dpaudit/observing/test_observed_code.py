"""``dpaudit observe``: scripts and functions that draw by libraries, from a run to a plan."""

import json
import math
import re
import sys
from pathlib import Path

import pytest

from dpaudit import InputError
from dpaudit.accounting import guarantee
from dpaudit.certificate import Premise, Standing, load_certificate
from dpaudit.cli.main import main
from dpaudit.observing.observed_code import observe_target
from dpaudit.project.plan_file import read_plan_file

HOME_MADE = """
import random
import numpy as np
from numpy.random import default_rng

def total(rows, rng):
    return float(np.clip([row["age"] for row in rows], 0, 100).sum() + rng.laplace(scale=200.0))

def dithered(rows, rng):
    return total(rows, rng), random.random(), float(np.random.random())

def careless(rows):
    return float(sum(row["age"] for row in rows) + default_rng().laplace(scale=200.0))

def branching(rows):
    if len(rows) > 10:
        return 1.0 + default_rng().laplace(scale=200.0)
    return None

def rewound(rows, rng):
    ages = [row["age"] for row in rows]
    before = rng.bit_generator.state
    young = sum(ages) + rng.laplace(scale=200.0)
    rng.bit_generator.state = before
    return young, len(ages) + rng.laplace(scale=2.0)

KEYS = ["east", "north", "south", "west"]

def by_key(rows, rng, counted):
    return [sum(counted(row, key) for row in rows) + rng.laplace(scale=10.0) for key in KEYS]

def disjoint(rows, rng):
    return by_key(rows, rng, lambda row, key: row["region"] == key)

def overlapping(rows, rng):
    return by_key(rows, rng, lambda row, key: row["region"] >= key)

def rarely_overlapping(rows, rng):
    from hashlib import sha256
    rare = lambda row: sha256(repr(row["amount"]).encode()).digest()[:2] == b"xy"
    return by_key(rows, rng, lambda row, key: row["region"] == key or rare(row))

def plain():
    return 1.0 + default_rng().normal(scale=2.0)

if __name__ == "__main__":
    print("out of the script", total([{"age": 3}], default_rng()))
"""
BY_LIBRARY = """
from diffprivlib import tools
from diffprivlib.models import GaussianNB

def mean(rows):
    return tools.mean([row["age"] for row in rows], epsilon=0.5, bounds=(0, 100))

def both(rows):
    ages = [row["age"] for row in rows]
    return mean(rows), tools.histogram(ages, epsilon=0.5, bins=4, range=(0, 100))[0].tolist()

def spread(rows):
    return tools.var([row["age"] for row in rows], bounds=(0, 100))

def bayes(rows):
    ages = [[row["age"]] for row in rows]
    fitted = GaussianNB(bounds=([0], [100])).fit(ages, [row["age"] > 50 for row in rows])
    return fitted.theta_.tolist()

def many(rows):
    return [mean(rows) for _ in range(40)]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home_made.py").write_text(HOME_MADE, "utf-8")
    (tmp_path / "by_library.py").write_text(BY_LIBRARY, "utf-8")
    rows = [{"age": 20 + 3 * number} for number in range(20)]
    (tmp_path / "rows.json").write_text(json.dumps(rows), "utf-8")
    yield tmp_path
    for name in ("home_made", "by_library"):
        sys.modules.pop(name, None)


def observed(*words):
    """The exit code of the command."""
    with pytest.raises(SystemExit) as left:
        main(["observe", *map(str, words)])
    return left.value.code


def declared(path, **keys):
    """A plan file, completed by a person."""
    text = path.read_text("utf-8")
    written = "\n".join(f"{key} = {value}" for key, value in keys.items())
    path.write_text(text.replace("[[invocation]]", f"[[invocation]]\n{written}"), "utf-8")


def test_home_made_noise_from_a_run_to_a_plan_that_is_kept(here, capsys):
    seed = "--seed", 1
    code = "home_made.py:total", "--data", "rows.json"
    assert observed(*code, "-o", "plan.toml", *seed) == 2
    shown = capsys.readouterr().out
    assert "sensitivity ?" in shown
    assert "unknown-sensitivity" in shown
    assert "10^9 in the plan stand for unknown" in " ".join(shown.split())
    with pytest.raises(InputError, match="lacks the key 'sensitivity'"):
        read_plan_file("plan.toml")
    declared(here / "plan.toml", sensitivity=100.0)
    assert observed(*code, "--plan", "plan.toml", "--rehearse", "-o", "made.json", *seed) == 0
    made = load_certificate("made.json")
    assert made.guarantee.epsilon == pytest.approx(0.5)
    assert made.rehearsal.done
    assert made.rehearsal.external == (f"numpy {made.versions['numpy']}",)


def test_a_rehearsal_refutes_a_sensitivity_that_is_too_small(here, capsys):
    code = "home_made.py:careless", "--data", "rows.json"
    observed(*code, "-o", "plan.toml")
    declared(here / "plan.toml", sensitivity=100.0)
    assert observed(*code, "--plan", "plan.toml", "--rehearse") == 2
    assert "sensitivity-understated" in capsys.readouterr().out


def test_nothing_is_called_declared_that_nobody_declared(here, capsys):
    observed("home_made.py:careless", "--data", "rows.json", "--rehearse")
    shown = " ".join(capsys.readouterr().out.split())
    assert "nothing states how far they may" in shown
    assert "; sensitivity unknown; 1 × for one unit" in shown
    assert "declared sensitivity" not in shown


def test_a_person_may_state_that_no_number_is_nan(here, capsys):
    (here / "reals.json").write_text(json.dumps([20.5 + number for number in range(20)]), "utf-8")
    (here / "home_made.py").write_text(
        "import numpy as np\nfrom numpy.random import default_rng\n"
        "def total(values):\n"
        "    return float(np.clip(values, 0, 100).sum() + default_rng().laplace(scale=200.0))\n"
    )
    code = "home_made.py:total", "--data", "reals.json"
    observed(*code, "-o", "plan.toml")
    declared(here / "plan.toml", sensitivity=100.0)
    known = *code, "--plan", "plan.toml", "--rehearse"
    assert observed(*known) == 2
    assert "NaN" in capsys.readouterr().out
    assert observed(*known, "--no-nan", "-o", "made.json") == 0
    made = load_certificate("made.json")
    assert "Data with NaN: --no-nan states that there are none." in made.not_covered
    assert not any("NaN" in each for each in made.rehearsal.neighbours)


@pytest.fixture
def regions(here):
    rows = [{"region": ("east", "north", "south", "west")[n % 4], "amount": n} for n in range(40)]
    (here / "sales.json").write_text(json.dumps(rows), "utf-8")
    return here


def counted(function, count, *words, relation="add-remove"):
    """Exit code, ε and the standing of touches for a loop over keys, with a count declared."""
    code = f"home_made.py:{function}", "--data", "sales.json", "--seed", 1
    observed(*code, "--relation", relation, "-o", "plan.toml")
    plan = Path("plan.toml")
    text = plan.read_text("utf-8").replace("count = 4", f"count = {count}")
    plan.write_text(text.replace("[[invocation]]", "[[invocation]]\nsensitivity = 1.0"), "utf-8")
    left = observed(*code, "--plan", plan, "-o", "made.json", *words)
    made = load_certificate("made.json")
    (touches,) = (each.standing for each in made.assumptions if each.premise is Premise.TOUCHES)
    return left, round(made.guarantee.epsilon, 9), touches


def test_a_run_alone_does_not_show_that_counts_are_of_disjoint_rows(regions):
    assert counted("disjoint", 4) == (0, 0.4, Standing.ASSUMED)  # as it was written
    assert counted("disjoint", 1) == (0, 0.1, Standing.ASSUMED)  # a person's word
    assert counted("overlapping", 1) == (0, 0.1, Standing.ASSUMED)  # no better than that


def test_a_rehearsal_tests_that_counts_are_of_disjoint_rows_and_shows_no_more(regions, capsys):
    assert counted("disjoint", 1, "--rehearse") == (0, 0.1, Standing.TESTED)
    assert counted("overlapping", 1, "--rehearse") == (2, 0.1, Standing.VIOLATED)
    assert "touched-too-often" in capsys.readouterr().out
    assert counted("rarely_overlapping", 1, "--rehearse") == (0, 0.1, Standing.TESTED)  # but false


def test_a_replaced_row_moves_two_of_the_counts_of_disjoint_rows(regions):
    near = {"relation": "replace-one"}
    assert counted("disjoint", 1, "--rehearse", **near) == (2, 0.1, Standing.VIOLATED)
    assert counted("disjoint", 2, "--rehearse", **near) == (0, 0.2, Standing.TESTED)


def test_other_randomness_of_a_function_is_the_same_in_all_runs(here):
    code = "home_made.py:dithered", "--data", "rows.json"
    observed(*code, "-o", "plan.toml")
    declared(here / "plan.toml", sensitivity=100.0)
    assert observed(*code, "--plan", "plan.toml", "--rehearse") == 0


def test_a_run_that_does_not_match_its_plan_fails(here, capsys):
    code = "home_made.py:total", "--data", "rows.json"
    observed(*code, "-o", "plan.toml")
    declared(here / "plan.toml", sensitivity=100.0)
    (here / "other.py").write_text(HOME_MADE.replace("scale=200", "scale=20"), "utf-8")
    assert observed("other.py:total", "--data", "rows.json", "--plan", "plan.toml") == 1
    assert "but one with another scale ran (at other.py:" in capsys.readouterr().err
    (here / "rows.json").write_text("[]", "utf-8")
    text = (here / "plan.toml").read_text("utf-8")
    (here / "plan.toml").write_text(text.replace("count = 1\ntotal = 1", "count = 2\ntotal = 2"))
    assert observed(*code, "--plan", "plan.toml") == 1
    assert "declared 2 times and ran 1 times" in capsys.readouterr().err


def test_code_that_swallows_a_refusal_fails_too(here, capsys):
    swallows = (
        HOME_MADE
        + "\ndef safe(rows, rng):\n"
        + (
            "    try:\n        total(rows, rng)\n        total(rows, rng)\n"
            "    except Exception:\n        pass\n"
        )
    )
    (here / "home_made.py").write_text(swallows, "utf-8")
    observed("home_made.py:total", "--data", "rows.json", "-o", "plan.toml")
    declared(here / "plan.toml", sensitivity=100.0)
    assert observed("home_made.py:safe", "--data", "rows.json", "--plan", "plan.toml") == 1
    assert "asked 1 times for a release that the plan does not declare" in capsys.readouterr().err


def test_a_script(here, capsys):
    assert observed("home_made.py", "-o", "plan.toml") == 2
    shown = capsys.readouterr()
    assert "out of the script" in shown.err
    assert "home_made.py:7" in shown.out
    text = (here / "plan.toml").read_text("utf-8")
    assert 'at = "total: laplace"' in text
    assert "write sensitivity" in text


def test_noise_that_is_drawn_twice_alike_is_found(here):
    """By a generator that was set back: no law here says so, equal draws do."""
    rules = [
        {
            each.rule
            for each in observe_target(
                f"home_made.py:{name}", data="rows.json"
            ).certificate.findings
        }
        for name in ("total", "rewound")
    ]
    assert ["noise-reused" in found for found in rules] == [False, True]


def test_a_function_without_data_has_the_usual_delta(here):
    seen = observe_target("home_made.py:plain")
    assert [each.invocation.at for each in seen.noted] == ["plain: normal"]
    assert seen.charged is None
    assert seen.certificate.guarantee is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["home_made.py", "--data", "rows.json"], "give FILE.py:function"),
        (["home_made.py", "--rehearse"], "give FILE.py:function"),
        (["home_made.py:total"], "--data is missing"),
        (["rows.py"], "rows.py"),
        (["home_made.py:total", "--data", "rows.json", "-o", "plan.txt"], "must end with"),
        (["home_made.py", "--library", "pandas"], "library is 'pandas'"),
        (["home_made.py:branching", "--data", "few.json"], "nothing was recorded"),
        (["none.py"], "imports none of diffprivlib, numpy, opendp"),
        (["home_made.py", "--plan", "p.toml", "--relation", "add-remove"], "which the plan states"),
        (["raises.py"], "raises.py raised KeyError at raises.py:2"),
    ],
)
def test_wrong_words_are_one_sentence(here, capsys, words, said):
    (here / "few.json").write_text("[1]", "utf-8")
    (here / "none.py").write_text("import json\n", "utf-8")
    (here / "raises.py").write_text("import numpy\n{}['secret']\n", "utf-8")
    assert observed(*words) == 3
    error = capsys.readouterr().err
    assert said in error
    assert "secret" not in error


# -- beside what a library charges -----------------------------------------------------------------


@pytest.fixture
def library():
    return pytest.importorskip("diffprivlib", exc_type=ImportError)


def test_what_a_library_charges_is_what_it_costs(here, library, capsys):
    code = "by_library.py:mean", "--data", "rows.json"
    assert observed(*code, "--rehearse", "-o", "plan.toml") == 0
    assert "charged  ε = 0.5, δ = 0 (charged by diffprivlib)" in capsys.readouterr().out
    content = read_plan_file("plan.toml")
    assert guarantee(content.plan, 0.0).epsilon == pytest.approx(0.5)
    assert observed(*code, "--plan", "plan.toml") == 0


def test_it_is_less_than_what_replaced_rows_cost(here, library, capsys):
    code = "by_library.py:both", "--data", "rows.json"
    assert observed(*code) == 1
    assert "claim-exceeded" in capsys.readouterr().out
    assert observed(*code, "--relation", "add-remove", "-o", "plan.toml") == 0
    assert "1 of 4" in capsys.readouterr().out
    assert observed(*code, "--plan", "plan.toml") == 0


def test_it_is_more_than_many_releases_cost(here, library, capsys):
    assert observed("by_library.py:many", "--data", "rows.json") == 0
    times = re.search(r"the charge\s+is ([\d.]+) times", capsys.readouterr().out)
    seen = observe_target("by_library.py:many", data="rows.json")
    assert (seen.charged.epsilon, seen.at_its_word) == (20.0, pytest.approx(20.0))
    assert float(times[1]) == pytest.approx(20 / seen.usual, abs=0.01)


def test_the_word_of_a_library_is_no_proof(here, library, capsys):
    assert observed("by_library.py:spread", "--data", "rows.json", "--rehearse") == 2
    shown = capsys.readouterr().out
    assert "stated-by-library" in shown
    assert "if what the libraries state is true" in shown
    seen = observe_target("by_library.py:spread", data="rows.json")
    assert seen.at_its_word == pytest.approx(1.0)
    assert seen.certificate.guarantee is None or math.isinf(seen.certificate.guarantee.epsilon)


def test_words_that_add_up_to_more_than_the_charge(here, library, capsys):
    words = "by_library.py:bayes", "--data", "rows.json"
    assert observed(*words) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "charge ε = 1, δ = 0; under replace-one the recorded releases cost ε = 2" in shown
    assert observed(*words, "--relation", "add-remove") == 2


def test_a_word_says_nothing_of_values_further_apart(here, library):
    code = "by_library.py:spread", "--data", "rows.json"
    observed(*code, "-o", "plan.toml")
    text = (here / "plan.toml").read_text("utf-8")
    (here / "plan.toml").write_text(text.replace("sensitivity = 1.0", "sensitivity = 2.0"), "utf-8")
    assert observe_target(code[0], data="rows.json", plan="plan.toml").at_its_word is None


def test_public_sizes_are_compared(here, library, capsys):
    words = ["by_library.py:mean", "--data", "rows.json", "--rehearse", "--relation", "add-remove"]
    assert observed(*words) == 2
    assert "private-parameters" in capsys.readouterr().out
