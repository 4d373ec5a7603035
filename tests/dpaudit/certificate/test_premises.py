import itertools

import pytest

from dpaudit.certificate.premises import THIRD, Premise, Standing, limited

ALONE = dict.fromkeys(Premise, (Standing.ENFORCED, "It is built in."))


@pytest.mark.parametrize(("own", "below"), list(itertools.product(Standing, Standing)))
def test_a_premise_is_known_no_better_than_what_it_rests_on(own, below):
    known = ALONE | {Premise.SENSITIVITY: (own, ""), Premise.OWN_VALUES: (below, "")}
    rests = {Premise.SENSITIVITY: (Premise.OWN_VALUES,)}
    found = {each.premise: each for each in limited(known, rests)}
    here = found[Premise.SENSITIVITY]
    assert here.alone is own
    if own is Standing.NOT_APPLICABLE:  # there is nothing that could rest on anything
        assert here.standing is own
        assert here.rests_on == ()
    else:
        assert here.standing.rank == max(own.rank, below.rank)
        assert here.rests_on == (Premise.OWN_VALUES,)
    assert found[Premise.NOISE].standing is Standing.ENFORCED


def test_a_chain_of_premises_is_as_strong_as_its_weakest():
    known = ALONE | {Premise.UNITS: (Standing.ASSUMED, "")}
    rests = {
        Premise.SENSITIVITY: (Premise.OWN_VALUES,),
        Premise.OWN_VALUES: (Premise.TOUCHES,),
        Premise.TOUCHES: (Premise.UNITS,),
    }
    standings = {each.premise: each.standing for each in limited(known, rests)}
    assert {standings[each] for each in rests} == {Standing.ASSUMED}


def test_what_was_not_exercised_ranks_with_what_is_assumed():
    assert Standing.NOT_EXERCISED.rank == Standing.ASSUMED.rank
    assert Standing.TESTED.rank < Standing.ASSUMED.rank < Standing.VIOLATED.rank
    assert len(Premise) == 12
    assert len(THIRD) == 3
