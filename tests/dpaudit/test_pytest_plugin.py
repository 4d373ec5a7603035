"""The pytest plugin, from within pytest."""

import subprocess
import sys
from importlib.metadata import entry_points

import numpy.fft  # noqa: F401  # pytester forgets what is loaded within, and numpy loads it once
import pytest

from dpaudit import AuditPair, Claim, InputError, Laplace, Mechanism
from dpaudit.pytest_plugin import PrivacyViolationError, assert_certified, assert_private

pytest_plugins = "pytester"

TESTS = """
    import pytest
    from dpaudit import AuditPair, Laplace

    PAIR = AuditPair(0.0, 1.0)

    def test_right(assert_private):
        assert assert_private(Laplace(1.0), 1.0, PAIR).runs == RUNS

    @pytest.mark.dp_audit(runs=700)
    def test_marked(assert_private):
        assert assert_private(Laplace(1.0), 1.0, PAIR).runs == MARKED

    def test_wrong(assert_private):
        assert_private(lambda data, rng: data + 0.5 * rng.laplace(), 1.0, PAIR, runs=900)
"""


@pytest.fixture
def run(pytester):
    def run(*options, runs, marked):
        text = TESTS.replace("RUNS", str(runs)).replace("MARKED", str(marked))
        pytester.makepyfile(text)
        installed = entry_points(group="pytest11", name="dpaudit")
        loaded = () if installed else ("-p", "dpaudit.pytest_plugin")
        return pytester.runpytest("--strict-markers", *loaded, *options)

    return run


class TestSession:
    def test_a_failure_prints_the_finding(self, run):
        result = run(runs=10_000, marked=700)
        result.assert_outcomes(passed=2, failed=1)
        result.stdout.fnmatch_lines(
            [
                "*test_wrong*",
                "*claim ε = 1, δ = 0 is refuted*",
                "*lower bound*ε ≥ 1.*confidence 0.99*",
                "*event*output*",
                "*pair*x = 0.0*",
                "*replay*seed 0, 900 runs*",
            ]
        )
        assert "in assert_private" not in result.stdout.str()

    def test_option_beats_marker_but_not_the_call(self, run):
        result = run("--dp-runs", "600", runs=600, marked=600)
        result.assert_outcomes(passed=2, failed=1)
        result.stdout.fnmatch_lines(["*900 runs on each side*"])

    def test_bad_option(self, run):
        result = run("--dp-runs", "1", runs=1, marked=1)
        result.stderr.fnmatch_lines(["*--dp-runs is 1; it must be an integer of at least 2*"])


class TestHelper:
    def test_takes_mechanisms_functions_and_claims(self):
        settings = {"pair": (0.0, 1.0), "runs": 500}
        for claim in (1.0, (1.0, 1e-6), Claim(1.0)):
            assert not assert_private(Laplace(1.0), claim, **settings).refuted
        assert assert_private(Laplace(1.0), 1.0, **settings).method.startswith("white-box")
        with pytest.raises(PrivacyViolationError) as caught:
            assert_private(Laplace(0.3), 1.0, **settings)
        assert caught.value.record.refuted
        assert isinstance(Laplace(1.0), Mechanism)

    def test_takes_the_fields_of_an_execution(self):
        settings = {"pair": (0.0, 1.0), "runs": 300}
        record = assert_private(Laplace(1.0), 1.0, confidence=0.9, seed=4, **settings)
        assert (record.confidence, record.seed, record.runs) == (0.9, 4, 300)
        assert assert_private(Laplace(1.0), 1.0, **settings).confidence == 0.99
        assert assert_private(Laplace(1.0), 1.0, stop_early=True, **settings).details["test"] == (
            "e-process"
        )
        with pytest.raises(TypeError, match="runz"):
            assert_private(Laplace(1.0), 1.0, (0.0, 1.0), runz=300)

    def test_bad_input(self):
        with pytest.raises(InputError, match="pair is missing"):
            assert_private(Laplace(1.0), 1.0)
        with pytest.raises(InputError, match="epsilon"):
            assert_private(Laplace(1.0), -1.0, AuditPair(0, 1))


def test_pytest_starts_no_slower():
    code = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import dpaudit.pytest_plugin\n"
        "print(sorted(name for name in set(sys.modules) - before if '.' not in name))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "sklearn"} & set(eval(run.stdout))


def test_a_release_file_is_certified_and_tried_on_made_up_rows(tmp_path):
    pytest.importorskip("duckdb")
    pytest.importorskip("opendp")
    text = """
        [data]
        source = "there-are-none.csv"
        unit = "patient"
        columns.ward = { type = "text", values = ["A"] }
        [privacy]
        relation = "add-remove"
        claim = { epsilon = 1 }
        rows_per_unit = 1
        [[query]]
        count = true
        by = "ward"
    """
    path = tmp_path / "visits.toml"
    path.write_text(text)
    certificate = assert_certified(path, rows=20)
    assert len(certificate.run["results"][0]["rows"]) == 2
    assert assert_certified(path, rows=0).run is None


def test_a_plan_that_is_not_certified_fails(tmp_path):
    path = tmp_path / "plan.toml"
    plan = '[plan]\nrelation = "add-remove"\n[claim]\nepsilon = 0.1\n'
    path.write_text(f'{plan}[[invocation]]\nmechanism = "laplace"\nscale = 1\nsensitivity = 1\n')
    with pytest.raises(PrivacyViolationError, match="claim-exceeded"):
        assert_certified(path)
