"""Optuna studies behind a ledger's door: what is released, charged and certified."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from itertools import product
from traceback import format_exception

import numpy as np
import pytest
import scipy.stats
from rehearsals import Gossip, rules
from subject_conformance import SubjectConformance

from dpaudit import Certificate, Ledger, guarantee
from dpaudit.base.errors import InputError, PlanMismatchError, UnsupportedError
from dpaudit.certificate.verification import verify
from dpaudit.cli.main import main
from dpaudit.plan import NegativeBinomialRuns, Plan, ReplaceOne, TrustModel
from private_bo.studies import PrivateSearch, PrivateStudy, PrivateTrials

optuna = pytest.importorskip("optuna")


class Fixed:
    """A ledger whose releases do not depend on the values."""

    def __init__(self) -> None:
        self.answers = iter([0.31, 0.2, 0.9, 0.4, 0.77, 0.1, 0.6] * 2)

    def release(self, *_: object, **__: object) -> float:
        return next(self.answers)


def central(**settings: object) -> PrivateTrials:
    given = {"trust": TrustModel.CENTRAL, "units": 10, "trials": 4, "unit": "row", **settings}
    return PrivateTrials(**given)


def line(trial):
    return {"x": trial.suggest_float("x", 0.0, 1.0)}


def seeded(private: PrivateTrials, seed: int = 0, **settings: object) -> PrivateStudy:
    ledger = Ledger(private.plan(), rng=np.random.default_rng(seed))
    sampler = settings.pop("sampler", optuna.samplers.TPESampler(seed=0))
    return PrivateStudy(private, ledger=ledger, sampler=sampler, **settings)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("trials", [1, 7, 50])
def test_all_trials_together_cost_what_is_wanted(delta: float, trials: int) -> None:
    """By the ledger's accountants; Gaussian noise is a single release with √T the sensitivity."""
    private = central(delta=delta, trials=trials, epsilon=0.7)
    proved = guarantee(private.plan(), delta).epsilon
    assert 0.7 * (1 - 1e-6) < proved <= 0.7
    if delta:
        mu = math.sqrt(trials) * 0.1 / private.mechanism.sigma
        cdf = lambda z: math.erfc(-z / math.sqrt(2)) / 2  # noqa: E731
        exact = cdf(mu / 2 - 0.7 / mu) - math.exp(0.7) * cdf(-mu / 2 - 0.7 / mu)
        assert exact == pytest.approx(delta, rel=1e-5)
    else:
        assert private.mechanism.scale == pytest.approx(trials * 0.1 / 0.7)


def test_a_local_unit_pays_for_its_own_trial() -> None:
    private = PrivateTrials(epsilon=0.5, trials=30, bounds=(-1.0, 3.0))
    (each,) = private.plan().invocations
    assert (each.count, each.total, each.trust) == (1, 30, TrustModel.LOCAL)
    assert each.relation == ReplaceOne()
    assert guarantee(private.plan(), 0.0).epsilon == pytest.approx(0.5, rel=1e-12)
    assert private.mechanism.scale == pytest.approx(8.0)


def test_one_unit_moves_a_mean_by_no_more_than_declared() -> None:
    private, rng = central(bounds=(-2.0, 3.0), units=7), np.random.default_rng(0)
    owners = ["a", "b", "c", "d", "e", "f", "g", "a", "a", "c"]
    values = rng.normal(size=10) * 5
    clipped = np.clip(values, -2, 3)
    means = [clipped[[name == owner for name in owners]].mean() for owner in "abcdefg"]
    assert private.mean(values, owners) == pytest.approx(np.mean(means), abs=1e-15)
    for worst in (-1e9, 1e9):
        other = values.copy()
        other[[0, 7, 8]] = worst
        apart = abs(private.mean(other, owners) - private.mean(values, owners))
        assert apart <= private.sensitivity
    ends = [private.mean([end] + [0.0] * 6) for end in (-9.0, 9.0)]
    assert 5 / 7 <= ends[1] - ends[0] + 1e-15 <= private.sensitivity + 1e-15


@pytest.mark.parametrize(
    "values", [[0.1] * 9, [[0.1] * 10], [math.nan] + [0.0] * 9, ["secret"] * 10, 0.3]
)
def test_wrong_values_are_refused_and_not_shown(values: object) -> None:
    study = seeded(central())
    with pytest.raises(InputError) as refused:
        study.tell(study.study.ask(), values)
    assert len(study.ledger) == 0
    assert "secret" not in str(refused.value)
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("sampler", ["TPESampler", "RandomSampler", "NSGAIISampler"])
def test_optuna_sees_releases_only(sampler: str) -> None:
    """Two objectives, one the neighbour of the other, with equal releases: equal studies."""
    made = []
    for shift in (0.0, 0.5):
        private = central(trials=14, epsilon=1.0)
        study = seeded(private, sampler=getattr(optuna.samplers, sampler)(seed=3))
        study.ledger = Fixed()
        study.optimize(line, lambda found, shift=shift: np.full(10, found["x"] * 0.5 + shift))
        made.append([(each.params, each.value, each.user_attrs) for each in study.study.trials])
    assert made[0] == made[1]
    assert [value for _, value, _ in made[0]][:3] == [0.31, 0.2, 0.9]


@pytest.mark.parametrize(
    ("error", "told_as"),
    [(ValueError, "ValueError"), (optuna.TrialPruned, "Exception"), (InputError, "ValueError")],
)
def test_the_objective_meets_parameters_and_its_error_stops_the_study(
    caplog, error, told_as
) -> None:
    study = seeded(central())

    def fails(parameters):
        assert type(parameters) is dict
        raise error("row 3 is 17.5")

    with pytest.raises(InputError, match=f"fails raised {told_as}") as told:
        study.optimize(line, fails)
    assert told.value.__context__ is None
    assert "17.5" not in caplog.text + "".join(format_exception(told.value))
    (trial,) = study.study.trials
    assert trial.state == optuna.trial.TrialState.FAIL
    assert (trial.value, trial.user_attrs, trial.system_attrs) == (None, {}, {})


def test_nobody_answers_twice_and_no_trial_is_one_too_many() -> None:
    study = seeded(PrivateTrials(trials=3))
    study.tell(study.study.ask(), 0.4, "ann")
    with pytest.raises(PlanMismatchError, match="this one has been charged"):
        study.tell(study.study.ask(), 0.4, "ann")
    with pytest.raises(InputError, match="units"):
        study.tell(study.study.ask(), 0.4)
    whole = seeded(central())
    whole.optimize(line, lambda _: np.zeros(10))
    assert len(whole.ledger) == 4
    with pytest.raises(PlanMismatchError):
        whole.tell(whole.study.ask(), np.zeros(10))


def test_it_finds_a_good_point_at_an_epsilon_that_leaves_signal() -> None:
    private = central(units=1000, trials=25, epsilon=8.0, delta=1e-5)
    study = seeded(private)
    study.optimize(line, lambda found: np.full(1000, 1 - (found["x"] - 0.7) ** 2))
    assert abs(study.study.best_params["x"] - 0.7) < 0.2


def test_the_certificate_verifies_and_the_study_has_it(tmp_path, capsys) -> None:
    private = PrivateTrials(epsilon=0.5, trials=6)
    study = PrivateStudy(private, direction="minimize", journal=tmp_path / "ledger.jsonl")
    names = iter(f"user {n}" for n in range(6))
    study.optimize(line, lambda found: (found["x"], next(names)))
    certificate = study.certificate()
    path = certificate.save(tmp_path / "certificate.json")
    kept = study.study.user_attrs["dpaudit certificate"]
    assert kept == json.loads(path.read_text(encoding="utf-8"))
    verify(Certificate.from_dict(kept))
    assert str(certificate.verdict) == "certified"
    assert certificate.run["summary"]["best"] == study.study.best_params
    assert certificate.run["series"]["released"] == [each.value for each in study.study.trials]
    for file in (path, tmp_path / "ledger.jsonl"):
        with pytest.raises(SystemExit) as done:
            main(["verify", str(file)])
        assert done.value.code == 0
    kept["guarantee"]["epsilon"] = 0.1
    with pytest.raises(Exception, match="edited"):
        verify(Certificate.from_dict(kept))


GEOMETRIC = NegativeBinomialRuns(gamma=0.1)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_best_of_secret_runs_costs_what_is_wanted_and_has_less_noise(delta: float) -> None:
    """Of Laplace runs with a geometric number: three times ε of one (Liu and Talwar 2019)."""
    one, all_told = central(delta=delta, trials=30, runs=GEOMETRIC), central(delta=delta, trials=30)
    (each,) = one.plan().invocations
    assert (each.count, each.mechanism.runs, each.sensitivity) == (1, GEOMETRIC, 1.0)
    assert 0.998 < guarantee(one.plan(), delta).epsilon <= 1.0
    noise = "sigma" if delta else "scale"
    assert getattr(one.mechanism, noise) < 0.7 * getattr(all_told.mechanism, noise)
    if not delta:
        assert one.mechanism.scale == pytest.approx(3 * one.sensitivity, rel=2e-3)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_best_run_alone_is_told(tmp_path, direction) -> None:
    private = central(units=1000, trials=25, epsilon=4.0, delta=1e-5, runs=GEOMETRIC)
    study = PrivateStudy(private, direction=direction, journal=tmp_path / "ledger.jsonl")
    sign, made = 1 if direction == "maximize" else -1, []

    def objective(found):
        made.append(found["x"])
        return np.full(1000, 0.5 + sign * 0.4 * found["x"])

    study.optimize(line, objective)
    (best,) = (each for each in study.study.trials if each.value is not None)
    assert study.study.best_params == best.params == {"x": pytest.approx(max(made), abs=0.15)}
    assert best.value == pytest.approx(0.5 + sign * 0.4 * best.params["x"], abs=0.1)
    states = {each.state.name for each in study.study.trials if each.value is None}
    assert (len(study.study.trials), states) == (25, {"PRUNED"})
    with pytest.raises(PlanMismatchError):
        study.optimize(line, objective)
    certificate = study.certificate()
    verify(certificate)
    assert str(certificate.verdict) == "certified"
    assert certificate.run["series"] == {"released": [best.value]}
    assert any("How many runs" in each for each in certificate.not_covered)


def test_a_run_that_fails_has_lost_and_its_words_are_not_told() -> None:
    def half(found):
        if found["x"] < 0.5:
            raise ValueError("row 3 is 17.5")
        return np.full(10, found["x"])

    study = seeded(central(trials=8, runs=NegativeBinomialRuns(gamma=0.01)))
    study.optimize(line, half)
    assert study.study.best_params["x"] >= 0.5
    study = seeded(central(trials=8, runs=GEOMETRIC))
    with pytest.raises(InputError, match="fails raised ValueError") as told:
        study.optimize(line, fails)
    assert "17.5" not in "".join(format_exception(told.value))
    with pytest.raises(InputError, match="call optimize"):
        study.tell(study.study.ask(), np.zeros(10))


def fails(parameters):
    raise ValueError("row 3 is 17.5")


def test_noise_that_can_be_repeated_is_not_certified() -> None:
    with pytest.raises(InputError, match="ledger is seeded"):
        seeded(central()).certificate()


def test_a_plan_with_more_than_the_trials_is_not_certified_as_theirs() -> None:
    private = central()
    (each,) = private.plan().invocations
    more = Plan.of(each, replace(each, at="training"))
    study = PrivateStudy(private, ledger=Ledger(more))
    study.tell(study.study.ask(), np.zeros(10))
    with pytest.raises(InputError, match="another plan than the trials"):
        study.certificate()


def test_without_optuna_it_is_one_sentence(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(UnsupportedError, match=r"a private study needs optuna.*dpaudit\[optuna\]"):
        PrivateStudy(central())


def test_dates_of_trials_do_not_show_how_many_runs_there_were() -> None:
    """All trials are added after the last run, so that none is older than one."""
    ended = []

    def objective(found):
        ended.append(datetime.now())
        return np.full(10, found["x"])

    study = seeded(central(trials=20, runs=GEOMETRIC))
    study.optimize(line, objective)
    for trial in study.study.trials:
        assert min(trial.datetime_start, trial.datetime_complete) >= max(ended)


@pytest.mark.parametrize("bounds", [(1e16, 1e16 + 2), (-(2.0**52), 1.0 - 2.0**52), (0.1, 0.3)])
def test_rounding_moves_a_value_by_no_more_than_declared(bounds) -> None:
    """In exact arithmetic, where bounds lie so far from 0 that a mean is rounded to one of them."""
    private = central(units=3, bounds=bounds)
    at_most = Fraction(private.sensitivity)
    for others in product(np.linspace(*bounds, 5), repeat=2):
        low, high = (Fraction(private.above([*others, end])) for end in bounds)
        assert 0 <= high - low <= at_most


def test_a_stored_study_with_other_values_is_refused(tmp_path) -> None:
    settings = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "mine"}
    first = seeded(central(), **settings)
    first.optimize(line, lambda _: np.zeros(10))
    with pytest.raises(InputError, match="the study has 4 values and its ledger made 0 releases"):
        seeded(central(), load_if_exists=True, **settings)
    again = PrivateStudy(central(), ledger=first.ledger, load_if_exists=True, **settings)
    assert len(again.study.trials) == 4


def test_a_sampler_that_ends_a_search_can_tell_the_best_run() -> None:
    grid = optuna.samplers.GridSampler({"x": [0.1, 0.9]}, seed=0)
    study = seeded(central(trials=5, epsilon=50.0, runs=GEOMETRIC), sampler=grid)
    study.optimize(line, lambda found: np.full(10, found.pop("x")))
    assert study.study.best_params["x"] in (0.1, 0.9)
    assert len(study.study.trials) == 5


def test_very_many_runs_have_a_noise_too() -> None:
    for law in (NegativeBinomialRuns(gamma=0.999), NegativeBinomialRuns(gamma=1e-4)):
        private = central(trials=3, runs=law)
        assert guarantee(private.plan(), 0.0).epsilon <= 1.0


class Wordy:
    def __hash__(self) -> int:
        raise ValueError("row 3 is 17.5")


def wordy():
    yield "ann"
    raise ValueError("row 3 is 17.5")


@pytest.mark.parametrize("names", [[Wordy()] * 10, wordy()])
def test_words_of_names_are_not_told(names) -> None:
    study = seeded(central())
    with pytest.raises(InputError, match="must be a list with a name") as told:
        study.tell(study.study.ask(), np.zeros(10), names)
    assert "17.5" not in "".join(format_exception(told.value))


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"trials": 0}, "trials"),
        ({"bounds": (1.0, 1.0)}, "bounds"),
        ({"units": 3, "trust": TrustModel.LOCAL}, "units"),
        ({"trust": "nobody"}, "trust"),
        ({"runs": GEOMETRIC, "trust": TrustModel.LOCAL, "units": 1}, "runs"),
        ({"runs": "ten", "trust": TrustModel.CENTRAL}, "runs"),
    ],
)
def test_bad_fields_are_one_sentence(settings: dict[str, object], name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name} is ") as refused:
        central(**settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda study: study.tell(None, 0.5, "ann"), "trial is a NoneType; it must come from"),
        (lambda study: study.tell(3, 0.5, "ann"), "trial is a int"),
        (lambda study: study.tell(seeded(central()).study.ask(), 0.5), "must come from study.ask"),
        (lambda study: study.tell(study.study.ask(), [0.5] * 10, 3), "units is a int"),
        (lambda study: study.tell(study.study.ask(), [0.5] * 10, [[]] * 10), "a list with a name"),
        (lambda study: study.optimize(None, line), "space is a NoneType; it must be a function"),
        (lambda study: study.optimize(line, None), "objective is a NoneType"),
        (lambda study: study.optimize(line, lambda _: ()), "objective returned 0 things"),
        (lambda study: study.optimize(line, lambda _: (1, 2, 3)), "objective returned 3 things"),
        (lambda _: PrivateStudy(central(), direction="up"), "direction is 'up'; it must be"),
        (lambda _: PrivateStudy(central(), directions=["minimize"] * 2), "directions is given"),
        (lambda _: PrivateStudy(None), "private is a NoneType; it must be a PrivateTrials"),
        (lambda _: PrivateStudy(central(), ledger=3), "ledger is a int; it must be a Ledger"),
    ],
)
def test_wrong_parties_are_one_sentence(wrong, words) -> None:
    study = seeded(central())
    with pytest.raises(InputError, match=words):
        wrong(study)
    assert len(study.ledger) == 0


def test_names_of_any_kind_are_told_apart() -> None:
    private = central(units=2)
    assert private.mean([0.1, 0.3, 0.6], [None, None, 3]) == pytest.approx(0.4)


SMALL = PrivateSearch(trials=3, held_out=40)


class Few(PrivateSearch):
    """The same on 120 rows."""

    def load(self, source, rng):
        x, y = super().load(source, rng)
        return x[:120], y[:120]


def data() -> tuple[np.ndarray, np.ndarray]:
    return Few().load("digits", np.random.default_rng(0))


class TestPrivateSearch(SubjectConformance):
    subject = SMALL

    def data(self):
        return data()

    def neighbour(self):
        x, y = data()
        y[-1] = (y[-1] + 1) % 10
        return x, y

    def bad_data(self):
        x, y = data()
        yield x[:40], y[:40]
        yield x, y[:-1]


def test_a_rehearsal_finds_nothing() -> None:
    assert rules(Few(trials=2, held_out=40)) == set()


def test_a_search_may_release_its_best_run_alone() -> None:
    subject = Few(trials=4, held_out=40, runs=NegativeBinomialRuns(gamma=0.5))
    assert rules(subject) == set()
    released = subject.audit_release(0.25, 4000, np.random.default_rng(0))
    noise = subject.private.mechanism
    best = [
        noise.release_many(np.array([0.25]), number, rng).max()
        for rng in [np.random.default_rng(1)]
        for number in rng.geometric(0.5, 4000)
    ]
    assert scipy.stats.ks_2samp(released, best).pvalue > 1e-6


def test_a_rehearsal_finds_a_score_that_is_published() -> None:
    class Mistaken(Gossip, Few):
        def run(self, data, ledger, rng):
            result = PrivateSearch.run(self, data, ledger, rng)
            result.summary["classes"] = data[1][-40:].tolist()
            return result

    assert "result-not-from-releases" in rules(Mistaken(trials=2, held_out=40))


def test_a_held_out_row_pays_for_all_trials() -> None:
    subject = PrivateSearch(epsilon=0.5, delta=1e-6, trials=9)
    (each,) = subject.plan().invocations
    assert (each.count, each.sensitivity) == (9, pytest.approx(1 / 600))
    assert guarantee(subject.plan(), 1e-6).epsilon == pytest.approx(0.5, rel=1e-6)
    assert subject.audit_release(0.25, 5, np.random.default_rng(0)).shape == (5, 9)


def test_it_tunes() -> None:
    """The best release is that of a good model, at noise of a hundredth."""
    subject = PrivateSearch(epsilon=8.0, trials=12, held_out=600)
    assert subject.private.mechanism.sigma < 0.01
    found = subject.load("digits", np.random.default_rng(0))
    with Ledger(subject.plan(), rng=np.random.default_rng(0)) as ledger:
        result = subject.run((found[0][-900:], found[1][-900:]), ledger, np.random.default_rng(0))
    released = result.series["released"]
    assert result.summary["best"] == pytest.approx(result.summary["best"])
    assert max(released) > 0.9
    assert min(released) < 0.6


def test_runs_are_set_by_their_record(capsys) -> None:
    name, runs = "private_bo.studies:PrivateSearch", '{ law = "negative-binomial", gamma = 0.5 }'
    with pytest.raises(SystemExit) as done:
        main(["certify", name, "--set", f"runs={runs}", "--json"])
    assert done.value.code == 0
    (each,) = json.loads(capsys.readouterr().out)["plan"]["invocations"]
    assert each["mechanism"]["runs"] == {"law": "negative-binomial", "gamma": 0.5, "shape": 1.0}
    with pytest.raises(SystemExit) as done:
        main(["certify", name, "--set", 'runs={ law = "negative-binomial", gama = 0.5 }'])
    assert done.value.code == 3
    assert "gama" in capsys.readouterr().err


def test_unknown_data_are_one_sentence() -> None:
    with pytest.raises(InputError, match="data is 'nowhere'"):
        SMALL.load("nowhere", np.random.default_rng(0))
