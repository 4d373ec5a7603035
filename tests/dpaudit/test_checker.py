"""The checker as a program and as a function of a certificate, and what it refuses."""

from __future__ import annotations

import ast
import copy
import io
import json
import random
import shutil
import subprocess
import sys
import time
import tokenize
from fractions import Fraction
from pathlib import Path

import pytest

from dpaudit import checker
from dpaudit.base.numbers import most, stated

FILE = Path(checker.__file__)


def certificate(**changed: object) -> dict[str, object]:
    """100 Gaussian releases with σ = 2 in Poisson samples of rate 1/20, with the claim of ε = 2."""
    invocation = {
        "at": "sum",
        "count": 100,
        "mechanism": {"kind": "gaussian", "sigma": 2.0},
        "relation": "add-remove",
        "sampling": {"scheme": "poisson", "rate": 0.05},
        "sensitivity": 1.0,
        "total": 100,
        "trust": "central",
        "unit": "row",
    }
    return {
        "plan": {"invocations": [invocation | changed]},
        "claim": {"epsilon": 2.0, "delta": 1e-5, "source": "a test"},
        "guarantee": {"epsilon": 1.0973, "delta": 1e-5},
        "witness": {
            "schema": "dpaudit-witness/1",
            "sets": [
                {
                    "bits": 70,
                    "limit": 1000,
                    "cut": 31,
                    "round": 14,
                    "grids": [[[7, -12, 256], [7, -256, 12]]],
                }
            ],
        },
    }


ENGINE = 1.0964
"""The lower end of what the engine proves of it; the upper one is 1.0973."""


def run(path: Path, *, program: Path = FILE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # with nothing installed
        [sys.executable, "-S", str(program), str(path)],
        capture_output=True, text=True, encoding="utf-8", check=False, timeout=60,
        env={"PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip


def test_it_imports_the_standard_library_alone():
    for node in ast.walk(ast.parse(FILE.read_text("utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert all(name.partition(".")[0] in sys.stdlib_module_names for name in names), names
        assert not isinstance(node, ast.ImportFrom) or node.level == 0


def test_it_has_at_most_945_lines_of_code():
    """Docstrings, comments and empty lines are none."""
    text, told, lines = FILE.read_text("utf-8"), set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            told.update(range(node.lineno, (node.end_lineno or 0) + 1))
    none = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in none | {tokenize.ENDMARKER}:
            lines.update(range(token.start[0], token.end[0] + 1))
    assert len(lines - told) <= 945


def test_it_runs_where_nothing_is_installed_and_imports_nothing_beside_it(tmp_path):
    program = tmp_path / "checker.py"
    shutil.copy(FILE, program)
    for name in ("numbers", "json", "fractions"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(77)")
    record = tmp_path / "certificate.json"
    record.write_text(json.dumps(certificate()))
    done = run(record, program=program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("proved: ε ≤ 1.1")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (json.dumps(certificate()), 0, "proved"),
        (json.dumps(certificate() | {"claim": {"epsilon": 1.0, "delta": 1e-5}}), 1, "the claim"),
        (json.dumps(certificate(mechanism={"kind": "opaque"})), 2, "no proof"),
        (
            json.dumps(certificate() | {"witness": {"schema": checker.SCHEMA, "sets": []}}),
            2,
            "refused",
        ),
        (json.dumps(certificate() | {"claim": {"mu": 1.0, "delta": 1e-5}}), 2, "no proof"),
        ("[" * 100_000, 3, "no certificate"),
        ('{"plan": NaN}', 3, "no certificate"),
        (json.dumps(certificate())[:-1] + ', "note": -Infinity}', 3, "no certificate"),
        (json.dumps(certificate())[:-1] + ', "note": 1e400}', 3, "no certificate"),
        (json.dumps(certificate())[:-1] + ', "note": 1e9999999999}', 3, "no certificate"),
        (json.dumps(certificate())[:-1] + ', "note": 0.' + "1" * 500 + "}", 3, "no certificate"),
        (json.dumps(certificate())[:-1] + ', "note": ' + "1" * 5000 + "}", 3, "no certificate"),
        (json.dumps(certificate())[:-1] + ', "plan": {}}', 3, "twice"),
        ("[]", 3, "no certificate"),
        ("{}", 3, "no certificate"),
        ("", 3, "no certificate"),
    ],
)
def test_exit_codes(tmp_path, text, code, said):
    path = tmp_path / "certificate.json"
    path.write_text(text)
    done = run(path)
    assert (done.returncode, done.stderr) == (code, "")
    assert said in done.stdout


def test_the_proof_of_a_sampled_plan_is_near_the_engine():
    proof = checker.prove(certificate())
    assert proof.epsilon is not None
    assert ENGINE <= proof.epsilon <= ENGINE * 1.01


def test_the_smaller_delta_counts():
    record = certificate()
    record["claim"] = {"epsilon": 2.0, "delta": 1e-6}
    smaller = checker.prove(record).epsilon
    assert smaller is not None
    assert smaller > checker.prove(certificate()).epsilon  # type: ignore[operator]


def test_a_claim_holds_to_one_in_a_million_million():
    for written in (1.0, 0.2, 1e-9):
        proof = checker.Proof(most(written), Fraction(0))
        assert proof.holds(stated(written))
        more = checker.Proof(most(written) + Fraction(1, 10**60), Fraction(0))
        assert not more.holds(stated(written))


@pytest.mark.parametrize(
    ("claimed", "code"),
    [("0.6", 0), ("0.5999999999999", 0), ("0.599999999999", 1), ("0.6000", 0), ("6e-1", 0)],
)
def test_a_stated_number_is_the_decimal_as_it_is_written(tmp_path, claimed, code):
    """Three times the float .2, which is above a fifth."""
    record = certificate(mechanism={"kind": "pure-black-box", "epsilon": 0.2}, sampling=None)
    record["plan"]["invocations"][0] |= {"count": 3}  # type: ignore[index]
    record |= {"witness": None, "claim": {"epsilon": "here", "delta": 1e-300}}
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(record).replace('"here"', claimed))
    read = checker.read(path)
    proof = checker.prove(read)
    assert proof.epsilon == 3 * Fraction(0.2)
    assert proof.delta == Fraction("1e-300")
    assert proof.holds(Fraction(claimed)) == (code == 0)
    assert checker.main([str(path)]) == code


def test_what_floats_say_and_what_their_text_says_is_one_proof(tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certificate()))
    assert checker.prove(checker.read(path)) == checker.prove(certificate())


def test_below_the_least_float_a_number_is_zero(tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(
        json.dumps(certificate(sensitivity="here") | {"witness": None}).replace('"here"', "1e-400")
    )
    assert checker.prove(checker.read(path)).epsilon == 0
    path.write_text(json.dumps(certificate()).replace("2.0", "1e-400"))
    with pytest.raises(checker.InputError):
        checker.prove(checker.read(path))


def test_a_witness_that_says_less_than_it_proves_is_refused():
    record = certificate()
    record["witness"]["epsilon"] = 1.0  # type: ignore[index]
    proof = checker.prove(record)
    assert proof.refused
    assert proof.epsilon is None


PARTS = [
    ("mechanism", {"kind": "gaussian", "sigma": 2.0, "secret": 1}),
    ("mechanism", {"kind": "exponential", "epsilon": 1.0, "k": 3}),
    ("mechanism", {"kind": "noisy-max", "epsilon": 1.0, "noise": "cauchy"}),
    ("mechanism", {"kind": "shuffled", "local": {}, "reports": 3}),
    ("sampling", {"scheme": "poisson", "rate": 0.1, "burst": 2}),
    ("sampling", {"scheme": "stratified", "rate": 0.1}),
    ("relation", "edit-distance"),
    ("relation", {"kind": "metric-ball"}),
    ("trust", "none"),
    ("group", {"name": "a", "membership": "random"}),
    ("surprise", 1),
    (
        "mechanism",
        {
            "kind": "continual-gaussian",
            "sigma": 1.0,
            "participations": 1,
            "factorization": {"kind": "square-root-toeplitz", "steps": 9, "bands": 1},
        },
    ),
]


@pytest.mark.parametrize(("key", "value"), PARTS)
def test_what_is_not_known_is_missing_and_never_left_out(key, value):
    try:
        proof = checker.prove(certificate(**{key: value}))
    except checker.InputError:
        return
    assert proof.epsilon is None
    assert proof.reason


TURNS = {
    "kind": "continual-gaussian",
    "sigma": 1.0,
    "participations": 2,
    "min_separation": 4,
    "factorization": {"kind": "banded-toeplitz", "steps": 8, "bands": 2},
}
OWN = {"trust": "local", "relation": "replace-one", "sampling": None}
ROWS = {"scheme": "poisson", "rate": 0.05, "rows": 2}


def test_what_is_refused_below_is_a_proof_otherwise():
    cyclic = {"scheme": "cyclic-poisson", "rate": 0.1, "groups": 4}
    for changed in (
        {"mechanism": TURNS, "sampling": cyclic},
        OWN | {"mechanism": {"kind": "gaussian", "sigma": 2.0, "clip_norm": 0.5}},
        OWN | {"mechanism": {"kind": "laplace", "scale": 2.0, "clip": [-0.5, 0.5]}},
        OWN | {"mechanism": {"kind": "randomized-response", "p": 0.5, "k": 2}},
        {"sampling": ROWS},
    ):
        record = certificate(**changed) | {"witness": None}
        assert checker.prove(record).epsilon


@pytest.mark.parametrize(
    "changed",
    [
        {"trust": "local"},
        {"mechanism": TURNS, "sampling": {"scheme": "cyclic-poisson", "rate": 0.1, "groups": 3}},
        {
            "mechanism": TURNS | {"participations": 1},
            "sampling": {"scheme": "cyclic-poisson", "rate": 0.1, "groups": 4},
        },
        OWN | {"mechanism": {"kind": "gaussian", "sigma": 2.0, "clip_norm": 1.0}},
        OWN | {"mechanism": {"kind": "laplace", "scale": 2.0, "clip": [-1.0, 1.0]}},
        OWN | {"mechanism": {"kind": "laplace", "scale": 2.0, "clip": [1.0]}},
        OWN | {"mechanism": {"kind": "randomized-response", "p": 0.5, "k": 2}, "sensitivity": 0.0},
        {"sampling": ROWS, "contribution": {"bound": 1.0}},
        {"sampling": {"scheme": "poisson", "rate": 1.5}},
        {"sampling": {"scheme": "mixture", "shares": [0.5], "rates": [0.1, 0.1]}},
        {"sampling": {"scheme": "mixture", "shares": [0.5, 1.5], "rates": [0.1, 0.1]}},
        {"sampling": {"scheme": "mixture", "shares": [0.5, 1.0], "rates": [0.2, -0.1]}},
        {"group": {}},
        {"group": []},
        {"unit": {"kind": "row"}},
        {"contribution": {"bound": 2.0}},
        {"sensitivity": -1.0},
        {"sensitivity": float("inf")},
        {"sensitivity": True},
        {"sensitivity": "1"},
        {"count": 0},
        {"count": 1.5},
        {"count": 10**16},
        {"total": 5},
        {"mechanism": {"kind": "gaussian", "sigma": 0.0}},
        {"mechanism": {"kind": "randomized-response", "p": 1.5, "k": 2}},
        {"mechanism": {"kind": "exponential", "epsilon": 1.0}, "sensitivity": 0.5},
        {"mechanism": {"kind": "discrete-laplace", "scale": 1.0}, "sensitivity": 0.5},
        {"mechanism": "gaussian"},
        {"mechanism": {"kind": ["gaussian"]}},
        {"mechanism": {}},
        {"sampling": "poisson"},
        {"sampling": {"scheme": "poisson", "rate": 0.0}},
        {"sampling": {"scheme": "fixed-size", "size": 11, "population": 10}},
        {"sampling": {"scheme": "random-allocation", "steps": 7}},
        {"unit": None},
    ],
)
def test_what_contradicts_itself_proves_nothing(changed):
    try:
        assert checker.prove(certificate(**changed) | {"witness": None}).epsilon is None
    except checker.InputError as error:
        message = str(error)
        assert message.endswith(".")


HOSTILE = [
    {"bits": 10**9},
    {"bits": 1},
    {"bits": 0},
    {"limit": 1},
    {"limit": 10**9},
    {"cut": 1},
    {"cut": 10**15},
    {"round": 1},
    {"grids": []},
    {"grids": [[[7, -12, 256]]]},
    {"grids": [[[7, 256, -12]]]},
    {"grids": [[[2000, -12, 256]]]},
    {"grids": [[[-10, -12, 256]]]},
    {"grids": [[[7, -20_000, 15_000]]], "bits": 256},
    {"grids": [[[7.0, -12, 256]]]},
    {"grids": [[[True, -12, 256]]]},
    {"grids": [["7", -12, 256]]},
    {"grids": [[[0, -1, 1]]]},
    {"grids": [[[7, -999_999, -990_000], [7, 990_000, 999_999]]]},
    {"grids": {"7": 1}},
    {"extra": 1},
]


@pytest.mark.parametrize("changed", HOSTILE)
@pytest.mark.parametrize("count", [100, 10**15])
def test_a_hostile_witness_proves_nothing_false_and_takes_no_long_time(changed, count):
    assert judge_hostile(changed, count) < 60


@pytest.mark.pages
@pytest.mark.slow
def test_as_many_points_of_as_many_bits_as_are_allowed_take_as_long_as_they_are_many():
    few = judge_hostile({"grids": [[[7, -2_000, 1_500]]], "bits": 4096}, 100)
    many = judge_hostile({"grids": [[[7, -20_000, 15_000]]], "bits": 4096}, 100)
    assert many < 30 * few


def judge_hostile(changed, count):
    """Seconds of the processor that a proof takes."""
    record = certificate(count=count, total=count)
    record["witness"]["sets"][0] |= changed  # type: ignore[index]
    start = time.process_time()
    try:
        proof = checker.prove(record)
    except checker.InputError:
        return time.process_time() - start
    assert proof.epsilon is None or proof.epsilon >= ENGINE
    return time.process_time() - start


def test_random_edits_give_a_proof_or_a_sentence():
    """Any leaf becomes anything: no exception but InputError, and no ε below the truth."""
    rng = random.Random(5)
    things = [None, 0, -1, 10**40, 1e308, 1e-308, "", "x" * 99, [], {}, True, [[]], {"kind": 1}]

    def leaves(node: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        inner = (
            node.items()
            if isinstance(node, dict)
            else enumerate(node)
            if isinstance(node, list)
            else ()
        )
        found = [path] if path else []
        for key, value in inner:
            found += leaves(value, (*path, key))
        return found

    whole = certificate()
    for path in leaves(whole):
        for thing in rng.sample(things, 6):
            record = copy.deepcopy(whole)
            node = record
            for key in path[:-1]:
                node = node[key]  # type: ignore[index,call-overload]
            node[path[-1]] = thing  # type: ignore[index,call-overload]
            try:
                proof = checker.prove(record)
            except checker.InputError:
                continue
            assert (proof.epsilon is None) == bool(proof.reason)
            if path[0] == "witness" and proof.epsilon is not None:
                assert proof.epsilon >= ENGINE


KINDS: dict[str, dict[str, object]] = {
    "gaussian": {"sigma": 2.0},
    "individual-gaussian": {"sigma": 2.0, "steps": 3},
    "gaussian-vector": {"scales": [2.0, 2.0], "sensitivities": [1.0, 1.0]},
    "laplace": {"scale": 2.0},
    "laplace-vector": {"scales": [2.0, 2.0], "sensitivities": [1.0, 1.0]},
    "discrete-laplace": {"scale": 2.0},
    "discrete-gaussian": {"sigma": 2.0},
    "staircase": {"epsilon": 1.0, "width": 1.0},
    "truncated-laplace": {"scale": 1.0, "bound": 20.0},
    "truncated-discrete-gaussian": {"sigma": 2.0, "bound": 20},
    "stable-histogram": {"scale": 1.0, "threshold": 20.0, "key_sensitivity": 1},
    "continual-gaussian": {
        "sigma": 2.0,
        "participations": 2,
        "min_separation": 4,
        "factorization": {"kind": "banded-toeplitz", "steps": 8, "bands": 2},
    },
    "continual-laplace": {
        "scale": 2.0,
        "participations": 2,
        "min_separation": 4,
        "factorization": {"kind": "banded-toeplitz", "steps": 8, "bands": 2},
    },
    "exponential": {"epsilon": 1.0},
    "noisy-max": {"epsilon": 1.0, "noise": "laplace"},
    "permute-and-flip": {"epsilon": 1.0},
    "top-k": {"epsilon": 1.0, "k": 2},
    "sparse-vector": {"epsilon": 1.0, "threshold": 0.0},
    "randomized-response": {"p": 0.5, "k": 2},
    "bit-vector-response": {"p": 0.5, "bits": 8, "ones": 2},
    "unary-encoding": {"k": 3, "lie": 0.3, "keep": 0.6},
    "subset-selection": {"k": 4, "p": 0.5, "members": 2},
    "pure-black-box": {"epsilon": 1.0},
    "approximate-black-box": {"epsilon": 1.0, "delta": 1e-9},
    "profile-black-box": {"curve": [[0.5, 1e-6], [1.0, 1e-9]]},
    "concentrated-black-box": {"rho": 0.1},
    "shuffled": {"local": {}, "reports": 3},
    "opaque": {"label": "ours"},
    "stated-noise": {},
}
MADE_OF_SEVERAL = ("private-selection", "gaussian-histogram")
"""Laws that are not one law of the table."""
SCHEMES: dict[str, dict[str, object]] = {
    "all": {},
    "poisson": {"sampling": {"scheme": "poisson", "rate": 0.1}},
    "poisson, replaced": {
        "sampling": {"scheme": "poisson", "rate": 0.1, "contribution": 0.5},
        "relation": "replace-one",
    },
    "fixed-size": {"sampling": {"scheme": "fixed-size", "size": 1, "population": 10}},
    "fixed-size, replaced": {
        "sampling": {"scheme": "fixed-size", "size": 1, "population": 10},
        "relation": "replace-one",
    },
    "random-allocation": {"sampling": {"scheme": "random-allocation", "steps": 10}},
    "cyclic-poisson": {"sampling": {"scheme": "cyclic-poisson", "rate": 0.1, "groups": 4}},
    "truncated-poisson": {
        "sampling": {"scheme": "truncated-poisson", "rate": 0.1, "size": 2, "population": 9}
    },
    "with-replacement": {"sampling": {"scheme": "with-replacement", "size": 2, "population": 9}},
    "mixture": {"sampling": {"scheme": "mixture", "shares": [0.5, 1.0], "rates": [0.2, 0.1]}},
}


def served(kind: str, scheme: str) -> str:
    """The law and the scheme by which the checker charges a mechanism under a sampler."""
    mechanism = {"kind": kind} | KINDS[kind]
    changed = {"mechanism": mechanism, "sampling": None} | SCHEMES[scheme]
    try:
        (charges,) = checker.sets_of(certificate(**changed)["plan"])
    except checker.MissingError:
        return "–"
    ((part, _),) = set(charges.items())
    return part.law.rule if part.scheme == "all" else f"{part.law.rule}, {part.scheme}"


def table() -> str:
    """Each mechanism under each sampler, as on the page of the checker."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for kind in KINDS:
        alike.setdefault(tuple(served(kind, scheme) for scheme in SCHEMES), []).append(f"`{kind}`")
    rows = [["", *SCHEMES], ["---"] * (len(SCHEMES) + 1)]
    rows += [[", ".join(kinds), *cells] for cells, kinds in alike.items()]
    return "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows)


def test_the_page_says_what_serves_each_mechanism_under_each_sampler():
    page = Path(__file__).parents[2] / "docs" / "checker.md"
    assert table() in page.read_text("utf-8")
    assert set(checker.SUMS) | set(checker.INPUTS) < {*KINDS, *MADE_OF_SEVERAL}


def proved(delta: float = 1e-5, **changed: object) -> checker.Proof:
    """Of one invocation without a witness."""
    stated = {"epsilon": 2.0, "delta": delta}
    return checker.prove(certificate(**changed) | {"witness": None, "claim": stated})


HISTOGRAM = {"kind": "stable-histogram", "scale": 0.05, "key_sensitivity": 1}


def test_a_threshold_at_which_a_single_count_is_told_is_refused():
    for threshold in (0.5, 1.0):
        with pytest.raises(checker.InputError, match="threshold must be above 1"):
            proved(mechanism=HISTOGRAM | {"threshold": threshold}, sampling=None)
    told = proved(mechanism=HISTOGRAM | {"threshold": 1.5}, sampling=None, count=1, total=1)
    assert told.epsilon is not None


def test_a_sample_whose_parts_are_smaller_than_the_sensitivity_is_refused():
    sampling = {"scheme": "poisson", "rate": 0.999, "contribution": 1e-9}
    for more in ({}, {"contribution": {"bound": 5.0}}):
        found = proved(sampling=sampling, sensitivity=10.0, relation="replace-one", **more)
        assert (found.epsilon, found.refused) == (None, True)
    assert proved(sampling=sampling | {"contribution": 5.0}, sensitivity=10.0).epsilon is not None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mechanism", {"kind": "opaque", "epsilon": 100.0}),
        ("mechanism", {"kind": "gaussian", "sigma": 1.0, "more": 1}),
        ("sampling", {"scheme": "nonsense"}),
    ],
)
def test_nothing_that_moves_by_nothing_is_left_unread(key, value):
    assert proved(sensitivity=0.0, **{key: value}).epsilon is None
    assert proved(sensitivity=0.0).epsilon == 0


def test_a_claim_of_more_than_two_numbers_is_no_claim_that_is_proved(tmp_path):
    record = certificate()
    record["claim"] |= {"relation": "replace-one"}  # type: ignore[operator]
    assert checker.prove(record).epsilon is None
    for wrong in (-1, "abc", None, True):
        claim = {"epsilon": wrong, "delta": 1e-5}
        path = tmp_path / "certificate.json"
        record = certificate(sensitivity=0.0) | {"claim": claim, "witness": None}
        path.write_text(json.dumps(record))
        assert checker.main([str(path)]) == 3


def test_under_local_trust_what_the_clip_allows_is_charged():
    laplace = {"kind": "laplace", "scale": 1.0, "clip": [0.0, 1.0]}
    local = {"trust": "local", "relation": "replace-one", "sampling": None, "count": 1, "total": 1}
    assert proved(0.0, mechanism=laplace, sensitivity=1 - 9e-10, **local).epsilon == 1


@pytest.mark.parametrize(("kind", "epsilon"), [("laplace", 1), ("pure-black-box", 2)])
def test_a_zeroed_unit_may_be_in_another_group_where_it_is_seen(kind, epsilon):
    """In a sum a zeroed unit is in no group; what takes its value may see it in another one."""
    own = {"laplace": {"scale": 1.0}, "pure-black-box": {"epsilon": 1.0}}[kind]
    record = certificate(
        mechanism={"kind": kind} | own, relation="zero-out", sampling=None, count=1, total=1
    )
    (one,) = record["plan"]["invocations"]  # type: ignore[index]
    both = [one | {"group": {"name": name, "membership": "value"}} for name in "ab"]
    record |= {"claim": {"epsilon": 1.0, "delta": 0.0}, "witness": None}
    found = checker.prove(record | {"plan": {"invocations": both}})
    assert found.epsilon == epsilon


def test_a_zeroed_unit_may_leave_a_group_of_sums_for_one_where_it_is_seen():
    record = certificate(
        mechanism={"kind": "laplace", "scale": 1.0},
        relation="zero-out", sampling=None, count=1, total=1,
    )  # fmt: skip
    (one,) = record["plan"]["invocations"]  # type: ignore[index]
    seen = {"mechanism": {"kind": "pure-black-box", "epsilon": 1.0}}
    both = [one | {"group": {"name": "a", "membership": "value"}}]
    both += [one | seen | {"group": {"name": "b", "membership": "value"}}]
    record |= {"claim": {"epsilon": 1.0, "delta": 0.0}, "witness": None}
    assert checker.prove(record | {"plan": {"invocations": both}}).epsilon == 2


@pytest.mark.parametrize("kind", ["x\r\x1b[2Kproved: ε ≤ 0.1\n", "\ud800"])
def test_names_of_a_file_write_no_lines_of_their_own(tmp_path, kind):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certificate(mechanism={"kind": kind})))
    done = run(path)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.startswith("no proof: ")
    assert done.stdout.count("\n") == 1
    assert "\x1b" not in done.stdout


def test_it_prints_where_the_terminal_has_no_greek(tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certificate()))
    done = subprocess.run(
        [sys.executable, "-S", str(FILE), str(path)],
        capture_output=True, check=False, timeout=60, env={"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"proved: \\u03b5")


def test_no_module_beside_it_is_run(tmp_path):
    """Not even one of a name that the compiler knows."""
    program = tmp_path / "checker.py"
    shutil.copy(FILE, program)
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certificate()))
    for name in ("__future__", "threading", "typing", "re"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(77)")
    assert run(path, program=program).returncode == 0


def grids(count: int, **witness: object) -> dict[str, object]:
    mechanism = {"kind": "approximate-black-box", "epsilon": 1.0, "delta": 0.9}
    record = certificate(mechanism=mechanism, sampling=None, count=count, total=count)
    own = {"bits": 1, "limit": 100, "cut": 1, "round": 14, "grids": [[[0, 5, 6]]]}
    return record | {"witness": {"schema": checker.SCHEMA, "sets": [own | witness]}}


def test_a_witness_whose_mass_is_at_infinity_ends_at_once():
    assert "at infinity" in checker.prove(grids(10**15)).reason


def chosen(runs):
    """A record of the best of some runs."""
    law = {"kind": "private-selection", "runs": {"law": "poisson", "mean": 1}, "run": runs}
    return {"mechanism": law, "sensitivity": 1, "unit": "row", "count": 1} | {
        "relation": "add-remove",
        "trust": "central",
        "at": "x",
    }


@pytest.mark.parametrize("runs", [5, True, 1.5, {"a": 1}, "x"])
def test_runs_that_are_no_list_are_no_certificate(tmp_path, runs):
    record = {"claim": {"epsilon": 1, "delta": 0}}
    record["plan"] = {"invocations": [chosen({"invocations": runs})]}
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(record))
    assert checker.main([str(path)]) == 3


def test_runs_of_runs_without_end_prove_nothing():
    deep = chosen({"invocations": []})
    for _ in range(300):
        deep = chosen({"invocations": [deep]})
    record = {"claim": {"epsilon": 1, "delta": 0}, "plan": {"invocations": [deep]}}
    proof = checker.prove(record)
    assert proof.epsilon is None
    assert "beyond what a rule computes" in proof.reason


def test_a_witness_of_nothing_is_refused():
    record = certificate(sensitivity=0.0)
    record["witness"]["sets"][0]["grids"] = []  # type: ignore[index]
    assert checker.prove(record).refused


def test_the_work_of_a_file_is_counted_whatever_is_in_it(monkeypatch):
    """Grids, tables, columns and sets of groups alike; and nothing of it outside of a proof."""
    monkeypatch.setattr(checker, "MOST_WORK", 10**4)
    buffered = {
        "kind": "buffered-toeplitz",
        "steps": 50_000,
        "pole_rates": [0.1, 0.3],
        "zero_rates": [0.2],
    }
    stream = {"kind": "continual-gaussian", "sigma": 1.0, "participations": 1}
    dear = [
        certificate(),
        certificate(mechanism={"kind": "discrete-gaussian", "sigma": 100.0}, count=1, total=1),
        certificate(mechanism=stream | {"factorization": buffered}, sampling=None),
    ]
    for record in dear:
        assert "too much work" in checker.prove(record).reason
    assert checker.exp(1, 3, 10**4)
    many = certificate()
    many["plan"]["invocations"] = [  # type: ignore[index]
        certificate(sensitivity=1.0 + n / 10**4, sampling=None)["plan"]["invocations"][0]  # type: ignore[index]
        for n in range(3000)
    ]
    monkeypatch.setattr(checker, "MOST_WORK", 10**5)
    assert checker.prove(many | {"witness": None}).epsilon is not None
