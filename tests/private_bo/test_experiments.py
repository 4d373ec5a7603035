"""What all experiments share."""

import argparse

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo import experiments


def test_the_error_of_a_mean_by_hand():
    values = np.array([[1.0, 5.0], [3.0, 5.0]])
    mean, error = experiments.mean_and_error(values)
    assert mean.tolist() == [2.0, 5.0]
    assert error.tolist() == pytest.approx([1.0, 0.0])  # √2 / √2
    assert experiments.mean_and_error(values[:1])[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("wrong", [(0, 0, 1), (1, -1, 1), (1, 0, 0), (1.5, 0, 1)])
def test_numbers_of_an_experiment(wrong):
    assert experiments.trial_numbers(2, 0, 1) == (2, 0, 1)
    with pytest.raises(InputError):
        experiments.trial_numbers(*wrong)


def test_workers_change_no_result():
    arguments = [(k, 2) for k in range(5)]
    assert experiments.in_parallel(pow, arguments, 1) == [k**2 for k in range(5)]
    assert experiments.in_parallel(pow, arguments, 2) == [k**2 for k in range(5)]


def test_files_of_one_name(tmp_path):
    experiments.save(tmp_path / "new", "x", "text", {"a": 1})
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["x.json", "x.md"]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        experiments.save(tmp_path / "file" / "below", "x", "text", {})


def test_wrong_input_is_exit_3_and_one_sentence(capsys):
    def refuse(given: argparse.Namespace) -> str:
        raise InputError(f"trials is {given.trials}.")

    given = experiments.options("x", "about", trials=3).parse_args([])
    assert experiments.command(refuse, given) == 3
    assert capsys.readouterr().err == "trials is 3.\n"
    assert experiments.command(lambda _: "done\n", given) == 0
    assert capsys.readouterr().out == "done\n"
