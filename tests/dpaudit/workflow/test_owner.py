"""What the owner alone may see is in the owner's report, and nowhere else."""

import json
from dataclasses import dataclass

import pytest
from examples import Answers

from dpaudit import InputError, RunResult
from dpaudit.certificate import load_certificate
from dpaudit.reporting import render_to
from dpaudit.workflow.owner import with_owner
from dpaudit.workflow.running import run_subject


@dataclass(frozen=True)
class WithTruth(Answers):
    """Answers, and their true mean for their owner."""

    def run(self, data, ledger, rng):
        shown = super().run(data, ledger, rng)
        owner = RunResult({"true mean": float(data.mean())}, {"true answers": data})
        return RunResult(shown.summary, shown.series, owner)


@pytest.fixture
def run(tmp_path):
    name = f"{__name__}:WithTruth"
    certificate, files = run_subject(name, [], "numbers", 1, tmp_path / "out")
    return certificate, {path.name: path for path in files}


def test_the_owner_s_part_is_in_a_file_of_its_own(run):
    certificate, files = run
    private = json.loads(files["owner.json"].read_text())
    truth = private["summary"]["true mean"]
    for name in ("certificate.json", "report.html", "ledger.jsonl"):
        text = files[name].read_text()
        assert "true mean" not in text
        assert repr(truth) not in text
    assert certificate.verdict == "certified"


def test_the_owner_s_report_says_whose_it_is(run, tmp_path):
    _, files = run
    certificate = load_certificate(files["certificate.json"])
    merged = with_owner(certificate, files["owner.json"])
    assert merged.to_dict() == certificate.to_dict()
    text = render_to(merged, tmp_path / "r.md").read_text()
    assert "true mean (for the owner alone)" in text
    assert "true answers (for the owner alone)" in text
    assert certificate.to_dict()["digest"] in text


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"summary": 1, "series": {}}', '{"summary": {}, "series": {"a": ["x"]}}']
)
def test_another_file_is_refused(run, tmp_path, text):
    path = tmp_path / "o.json"
    path.write_text(text)
    with pytest.raises(InputError, match="must hold a summary and series of numbers"):
        with_owner(load_certificate(run[1]["certificate.json"]), path)
