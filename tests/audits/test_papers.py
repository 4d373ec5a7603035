"""Reports of the papers: from the project file to a folder, its index, and what changed in it."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from pathlib import Path

import pytest
from examples import gaussian_invocation
from paper_certificates import DELTA, PROVED, WORDS, audit, certificate

from audits.differences import TOLERANCE, differences
from audits.paper_rows.rows import PAPERS
from audits.papers.__main__ import main
from audits.papers.generating import PROJECT, REPORTS, certificates_of, compare, generate
from audits.papers.index import index, row_of
from dpaudit import AccountantName, Plan, Verdict, guarantee
from dpaudit.base.errors import InputError
from dpaudit.base.numbers import down, up
from dpaudit.certificate import SubjectRecord, certify, load_certificate
from dpaudit.mechanisms import Opaque
from dpaudit.project.project_file import read_project_file
from dpaudit.project.targets import find_subject
from dpaudit.reporting import suffixes
from dpaudit.workflow.outcomes import Status
from dpaudit.workflow.verifying import verify_file

# -- from the project file to a folder of reports --------------------------------------------------


HEAD = '[project]\nformats = ["html", "md"]\n'
ENTRY = """
[[subject]]
name = "{name}"
target = "private_bo.local:LDPTGPUCB"
set = {{ epsilon = 1.0, steps = 20 }}
audit = [{{ runs = 1000, seed = 3, pair = [-2.0, 2.0] }}]
"""


def project(folder: Path, name: str = "ldp-tgp-ucb") -> Path:
    path = folder / "dpaudit.toml"
    path.write_text(HEAD + ENTRY.format(name=name), encoding="utf-8")
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


@pytest.mark.processes
@pytest.mark.unabridged
def test_processes_give_the_same_certificates(tmp_path):
    names = ["ldp-tgp-ucb", "ldp-ata-gp-ucb"]
    path = tmp_path / "dpaudit.toml"
    entries = (f'{ENTRY.format(name=name)}code = "not rehearsed"\n' for name in names)
    path.write_text("".join(entries), encoding="utf-8")
    found = read_project_file(path, suffixes())
    one, two = (dict(certificates_of(found, workers=workers)) for workers in (1, 2))
    assert one == two
    assert list(two) == names


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


# -- every subject has its place among the papers --------------------------------------------------


def test_every_subject_has_its_place_among_the_papers_and_the_other_way_round():
    places = [name for paper in PAPERS for name in paper.certificates]
    assert sorted(places) == sorted(LISTED)


# -- the command that makes the reports ------------------------------------------------------------


def test_an_error_writes_nothing_and_is_one_sentence(tmp_path, capsys):
    unknown = project(tmp_path, "unheard-of")
    out = tmp_path / "out"
    assert main(["--project", str(unknown), "--folder", str(out)]) == 3
    error = capsys.readouterr().err
    assert "'unheard-of' has no place among the papers" in error
    assert error.count("\n") == 1
    assert not out.exists()


# -- the index: what a certificate says, in words --------------------------------------------------


def test_a_tight_claim_holds():
    row = row_of("x", WORDS, certificate(PROVED))
    assert row.status is Status.CERTIFIED
    assert row.verdict == ("certified", "the claim holds")
    assert row.claim[1] == "Theorem 1"
    assert row.proved[0] == f"ε = {up(PROVED)}"
    assert row.attack == ("none", "")


@pytest.mark.parametrize(("factor", "loose"), [(1.1, False), (1.12, True), (50.0, True)])
def test_a_loose_claim_is_called_so(factor, loose):
    row = row_of("x", WORDS, certificate(factor * PROVED))
    assert row.verdict[1].endswith("loose") is loose


def test_a_refuted_claim_is_false_whatever_is_proved():
    attacked = certificate(2 * PROVED).with_audits([audit(1.0), audit(3.0, refuted=True)])
    row = row_of("x", WORDS, attacked)
    assert row.verdict == ("refuted", "the claim is false")
    assert row.attack == ("ε ≥ 3", "attack to 3, at 99.9 %; the best of 2 attacks")


def test_more_proved_than_claimed_is_no_refutation():
    row = row_of("x", WORDS, certificate(PROVED / 2))
    assert row.status is Status.EXCEEDED
    assert "false" not in row.verdict[1]


def test_disjoint_supports():
    opaque = certificate(1.0, mechanism=Opaque("projection", 1.0, DELTA))
    exact = audit(math.inf, refuted=True, confidence=None)
    row = row_of("x", WORDS, opaque.with_audits([exact, audit(2.0, refuted=True)]))
    assert row.proved == ("nothing", "")
    assert row.attack[0] == "no ε holds"
    assert "%" not in row.attack[1]


def test_no_proof_and_no_refutation():
    row = row_of("x", WORDS, certificate(1.0, mechanism=Opaque("projection", 1.0, DELTA)))
    assert row.status is Status.UNPROVEN
    assert row.verdict[1] == "no proof, no refutation"


def test_attacks_that_find_nothing_name_the_last_one():
    found = certificate(PROVED).with_audits([audit(0.0), audit(-0.0)])
    assert row_of("x", WORDS, found).attack[0] == "found nothing"


def test_a_certificate_without_a_claim_is_refused():
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


def certificates():
    return {
        "curator": certificate(1.0).with_audits([audit(3.0, refuted=True)]),
        "dp-fts": certificate(9 * PROVED),
        "joint-gp-ucb": certificate(PROVED),
    }


def test_markdown():
    text = index(certificates(), (".json", ".html"), ".md")
    assert "3 certificates: 1 refuted, 2 certified." in text
    assert "False: PO-GP-UCB" in text
    assert "loose (90 % of the claimed ε is enough): DP-FTS, synthetic" in text
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) == 3
    assert all(line.count(" | ") == 5 for line in rows)
    assert "[html](curator.html)" in rows[0]
    assert "Zhou" not in text  # a paper without certificates has no table


def test_html_says_the_same_without_scripts_or_addresses_elsewhere():
    text = index(certificates(), (".json", ".html"), ".html")
    page = _Page()
    page.feed(text)
    assert page.tags.count("table") == 3
    assert page.classes == ["refuted", "certified", "certified"]
    assert "curator.json" in page.links
    assert not any(":" in link for link in page.links)
    assert "script" not in page.tags
    assert "3 certificates: 1 refuted, 2 certified." in text


@pytest.mark.skipif(not (REPORTS / "index.md").exists(), reason="reports/ is not shipped here")
def test_the_index_says_what_the_certificates_say():
    """Read, not made anew: whatever the certificates are, the index must agree with them."""
    text = (REPORTS / "index.md").read_text(encoding="utf-8")
    page = (REPORTS / "index.html").read_text(encoding="utf-8")
    names = [name for paper in PAPERS for name in paper.certificates]
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


# -- shipped certificates and what the code makes today --------------------------------------------


CHEAP = ("ldp-moma-gp-ucb-epsilon-0.5", "curator")
"""One claim that holds and one that is refuted, attacked in a few seconds."""


def record(name: str = CHEAP[1]) -> dict:
    return json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8"))


def lines(old: dict, new: dict) -> list[str]:
    return [str(each) for each in differences(old, new)]


@pytest.mark.unabridged
def test_cheap_reports_are_what_the_code_makes():
    assert dict(compare(CHEAP)) == {f"{name}.json": () for name in CHEAP}


class TestDifferences:
    def test_a_record_is_the_same_as_itself(self):
        assert differences(record(), record()) == ()

    def test_what_changes_with_every_release_or_edit_is_not_compared(self):
        new = record()
        new |= {"digest": "0" * 64, "versions": {"numpy": "99"}}
        new["subject"] |= {"code_hash": "0" * 64, "location": new["subject"]["location"] + "1"}
        assert differences(record(), new) == ()

    @pytest.mark.parametrize(("factor", "same"), [(0.5, True), (2.0, False)])
    def test_floats_differ_beyond_the_tolerance(self, factor, same):
        new = record()
        new["audits"][0]["epsilon_lower"] *= 1 + factor * TOLERANCE
        (*paths,) = (each.path for each in differences(record(), new))
        assert paths == ([] if same else ["audits[0].epsilon_lower"])

    def test_every_other_difference_is_one_line(self):
        old, new = record(), record()
        new["verdict"] = "certified"
        new["audits"][0]["runs"] += 1
        new["audits"][0]["details"]["counts"]["hits"] = (
            12626.0  # a float is no whole number's match
        )
        new["subject"]["location"] = "private_bo/elsewhere.py:1"
        del new["findings"][-1], new["claim"]["source"]
        new["assumed"] = True
        found = lines(old, new)
        assert sorted(line.partition(":")[0] for line in found) == [
            "assumed",
            "audits[0].runs",
            "claim.source",
            f"findings[{len(new['findings'])}]",
            "subject.location",
            "verdict",
        ]
        assert 'verdict: "refuted" -> "certified"' in found
        assert "assumed: absent -> true" in found
        assert all("\n" not in line and len(line) < 300 for line in found)

    @pytest.mark.parametrize(
        ("old", "new", "same"),
        [
            (1e-14, 3e-14, False),  # a small number alone may be a p-value
            ([488.0, 1e-14], [488.0, -3e-14], True),  # a coordinate of a point
            ([488.0, 1e-14], [488.0, 1e-5], False),
            ([[488.0], [1e-14]], [[488.0], [3e-14]], False),
            ({"rounding": 1e-14}, {"rounding": 3e-14}, True),
            ({"rounding": 1e-14}, {"rounding": 1e-8}, False),
            (
                {"residuals_on_x": {"x": {"least": 1e-13}}},
                {"residuals_on_x": {"x": {"least": 0.0}}},
                True,
            ),
            (1, 1.0, True),
            (10**15, 10**15 + 1, False),
            (True, 1, False),
            (0.0, -0.0, True),
            ("infinity", "infinity", True),
            (1.0, "infinity", False),
            (None, 0.0, False),
        ],
    )
    def test_what_counts_as_the_same(self, old, new, same):
        assert (differences({"a": old}, {"a": new}) == ()) is same


@pytest.mark.parametrize(
    ("axis", "factor", "same"), [(0, 0.5, True), (0, 2.0, False), (1, 0.5, False)]
)
def test_a_curve_is_compared_within_the_error_bound_of_its_accountant(axis, factor, same):
    old, new = record("dp-fts-de"), record("dp-fts-de")
    new["guarantee"]["curve"][5][axis] += factor * old["guarantee"]["error_bound"]
    assert (differences(old, new) == ()) is same


@pytest.mark.parametrize(("factor", "same"), [(1 + 5e-4, True), (1.01, False)])
def test_a_checked_epsilon_is_compared_as_near_as_its_witness_was_found(factor, same):
    old, new = record("dp-fts-de"), record("dp-fts-de")
    new |= {"witness": None, "checked": {**old["checked"], "rules": []}}
    new["checked"]["epsilon"] *= factor
    assert (differences(old, new) == ()) is same


@pytest.mark.parametrize(("count", "same"), [(5, True), (0, False)])
def test_of_neighbours_that_moved_a_release_is_compared_whether_there_were_any(count, same):
    old, new = record("dp-fts"), record("dp-fts")
    counts = new["rehearsal"]["exercised"]["values within the sensitivity"]
    label = next(iter(counts))
    assert counts[label] not in (0, count)
    counts[label] = count
    assert (differences(old, new) == ()) is same


SHORT = """
[project]
formats = ["md"]
[[subject]]
name = "ldp-tgp-ucb"
target = "private_bo.local:LDPTGPUCB"
set = { epsilon = 1.0, steps = 20 }
audit = []
"""


class TestCommand:
    @pytest.fixture
    def arguments(self, tmp_path: Path) -> list[str]:
        (tmp_path / "dpaudit.toml").write_text(SHORT)
        (tmp_path / "out").mkdir()
        return ["--project", str(tmp_path / "dpaudit.toml"), "--folder", str(tmp_path / "out")]

    def test_the_same_again_and_then_an_edit(self, arguments, tmp_path, capsys):
        assert main(arguments) == 0
        before = contents(tmp_path / "out")
        assert "ldp-tgp-ucb: certified\n" in capsys.readouterr().out
        assert main([*arguments, "--compare"]) == 0
        assert capsys.readouterr().out == "ldp-tgp-ucb.json: same\n"
        assert contents(tmp_path / "out") == before
        path = tmp_path / "out" / "ldp-tgp-ucb.json"
        path.write_text(path.read_text().replace('"count": 1,', '"count": 2,'))
        (tmp_path / "out" / "former.json").write_text("{}")
        assert main([*arguments, "--compare"]) == 1
        assert capsys.readouterr().out == (
            "ldp-tgp-ucb.json: plan.invocations[0].count: 2 -> 1\n"
            "former.json: file: a certificate -> absent\n"
        )

    def test_what_is_not_shipped(self, arguments, capsys):
        assert main([*arguments, "--compare", "ldp-tgp-ucb"]) == 1
        assert capsys.readouterr().out == "ldp-tgp-ucb.json: file: absent -> a certificate\n"

    def test_an_unknown_name_is_one_sentence(self, arguments, capsys):
        assert main([*arguments, "--compare", "ldp-tgp-uc"]) == 3
        assert capsys.readouterr().err == "subject is 'ldp-tgp-uc'; did you mean 'ldp-tgp-ucb'?\n"
