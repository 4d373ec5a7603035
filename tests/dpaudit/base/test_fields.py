"""Fields that check themselves."""

from dataclasses import dataclass
from fractions import Fraction

import pytest
from examples import gaussian_invocation

from dpaudit import Laplace
from dpaudit.base.errors import InputError
from dpaudit.base.fields import MOST, Checked, Count, at_least
from dpaudit.mechanisms import LaplacePair


@dataclass(frozen=True)
class Counted(Checked):
    number: Count = 1


def test_a_subclass_without_a_kind_of_its_own_is_no_member():
    class Cheaper(Laplace):
        def pair(self, sensitivity):
            return LaplacePair(Fraction(0))

    with pytest.raises(InputError, match="Cheaper, which is no registered mechanism"):
        gaussian_invocation(mechanism=Cheaper(1.0))


@pytest.mark.parametrize(
    "wrong", [0, -1, 1.0, "1", True, None, MOST + 1, 10**5000], ids=lambda one: type(one).__name__
)
def test_counts_are_bounded(wrong):
    assert Counted(MOST).number == MOST
    with pytest.raises(InputError) as caught:
        Counted(wrong)
    assert len(str(caught.value)) < 160
    assert at_least(0, 5)(number=5) == 5


def test_a_class_that_compares_as_a_base_with_other_fields_is_refused():
    @dataclass(frozen=True)
    class Bare(Checked):
        pass

    @dataclass(frozen=True, eq=False)
    class Table(Bare):
        losses: tuple[float, ...] = ()

    @dataclass(frozen=True, eq=False)
    class Base(Checked):
        pass

    @dataclass(frozen=True, eq=False)
    class Other(Base):
        losses: tuple[float, ...] = ()

    with pytest.raises(InputError, match=r"Table compares as .*Bare, which has other fields; give"):
        Table((1.0,))
    assert Other((1.0,)) != Other((2.0,))
    assert Bare() == Bare()
