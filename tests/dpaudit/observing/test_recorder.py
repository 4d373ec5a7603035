"""Draws of a library go into notes and ledgers, and nothing stays patched."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import (
    AddRemove,
    FloatNoise,
    InputError,
    Laplace,
    Ledger,
    PlanMismatchError,
    PrivacyUnit,
    ReplaceOne,
    UnsupportedError,
)
from dpaudit.mechanisms import DiscreteLaplace, Gaussian, Opaque, StatedNoise
from dpaudit.observing import Charge, Notes, Reading, noting, plan_of, recorder, through
from dpaudit.observing.adapters import numpy as adapter
from dpaudit.observing.calls import Call, Draw, fingerprint, in_units

ROW = PrivacyUnit("row")


def total(rows):
    return np.sum(rows) + np.random.laplace(scale=2.0)  # noqa: NPY002


def plan(sensitivity=1.0, **changes):
    with noting(AddRemove(), "numpy") as notes:
        total([1.0])
    (noted,) = notes.noted(ROW, AddRemove())
    known = {"mechanism": Laplace(2.0), "sensitivity": sensitivity}
    return plan_of((replace(noted, invocation=replace(noted.invocation, **known | changes)),))


def test_a_call_says_what_where_and_on_what():
    with noting(ReplaceOne(), "numpy") as notes:
        total([1.0, 2.0])
    (call,) = notes.calls
    assert (call.at, call.library) == ("total: laplace", "numpy")
    assert call.line.startswith("test_recorder.py:")
    assert (call.reading.mechanism, float(call.reading.value)) == (Laplace(2.0), 3.0)
    assert call.reading.sensitivity is None


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_stays_patched(fails):
    before = np.random.laplace, np.random.default_rng
    try:
        with noting(ReplaceOne(), "numpy"):
            assert np.random.default_rng is not before[1]
            if fails:
                raise KeyError
    except KeyError:
        pass
    assert (np.random.laplace, np.random.default_rng) == before


def test_a_function_that_was_imported_meanwhile_is_seen_again_and_else_does_nothing():
    with noting(ReplaceOne(), "numpy"):
        kept = np.random.laplace
    assert isinstance(1.0 + kept(), float)
    with noting(ReplaceOne(), "numpy") as notes:
        1.0 + kept(scale=3.0)
    assert [call.reading.mechanism for call in notes.calls] == [Laplace(3.0)]


def test_one_block_at_a_time():
    with (
        noting(ReplaceOne(), "numpy"),
        pytest.raises(InputError, match="numpy is observed already"),
        noting(ReplaceOne(), "numpy"),
    ):
        pass
    with noting(ReplaceOne(), "numpy") as notes:
        total([1.0])
    assert len(notes.calls) == 1


def test_a_ledger_admits_what_its_plan_declares_and_no_more():
    with Ledger(plan(), noise=FloatNoise()) as ledger, through(ledger, "numpy"):
        assert math.isfinite(total([1.0, 2.0]))
        with pytest.raises(PlanMismatchError, match="charged that often"):
            total([1.0])
    (entry,) = ledger
    assert entry.sampler == f"numpy {np.__version__}"
    assert entry.source.startswith(__name__)


def test_another_scale_is_refused_before_it_is_drawn():
    ledger = Ledger(plan(mechanism=Laplace(4.0)), noise=FloatNoise())
    with through(ledger, "numpy"), pytest.raises(PlanMismatchError, match="Laplace"):
        total([1.0])
    assert len(ledger) == 0


def test_parts_of_the_data_are_charged_each_for_itself():
    declared = plan(count=1, total=3)
    with Ledger(declared, noise=FloatNoise()) as ledger, through(ledger, "numpy"):
        for part in range(3):
            total([part])
    assert [entry.unit for entry in ledger] == ["part 1", "part 2", "part 3"]


def test_wrong_names_and_things():
    with pytest.raises(InputError, match="did you mean 'numpy'"), noting(ReplaceOne(), "nunpy"):
        pass
    with pytest.raises(InputError, match="must be a Ledger"):
        through(plan(), "numpy")


def test_a_library_that_cannot_be_imported_is_one_sentence(monkeypatch):
    recorder._known.cache_clear()
    monkeypatch.setitem(sys.modules, "dpaudit.observing.adapters.opendp", None)
    with pytest.raises(UnsupportedError, match="opendp cannot be"), noting(ReplaceOne(), "opendp"):
        pass


def test_an_unknown_version_says_so(monkeypatch):
    monkeypatch.setattr(adapter.Numpy, "versions", ("0.1.",))
    with (
        pytest.warns(UserWarning, match=r"only the noise of version 0\.1\.x was examined"),
        noting(ReplaceOne(), "numpy") as notes,
    ):
        total([1.0])
    assert [finding.rule for finding in notes.findings] == ["unknown-version"]


# -- readings and draws ----------------------------------------------------------------------------


def reading(mechanism, sensitivity=None, value=3.0, **more):
    return Reading("noise", mechanism, sensitivity, value, **more)


def test_units_make_the_same_mechanism_of_the_same_privacy():
    scaled = [in_units(reading(Laplace(s / 0.3), s)) for s in (1.0, 1 / 7, 12345.678)]
    assert {each.mechanism for each in scaled} == {Laplace(3.33333333333)}
    assert all(each.mechanism.scale <= 1 / 0.3 for each in scaled)
    assert [float(each.value) for each in scaled] == [3.0, 21.0, 3.0 / 12345.678]
    assert in_units(reading(Gaussian(4.0), 2.0)).mechanism == Gaussian(2.0)
    assert in_units(reading(DiscreteLaplace(4.0), 2)).mechanism == DiscreteLaplace(4.0)
    assert in_units(reading(Laplace(4.0), 0.0)).sensitivity == 0


@pytest.mark.parametrize(
    "result", [1.25, 7, np.float64(2.5), "yes", None, ("a", 1), np.ones(2), [3, 4]]
)
def test_a_replayed_draw_gives_what_the_first_one_gave(result):
    first, second = (Draw(reading(Laplace(1.0)), "lib 1", (), lambda: result) for _ in range(2))
    first.draw()
    second.draw()
    second.impose(first.released())
    assert type(second.result) is type(result)
    assert np.array_equal(second.result, result)


def test_a_list_of_numbers_is_a_release_like_an_array():
    draw = Draw(reading(DiscreteLaplace(1.0)), "lib 1", (), lambda: [3, 4])
    draw.draw()
    assert draw.released().tolist() == [3, 4]
    assert draw.released().dtype.kind == "i"


def test_a_choice_with_names_is_its_place():
    read = replace(reading(Opaque("choice", 1.0)), answers=("no", "yes", 3))
    first, second = (Draw(read, "lib 1", (), lambda: "yes") for _ in range(2))
    first.draw()
    assert first.released() == 1
    for place, name in enumerate(read.answers):
        second.impose(place)
        assert second.result == name


def test_units_change_no_bit_between_the_runs():
    read = in_units(reading(Laplace(0.7), 0.7 / 3))
    first, second = (Draw(read, "lib 1", (), lambda: 0.1 + 0.2) for _ in range(2))
    first.draw()
    released = first.released()
    second.draw()
    second.impose(released)
    assert first.result == second.result == pytest.approx(0.3, rel=1e-15)


def test_marks_tell_values_apart():
    values = [np.ones(3), np.ones(4), np.array([1.0, 1.0, 2.0]), "a", ["a"], ["b"], 3]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(np.ones(3)) == fingerprint(np.ones(3))
    assert all(0 <= fingerprint(value) < 1 for value in values)
    assert (
        fingerprint({"a": 1, "b": 2})
        == fingerprint({"b": 2, "a": 1})
        != fingerprint({"a": 2, "b": 1})
    )


# -- notes -----------------------------------------------------------------------------------------


def notes_of(stated, charges, primitive="noise"):
    made = Notes()
    for epsilon in stated:
        read = reading(Laplace(1 / epsilon), 1.0, stated=(epsilon, 0.0))
        made.calls.append(Call(read, "lib", f"f: {primitive} {epsilon}", "f.py:1"))
    for each, number in charges:
        start = made.charges[-1].end if made.charges else 0
        made.charges.append(Charge("lib", each, start=start, end=start + number))
    return made


def counts(notes, relation):
    return [(i.count, i.releases) for i in plan_of(notes.noted(ROW, relation)).invocations]


def test_a_charge_below_the_sum_takes_calls_as_disjoint():
    notes = notes_of([0.5] * 4, [(0.5, 4)])
    assert counts(notes, AddRemove()) == [(1, 4)]
    assert counts(notes, ReplaceOne()) == [(2, 4)]
    found = notes.all_findings(notes.noted(ROW, AddRemove()))
    assert [finding.rule for finding in found] == ["taken-as-disjoint"]


@pytest.mark.parametrize(
    ("stated", "charges"),
    [
        ([0.5] * 4, []),
        ([0.5] * 4, [(2.0, 4)]),
        ([0.5] * 4, [(0.8, 4)]),  # no whole number of parts
        ([0.5, 0.5, 1.0], [(1.0, 3)]),  # 2 parts, and an odd number of calls
        ([0.5] * 4, [(1.0, 2), (1.0, 2)]),
        ([0.5, 0.25, 0.25], [(0.5, 3)]),  # 2 parts, but no two calls of each kind
    ],
)
def test_else_every_unit_moves_every_call(stated, charges):
    assert all(one == every for one, every in counts(notes_of(stated, charges), AddRemove()))


def test_what_libraries_charge_adds_up():
    notes = notes_of([0.5, 0.25], [(0.5, 1), (0.25, 1)])
    assert (notes.claim(1e-5).epsilon, notes.claim(1e-5).delta) == (0.75, 0.0)
    notes.charges.append(Charge("other", rho=0.5))
    assert str(notes.claim(1e-5)) == "ρ = 0.78125, δ = 1e-05"
    assert Notes().claim(1e-5) is None


def test_words_and_unknown_sensitivities_are_findings():
    notes = Notes()
    notes.calls += [
        Call(reading(StatedNoise("bounded", 1.0), 1.0), "lib", "f: bounded", "f.py:1"),
        Call(reading(Opaque("box", 1.0), 1.0), "lib", "f: box", "f.py:2"),
        Call(reading(Laplace(1.0)), "lib", "f: laplace", "f.py:3"),
    ]
    noted = notes.noted(ROW, ReplaceOne())
    rules = [finding.rule for finding in notes.all_findings(noted)]
    assert rules == ["stated-by-library", "stated-by-library", "unknown-sensitivity"]
    assert isinstance(noted[2].invocation.mechanism, StatedNoise)
    with pytest.raises(InputError, match=r"nothing was recorded: .* known are diffprivlib, "):
        Notes().noted(ROW, ReplaceOne())
