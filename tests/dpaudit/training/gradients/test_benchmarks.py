"""Slices of the benchmarks of trainings by a loss of one example."""

import pytest

from tests.benchmarks import language_canaries, training_canaries, training_fit

pytestmark = pytest.mark.pages


@pytest.mark.filterwarnings("ignore")
def test_the_table_of_layers_is_that_of_the_page(capsys):
    training_fit.show_layers()
    refused = [
        line.split("  ")[1] for line in capsys.readouterr().out.splitlines() if " no: " in line
    ]
    names = ["BatchNorm1d, training", "LSTM, 64 bits", "GRU", "RNN", "LSTMCell", "GRUCell"]
    assert refused == names


@pytest.mark.filterwarnings("ignore")
def test_a_step_costs_little_more_than_in_plain_torch():
    """A wide bound on the ratio, as what else runs on the machine is in it."""
    make = training_fit.MODELS["dense, 256 hidden"]
    steps = 6 * training_fit.TURN
    plain, own = training_fit.in_turn(
        [training_fit.plain(make(), steps), training_fit.certified(make(), steps)], 6
    )
    assert min(own) < 1.5 * min(plain)


@pytest.mark.filterwarnings("ignore")
def test_canaries_show_no_more_than_is_certified():
    assert training_canaries.main(500, 1) == 0


@pytest.mark.filterwarnings("ignore")
def test_secrets_show_less_noise_than_declared_and_no_more_than_is_certified():
    assert language_canaries.main(1000, 1) == 0
