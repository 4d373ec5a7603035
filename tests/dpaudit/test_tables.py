import pytest

from dpaudit.errors import InputError
from dpaudit.tables import chosen, nearest, table, tables, within


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
