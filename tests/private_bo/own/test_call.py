"""One call for each trust model, and subjects for the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from dpaudit.certificate.verification import verify
from dpaudit.cli.main import main
from private_bo import BoxSpace, PointSpace, optimise, study
from tests.benchmarks.own_problems import BOX as BOX_OF_TABLE
from tests.benchmarks.own_problems import FIRST_TUNED, GRID, Function, interval, share, table

BOX = BoxSpace((0.0, 0.0), (1.0, 1.0))


def liking(x, user):
    return math.exp(-8 * float(np.square(np.asarray(x) - 0.4).sum()))


@pytest.mark.parametrize(
    ("trust", "users", "more"),
    [
        ("local", 12, {}),
        ("joint", 20, {}),
        ("local-joint", 8, {}),
        ("federated", 3, {"rounds": 1, "evaluations": 1}),
        ("outsourced", np.random.default_rng(0).random((30, 2)), {"queries": 11}),
    ],
)
def test_every_trust_model_runs_by_one_call_and_is_certified(trust, users, more):
    found = optimise(liking, BOX, users=users, epsilon=1.0, trust=trust, seed=3, **more)
    again = optimise(liking, BOX, users=users, epsilon=1.0, trust=trust, seed=3, **more)
    assert np.array_equal(found.point, again.point)
    assert str(found.certificate.verdict) == "certified"
    assert found.certificate.guarantee.epsilon <= 1.0
    verify(found.certificate)
    assert found.certificate.seed == 3
    assert "seeded-noise" in {each.rule for each in found.certificate.findings}
    found.ledger.check()
    json.dumps(found.result.to_dict(), allow_nan=False)


def test_a_list_of_points_and_own_records():
    space = PointSpace([[1.0], [2.0], [3.0]])
    found = optimise(
        lambda x, user: user["best"] == x[0], space, users=[{"best": 2.0}] * 80, epsilon=4.0, seed=1
    )
    assert found.point.tolist() == [2.0]
    assert str(found) == (
        "best point [2.], from 80 users; certified: local study: ε ≤ 4 is proved at δ = 0 "
        "(findings: usual-range, seeded-noise)"
    )
    assert found._repr_html_().startswith("<p>best point [2.], from 80 users; ")
    assert found._repr_html_().endswith(found.certificate._repr_html_())


def test_answers_outside_of_the_usual_range_are_told_of(recwarn):
    """Before a run what becomes of them; after an experiment how many there were."""
    more = {"users": 6, "epsilon": 1.0}
    assert "usual-range" in {each.rule for each in study(liking, BOX, **more).findings()}
    for trust in ("local", "shuffle", "joint", "federated"):
        with pytest.warns(UserWarning, match=r"were outside of \(0.0, 1.0\) and counted"):
            optimise(lambda x, user: 7.0, BOX, trust=trust, seed=0, **more)
    optimise(lambda x, user: 7.0, BOX, float_noise=True, **more)  # private: nobody is told
    found = optimise(lambda x, user: 7.0, BOX, answers=(2, 10), seed=0, **more)
    assert "usual-range" not in {each.rule for each in found.certificate.findings}
    assert not recwarn.list


def test_noise_is_exact_unless_said_otherwise():
    pytest.importorskip("opendp")
    exact = optimise(liking, BOX, users=3, epsilon=1.0)
    floats = optimise(liking, BOX, users=3, epsilon=1.0, float_noise=True)
    assert not exact.ledger.seeded
    assert {e.sampler for e in exact.ledger} != {e.sampler for e in floats.ledger}
    rules = [{each.rule for each in found.certificate.findings} for found in (exact, floats)]
    assert rules[1] - rules[0] == {"float-sampler"}
    assert exact.certificate.run["ledger"]["samplers"] == {next(iter(exact.ledger)).sampler: 3}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"trust": "none"}, "trust is 'none'; it must be one of local"),
        ({"delta": 0.1}, "local trust has no setting 'delta'"),
        ({"users": 0}, "users is 0"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"users": []}, "users is 0"),
        ({"users": None}, "users is a NoneType; it must be a list of records"),
        ({"users": {"best": [0.5]}}, "users is a dict; it must be a list of records, one for each"),
        ({"epsilon": 1e-9}, "epsilon is 1e-9; it must be from 1e-6 to 1e6"),
        ({"answer_deviation": 1e300}, "answer_deviation is 1e300"),
        ({"seed": -1}, "seed is -1"),
        ({"answers": (0.0, 1e308)}, "answers is .* both must be within ±1e\\+100"),
        ({"answers": (0.0, 1e-320)}, "at least 1e-100 apart"),
        ({"objective": lambda x, user: np.ma.masked}, "an objective must return one"),
        ({"space": [[1.0]]}, "space is"),
        ({"objective": lambda x, user: float("nan")}, "answer, of type float, is no finite number"),
        ({"objective": lambda x, user: "HIV"}, "of type str, is no finite number; an objective"),
        ({"objective": lambda x, user: type("HIV", (), {})()}, "answer, of type object, is no"),
        ({"objective": lambda x, user: [1.0] * 7}, "^answer is an array; it must be one number.$"),
        ({"objective": lambda x: 1.0}, "let it take the arguments that it is called with"),
        ({"objective": lambda x, user: user + "a", "users": range(3)}, "they are the numbers 0, 1"),
        ({"objective": lambda x, user: 1 / 0}, "raised ZeroDivisionError"),
    ],
)
def test_wrong_input_is_one_sentence(given, words):
    wanted = {"objective": liking, "space": BOX, "users": 3, "epsilon": 1.0, "seed": 0} | given
    with pytest.raises(InputError, match=words) as refused:
        optimise(wanted.pop("objective"), wanted.pop("space"), **wanted)
    assert "\n" not in str(refused.value)


MINE = """
from private_bo import BoxSpace, study

MINE = study(lambda point, user: user["best"], BoxSpace((0,), (1,)), users=2, epsilon=1.0)
"""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "data 'own.csv' cannot be read: the file is empty."),
        ("best\n0.1\n", "data has 1 records, but users is 2; set users so, or give other data."),
        (None, "data 'own.csv' is a folder; give a file."),
    ],
)
def test_wrong_data_are_an_input_error_in_words(tmp_path, monkeypatch, capsys, content, words):
    monkeypatch.chdir(tmp_path)
    name = "mine_wrong.py"
    Path(name).write_text(MINE)
    if content is None:
        Path("own.csv").mkdir()
    else:
        Path("own.csv").write_text(content)
    for command in (["certify", "--rehearse"], ["run", "-o", "out", "--seed", "1"]):
        with pytest.raises(SystemExit) as ended:
            main([command[0], f"{name}:MINE", "--data", "own.csv", *command[1:]])
        assert ended.value.code == 3
        assert capsys.readouterr().err == f"dpaudit: {words}\n"


def test_an_objective_that_lacks_a_column_is_told_by_its_own_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine_lacks.py").write_text(MINE)
    Path("own.csv").write_text("bst\n0.4711\n0.2\n")
    with pytest.raises(SystemExit):
        main(["run", "mine_lacks.py:MINE", "--data", "own.csv", "-o", "out", "--seed", "1"])
    told = capsys.readouterr().err
    assert told.startswith("dpaudit: <lambda> raised KeyError at mine_lacks.py:4; it must take")
    assert told.endswith("so give each record the key that the line reads.\n")


def test_a_study_without_an_objective_is_for_ask_and_tell():
    parties = study(None, BOX, users=3, epsilon=1.0).server(np.random.default_rng(0))
    assert parties.ask().point.shape == (2,)


@pytest.mark.pages
def test_a_slice_of_the_benchmark(capsys):
    rows = table(functions=2, users=10, agents=2, first=FIRST_TUNED)
    assert len(rows) == 15
    assert capsys.readouterr().out.splitlines() == rows[2:]
    f = Function((0,), bumps=True)
    assert share(
        f, BOX_OF_TABLE.lower + GRID * np.diff(BOX_OF_TABLE.bounds)[:, 0]
    ) == pytest.approx(1.0)
    assert f(GRID).min() == 0
    assert f(GRID).max() == 1
    assert interval([0.1, 0.3]) == "20.0 [-107.1, 147.1]"  # Student's 12.706 · 0.1
