"""Reports in PDF, and their fonts."""

import re
import sys
import unicodedata

import pypdfium2 as pdfium
import pytest
from effort import examples
from fontTools.ttLib import TTFont
from foreign_texts import certificates as foreign_certificates
from hypothesis import given, settings
from hypothesis import strategies as st
from renderer_conformance import SEVERAL, PeopleConformance

from dpaudit.base.errors import UnsupportedError
from dpaudit.reporting import PdfRenderer, render_to
from dpaudit.reporting.pdf import fonts
from dpaudit.reporting.text import visible

# The PDF: the suite of all renderers, every script, and nothing outside its page

RIGHT_TO_LEFT = re.compile("[\u0590-\u06ff]+")
ISOLATES = re.compile("[\u2068\u2069]")
NO_FONT = re.compile("[\U0001f300-\U0001faff\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


@pytest.fixture(autouse=True)
def no_system_fonts(monkeypatch):
    """What a test sees is the same on every machine."""
    monkeypatch.setattr(fonts, "system_fonts", tuple)


FOOTER = re.compile(r"[^\n]*\n?page \d+ of \d+\s*$")


def texts(rendered):
    """What can be selected on each page; the library marks hyphens at the ends of lines."""
    pages = [page.get_textpage().get_text_bounded() for page in pdfium.PdfDocument(rendered)]
    return [page.replace("\x02", "-").replace("\r", "") for page in pages]


def joined(text):
    """Without spaces, as lines are broken anywhere; joined forms as plain letters."""
    plain = "".join(unicodedata.normalize("NFKC", ISOLATES.sub("", text)).split())
    plain = plain.replace("\u0644\u0627", "\u0627\u0644")  # one glyph, read in either order
    return NO_FONT.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", plain)


class TestPdf(PeopleConformance):
    renderer = PdfRenderer

    def read(self, rendered):
        return joined("".join(FOOTER.sub("", page) for page in texts(rendered)))

    def seen(self, text):
        return joined(visible(text))

    def facts(self, certificate):
        return (fact.replace("e^ε", "eε") for fact in super().facts(certificate))

    def missing(self, rendered, certificate):
        """Words from right to left are read in the order of their line."""
        text = self.read(rendered).casefold()
        absent = []
        for fact in map(joined, map(str.casefold, self.facts(certificate))):
            words = RIGHT_TO_LEFT.findall(fact)
            if words and all(word in text for word in words):
                continue
            if fact not in text:
                absent.append(fact)
        return absent

    @pytest.mark.parametrize("kind", ["hostile", "scripts", "bare", "thousand"])
    def test_nothing_runs_out_of_the_page(self, certificates, kind):
        """The margins are white, and so is the paper below the footer."""
        document = pdfium.PdfDocument(self.rendered(certificates[kind]))
        assert len(document) >= 3
        for number in range(min(len(document), 4)):
            page = document[number].render(scale=0.5, grayscale=True).to_numpy().squeeze()
            height, width = page.shape
            assert (page[:, :24] > 250).all()
            assert (page[:, width - 24 :] > 250).all()
            assert (page[:24] > 250).all()
            assert (page[height - 14 :] > 250).all()
            assert (page < 128).any()

    def test_all_fonts_are_embedded(self, certificates):
        rendered = self.rendered(certificates["scripts"])
        described = re.findall(rb"<</Type/FontDescriptor.*?>>\nendobj", rendered, re.DOTALL)
        assert len(described) >= 5
        assert all(b"/FontFile" in each for each in described)
        fonts = re.findall(rb"<</Type/Font/Subtype/CID.*?>>\nendobj", rendered, re.DOTALL)
        assert len(fonts) == len(described)

    def test_is_tagged_for_screen_readers(self, certificates):
        rendered = self.rendered(certificates["certified"])
        assert b"/Marked true" in rendered
        assert b"<pdfuaid:part>1</pdfuaid:part>" in rendered
        figures = re.findall(rb"/S/Figure.*?endobj", rendered, re.DOTALL)
        assert len(figures) == 5
        assert all(b"/Alt" in figure for figure in figures)
        assert rendered.count(b"/S/TH") > 20

    @pytest.mark.parametrize("kind", ["hostile", "scripts"])
    def test_nothing_that_runs(self, certificates, kind):
        rendered = self.rendered(certificates[kind])
        assert b"/Type/Page" in rendered  # dictionaries can be read as they stand
        runs = rb"/(JavaScript|JS|Launch|URI|EmbeddedFile|OpenAction|GoToR|SubmitForm)\b"
        assert re.findall(runs, rendered) == []

    def test_bookmarks_and_title(self, certificates):
        document = pdfium.PdfDocument(self.rendered(certificates["refuted"]))
        assert document.get_metadata_value("Title") == "Refuted: shop.local:Market"
        marks = [(mark.level, mark.get_title()) for mark in document.get_toc()]
        assert marks[0] == (0, "Privacy report of shop.local:Market")
        assert marks[1:3] == [(1, "What is proved"), (1, "Composition over time")]
        assert marks[-1] == (1, "Signature")

    def test_several_have_a_bookmark_each(self, certificates):
        several = [certificates[kind] for kind in SEVERAL]
        document = pdfium.PdfDocument(self.rendered(*several))
        marks = [(mark.level, joined(mark.get_title())) for mark in document.get_toc()]
        titles = [joined(visible(f"Privacy report of {one.subject.name}")) for one in several]
        assert [title for level, title in marks if level == 0] == [joined("Privacy reports")]
        assert [title for level, title in marks if title in titles] == titles

    def test_pages_have_numbers_and_the_name_of_their_report(self, certificates):
        several = [certificates[kind] for kind in SEVERAL]
        pages = texts(self.rendered(*several))
        for number, page in enumerate(pages, 1):
            assert f"page {number} of {len(pages)}" in page
        assert "Privacy reports: 4 reports" in pages[0]
        digests = [certificate.to_dict()["digest"][:16] for certificate in several]
        named = [[f"certificate {digest}…" in page for digest in digests] for page in pages[1:]]
        assert sorted(named, reverse=True) == named
        assert all(sum(each) == 1 for each in named)

    def test_first_page_holds_verdict_claim_and_guarantee(self, certificates):
        first = joined(texts(self.rendered(certificates["certified"]))[0])
        for text in ("✓ Certified", "to at most 69.7 %.", "theorem 2", "Accountant: pure"):
            assert joined(text) in first

    @pytest.mark.parametrize("kind", ["certified", "refuted", "scripts"])
    def test_no_page_but_the_last_is_left_half_empty(self, certificates, kind):
        document = pdfium.PdfDocument(self.rendered(certificates[kind]))
        for number in range(len(document) - 1):
            page = document[number].render(scale=0.5, grayscale=True).to_numpy().squeeze()
            body = page[: int(0.92 * len(page))]  # without the footer
            last = (body < 250).any(axis=1).nonzero()[0].max()
            assert last > 0.7 * len(body), number

    def test_folded_text_stands_there_once(self, certificates):
        """A page folds away what is long; paper cannot."""
        text = joined("".join(texts(self.rendered(certificates["exceeded"]))))
        assert text.count("step0,step2,step4,step6,step8,step10") == 1
        assert "alike" not in text

    @given(foreign_certificates())
    @settings(max_examples=examples(4, 100), deadline=None)
    def test_any_text_can_be_set(self, certificate):
        assert PdfRenderer().render(certificate).startswith(b"%PDF-")


@pytest.mark.parametrize("package", ["typst", "fontpkg"])
def test_without_the_extra_one_sentence_names_it(certificates, monkeypatch, tmp_path, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        UnsupportedError, match=rf"needs {package}, .*pip install 'dpaudit\[pdf\]'\.$"
    ):
        render_to(certificates["bare"], tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []
    render_to(certificates["bare"], tmp_path / "a.html")


# Fonts of a PDF, and what is written out for want of one

SCRIPTS = {
    "DejaVu Sans": "Straße ραβ Ж עברית العربية ✓ ∈ ≤ ε′ ⟨",
    "Noto Sans Devanagari": "सर्वेक्षण",
    "Noto Sans Thai": "การสำรวจ",
}


@pytest.mark.parametrize(("family", "text"), SCRIPTS.items())
def test_each_script_has_its_font(family, text):
    families = fonts.fonts_for(text)
    known = {font.family: font.characters() for font in families}
    assert {ord(character) for character in text if character != " "} <= known[family]
    assert fonts.spelled_out(text, families) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\U0001fae8b", "a⟨U+1FAE8⟩b"),
        ("\uffff", "⟨U+FFFF⟩"),
        ("\u0bb5", "⟨U+0BB5⟩"),  # Tamil
        ("大", "⟨U+5927⟩"),
        ("\u0915\u0301", "क⟨U+0301⟩"),  # a mark of another font
        ("e\u0301", "e\u0301"),
        ("\u0915\u0947", "\u0915\u0947"),
        (" \n\t", " \n\t"),
    ],
)
def test_what_no_font_shows_is_written_out(text, shown):
    assert fonts.spelled_out(text, fonts.packaged_fonts()) == shown


@pytest.fixture(scope="module")
def glyphs():
    """Code points with a glyph, as the files of the fonts say."""
    known = set()
    for font in fonts.packaged_fonts():
        own = []
        for file in font.files:
            with TTFont(file) as opened:
                own.append({code for table in opened["cmap"].tables for code in table.cmap})
        known |= set.intersection(*own)
    return known


@settings(deadline=None)
@given(text=st.text())
def test_every_character_that_is_left_has_a_glyph(glyphs, text):
    for character in fonts.spelled_out(text, fonts.packaged_fonts()):
        assert ord(character) in glyphs or character.isspace()


def test_nothing_is_left_out():
    text = "ε \U0001fae8 大 \u0301"
    spelled = fonts.spelled_out(text, fonts.packaged_fonts())
    for character in text:
        assert character in spelled or f"⟨U+{ord(character):04X}⟩" in spelled


def test_order_is_fixed():
    families = [font.family for font in fonts.packaged_fonts()]
    assert families[0] == "DejaVu Sans"
    assert families[1:] == sorted(families[1:])
    assert all(file.is_file() for font in fonts.packaged_fonts() for file in font.files)


def test_a_font_of_the_system_has_the_letters_that_packages_lack(monkeypatch):
    thai = next(font for font in fonts.packaged_fonts() if font.family == "Noto Sans Thai")
    others = tuple(font for font in fonts.packaged_fonts() if font != thai)
    monkeypatch.setattr(fonts, "packaged_fonts", lambda: others)
    monkeypatch.setattr(fonts, "system_fonts", lambda: (others[0], thai))
    assert fonts.fonts_for("ε, ไทย") == (*others, thai)
    assert fonts.fonts_for("ε") == others


def test_fonts_of_the_system_are_upright_and_each_family_is_named_once(monkeypatch):
    monkeypatch.undo()
    families = [font.family for font in fonts.system_fonts()]
    assert families == sorted(set(families))
    assert not any(word in name for name in families for word in ("Bold", "Italic", "Last Resort"))
