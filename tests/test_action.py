"""The action of this repository, whose steps are run one after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from workflows import Job

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
PLAN = """
[plan]
relation = "add-remove"
[claim]
epsilon = {claim}
[[invocation]]
mechanism = "laplace"
scale = 2.0
sensitivity = 1
"""


@pytest.fixture
def act(tmp_path: Path) -> Callable[..., tuple[Job, dict[str, str]]]:
    """Runs the action on a project of one plan in a folder of the workspace; also its outputs."""

    def run(claim: float, **inputs: str) -> tuple[Job, dict[str, str]]:
        project = tmp_path / "workspace" / "privacy"
        project.mkdir(parents=True)
        (project.parent / ".git").mkdir()
        (project / "plan.toml").write_text(PLAN.format(claim=claim))
        listed = '[[subject]]\nname = "sum"\ntarget = "plan.toml"\n'
        (project / "dpaudit.toml").write_text(f"[project]\nformats = []\n{listed}")
        (project / "needed.txt").write_text("numpy\ndpaudit\n")
        given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | inputs
        contexts: dict[str, Any] = {"inputs": given}
        contexts["github"] = {"action_path": str(ROOT), "event_name": "push", "job": "privacy"}
        job = Job(project.parent, tmp_path / "machine", contexts)
        job.perform(ACTION["runs"]["steps"], {})
        return job, {name: job.filled(each["value"]) for name, each in ACTION["outputs"].items()}

    return run


def test_a_project_that_is_certified(act: Any) -> None:
    job, outputs = act(1.0, path="privacy", requirements="privacy/needed.txt")
    assert [(step.name, step.said) for step in job.done if step.code] == []
    assert outputs["exit-code"] == "0"
    assert "| sum | certified |" in job.summary
    badge = ElementTree.parse(outputs["badge"]).getroot()
    assert badge.get("aria-label") == "privacy: certified"
    assert (Path(outputs["reports"]) / "sum.json").exists()
    assert len(json.loads(Path(outputs["sarif"]).read_text("utf-8"))["runs"]) == 1
    kept = job.by_name["Keep the reports, and the badge"].given["path"].split()
    assert kept == [outputs["reports"], outputs["sarif"]]
    assert not (job.workspace / "privacy" / "reports").exists()


def test_the_page_uses_it_as_it_is() -> None:
    page = (ROOT / "docs" / "projects.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    *_, own, upload = yaml.safe_load(text)["jobs"]["privacy"]["steps"]
    assert set(own["with"]) == set(ACTION["inputs"])
    named = re.findall(r"steps\.privacy\.outputs\.([\w-]+)", str(upload))
    assert named
    assert set(named) <= set(ACTION["outputs"])
    assert [name for name in ACTION["outputs"] if f"`{name}`" not in page] == []


def test_the_exit_code_of_check_is_that_of_the_action(act: Any) -> None:
    job, outputs = act(0.4, path="privacy/dpaudit.toml")
    assert "Install what the subjects import" not in job.by_name
    assert {step.name: step.code for step in job.done if step.code} == {"Pass on the exit code": 1}
    assert outputs["exit-code"] == "1"
    assert ">exceeded<" in Path(outputs["badge"]).read_text("utf-8")
    sarif = json.loads(Path(outputs["sarif"]).read_text("utf-8"))
    first = sarif["runs"][0]["results"][0]
    assert {"ruleId": "claim", "level": "error"}.items() <= first.items()
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (
        "privacy/plan.toml"
    )


def test_arguments_reach_check_and_what_fails_early_leaves_no_reports(act: Any) -> None:
    job, outputs = act(1.0, path="privacy", arguments="--json\n--since nowhere.json\n")
    assert "'nowhere.json' does not exist" in job.by_name["dpaudit check"].said
    assert outputs["exit-code"] == "3"
    assert (job.summary, outputs["sarif"], job.done[-1].code) == ("", "", 3)
