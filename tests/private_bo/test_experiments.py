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


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    assert experiments.made_folder(tmp_path / "new").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        experiments.made_folder(tmp_path / "file" / "below")


def test_wrong_input_is_exit_3_and_one_sentence(capsys):
    def refuse(given: argparse.Namespace) -> str:
        raise InputError(f"trials is {given.trials}.")

    given = argparse.Namespace(trials=3)
    assert experiments.command(refuse, given) == 3
    assert capsys.readouterr().err == "trials is 3.\n"
    assert experiments.command(lambda _: "done\n", given) == 0
    assert capsys.readouterr().out == "done\n"
