"""Names that look like another's."""

from __future__ import annotations

import pytest

from dpaudit.base.errors import InputError
from dpaudit.base.names import checked_name, same_person, written_alike

HIDDEN = ["\u3164", "\ufe0f", "\u034f", "\u115f", "\u180b", "\u2800", "\uffa0", "\u200b", "\u00ad"]


@pytest.mark.parametrize(
    "name",
    [
        *("ANN", " a nn", "ann.", "ann\u0301", "\u0430nn", "\u0251nn", "a\u0578\u0578", "\u0391nn"),
        *("\uff41\uff4e\uff4e", "\U0001d41ann", *(f"an{each}n" for each in HIDDEN)),
    ],
)
def test_who_looks_like_another_is_that_one(name):
    assert same_person(name, "ann")
    assert same_person("ann", name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ann", "anna"),
        ("ann 2", "ann 3"),
        ("\u0418\u0432\u0430\u043d", "\u0418\u043b\u044c\u044f"),  # Ivan and Ilya
        ("\u674e\u5c0f\u9f99", "\u674e\u5927\u9f99"),
        ("\u0930\u093e\u092e", "\u0930\u092e\u093e"),  # Ram and Rama
    ],
)
def test_others_are_others(one, other):
    assert not same_person(one, other)
    assert checked_name(by=one) == one
    assert checked_name(by=other) == other


def test_names_are_of_one_script_and_can_be_seen():
    for fine in (
        "Jos\u00e9 O'Brien-2",
        "\u7530\u4e2d\u3055\u304f\u3089",
        "ann@x.org",
        "\u0418\u0432\u0430\u043d",
    ):
        assert checked_name(by=fine) == fine
    for wrong in ("\u0430nn", "a\u03bfn", *(f"ann{each}" for each in HIDDEN)):
        with pytest.raises(InputError, match=r"^by is .*must be of one script") as error:
            checked_name(by=wrong)
        assert str(error.value).isascii()


def test_what_earlier_versions_took_for_one():
    assert written_alike(" A nn", "\uff41nn")
    assert not written_alike("ann.", "ann")
