"""Tables that people write: what is wrong is told, and briefly, whatever its size."""

import time

import pytest

from dpaudit.base.errors import InputError
from dpaudit.base.toml_tables import chosen, nearest, table, tables, within


def test_a_near_word_is_offered_and_else_all_of_them():
    assert nearest("sigmo", ("sigma", "scale")) == "did you mean 'sigma'?"
    assert nearest("q", ("sigma", "scale")) == "it must be one of scale, sigma."


@pytest.mark.parametrize("value", ["centrl", "", None, 3, ["central"]])
def test_a_word_is_one_of_those_that_there_are(value):
    assert chosen(("central", "local"), trust="local") == "local"
    with pytest.raises(InputError, match="trust is"):
        chosen(("central", "local"), trust=value)


def test_unknown_keys_are_refused_with_the_nearest():
    assert table("claim", {"epsilon": 1}, ("epsilon", "delta")) == {"epsilon": 1}
    with pytest.raises(InputError, match="claim has an unknown key 'epsilom'; did you mean 'eps"):
        table("claim", {"epsilom": 1}, ("epsilon", "delta"))
    with pytest.raises(InputError, match="claim is 3; it must be a table"):
        table("claim", 3, ("epsilon",))


def test_an_array_of_tables_is_no_table():
    assert tables("subject", [{}]) == [{}]
    with pytest.raises(InputError, match=r"array of tables, \[\[subject\]\]"):
        tables("subject", {})


def test_errors_are_told_with_their_place():
    with pytest.raises(InputError, match=r"^subject 2: claim is 3"), within("subject 2"):
        table("claim", 3, ())
    with pytest.raises(KeyError), within("subject 2"):
        {}["x"]


def test_a_near_word_is_named():
    with pytest.raises(InputError, match="unknown key 'epsilom'; did you mean 'epsilon'"):
        table("claim", {"epsilom": 1}, ("epsilon", "delta"))


@pytest.mark.parametrize(
    "word", ["x" * 10**6, 10**5000, ["a"] * 10**5, None], ids=["text", "int", "list", "none"]
)
def test_a_huge_word_is_told_briefly_and_at_once(word):
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        chosen(("epsilon", "delta"), accountant=word)
    assert len(str(caught.value)) < 200
    assert time.perf_counter() - start < 1


def test_of_many_words_some_are_named():
    with pytest.raises(InputError) as caught:
        chosen([f"{number}" * 50 for number in range(10**4)], name="y")
    assert len(str(caught.value)) < 2000


def test_the_nearest_word_is_found_in_any_case():
    assert nearest("gausian", ["Gaussian", "laplace"]) == "did you mean 'Gaussian'?"
    assert nearest("LAPLACE", ["Gaussian", "laplace"]) == "did you mean 'laplace'?"
