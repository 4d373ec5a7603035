"""Fonts of a PDF, and what is written out for want of one."""

import shutil

import pytest
from fontTools.ttLib import TTFont
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.reporting.pdf import fonts

SCRIPTS = {
    "DejaVu Sans": "Straße ραβ Ж עברית العربية ✓ ∈ ≤ ε′ ⟨",
    "Noto Sans Devanagari": "सर्वेक्षण",
    "Noto Sans Thai": "การสำรวจ",
}


@pytest.mark.parametrize(("family", "text"), SCRIPTS.items())
def test_each_script_has_its_font(family, text):
    shown = {fonts._first_fonts()[ord(character)] for character in text if character != " "}
    assert shown == {family}
    assert fonts.spelled_out(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\U0001fae8b", "a⟨U+1FAE8⟩b"),
        ("\uffff", "⟨U+FFFF⟩"),
        ("\u0bb5", "⟨U+0BB5⟩"),  # Tamil
        ("\u0915\u0301", "क⟨U+0301⟩"),  # a mark of another font
        ("e\u0301", "e\u0301"),
        ("\u0915\u0947", "\u0915\u0947"),
        (" \n\t", " \n\t"),
    ],
)
def test_what_no_font_shows_is_written_out(text, shown):
    assert fonts.spelled_out(text) == shown


@pytest.fixture(scope="module")
def glyphs():
    """Code points with a glyph, as the files of the fonts say."""
    known = set()
    for font in fonts.fonts():
        own = []
        for file in font.files:
            with TTFont(file) as opened:
                own.append({code for table in opened["cmap"].tables for code in table.cmap})
        known |= set.intersection(*own)
    return known


@settings(deadline=None)
@given(text=st.text())
def test_every_character_that_is_left_has_a_glyph(glyphs, text):
    for character in fonts.spelled_out(text):
        assert ord(character) in glyphs or character.isspace()


def test_nothing_is_left_out():
    text = "ε \U0001fae8 大 \u0301"
    spelled = fonts.spelled_out(text)
    for character in text:
        assert character in spelled or f"⟨U+{ord(character):04X}⟩" in spelled


def test_order_is_fixed():
    families = [font.family for font in fonts.fonts()]
    packaged = families[1 : len(families) - len(list(fonts._system_fonts()))]
    assert families[0] == "DejaVu Sans"
    assert packaged == sorted(packaged)
    assert all(file.is_file() for font in fonts.fonts() for file in font.files)


def test_east_asian_fonts_are_those_of_the_system(tmp_path, monkeypatch):
    thai = next(font for font in fonts.fonts() if font.family == "Noto Sans Thai").files[0]
    names = ("NotoSansCJK-Bold.ttf", "NotoSansCJK-Regular.ttf", "malgun.ttf", "Other.ttf")
    files = [shutil.copy(thai, tmp_path / name) for name in names]
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: map(str, files))
    found = [(font.family, font.files[0].name) for font in fonts._system_fonts()]
    assert found == [("Noto Sans Thai", names[1]), ("Noto Sans Thai", names[2])]
