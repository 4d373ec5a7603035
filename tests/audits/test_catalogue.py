"""The catalogue: its entries, what is true of them, and its table."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from audits.catalogue import ENTRIES, FLOATS, answers, gaussian, selection
from audits.catalogue.__main__ import main, markdown
from audits.catalogue.answers import SHOWN, THREE, TWO, drink, histogram, refuses, threshold
from audits.catalogue.claims import epsilon_of, gaussian_epsilon, true_epsilon
from audits.catalogue.entry import Entry, FloatEntry
from audits.catalogue.measuring import (
    Audit,
    FloatRow,
    Rate,
    Row,
    Summary,
    audit_entry,
    run_catalogue,
    run_floats,
)
from dpaudit import AuditPair, Claim, DiscreteLaplace, InputError, Laplace, RandomizedResponse
from dpaudit.auditing.subjects.exact import audit_exact
from dpaudit.mechanisms import FinitePair, GaussianPair

# -- entries say what is claimed and what is true --------------------------------------------------


FACTS = {"claim": Claim(1.0), "x": 0.0, "x_prime": 1.0, "true_epsilon": 1.0}


def release(data, size, rng):
    return data + rng.laplace(size=size)


def test_the_neighbours_are_a_pair():
    pair = Entry("mine", True, **FACTS, release=release).pair
    assert (pair.x, pair.x_prime, pair.why) == (0.0, 1.0, "mine")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"right": False}, "states 1 where 1 is true; that does not go with right = False"),
        ({"true_epsilon": 2.0}, "states 1 where 2 is true; that does not go with right = True"),
        ({"rho": (1.0, 2.0)}, "states 1 where 2 is true"),
        ({"release": None}, "needs one of a release, an answer and an exact audit"),
        ({"exact": lambda: None}, "needs one of"),
        ({"answer": lambda data, rng: ""}, "needs one of"),
        ({"runs": -1}, "runs is -1"),
        ({"claim": 1.0}, "claim is 1.0; it must be a Claim"),
        ({"rare": 1}, "rare is 1; it must be true or false"),
    ],
)
def test_what_does_not_go_together_is_named(changes, message):
    facts = {"name": "mine", "right": True, **FACTS, "release": release}
    with pytest.raises(InputError, match=message):
        Entry(**(facts | changes))


# -- the catalogue, reduced: every wrong row within its budget, right rows with fewer runs ---------


WRONG = [entry for entry in ENTRIES if not entry.right]
RIGHT = [entry for entry in ENTRIES if entry.right]


def names(entries):
    return [entry.name for entry in entries]


@pytest.mark.pages
@pytest.mark.parametrize("entry", WRONG, ids=names(WRONG))
def test_wrong_rows_are_refuted_within_their_budget(entry):
    record = audit_entry(entry, seed=11)
    assert record.refuted
    assert record.runs <= entry.runs
    assert (record.confidence is None) == (entry.exact is not None)
    if entry.rho is None:
        assert record.epsilon_lower <= entry.true_epsilon * (1 + 1e-9)


@pytest.mark.pages
def test_right_rows_are_not_refuted_more_often_than_stated():
    rows = run_catalogue(RIGHT, seed=100, runs=1_000)
    assert all(row.as_expected for row in rows)
    alarms = Summary.of(rows).false_alarms
    assert alarms.trials >= 50
    # At 5 % each, 15 of 50 and more have a probability below 1e-7.
    assert alarms.hits < 15


def test_true_losses_are_those_of_the_literature():
    true = {entry.name: entry.true_epsilon for entry in ENTRIES}
    expected = {
        "Laplace, half the scale": 2.0,
        "Laplace, 0.9 of the scale": 1.111,
        "histogram, scale ε for 1/ε": 2.0,
        "noisy max that returns the value": 5.0,
        "sparse vector, Lee and Clifton, c = 5": (1 + 6 * 5) / 4,
        "Gaussian, half of σ": 2.155,
        "Gaussian, L∞ sensitivity in 16 dimensions": 4.746,
        "classic Gaussian calibration at ε = 10": 10.39,
        "10 rounds accounted as 1": 3.619,
        "subsampled Gaussian that never samples": 4.377,
        "tree that ignores its levels, Laplace": 4.0,
    }
    for name, value in expected.items():
        assert true[name] == pytest.approx(value, abs=0.006), name
    steep = next(e for e in WRONG if e.name.startswith("exponential"))
    assert audit_entry(steep, 0).epsilon_lower == pytest.approx(steep.true_epsilon)


def test_permute_and_flip_needs_more_than_the_stated_rho():
    entry = next(entry for entry in WRONG if entry.rho is not None)
    record = audit_entry(entry, seed=0)
    assert entry.rho[1] == pytest.approx(0.6885, abs=5e-5)
    assert record.details["rho_lower"] >= entry.rho[1]
    assert record.details["claim_rho"] == 0.5
    assert json.loads(json.dumps(record.to_dict()))["verdict"] == "refuted"
    (row,) = run_catalogue([entry])
    assert json.loads(json.dumps(row.to_dict()))["as_expected"] is True


def test_entries_that_contradict_themselves_are_refused():
    with pytest.raises(InputError, match="does not go with right = True"):
        Entry("x", True, Claim(1.0), 0, 1, 2.0, 100, lambda d, n, rng: rng.random(n))
    with pytest.raises(InputError, match="needs one of"):
        Entry("x", False, Claim(1.0), 0, 1, 2.0)


# -- answers of any kind: what is true of them, by closed forms and enumeration --------------------


RUNS = 20_000
FALSE_ALARM = 5.0
"""Standard deviations: a chance below 1e-6 for each."""


def share(answer, data, holds):
    rng = np.random.default_rng(1)
    return np.mean([holds(answer(data, rng)) for _ in range(RUNS)])


def near(chance):
    return pytest.approx(chance, abs=FALSE_ALARM * math.sqrt(chance * (1 - chance) / RUNS))


def test_every_kind_is_there_right_and_wrong():
    assert len(answers.WRONG) >= 10
    assert len(answers.RIGHT) >= 10
    assert all(each.answer is not None for each in (*answers.WRONG, *answers.RIGHT))


def test_a_name_of_one_record_is_above_the_threshold_with_probability_delta():
    for delta in (0.5, 0.05, 1e-5):
        above = math.exp(1 - threshold(delta)) / 2  # of Lap(1), at 0 or more
        assert above == pytest.approx(delta)
    shown = histogram(threshold(SHOWN))
    assert share(shown, THREE, lambda output: "c" in output) == near(SHOWN)
    assert share(shown, TWO, lambda output: "c" in output) == 0


def test_sentences_have_the_odds_that_are_stated():
    right = drink(math.e)
    true = share(right, "tea", lambda output: "tea" in output)
    false = share(right, "water", lambda output: "tea" in output)
    assert true == near(math.e / (math.e + 3))
    assert false == near(1 / (math.e + 3))


def test_exceptions_have_the_odds_that_are_stated():
    def raises(bit):
        rng, raised = np.random.default_rng(2), 0
        for _ in range(RUNS):
            try:
                refuses(math.e)(bit, rng)
            except ValueError:
                raised += 1
        return raised / RUNS

    assert raises(1) == near(math.e / (1 + math.e))
    assert raises(0) == near(1 / (1 + math.e))


def test_geometric_noise_has_the_law_of_the_discrete_laplace_mechanism():
    rng = np.random.default_rng(3)
    drawn = np.array([answers.geometric(rng, 2.0) for _ in range(RUNS)])
    same = DiscreteLaplace(0.5).release_many(0, RUNS, rng)
    none = math.tanh(1.0)  # P(0) = (1 - a) / (1 + a), a = exp(-2)
    assert np.mean(drawn == 0) == near(none)
    assert np.mean(same == 0) == near(none)
    assert np.mean(drawn == 1) == near(none * math.exp(-2))


# -- losses of selection mechanisms by numerical integration, and the catalogue's own arithme ------


def test_noisy_max_by_numerical_integration():
    """The densities of the maximum of 10 queries at 0 or 1 with Lap(2) reach a ratio of e^5."""
    grid = np.linspace(-60, 60, 40_001)
    law = np.where(grid < 0, np.exp(grid / 2) / 2, 1 - np.exp(-grid / 2) / 2)
    shifted = np.where(grid < 1, np.exp((grid - 1) / 2) / 2, 1 - np.exp(-(grid - 1) / 2) / 2)
    at_0, at_1 = (np.diff(cumulative**10) for cumulative in (law, shifted))
    inside = (at_0 > 1e-280) & (at_1 > 1e-280)
    assert np.abs(np.log(at_0[inside] / at_1[inside])).max() == pytest.approx(5.0, abs=1e-3)


def test_the_least_rho_of_randomised_response_is_that_of_its_pair():
    mechanism = RandomizedResponse(p=0.4, k=2)
    pair = mechanism.pair(1)
    assert isinstance(pair, FinitePair)
    orders = np.array([1.01, *np.linspace(1.05, 4, 60), *np.geomspace(4, 1000, 60)])
    masses = [[float(mass) for mass in mechanism.probabilities(data)] for data in (0, 1)]
    wanted = (pair.renyi(orders) / orders).max()
    assert selection.least_rho(*masses) == pytest.approx(wanted)


def test_a_classic_calibration_at_epsilon_10_is_refuted_by_its_closed_form():
    record = gaussian._classic()
    assert record.refuted
    assert record.epsilon_lower == pytest.approx(10.39, abs=0.005)


def test_true_epsilons():
    sigma = 3.730631634816464  # of ε = 1 at δ = 1e-5 (Balle and Wang 2018)
    assert gaussian_epsilon(1 / sigma) == pytest.approx(1.0, abs=1e-6)
    assert epsilon_of(GaussianPair(1 / sigma)) > gaussian_epsilon(1 / sigma)
    assert true_epsilon(GaussianPair(0.0), 0.0) == 0
    assert true_epsilon(GaussianPair(60.0), 1e-5) == math.inf


# -- samplers whose floats leak --------------------------------------------------------------------


@pytest.mark.pages
def test_samplers_leak_exactly_where_they_should():
    rows = run_floats(FLOATS, draws=5_000)
    assert all(row.as_expected for row in rows)
    numpy_laplace = rows[0]
    assert numpy_laplace.rules == ("float-lsb",)
    assert numpy_laplace.draws <= 100


# -- what is measured on entries, and when a row is as expected ------------------------------------


SOUND = Entry("sound", True, Claim(1.0), 0.0, 1.0, 1.0, 400, Laplace(1.0).release_many)
UNSOUND = Entry("wrong", False, Claim(1.0), 0.0, 1.0, 4.0, 4000, Laplace(0.25).release_many)
EXACT = Entry(
    "exact",
    True,
    Claim(1.0),
    0,
    1,
    1.0,
    exact=lambda: audit_exact(
        RandomizedResponse.calibrated(epsilon=1.0), AuditPair(0, 1), epsilon=1.0
    ),
)


def row(entry, refuted, audits):
    return Row(entry, refuted, audits, 100, 0.1, 0.5)


def test_wrong_entries_are_to_be_refuted_in_95_percent_of_audits():
    assert row(UNSOUND, 3, 3).as_expected
    assert not row(UNSOUND, 2, 3).as_expected
    assert row(UNSOUND, 57, 60).as_expected
    assert not row(UNSOUND, 56, 60).as_expected


def test_right_entries_may_be_refuted_at_the_error_rate():
    most = int(binom.isf(1e-6, 20, 0.05))
    assert row(SOUND, most, 20).as_expected
    assert not row(SOUND, most + 1, 20).as_expected
    assert row(SOUND, 1, 1).as_expected


def test_a_wrong_entry_stops_at_its_refutation_and_a_right_one_does_not():
    assert audit_entry(UNSOUND, 0).runs < 2000
    assert audit_entry(SOUND, 0).runs == 400
    assert audit_entry(SOUND, 0, runs=300).runs == 300
    assert audit_entry(replace(UNSOUND, rare=True), 0, runs=1000).runs == 1000


def test_a_table_counts_every_audit():
    told = []
    rows = run_catalogue([SOUND, UNSOUND, EXACT], seed=1, seeds=2, progress=told.append)
    assert [each.audits for each in rows] == [2, 2, 1]
    assert told == list(rows)
    assert all(each.as_expected for each in rows)
    assert rows[1].verdict == "refuted 2 of 2"
    assert rows[2].verdict == "not refuted"
    assert rows[2].runs == 0
    with pytest.raises(InputError, match="seeds is 0"):
        run_catalogue([SOUND], seeds=0)


def test_right_entries_may_have_audits_of_their_own():
    sound, wrong = run_catalogue([SOUND, UNSOUND], seeds=1, right_seeds=3, right_runs=50)
    assert (sound.audits, sound.runs) == (3, 50)
    assert wrong.audits == 1
    assert wrong.runs > 50


@pytest.mark.processes
def test_processes_give_the_same_table():
    entries = [UNSOUND, EXACT]
    one, two = (run_catalogue(entries, seeds=2, processes=number) for number in (1, 2))
    assert [replace(each, seconds=0.0) for each in one] == [
        replace(each, seconds=0.0) for each in two
    ]


def test_a_table_goes_on_with_the_rows_that_are_recorded(tmp_path):
    results, told = tmp_path / "found.json", []
    first = run_catalogue([SOUND], results=results)
    again = run_catalogue([SOUND, UNSOUND], results=results, progress=told.append)
    assert again[0] == first[0]  # not measured again: its seconds are the same
    assert told == list(again)
    other = run_catalogue([SOUND], seed=1, results=results)
    assert other[0].seconds != first[0].seconds
    longer = run_catalogue([replace(SOUND, runs=500)], seed=1, results=results)
    assert longer[0].runs == 500
    with pytest.raises(InputError, match="runs is 0"):
        run_catalogue([SOUND], runs=0)


def test_answers_of_any_kind_are_drawn_one_by_one():
    told = replace(UNSOUND, release=None, answer=lambda data, rng: f"{data} {rng.integers(9)}")
    record = audit_entry(told, 0)
    assert record.refuted
    assert "numbers in output" in record.event


def test_bounds_above_the_truth_are_counted():
    bounds = (0.5, 1.0, 1.0 + 1e-12, 1.1)
    made = Row.of(SOUND, [Audit(False, 400, bound, 0.1) for bound in bounds])
    assert (made.above, made.audits, made.runs) == (1, 4, 400)


def test_a_row_is_strict_json():
    endless = replace(UNSOUND, true_epsilon=math.inf)
    record = json.loads(json.dumps(row(endless, 1, 1).to_dict(), allow_nan=False))
    assert record["true_epsilon"] == "infinity"
    assert record["as_expected"] is True


# -- samplers that leak through their bits, and ones that do not -----------------------------------


LEAKS = FloatEntry("numpy", True, Claim(1.0), 1000, Laplace(1.0).release_many)
SILENT = FloatEntry("discrete", False, Claim(1.0), 1000, DiscreteLaplace(1.0).release_many)


def test_a_finding_is_expected_where_there_is_a_leak_and_nowhere_else():
    rows = run_floats([LEAKS, SILENT], seed=1)
    assert all(row.as_expected for row in rows)
    assert rows[0].rules == ("float-lsb",)
    assert rows[1].rules == ()
    unexpected = run_floats([FloatEntry("?", False, Claim(1.0), 1000, LEAKS.release)], seed=1)
    assert not unexpected[0].as_expected


def test_draws_are_at_most_the_budget_and_at_most_what_is_wanted():
    silent = FloatEntry("silent", False, Claim(1.0), 300, lambda x, n, rng: np.zeros(n))
    assert [row.draws for row in run_floats([silent])] == [300]
    assert [row.draws for row in run_floats([silent], draws=200)] == [200]


def test_a_row_of_a_sampler_is_strict_json():
    (row,) = run_floats([LEAKS])
    record = json.loads(json.dumps(row.to_dict(), allow_nan=False))
    assert (record["sampler"], record["leaks"], record["as_expected"]) == ("numpy", True, True)


# -- what a table says, against tables of intervals and counts by hand -----------------------------


def entry(name, right, true, **more):
    return Entry(name, right, Claim(1.0), 0, 1, true, 100, lambda d, n, rng: rng.random(n), **more)


ROWS = [
    Row(entry("found", False, 2.0), 60, 60, 50, 0.1, 1.5, 1),
    Row(entry("missed", False, math.inf), 56, 60, 50, 0.1, 1.5, 0),
    Row(entry("far", False, 4.0, limit=True), 58, 60, 50, 0.1, 1.5, 2),
    Row(entry("sound", True, 1.0), 3, 91, 100, 0.1, 0.9, 3),
]


def test_the_interval_is_clopper_and_pearsons():
    # Newcombe (1998), Table I: 81 of 263, 15 of 148, 0 of 20 and 29 of 29.
    printed = {(81, 263): (0.2527, 0.3676), (15, 148): (0.0578, 0.1617), (0, 20): (0.0, 0.1684),
               (29, 29): (0.8806, 1.0)}  # fmt: skip
    for counts, interval in printed.items():
        assert Rate(*counts).interval == pytest.approx(interval, abs=6e-5)
    assert Rate(0, 0).interval == (0.0, 1.0)


def test_rows_are_counted_by_what_is_true_of_them():
    summary = Summary.of(ROWS)
    assert summary.found == Rate(174, 180)
    assert summary.missed == ("missed",)
    assert summary.false_alarms == Rate(3, 91)
    assert summary.above == Rate(6, 211)  # not where the true ε is infinite
    assert summary.above_own == Rate(4, 151)  # nor where it is a limit
    record = json.loads(json.dumps(summary.to_dict(), allow_nan=False))
    assert record["above_truth"]["hits"] == 6


def test_three_sentences_say_so():
    found, alarms, above = Summary.of(ROWS).lines
    assert found.endswith("rows found in less than 95%: missed")
    assert alarms.startswith("false alarms: 3 of 91 (3.30 %; 0.69 to 9.33 % at 95% confidence)")
    assert "above the true ε: 6 of 211" in above
    assert Summary.of([]).lines[1].startswith("false alarms: 0 of 0 of audits")


# -- the page of a table ---------------------------------------------------------------------------


BOUNDS = next(each for each in ENTRIES if "max(|lower|" in each.name)
INDEX = next(each for each in ENTRIES if each.name == "noisy max index")
FLIP = next(each for each in ENTRIES if each.exact is not None and each.right)
COIN = FloatRow(FloatEntry("coin", False, Claim(1.0), 10, lambda d, n, rng: d), (), 10, 0.1)


def test_every_row_is_a_line_of_its_table():
    rows = [Row(BOUNDS, 59, 60, 80, 0.1, 1.5), Row(INDEX, 4, 91, 1000, 0.1, 0.5)]
    page = markdown([*rows, Row(FLIP, 0, 1, 0, 0.1, 2.0)], [COIN], "make it")
    assert "`make it` makes this page." in page
    name = r"sensitivity max(\|lower\|, \|lower\|)"  # a bar would end the cell
    assert f"| {name} | (1, 0) | ∞ | 1000 | 80 | 59 of 60 | 1.5 |" in page
    assert "| noisy max index | (1, 0) | ≤ 1 | 10000 | 1000 | 4 of 91 | 0.5 |" in page
    assert "| permute-and-flip | (2, 0) | 2 | exact | exact | 0 of 1 | 2 |" in page
    assert "| coin | none | 10 |" in page
    assert "unexpected" not in page
    assert max(map(len, page.split("\n## ")[0].splitlines()[4:])) <= 400


def test_what_is_not_as_it_should_be_is_marked():
    page = markdown([Row(replace(BOUNDS, name="late"), 5, 60, 80, 0.1, 1.5)], [], "x")
    assert "| late **(unexpected)** |" in page
    assert "rows found in less than 95%: late." in page
    assert "## Right" not in page


# -- the command that prints the catalogue ---------------------------------------------------------


def test_the_command_prints_a_line_a_row_and_writes_the_table(tmp_path, capsys):
    path = tmp_path / "table.json"
    assert main(["--only", "half", "--json", str(path)]) == 0
    assert "Laplace, half the scale" in capsys.readouterr().out
    table = json.loads(path.read_text())
    assert {row["verdict"] for row in table["rows"]} == {"refuted"}
    assert math.isclose(table["rows"][0]["true_epsilon"], 2.0)
    assert table["found"]["hits"] == table["found"]["trials"] == len(table["rows"])
    assert table["rows_missed"] == []
    assert table["false_alarms"] == {"hits": 0, "trials": 0, "interval": [0.0, 1.0]}
    assert table["above_truth"]["hits"] == 0
    assert table["as_expected"] is True


def test_the_last_lines_are_what_the_table_says(capsys):
    assert main(["--only", "exception", "--right-seeds", "2", "--right-runs", "300"]) == 0
    found, alarms, above = capsys.readouterr().out.splitlines()[-3:]
    assert found.startswith("found: 2 of 2 (100.00 %;")
    assert found.endswith("less than 95%: none")
    assert alarms.startswith("false alarms: 0 of 2 (0.00 %;")
    assert above.startswith("lower bound above the true ε: 0 of 3 (0.00 %;")


def test_a_page_names_the_command_that_makes_it_again(tmp_path, capsys):
    path = tmp_path / "page.md"
    assert main(["--only", "half", "--seed", "3", "--markdown", str(path)]) == 0
    page = path.read_text()
    assert f"`python -m audits.catalogue --seed 3 --only half --markdown {path}`" in page
    assert "| Laplace, half the scale | (1, 0) | 2 | 3000 | " in page


def test_wrong_input_is_one_sentence(capsys):
    assert main(["--seeds", "0", "--only", "half"]) == 3
    assert "seeds is 0" in capsys.readouterr().err
