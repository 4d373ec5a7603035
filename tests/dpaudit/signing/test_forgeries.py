"""Whatever is tried without a key is refused in one sentence, and what is right is not."""

from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from export_forgeries import right_exports
from forgeries import FORGERIES, World, right
from typed_commands import typed


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    pytest.importorskip("opendp")
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture
def verified(capsys):
    return lambda words: typed(capsys, "verify", *words)


@pytest.mark.parametrize(
    "forgery", FORGERIES, ids=[f"{each.kind}: {each.name}" for each in FORGERIES]
)
def test_a_forgery_is_refused(world, tmp_path, verified, forgery):
    code, out, err = verified(forgery.make(world, tmp_path))
    assert code in (1, 3), (out, err)
    assert forgery.told in err
    lines = err.splitlines()
    assert lines
    assert all(line.startswith("dpaudit: ") and line.endswith(".") for line in lines), err
    if code == 3:
        assert (out, len(lines)) == ("", 1)
    else:
        assert "refused" in out
        assert "policy" in out


def test_there_are_enough_of_them():
    assert len(FORGERIES) >= 60
    assert len({each.kind for each in FORGERIES}) >= 15
    assert len({(each.kind, each.name) for each in FORGERIES}) == len(FORGERIES)
    page = (Path(__file__).parents[3] / "docs" / "signing.md").read_text("utf-8")
    kinds = len({each.kind for each in FORGERIES})
    assert f"{len(FORGERIES)} forgeries, of {kinds} kinds" in page


def test_what_is_right_passes(world, verified):
    for name, words in (right(world) | right_exports(world)).items():
        code, out, err = verified(words)
        assert (code, "refused" in out) == (0, False), (name, out, err)
