"""Templates that escape everything and miss nothing in silence."""

import pytest
from jinja2 import DictLoader, UndefinedError

from dpaudit.reporting.environment import markdown_environment, strict_environment


def rendered(template, **given):
    loader = DictLoader({"a": template})
    return strict_environment(loader).get_template("a").render(**given)


def test_text_is_escaped():
    assert rendered("<p>{{ x }}</p>", x="<b>&") == "<p>&lt;b&gt;&amp;</p>"


def test_what_is_missing_is_an_error():
    with pytest.raises(UndefinedError):
        rendered("{{ x }}")


def test_hidden_characters_can_be_shown():
    assert rendered("{{ x | visible }}", x="a\u202eb") == "a⟨U+202E⟩b"


def test_the_first_loader_that_has_a_template_gives_it():
    made = strict_environment(DictLoader({"a": "one"}), DictLoader({"a": "two", "b": "three"}))
    assert made.get_template("a").render() == "one"
    assert made.get_template("b").render() == "three"


def test_in_markdown_text_is_one_line_that_means_nothing():
    made = markdown_environment(
        DictLoader({"a": "# {{ x }}{% macro m() %}*b*{% endmacro %} {{ m() }}"})
    )
    shown = made.get_template("a").render(x="*b*\n<i>")
    assert shown == r"# \*b\* &lt;i&gt; *b*"
