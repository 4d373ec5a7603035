"""What all studies share: objectives that keep what they are asked, and wrong parties."""

from functools import cache
from traceback import format_exception

import numpy as np
import pytest

from dpaudit import InputError, Ledger
from dpaudit.rehearsal.rehearse import rehearse
from private_bo import BoxSpace, study
from private_bo.federated import Broadcast
from private_bo.own.studies import ConstantUser

KEPT = {}


def first(point, user):
    """Everybody answers as the first one who was ever asked."""
    return 1.0 - abs(point[0] - KEPT.setdefault("first", user))


def largest(point, user):
    """Everybody's answer depends on the largest record so far."""
    KEPT["largest"] = max(KEPT.get("largest", user), user)
    return 1.0 - abs(point[0] - KEPT["largest"])


def last(point, user):
    """Everybody answers as the one before."""
    before, KEPT["last"] = KEPT.get("last", user), user
    return 1.0 - abs(point[0] - before)


@cache
def _asked_first(_, record=KEPT):
    return record["user"]


def cached(point, user):
    """As the first one, by a cache."""
    KEPT["user"] = user
    return 1.0 - abs(point[0] - _asked_first(0))


class Instance:
    """As the first one, by an attribute."""

    def __init__(self):
        self.kept = []

    def __call__(self, point, user):
        self.kept.append(user)
        return 1.0 - abs(point[0] - self.kept[0])


@cache
def _kernel(size):
    return np.linalg.inv(np.eye(size) + np.ones((size, size)))


@cache
def _own(point, user):
    return 1.0 - abs(point - user) * _kernel(3)[0, 0]


def right(point, user):
    """What is kept follows from the question and the user's own record, or is public."""
    return _own(float(point[0]), user)


@pytest.fixture(autouse=True)
def nothing_kept():
    KEPT.clear()
    _asked_first.cache_clear()


def rules(objective, trust, users=12, **settings):
    made = study(objective, BoxSpace((0,), (1,)), users=users, epsilon=2.0, trust=trust, **settings)
    data = [((37 * n) % 100) / 100 for n in range(users)]
    return {each.rule for each in rehearse(made, data).findings}


@pytest.mark.parametrize(
    ("trust", "objective"),
    [*(("joint", each) for each in (first, largest, cached, Instance)),
     ("local", first), ("local", cached), ("federated", first)],
)  # fmt: skip
def test_an_objective_that_keeps_what_it_was_asked_is_found(objective, trust):
    more = {"rounds": 1, "evaluations": 2} if trust == "federated" else {}
    asked = objective() if objective is Instance else objective
    assert rules(asked, trust, **more)


def test_one_that_tells_the_next_user_is_found():
    assert rules(last, "joint", group=4)


@pytest.mark.parametrize("trust", ["local", "joint", "local-joint"])
def test_a_cache_of_what_is_public_or_the_user_s_own_is_no_finding(trust):
    assert rules(right, trust) == set()


def test_two_neighbours_are_asked_and_differ_from_the_data():
    made = study(None, BoxSpace((0,), (1,)), users=4, epsilon=1.0)
    data = [3, 3, 3, 1]
    moves = [m for m in made.neighbours(data, np.random.default_rng(0)) if m.hops == 1]
    assert [move.data for move in moves[:2]] == [[1, 3, 3, 1], [3, 3, 3, 3]]
    assert sum(any(isinstance(each, ConstantUser) for each in move.data) for move in moves[2:]) == 3


@pytest.mark.parametrize("trust", ["local", "joint", "local-joint"])
def test_an_answer_that_is_missing_and_taken_from_the_last_user_is_found(trust):
    kept = [0.5]

    def rating(point, user):
        kept[0] = kept[0] if user is None else user
        return 1 - (point[0] - kept[0]) ** 2

    data = [None if n == 7 else n % 4 / 4 for n in range(20)]
    made = study(rating, BoxSpace((0,), (1,)), users=20, epsilon=20.0, trust=trust)
    assert any(each.severity == "error" for each in rehearse(made, data).findings)


BOX = BoxSpace((0,), (1,))
LOCAL = study(None, BOX, users=9, epsilon=4.0)
JOINT = study(None, BOX, users=9, epsilon=1.0, trust="joint", group=3)
DEVICES = study(None, BOX, users=9, epsilon=4.0, trust="local-joint")
AGENTS = study(None, BOX, users=3, epsilon=1.0, trust="federated", rounds=1)
ROWS = study(None, BOX, users=9, epsilon=1.0, trust="outsourced", queries=2)


def rng():
    return np.random.default_rng(0)


def door(made):
    return Ledger(made.plan(), rng=rng())


def asked(made):
    return made.server(rng()).ask()


def answering(parameters, options, play):
    return DEVICES.device("ann", door(DEVICES), rng()).answer(parameters, options, play)


def modeller():
    return ROWS.modeller(ROWS.publish([[0.5]] * 9, door(ROWS)), rng())


WRONG = {
    "rng is a NoneType; it must be a Generator": [
        lambda: LOCAL.server(None),
        lambda: JOINT.server(None),
        lambda: LOCAL.device("ann", door(LOCAL), None),
        lambda: AGENTS.agent(0, None),
        lambda: ROWS.modeller(ROWS.publish([[0.5]] * 9, door(ROWS)), None),
    ],
    "rng is a int; it must be a Generator": [lambda: LOCAL.server(3)],
    "ledger is a NoneType; it must be a Ledger": [
        lambda: LOCAL.device("ann", None, rng()),
        lambda: JOINT.privatiser(None),
        lambda: DEVICES.device("ann", None, rng()),
        lambda: AGENTS.server(None),
        lambda: ROWS.publish([[0.5]] * 9, None),
        lambda: ROWS.desk([[0.5]] * 9, None),
    ],
    "question is a NoneType; it must be a Question": [
        lambda: LOCAL.device("ann", door(LOCAL), rng()).answer(None, 0.5),
        lambda: JOINT.privatiser(door(JOINT)).collect(None, "ann", 0.5),
    ],
    "user is ": [
        lambda: DEVICES.device(3, door(DEVICES), rng()),
        lambda: JOINT.privatiser(door(JOINT)).collect(asked(JOINT), [], 0.5),
    ],
    "group is 'x'": [lambda: JOINT.privatiser(door(JOINT)).close("x")],
    "report is a int; it must be a Report": [lambda: DEVICES.server(rng()).tell(3)],
    "parameters is a NoneType; it must be a Parameters": [
        lambda: answering(None, [[0.5]], lambda _: 0.0)
    ],
    "value is of type list": [lambda: answering(asked(DEVICES), [["secret"]], lambda _: 0.0)],
    "broadcast is a int; it must be a Broadcast": [lambda: AGENTS.agent(0, rng()).receive(3)],
    "broadcast has vectors of shape": [
        lambda: AGENTS.agent(0, rng()).receive(Broadcast(0, [[1.0]]))
    ],
    "number is 3; it must be an integer of at least 0 and at most 2": [
        lambda: AGENTS.agent(3, rng())
    ],
    "reports is a NoneType": [lambda: AGENTS.server(door(AGENTS)).round(0, None)],
    "data has 8 records, but users is 9": [
        lambda: ROWS.publish([[0.5]] * 8, door(ROWS)),
        lambda: ROWS.desk([[0.5]] * 8, door(ROWS)),
    ],
    "data is a NoneType; it must be a list": [lambda: ROWS.publish(None, door(ROWS))],
    "is NaN or infinite": [lambda: ROWS.publish([[float("nan")]] * 9, door(ROWS))],
    "release is a NoneType; it must be a Release": [lambda: ROWS.modeller(None, rng())],
    "value is 'x'; it must be a finite number": [
        lambda: (made := modeller()).tell(made.ask(), "x")
    ],
    "deviation is 1e-300": [lambda: LOCAL.server(rng()).inform([[0.5]], [1.0], 1e-300)],
}


@pytest.mark.parametrize(("words", "wrong"), [(w, each) for w in WRONG for each in WRONG[w]])
def test_wrong_parties_are_one_sentence(words, wrong):
    with pytest.raises(InputError) as refused:
        wrong()
    assert str(refused.value).startswith(words) or words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_what_is_no_report_is_counted_and_is_a_zero_vector():
    server = AGENTS.server(door(AGENTS))
    server.round(0, [3, None, AGENTS.agent(0, rng()).report(0)])
    assert dict(server.refused) == {"malformed": 2}
    assert server.missing == [2]


def fails(place):
    raise ValueError("secret 17")


@pytest.mark.parametrize("play", [fails, lambda _: "secret 17", lambda _: np.ma.masked])
def test_the_words_of_a_user_s_error_are_not_told(play):
    ledger = door(DEVICES)
    with pytest.raises(InputError) as refused:
        DEVICES.device("ann", ledger, rng()).answer(asked(DEVICES), [[0.5]], play)
    assert "17" not in "".join(format_exception(refused.value))
    assert refused.value.__context__ is None
    assert len(ledger) == 0


def test_rows_of_a_file_are_named(tmp_path):
    (tmp_path / "rows.csv").write_text("x\n" + "0.5\n" * 4 + "wide\n" + "0.5\n" * 4)
    with pytest.raises(InputError, match=r"row 5 of .* must hold 1 finite numbers"):
        ROWS.load(str(tmp_path / "rows.csv"), rng())
