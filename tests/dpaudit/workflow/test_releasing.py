"""Releases of a table: their files, what stops them before they are charged, what is made up."""

import csv
import json
import os
from pathlib import Path

import pytest

from dpaudit import InputError, TamperedError, read_release, release_table
from dpaudit.certificate import Scope, Standing, load_certificate, verify
from dpaudit.reporting import render_to
from dpaudit.workflow.releasing import planned
from dpaudit.workflow.results import MOST_KEPT, abridged
from dpaudit.workflow.running import run_subject, with_owner

pytest.importorskip("duckdb")
pytest.importorskip("opendp")

RELEASE = """
[data]
source = "visits.csv"
unit = "patient"
columns.ward = { type = "text", values = ["=A1", "B1"] }
columns.cost = { type = "number", range = [0, 100], step = 1 }
[privacy]
relation = "add-remove"
claim = { epsilon = 1.0 }
rows_per_unit = 2
[[query]]
name = "visits"
count = true
by = "ward"
[[query]]
name = "cost"
mean = "cost"
[[query]]
name = "busiest"
top = "ward"
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    rows = [(f"p{n // 3}", ("=A1", "B1", "C9")[n % 3], n % 120) for n in range(300)]
    with (folder / "visits.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("patient", "ward", "cost"), *rows])
    made = folder / "visits.toml"
    made.write_text(RELEASE)
    return made


@pytest.fixture(scope="module")
def released(path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    certificate, files = release_table(path, folder)
    return certificate, {each.name: each for each in files}


@pytest.fixture(scope="module")
def tried(path, tmp_path_factory):
    certificate, files = release_table(path, tmp_path_factory.mktemp("tried"), synthetic=50)
    return certificate, {each.name: each for each in files}


def test_its_certificate_speaks_of_the_release(released):
    certificate, files = released
    verify(load_certificate(files["certificate.json"]))
    assert (certificate.verdict, certificate.scope) == ("certified", Scope.RELEASE)
    assert [each.rule for each in certificate.findings] == []  # the noise is exact
    standings = [each.standing for each in certificate.assumptions]
    assert standings.count(Standing.ASSUMED) == 3
    assert set(standings) == {Standing.ENFORCED, Standing.ASSUMED, Standing.NOT_APPLICABLE}


def test_before_it_runs_floats_are_no_open_point_of_it(path):
    certificate, costs = planned(path)
    assert [each.rule for each in certificate.findings] == []
    assert [each.query for each in costs] == ["visits", "cost", "busiest"]
    verify(certificate)


def test_all_files_have_the_same_columns_and_rows(released):
    certificate, files = released
    with files["results.csv"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    keys = ["query", "ward", "rank", "value", "text", "low", "high", "note"]
    assert list(rows[0]) == keys
    results = json.loads(files["results.json"].read_text())
    assert results == certificate.run["results"]
    assert [each["query"] for each in results] == ["visits", "cost", "busiest"]
    parquet = pytest.importorskip("pyarrow.parquet").read_table(files["results.parquet"])
    assert parquet.column_names == keys
    assert len(rows) == parquet.num_rows == 3 + 1 + 1
    for row, other in zip(rows, parquet.to_pylist(), strict=True):
        assert row["query"] == other["query"]
        assert row["value"] == "" or float(row["value"]) == pytest.approx(other["value"])


def test_a_certificate_keeps_what_can_be_read_again_and_the_files_all():
    rows = [{"cell": [str(n)], "value": n} for n in range(30_000)]
    results = [{"query": name, "kind": "count", "columns": ["n"], "rows": rows} for name in "ab"]
    kept = abridged(results)
    assert [(len(each["rows"]), each.get("left", 0)) for each in kept] == [
        (MOST_KEPT, 30_000 - MOST_KEPT),
        (0, 30_000),
    ]
    assert abridged(results[:1], most=30_000) == results[:1]


def test_a_spreadsheet_computes_nothing_of_a_value(released):
    _, files = released
    text = files["results.csv"].read_text()
    assert "'=A1" in text
    assert ",=" not in text


def test_what_the_owner_may_see_is_in_a_folder_of_their_own(released):
    _, files = released
    owner = files["owner.json"]
    assert owner.parent.name == "owner"
    assert owner.stat().st_mode & 0o777 == 0o600
    assert owner.parent.stat().st_mode & 0o777 == 0o700
    for name, file in files.items():
        if name.endswith((".json", ".html", ".csv", ".jsonl")) and name != "owner.json":
            assert "left out" not in file.read_text()


@pytest.mark.parametrize("ending", [".html", ".md"])
def test_a_report_shows_numbers_with_intervals(released, tmp_path, ending):
    certificate, files = released
    shown = render_to(certificate, tmp_path / f"report{ending}").read_text()
    (first, *_) = certificate.run["results"][0]["rows"]
    for number in (first["value"], first["low"], first["high"]):
        assert str(int(number)) in shown
    assert "Only declared queries".lower() in shown.lower()
    assert "counts of rows by ward" in shown
    assert "no code was tested" not in shown
    assert "releases by the mechanism" not in shown
    assert "without noise" not in shown.replace("number without noise", "")
    owned = with_owner(certificate, files["owner.json"])
    shown = render_to(owned, tmp_path / f"owner{ending}").read_text()
    assert "without bounds" in shown
    assert "Bounds that somebody chooses after reading this are no longer public." in shown


def test_a_second_release_into_a_folder_is_refused_before_anything_is_read(released, path):
    _, files = released
    folder = files["results.csv"].parent
    before = {each: each.read_bytes() for each in folder.iterdir() if each.is_file()}
    with pytest.raises(InputError, match="exists already; give another folder"):
        release_table(path, folder, charging=NeverCharged())
    assert {each: each.read_bytes() for each in folder.iterdir() if each.is_file()} == before


class NeverCharged:
    """A book that nothing may reach."""

    def begin(self, plan):
        raise AssertionError("it was charged")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_refused_before_a_charge(path, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written"):
        release_table(path, tmp_path / "out", charging=NeverCharged())


def test_a_full_disk_is_refused_before_a_charge(path, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("dpaudit.workflow.results.shutil.disk_usage", lambda _: usage)
    with pytest.raises(InputError, match=r"less than 64 MiB of free space; make space"):
        release_table(path, tmp_path / "out", charging=NeverCharged())


def test_a_table_that_cannot_be_read_is_refused_before_a_charge(tmp_path):
    (tmp_path / "visits.toml").write_text(RELEASE)
    with pytest.raises(InputError, match=r"visits\.csv"):
        release_table(tmp_path / "visits.toml", tmp_path / "out", charging=NeverCharged())
    assert not (tmp_path / "out" / "ledger.jsonl").exists()


def test_made_up_rows_cannot_be_taken_for_the_table(tried, tmp_path):
    certificate, files = tried
    assert {"made-up-results.csv", "made-up-results.json", "made-up-results.parquet"} < set(files)
    assert not [name for name in files if name.startswith("results")]
    (found,) = certificate.findings
    assert (found.rule, str(found.severity)) == ("made-up-data", "warning")
    assert "synthetic 50" in found.message
    shown = render_to(certificate, tmp_path / "report.md").read_text()
    assert "Its results come from made-up rows" in shown
    verify(load_certificate(files["certificate.json"]))


def test_a_certificate_of_many_cells_keeps_as_many_as_can_be_read_again(tmp_path):
    """Its run is what is abridged, and not the record that the files are written of."""
    content = {
        "data": {
            "source": "none.csv",
            "unit": "u",
            "columns": {"x": {"type": "integer", "range": [0, 199]}, "y": {"type": "text"}},
        },
        "privacy": {"relation": "add-remove", "claim": {"epsilon": 1}, "rows_per_unit": 1},
        "query": [{"count": True, "by": ["x", {"column": "z", "edges": [*range(151)]}]}],
    }
    content["data"]["columns"]["z"] = {"type": "integer", "range": [0, 150]}
    certificate, files = release_table(read_release(content), tmp_path, synthetic=10)
    (kept,) = certificate.run["results"]
    assert len(kept["rows"]) == MOST_KEPT
    assert kept["left"] == 201 * 151 - MOST_KEPT
    (whole,) = json.loads(next(each for each in files if each.suffix == ".json").read_text())
    assert len(whole["rows"]) == 201 * 151
    verify(load_certificate(tmp_path / "certificate.json"))


def test_a_certificate_that_hides_that_rows_were_made_up_does_not_verify(tried):
    certificate, _ = tried
    with pytest.raises(TamperedError, match="do not say that its rows were made up"):
        verify(forged(certificate, findings=[]))


def test_made_up_rows_are_charged_to_no_book(path, tmp_path):
    with pytest.raises(InputError, match="synthetic is given with a book"):
        release_table(path, tmp_path, synthetic=10, charging=NeverCharged())


def test_an_experiment_is_repeated_by_its_seed(path, tmp_path):
    made = [release_table(path, tmp_path / name, seed=5)[0] for name in ("one", "two")]
    assert made[0].run["results"] == made[1].run["results"]
    assert "seeded-noise" in [each.rule for each in made[0].findings]
    for each in made:
        verify(each)


def test_a_release_is_made_of_tables_in_python(path, tmp_path):
    made = read_release(
        {
            "data": {
                "source": "visits.csv",
                "unit": "patient",
                "columns": {"ward": {"type": "text", "values": ["B1"]}},
            },
            "privacy": {"relation": "replace-one", "claim": {"epsilon": 2}, "rows_per_unit": 1},
            "query": [{"count": True, "by": "ward"}],
        },
        path.parent,
    )
    certificate, _ = release_table(made, tmp_path)
    assert certificate.subject.name == "release"
    assert [row["cell"] for row in certificate.run["results"][0]["rows"]] == [["B1"], ["other"]]


def test_the_command_for_subjects_leaves_releases_to_their_own(path, tmp_path):
    with pytest.raises(InputError, match="run it with dpaudit release"):
        run_subject(str(path), (), None, None, tmp_path)


def test_what_is_no_release_file_is_told(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('[plan]\nrelation = "add-remove"\n[[invocation]]\nmechanism = "laplace"\n')
    for name, said in ((plan, "lacks|needs|missing|no release file"), (Path("no.toml"), "exist")):
        with pytest.raises(InputError, match=said):
            release_table(name, tmp_path / "out")


# A record of a release lifts what is known: nothing else may bear one


def forged(certificate, **changes):
    """The certificate with these changes of its record, its digest made anew."""
    from dpaudit.base import files
    from dpaudit.certificate import Certificate

    record = certificate.to_dict() | changes
    record.pop("digest")
    return Certificate.from_dict(record | {"digest": files.digest(record)})


def test_a_record_of_a_release_beside_code_does_not_verify(released):
    certificate, _ = released
    subject = certificate.to_dict()["subject"]
    for change in ({"code_hash": "ab" * 32}, {"location": "a.py:1"}, {"configuration": {"a": 1}}):
        with pytest.raises(TamperedError, match="a release has none"):
            verify(forged(certificate, subject=subject | change))


def test_a_record_of_a_release_beside_another_plan_does_not_verify(released):
    from dpaudit import AddRemove, Claim, Laplace, Opaque, PrivacyUnit, TrustModel, certify
    from dpaudit.plan import Invocation, Plan

    certificate, _ = released
    about = (1.0, PrivacyUnit("patient"), AddRemove(), TrustModel.CENTRAL)
    of_nothing = Invocation(Laplace(2.0), *about, at="elsewhere")
    opaque = Invocation(Opaque("x", epsilon=0.5), *about, at="visits")
    for each in (of_nothing, opaque):
        made = certify(
            Plan.of(each),
            claim=Claim(1.0),
            subject=certificate.subject,
            release=certificate.release,
        )
        with pytest.raises(TamperedError, match="is in none of its queries"):
            verify(made)


def changed(path, value):
    """What sets a place of a record, of keys and numbers."""

    def change(record):
        *way, last = path
        for key in way:
            record = record[key]
        record[last] = value

    return change


ROW = ("run", "results", 0, "rows", 0)
EDITS = {
    "no results": (changed(("run", "results"), []), "0 results of queries"),
    "one query less": (lambda r: r["run"]["results"].pop(), "2 results of queries, and .* 3"),
    "another query": (changed(("run", "results", 0, "query"), "deaths"), "which is not a query"),
    "queries in another order": (lambda r: r["run"]["results"].reverse(), "which is not a query"),
    "a cell of more columns": (changed((*ROW, "cell"), ["=A1", "f"]), "a row of 'visits'"),
    "a cell that stands twice": (
        lambda r: r["run"]["results"][0]["rows"].append(r["run"]["results"][0]["rows"][0]),
        "a cell of 'visits' twice",
    ),
    "no cell": (changed((*ROW[:-1],), []), "no row of 'visits'"),
    "a cell of none": (changed((*ROW, "cell"), []), "a row of 'visits'"),
    "a number beside its interval": (changed((*ROW, "value"), 10**6), "a row of 'visits'"),
    "a word for a number": (changed((*ROW, "value"), "many"), "a row of 'visits'"),
    "ends that are turned": (lambda r: turned(r["run"]["results"][1]["rows"][0]), "row of 'cost'"),
    "one end": (lambda r: r["run"]["results"][0]["rows"][0].pop("high"), "a row of 'visits'"),
    "fewer releases": (changed(("run", "ledger", "entries"), 3), "and the release has 4"),
    "more that is told": (changed(("run", "summary", "releases"), 5), "5 told releases"),
    "other samplers": (
        changed(("run", "ledger", "samplers"), {"opendp 9, exact": 9}),
        "not draw as often as its ledger counts",
    ),
    "a seed": (changed(("seed",), 7), "disagree on whether it had a seed"),
}


def turned(row):
    row["low"], row["high"] = row["high"], row["low"]


@pytest.mark.parametrize("name", EDITS)
def test_results_that_are_not_of_the_release_do_not_verify(released, name):
    certificate, _ = released
    change, said = EDITS[name]
    record = json.loads(json.dumps(certificate.to_dict()))
    change(record)
    verify(certificate)
    with pytest.raises(TamperedError, match=said):
        verify(forged(certificate, **record))


@pytest.fixture(scope="module")
def experiment(path, tmp_path_factory):
    return release_table(path, tmp_path_factory.mktemp("seeded"), seed=5)[0]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda r: r.update(findings=[]), "lacks 'seeded-noise', which follows from the run"),
        (lambda r: r.update(seed=None), "disagree on whether it had a seed"),
        (lambda r: r["run"]["ledger"].update(seeded=False), "lacks 'float-sampler'"),
        (
            lambda r: (
                r.update(seed=None, findings=r["findings"] + [r["findings"][0] | FLOATS]),
                r["run"]["ledger"].update(seeded=False),
            ),
            "disagree on whether it had a seed",
        ),
    ],
)
def test_that_noise_follows_from_a_seed_cannot_be_hidden(experiment, edit, said):
    record = json.loads(json.dumps(experiment.to_dict()))
    edit(record)
    with pytest.raises(TamperedError, match=said):
        verify(forged(experiment, **record))


FLOATS = {"rule": "float-sampler"}
