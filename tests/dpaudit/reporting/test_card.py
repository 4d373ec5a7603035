"""Model cards: what a header for machines and a page for newcomers say of a certificate."""

import re
from dataclasses import replace

import pytest
import yaml
from markdown_it import MarkdownIt
from pages import Page
from report_certificates import KINDS

from dpaudit import InputError, Verdict
from dpaudit.reporting import Utility, model_card
from dpaudit.reporting.view import view

_HEADER = re.compile(r"^(\s*---[\r\n]+)([\S\s]*?)([\r\n]+---(\r\n|\n|$))")
"""By which Hugging Face finds the header of a card."""


def parts(card):
    """The header as values, and what a reader sees of the rest."""
    found = _HEADER.match(card)
    shown = MarkdownIt("gfm-like", {"linkify": False}).render(card[found.end() :])
    return yaml.safe_load(found[2]), Page(shown)


@pytest.fixture(scope="module")
def cards(certificates):
    scores = (Utility("accuracy", 0.85, 0.91), Utility("loss", 0.5))
    return {kind: model_card(made, scores) for kind, made in certificates.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_header_and_first_sentence_say_what_the_certificate_says(kind, cards, certificates):
    made, (header, page) = certificates[kind], parts(cards[kind])
    facts = header["differential_privacy"]
    assert facts["verdict"] == str(made.verdict)
    assert facts["certificate"] == made.to_dict()["digest"]
    assert ("differential-privacy" in header["tags"]) == (made.verdict is Verdict.CERTIFIED)
    assert header["metrics"] == ["accuracy", "loss"]
    head = view(made).headline
    for said in (head.label, head.sentence, *head.details):
        assert " ".join(Page(f"<p>{said}</p>").text.split())[:60] in page.text or kind == "hostile"
    first = re.search(r"\n\*\*(.*?)\n\n", cards[kind])[1]
    assert first.startswith(f"{head.sign} {head.label}.")
    assert str(made.verdict) in first.casefold() or head.look in first


def test_an_epsilon_is_in_the_header_only_where_nothing_contradicts_it(cards):
    stated = {
        kind: parts(card)[0]["differential_privacy"].get("epsilon") for kind, card in cards.items()
    }
    certified = {"certified": 1.0, "bare": 0.5, "sealed": stated["sealed"]}
    assert stated | certified == stated
    for kind in ("refuted", "opaque", "unbounded", "hostile"):
        assert stated[kind] is None
    exceeded, page = parts(cards["exceeded"])
    assert exceeded["differential_privacy"]["verdict"] == "unproven"
    assert "The claim is not proved" in page.text


def test_a_refuted_claim_fails_in_the_first_sentence(cards):
    _, page = parts(cards["refuted"])
    assert "✗ Refuted. The claim does not hold" in page.text[:200]
    assert "It contradicts what is stated." in page.text


def test_premises_utility_and_what_is_not_covered_are_there(cards, certificates):
    _, page = parts(cards["certified"])
    made = certificates["certified"]
    for each in made.assumptions:
        assert str(each.premise) in page.text
    for said in (*made.not_covered, "accuracy 0.85 0.91", "loss 0.5 not stated", "adds to this"):
        assert said in page.text
    assert "None is stated." in parts(model_card(made))[1].text


def test_no_foreign_character_means_anything(cards, certificates, hostile_text):
    text = cards["hostile"]
    header, page = parts(text)
    below = text[_HEADER.match(text).end() :]
    assert "<" not in below
    assert "://" not in below
    assert not re.search(r"(?<!\\)\$", below)
    tags = {tag for tag, _ in page.tags}
    assert tags <= {
        "h1",
        "h2",
        "p",
        "ul",
        "li",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert set(header) == {"tags", "metrics", "differential_privacy"}


@pytest.mark.parametrize(
    "name", ["a: b", "- a", "x\n---\ny: 1", "'\"", "{a}", "*a", "&a", "no", "1e-5", "a\u202eb # c"]
)
def test_names_stay_names(name, certificates):
    made = certificates["bare"]
    plan = replace(made.plan.invocations[0], unit=replace(made.plan.unit, name="row"))
    card = model_card(replace(made, plan=replace(made.plan, invocations=(plan,))), name=name)
    assert parts(card)[0]["differential_privacy"]["unit"] == "row"
    scored, page = parts(model_card(made, [Utility(name, 1.0)]))
    (metric,) = scored["metrics"]
    assert metric == " ".join(name.split()).replace("\u202e", "⟨U+202E⟩")
    assert metric in page.text.replace("–", "-")


def test_the_format_is_that_of_hugging_face(cards):
    hub = pytest.importorskip("huggingface_hub")
    card = hub.ModelCard(cards["sealed"])
    assert card.data.tags == ["differential-privacy", "dpaudit"]
    assert card.data.to_dict()["differential_privacy"]["verdict"] == "certified"
    assert card.text.lstrip().startswith("# Model card of ")


@pytest.mark.parametrize("typed", ["accuracy", "=0.5", "a=b", "a=1,2,3", "a=nan", "a=1,inf"])
def test_a_score_is_one_number_or_two(typed):
    with pytest.raises(InputError, match=r"utility|private|public"):
        Utility.parse(typed)


def test_a_score_is_there_once(certificates):
    with pytest.raises(InputError, match="twice"):
        model_card(certificates["bare"], [Utility("a", 1.0), Utility("a", 2.0)])


def test_a_card_is_for_everybody(certificates):
    made = certificates["sealed"]
    owned = replace(made, owner={"summary": {"true mean": 832}, "series": {"truth": [832.5]}})
    assert model_card(owned) == model_card(made)
    assert repr(owned) == repr(made)
