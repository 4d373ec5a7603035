"""The site has every page, and every page that is made from the code says all there is."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from dpaudit.base.finding_table import known_findings
from dpaudit.base.toml_tables import inline
from dpaudit.certificate import Claim
from dpaudit.cli.main import app
from dpaudit.mechanisms import Mechanism
from dpaudit.project.project_file import read_project_file
from dpaudit.project.targets import own_packages
from dpaudit.reporting import suffixes
from dpaudit.signing.policy import read_policy
from dpaudit.tables import keys
from dpaudit.tables.release_file import read_release

HOME = Path(__file__).parents[2] / "docs" / "site"


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(HOME))
    try:
        import build

        return build.pages()
    finally:
        sys.path.remove(str(HOME))
        for name in ("build", "kinds", "reference"):
            sys.modules.pop(name, None)


def entries(page, text):
    """Which pages a page puts below itself in the navigation."""
    for block in re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL):
        for name in re.findall(r"^(?!:)(?:.* <)?([\w/.-]+?)>?$", block, re.MULTILINE):
            yield str((Path("/") / page).parent.joinpath(name).resolve().relative_to("/"))


def test_every_page_is_listed_once(pages):
    listed = [each for page, text in pages.items() for each in entries(page, text)]
    assert len(listed) == len(set(listed))
    assert {re.sub(r"\.(md|rst)$", "", page) for page in pages} - {"index"} == set(listed)


def test_no_page_has_the_name_of_one_that_sphinx_writes(pages):
    assert not {"search.md", "genindex.md", "py-modindex.md"} & set(pages)
    assert "hyperparameter-tuning.md" in pages


def test_the_navigation_has_groups_with_names(pages):
    groups = re.findall(r"```{toctree}\n(.*?)```", pages["index.md"], re.DOTALL)
    names = [re.search(r"^:caption: (.+)$", each, re.MULTILINE)[1] for each in groups]
    assert len(names) == len(set(names))
    assert all(":hidden:" in each for each in groups)  # in the bar beside, not on the page


def test_every_finding_and_mechanism_has_its_heading(pages):
    headings = set(re.findall(r"^## (\S+)$", pages["reference/findings.md"], re.MULTILINE))
    assert headings == {each.rule for each in known_findings(*own_packages())}
    found = re.findall(r"^## (\S+)$", pages["reference/mechanisms.md"], re.MULTILINE)
    assert found == sorted(Mechanism.kinds())
    assert "[rdp](accountants.md#rdp)" in pages["reference/mechanisms.md"]


def test_every_command_and_option_is_there(pages):
    text = pages["reference/commands.md"]
    for words in ("## `dpaudit certify`", "### `dpaudit book reserve`", "`--second-opinion`"):
        assert words in text


def test_links_within_the_site_lead_to_pages(pages):
    for page, text in pages.items():
        for link in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", text):
            there = (Path("/") / page).parent / link
            there = str(there.resolve().relative_to("/"))
            picture = there.endswith((".png", ".svg")) and (HOME.parents[1] / there).is_file()
            assert there in pages or picture, (page, link)


def test_the_first_page_shows_its_picture(pages):
    readme = (HOME.parents[1] / "README.md").read_text("utf-8")
    assert re.search(r"!\[A report: .*\]\(docs/examples/report\.png\)", readme)
    assert "![" not in pages["start.md"]  # which follows the home page
    shown = re.findall(r"!\[A report: .*\]\(/(.+)\){\.only-(\w+)}", pages["index.md"])
    assert shown == [
        ("docs/examples/report.png", "light"),
        ("docs/examples/report-dark.png", "dark"),
    ]


def test_the_home_page_has_four_ways_in_each_with_a_command(pages):
    ways = re.findall(r"{container} way\n(.*?)````", pages["index.md"], re.DOTALL)
    led = [re.match(r"\*\*\[.+\]\((.+)\)\*\*\n", each)[1] for each in ways]
    assert led == ["certify.md", "release.md", "audit-any-code.md", "training.md"]
    commands = typer.main.get_command(app).commands
    for each in ways:
        (command,) = re.findall(r"^dpaudit (\w+)", each, re.MULTILINE)
        assert command in commands


def test_the_site_begins_as_the_first_page_does(pages):
    """What is installed on the home page is what the first five minutes need."""
    (line,) = re.findall(r"^python3 -m venv .*", pages["index.md"], re.MULTILINE)
    assert line in pages["start.md"].splitlines()
    assert re.match(r"# Get started\n\n\*Is the", pages["start.md"])


EXAMPLES = tomllib.loads((HOME / "examples.toml").read_text("utf-8"))


def lines(head, table, *without):
    kept = [f"{key} = {inline(value)}" for key, value in table.items() if key not in without]
    return "\n".join([head, *kept])


def test_every_key_of_a_claim_is_there_with_a_value_that_is_one(pages):
    given = EXAMPLES["plan"]["claim"]
    kinds = (
        "epsilon delta",
        "advantage",
        "success prior",
        "tpr fpr",
        "curve",
        "mu delta",
        "rho delta",
    )
    for kind in map(str.split, kinds):
        assert Claim.of(**{key: given[key] for key in kind})
        for key in kind:
            assert f"| `{key}` | " in pages["reference/plan-file.md"]
    assert set(" ".join(kinds).split()) == set(given)


def test_the_examples_of_keys_are_read(pages, tmp_path):
    project, policy = EXAMPLES["project"], EXAMPLES["policy"]
    path = tmp_path / "dpaudit.toml"
    budget = project["budget"] | {"epsilon": 2.0, "delta": 1e-6}
    for attack in (("code", "pair", "arguments"), ("every_pair", "exact"), ("through_run",)):
        made = {key: project["attack"][key] for key in (*attack, "epsilon", "delta")}
        parts = [lines("[audit]", project["audit"], "own_randomness")]
        parts += [lines("[[subject]]", project["subject"]), lines("[[subject.audit]]", made)]
        path.write_text("\n".join([*parts, lines("[[budget]]", budget)]), "utf-8")
        (subject,) = read_project_file(path, suffixes()).subjects
        assert subject.audits
    path = tmp_path / "policy.toml"
    parts = [lines("", policy["policy"], "book", "current"), lines("[[limit]]", policy["limit"])]
    path.write_text("\n".join([*parts, lines("[[audit]]", policy["audit"])]), "utf-8")
    assert read_policy(path).threshold == 1
    path.write_text(lines("", {key: policy["policy"][key] for key in ("book", "current")}), "utf-8")
    assert read_policy(path).current


def test_every_key_of_a_release_file_is_there_with_a_value_that_is_read(pages):
    """Each query that can be asked for, with all that goes with it, and every key of each table."""
    pytest.importorskip("sqlglot")
    given, text = EXAMPLES["release"], pages["reference/release-file.md"]
    for table, known in RELEASE_TABLES.items():
        assert set(given[table]) == set(known)
        for key in known:
            assert f"| `{key}` | " in text
    ward, cost = given["data"]["columns"]["ward"], dict(given["column"])
    cost.pop("values")
    columns = {"ward": ward, "cost": cost, "town": {"type": "text"}}
    columns["age"] = {"type": "integer", "range": [0, 110]}
    queries = [
        {**given["query"], "name": kind, kind: given["asks"][kind]}
        | {key: given["beside"][key] for key in own}
        for kind, (_, own) in keys.ASKS.items()
    ]
    other = {key: given["join"][key] for key in ("source", "on", "key", "columns")}
    for join in (given["data"]["join"], other):
        data = given["data"] | {"columns": columns, "join": join}
        data.pop("table")
        content = {"data": data, "privacy": given["privacy"], "query": queries}
        release = read_release(content)
        assert [query.name for query in release.queries] == [*keys.ASKS]


RELEASE_TABLES = {
    "data": keys.DATA,
    "column": keys.COLUMN,
    "join": keys.JOIN,
    "privacy": keys.PRIVACY,
    "query": keys.QUERY,
    "asks": keys.ASKS,
    "beside": keys.BESIDE,
}


def test_defaults_of_a_project_are_those_of_a_project(pages):
    """They are others than those of the command."""
    text = pages["reference/project-file.md"]
    for key, default in (("confidence", "0.99"), ("seed", "0"), ("own_randomness", "false")):
        (row,) = re.findall(rf"^\| `{key}` \|.*$", text, re.MULTILINE)
        assert row.split(" | ")[3] == f"`{default}`"


def test_a_mechanism_is_told_with_pair_relations_accountants_and_sampler(pages):
    _, _, text = pages["reference/mechanisms.md"].partition("## gaussian\n")
    told = text.partition("\n## ")[0]
    assert "| sensitivity in | the L2 norm |" in told
    assert "| dominating pair | `GaussianPair`: N(μ, 1) against N(0, 1)" in told
    assert "[replace-one](relations.md#replace-one)" in told
    assert "[gaussian](accountants.md#gaussian)" in told
    _, _, text = pages["reference/mechanisms.md"].partition("## shuffled\n")
    assert "add-remove" not in text.partition("| accountants |")[0]
    _, _, text = pages["reference/samplings.md"].partition("## poisson\n")
    assert "| under [add-remove](relations.md#add-remove) | as declared. |" in text


def test_every_record_of_a_certificate_is_there(pages):
    text = pages["reference/certificates.md"]
    for place in ("plan.invocations[]", "audits[]", "findings[]", "assumptions[]", "run.ledger"):
        assert f"| `{place}` |" in text


WORDS = {
    "membership inference": "language-models",
    "partition selection": "unknown-keys",
    "user-level": "unit-and-relation",
    "group privacy": "unit-and-relation",
    "trade-off function": "accountants",
    "f-DP": "accountants",
    "contribution bounding": "unit-and-relation",
    "hyperparameter tuning": "search",
}
"""Words of the field, and the guide where a search for them should end: not only the glossary."""


@pytest.mark.parametrize(("words", "guide"), WORDS.items())
def test_words_of_the_field_stand_in_a_guide(words, guide):
    text = " ".join((HOME.parent / f"{guide}.md").read_text("utf-8").split())
    assert words.lower() in text.lower()
