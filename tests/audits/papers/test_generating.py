"""From the project file to a folder of reports."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from audits.papers.generating import PROJECT, REPORTS, generate
from dpaudit import AccountantName, Verdict, guarantee
from dpaudit.base.numbers import down
from dpaudit.certificate import load_certificate
from dpaudit.project.project_file import read_project_file
from dpaudit.project.targets import find_subject
from dpaudit.reporting import suffixes
from dpaudit.workflow.verifying import verify_file

ENTRY = """
[project]
formats = ["html", "md"]
[[subject]]
name = "{name}"
target = "private_bo.local:LDPTGPUCB"
set = {{ epsilon = 1.0, steps = 20 }}
audit = [{{ runs = 1000, seed = 3, pair = [-2.0, 2.0] }}]
"""


def project(folder: Path, name: str = "ldp-tgp-ucb") -> Path:
    path = folder / "dpaudit.toml"
    path.write_text(ENTRY.format(name=name), encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


LISTED = {entry.name: entry for entry in read_project_file(PROJECT, suffixes()).subjects}


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A folder with the reports of one subject, and its certificates."""
    folder = tmp_path_factory.mktemp("once")
    return folder / "out", generate(project(folder), folder / "out")


def test_one_entry(once):
    out, made = once
    assert set(contents(out)) == {
        *(f"ldp-tgp-ucb.{ending}" for ending in ("json", "html", "md")),
        "index.html",
        "index.md",
    }
    saved = load_certificate(out / "ldp-tgp-ucb.json")
    assert saved == made["ldp-tgp-ucb"]
    assert saved.verdict is Verdict.CERTIFIED
    (found,) = saved.audits
    assert (found.runs, found.seed) == (1000, 3)
    assert verify_file(out / "ldp-tgp-ucb.json").facts["epsilon"] == 1.0
    row = (out / "index.md").read_text(encoding="utf-8")
    for cell in ("Zhou &amp; Tan 2021, Lemma 1", "| ε = 1<br>", down(found.epsilon_lower)):
        assert cell in row


def test_attacks_of_its_own_come_after_those_of_the_project_file(tmp_path):
    path = tmp_path / "dpaudit.toml"
    path.write_text(
        '[[subject]]\nname = "curator"\ntarget = "private_bo.outsourced:Curator"\naudit = []\n'
    )
    made = generate(path, tmp_path / "out")["curator"]
    assert made.verdict is Verdict.REFUTED
    assert max(each.epsilon_lower for each in made.audits) == math.inf
    assert "no ε holds" in (tmp_path / "out" / "index.md").read_text(encoding="utf-8")


def test_the_same_bytes_again_other_files_stay_and_reports_of_former_subjects_go(tmp_path, once):
    out = tmp_path / "out"
    (out / "folder").mkdir(parents=True)
    for name in ("former.json", "former.md", "former-1.5.json", "prose.md", "folder/x.json"):
        (out / name).write_text("{}")
    generate(project(tmp_path), out)
    for name, content in contents(once[0]).items():
        assert (out / name).read_bytes() == content
        for path in (tmp_path, once[0], Path.cwd(), Path.home()):
            assert str(path).encode() + b"/" not in content
    left = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {"prose.md", "folder/x.json"} <= left
    assert not any("former" in name for name in left)


def test_it_does_not_write_where_the_generator_writes():
    assert read_project_file(PROJECT, suffixes()).reports.resolve() != REPORTS


@pytest.mark.parametrize("name", ["dp-fts-de-calibrated", "dp-fts-de-landmines-calibrated"])
def test_the_calibrated_noise_is_the_least(name):
    entry = LISTED[name]
    least = entry.settings["noise_multiplier"]
    at, below = (
        guarantee(
            find_subject(entry.target, {**entry.settings, "noise_multiplier": z}).plan(),
            entry.claim.delta,
            AccountantName.PLD,
        ).epsilon
        for z in (least, round(least - 1e-4, 4))
    )
    assert at <= entry.claim.epsilon < below


@pytest.mark.parametrize("name", ["dp-fts-de", "dp-fts-de-landmines"])
def test_the_claims_of_calibrated_subjects_are_the_published_ones(name):
    paper, own = LISTED[name], LISTED[f"{name}-calibrated"].claim
    published = find_subject(paper.target, paper.settings).claim()
    assert own.delta == published.delta
    assert own.epsilon == round(published.epsilon, 2)
