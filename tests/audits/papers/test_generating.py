"""The reports of the four papers: generator, index, and what the project file promises."""

from __future__ import annotations

import math
from html.parser import HTMLParser
from pathlib import Path

import pytest
from examples import gaussian_invocation

from audits.papers.__main__ import main
from audits.papers.entries import PAPERS
from audits.papers.generating import PROJECT, REPORTS, generate
from audits.papers.index import index_html, index_markdown, row_of
from dpaudit import AuditRecord, Claim, Plan, Verdict, guarantee
from dpaudit.certificate import SubjectRecord, certify, load_certificate
from dpaudit.errors import InputError
from dpaudit.mechanisms import Opaque
from dpaudit.numbers import down, up
from dpaudit.project.project_file import read_project_file
from dpaudit.project.targets import find_subject
from dpaudit.reporting import suffixes
from dpaudit.workflow.outcomes import Status
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
DELTA = 1e-5
WORDS = ("Algorithm", "A remark.")


def project(folder: Path, name: str = "ldp-tgp-ucb") -> Path:
    path = folder / "dpaudit.toml"
    path.write_text(ENTRY.format(name=name), encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def certificate(claimed: float, *, mechanism=None, delta: float = DELTA):
    changes = {} if mechanism is None else {"mechanism": mechanism}
    plan = Plan.of(gaussian_invocation(**changes))
    return certify(plan, subject=SubjectRecord("x"), claim=Claim(claimed, delta, "Theorem 1"))


def audit(lower: float, *, refuted: bool = False, confidence: float | None = 0.999):
    method = f"attack to {lower:g}"
    return AuditRecord(refuted, method, 1.0, DELTA, lower, confidence, 10, None, 0, None)


LISTED = {entry.name: entry for entry in read_project_file(PROJECT, suffixes()).subjects}
PROVED = guarantee(Plan.of(gaussian_invocation()), DELTA).epsilon


class TestGenerator:
    def test_one_entry(self, tmp_path):
        made = generate(project(tmp_path), tmp_path / "out")
        assert set(contents(tmp_path / "out")) == {
            *(f"ldp-tgp-ucb.{ending}" for ending in ("json", "html", "md")),
            "index.html",
            "index.md",
        }
        saved = load_certificate(tmp_path / "out" / "ldp-tgp-ucb.json")
        assert saved == made["ldp-tgp-ucb"]
        assert saved.verdict is Verdict.CERTIFIED
        (found,) = saved.audits
        assert (found.runs, found.seed) == (1000, 3)
        assert verify_file(tmp_path / "out" / "ldp-tgp-ucb.json").facts["epsilon"] == 1.0
        row = (tmp_path / "out" / "index.md").read_text(encoding="utf-8")
        for cell in ("Zhou &amp; Tan 2021, Lemma 1", "| ε = 1<br>", down(found.epsilon_lower)):
            assert cell in row

    def test_attacks_of_its_own_come_after_those_of_the_project_file(self, tmp_path):
        path = tmp_path / "dpaudit.toml"
        path.write_text(
            '[[subject]]\nname = "curator"\ntarget = "private_bo.outsourced:Curator"\naudit = []\n'
        )
        made = generate(path, tmp_path / "out")["curator"]
        assert made.verdict is Verdict.REFUTED
        assert max(each.epsilon_lower for each in made.audits) == math.inf
        assert "no ε holds" in (tmp_path / "out" / "index.md").read_text(encoding="utf-8")

    def test_the_same_bytes_again_and_no_machine_paths(self, tmp_path):
        for name in ("one", "two"):
            generate(project(tmp_path), tmp_path / name)
        assert contents(tmp_path / "one") == contents(tmp_path / "two")
        for content in contents(tmp_path / "one").values():
            for path in (tmp_path, Path.cwd(), Path.home()):
                assert str(path).encode() + b"/" not in content

    def test_reports_of_former_subjects_go_and_other_files_stay(self, tmp_path):
        out = tmp_path / "out"
        (out / "folder").mkdir(parents=True)
        for name in ("former.json", "former.md", "former-1.5.json", "prose.md", "folder/x.json"):
            (out / name).write_text("{}")
        generate(project(tmp_path), out)
        left = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
        assert {"prose.md", "folder/x.json"} <= left
        assert not any("former" in name for name in left)

    def test_an_error_writes_nothing_and_is_one_sentence(self, tmp_path, capsys):
        unknown = project(tmp_path, "unheard-of")
        out = tmp_path / "out"
        assert main(["--project", str(unknown), "--folder", str(out)]) == 3
        error = capsys.readouterr().err
        assert "'unheard-of' has no place among the papers" in error
        assert error.count("\n") == 1
        assert not out.exists()

    def test_the_command_names_every_verdict(self, tmp_path, capsys):
        out = tmp_path / "out"
        assert main(["--project", str(project(tmp_path)), "--folder", str(out)]) == 0
        assert "ldp-tgp-ucb: certified\n" in capsys.readouterr().out


class TestRow:
    def test_a_tight_claim_holds(self):
        row = row_of("x", WORDS, certificate(PROVED))
        assert row.status is Status.CERTIFIED
        assert row.verdict == ("certified", "the claim holds")
        assert row.claim[1] == "Theorem 1"
        assert row.proved[0] == f"ε = {up(PROVED)}"
        assert row.attack == ("none", "")

    @pytest.mark.parametrize(("factor", "loose"), [(1.1, False), (1.12, True), (50.0, True)])
    def test_a_loose_claim_is_called_so(self, factor, loose):
        row = row_of("x", WORDS, certificate(factor * PROVED))
        assert row.verdict[1].endswith("loose") is loose

    def test_a_refuted_claim_is_false_whatever_is_proved(self):
        attacked = certificate(2 * PROVED).with_audits([audit(1.0), audit(3.0, refuted=True)])
        row = row_of("x", WORDS, attacked)
        assert row.verdict == ("refuted", "the claim is false")
        assert row.attack == ("ε ≥ 3", "attack to 3, at 99.9 %; the best of 2 attacks")

    def test_more_proved_than_claimed_is_no_refutation(self):
        row = row_of("x", WORDS, certificate(PROVED / 2))
        assert row.status is Status.EXCEEDED
        assert "false" not in row.verdict[1]

    def test_disjoint_supports(self):
        opaque = certificate(1.0, mechanism=Opaque("projection", 1.0, DELTA))
        exact = audit(math.inf, refuted=True, confidence=None)
        row = row_of("x", WORDS, opaque.with_audits([exact, audit(2.0, refuted=True)]))
        assert row.proved == ("nothing", "")
        assert row.attack[0] == "no ε holds"
        assert "%" not in row.attack[1]

    def test_no_proof_and_no_refutation(self):
        row = row_of("x", WORDS, certificate(1.0, mechanism=Opaque("projection", 1.0, DELTA)))
        assert row.status is Status.UNPROVEN
        assert row.verdict[1] == "no proof, no refutation"

    def test_attacks_that_find_nothing_name_the_last_one(self):
        found = certificate(PROVED).with_audits([audit(0.0), audit(-0.0)])
        assert row_of("x", WORDS, found).attack[0] == "found nothing"

    def test_a_certificate_without_a_claim_is_refused(self):
        plan = Plan.of(gaussian_invocation())
        with pytest.raises(InputError, match="states no claim"):
            row_of("x", WORDS, certify(plan, subject=SubjectRecord("x"), delta=DELTA))


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links, self.classes = [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self.links += [given["href"]] if tag == "a" else []
        self.classes += [given["class"]] if tag == "span" and "class" in given else []


class TestIndex:
    def made(self):
        return {
            "curator": certificate(1.0).with_audits([audit(3.0, refuted=True)]),
            "dp-fts": certificate(9 * PROVED),
            "joint-gp-ucb": certificate(PROVED),
        }

    def test_markdown(self):
        text = index_markdown(self.made(), (".json", ".html"))
        assert "3 certificates: 1 refuted, 2 certified." in text
        assert "False: PO-GP-UCB" in text
        assert "loose (90 % of the claimed ε is enough): DP-FTS, synthetic" in text
        rows = [line for line in text.splitlines() if line.startswith("| **")]
        assert len(rows) == 3
        assert all(line.count(" | ") == 5 for line in rows)
        assert "[html](curator.html)" in rows[0]
        assert "Zhou" not in text  # a paper without certificates has no table

    def test_html_says_the_same_without_scripts_or_addresses_elsewhere(self):
        text = index_html(self.made(), (".json", ".html"))
        page = _Page()
        page.feed(text)
        assert page.tags.count("table") == 3
        assert page.classes == ["refuted", "certified", "certified"]
        assert "curator.json" in page.links
        assert not any(":" in link for link in page.links)
        assert "script" not in page.tags
        assert "3 certificates: 1 refuted, 2 certified." in text


class TestProjectFile:
    def test_every_subject_has_its_place_among_the_papers_and_the_other_way_round(self):
        places = [name for paper in PAPERS for name in paper.algorithms]
        assert sorted(places) == sorted(LISTED)

    def test_it_does_not_write_where_the_generator_writes(self):
        assert read_project_file(PROJECT, suffixes()).reports.resolve() != REPORTS

    @pytest.mark.parametrize("name", ["dp-fts-de-calibrated", "dp-fts-de-landmines-calibrated"])
    def test_the_calibrated_noise_is_the_least(self, name):
        entry = LISTED[name]
        least = entry.settings["noise_multiplier"]
        at, below = (
            guarantee(
                find_subject(entry.target, {**entry.settings, "noise_multiplier": z}).plan(),
                entry.claim.delta,
            ).epsilon
            for z in (least, round(least - 1e-4, 4))
        )
        assert at <= entry.claim.epsilon < below

    @pytest.mark.parametrize("name", ["dp-fts-de", "dp-fts-de-landmines"])
    def test_the_claims_of_calibrated_subjects_are_the_published_ones(self, name):
        paper, own = LISTED[name], LISTED[f"{name}-calibrated"].claim
        published = find_subject(paper.target, paper.settings).claim()
        assert own.delta == published.delta
        assert own.epsilon == round(published.epsilon, 2)


@pytest.mark.skipif(not (REPORTS / "index.md").exists(), reason="reports/ is not shipped here")
def test_the_index_says_what_the_certificates_say():
    """Read, not made anew: whatever the certificates are, the index must agree with them."""
    text = (REPORTS / "index.md").read_text(encoding="utf-8")
    page = (REPORTS / "index.html").read_text(encoding="utf-8")
    names = [name for paper in PAPERS for name in paper.algorithms]
    assert sorted(path.stem for path in REPORTS.glob("*.json")) == sorted(names)
    for name in names:
        known = load_certificate(REPORTS / f"{name}.json")
        (line,) = (line for line in text.splitlines() if f"({name}.json)" in line)
        assert f"**{row_of(name, WORDS, known).status}**" in line
        assert f'href="{name}.html"' in page
        if known.guarantee is not None:
            assert f"ε = {up(known.guarantee.epsilon)}<br>" in line
        bound = max(each.epsilon_lower or 0.0 for each in known.audits)
        words = {0.0: "found nothing", math.inf: "no ε holds"}.get(bound, f"ε ≥ {down(bound)}")
        assert f"| {words}<br>" in line
