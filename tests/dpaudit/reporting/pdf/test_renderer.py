"""The PDF: the suite of all renderers, every script, and nothing outside its page."""

import io
import re
import shutil
import subprocess
import unicodedata

import numpy as np
import pytest
from PIL import Image
from pypdf import PdfReader
from renderer_conformance import PeopleConformance

from dpaudit.reporting import PdfRenderer, render_to
from dpaudit.reporting.pdf.bidi import visual
from dpaudit.reporting.pdf.text import marked
from dpaudit.reporting.text import visible

RIGHT_TO_LEFT = re.compile("[\u0590-\u06ff]+")
NO_FONT = re.compile("[\u0900-\u097f\U0001f300-\U0001faff]")


def pages(rendered):
    return PdfReader(io.BytesIO(rendered)).pages


def joined(text):
    """Without spaces, as lines are broken anywhere; joined forms as plain letters."""
    plain = "".join(unicodedata.normalize("NFKC", text).split())
    return NO_FONT.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", plain)


class TestPdf(PeopleConformance):
    renderer = PdfRenderer

    def read(self, rendered):
        return joined("".join(_without_footer(page.extract_text()) for page in pages(rendered)))

    def seen(self, text):
        return joined(visible(text))

    def missing(self, rendered, certificate):
        """Words from right to left may stand in either order of their letters."""
        text = self.read(rendered).casefold()
        absent = []
        for fact in map(joined, map(str.casefold, self.facts(certificate))):
            words = RIGHT_TO_LEFT.findall(fact)
            if words and all(word in text or word[::-1] in text for word in words):
                continue
            if fact not in text:
                absent.append(fact)
        return absent

    @pytest.mark.skipif(shutil.which("pdftoppm") is None, reason="pdftoppm is not installed")
    @pytest.mark.parametrize("kind", ["hostile", "scripts", "bare", "thousand"])
    def test_nothing_runs_out_of_the_page(self, certificates, kind, tmp_path):
        """The margins are white, and so is the paper between text and footer."""
        path = render_to(certificates[kind], tmp_path / "report.pdf")
        line = ["pdftoppm", "-r", "36", "-gray", "-l", "4", str(path), str(tmp_path / "page")]
        subprocess.run(line, check=True, capture_output=True)
        images = sorted(tmp_path.glob("*.pgm"))
        assert len(images) >= 3
        for image in images:
            page = np.asarray(Image.open(image))
            height, width = page.shape
            assert (page[:, :24] > 250).all()
            assert (page[:, width - 24 :] > 250).all()
            assert (page[:24] > 250).all()
            assert (page[height - 14 :] > 250).all()
            assert (page < 128).any()

    def test_all_text_is_in_embedded_fonts(self, certificates):
        """Graphics set Helvetica before they set their own font; nothing is written in it."""
        for page in pages(self.rendered(certificates["scripts"])):
            content = page.get_contents().get_data()
            for tag, font in page["/Resources"]["/Font"].items():
                kind = font.get_object()
                if kind["/BaseFont"] == "/Helvetica":
                    uses = re.findall(rb"%s \d+ Tf (.{9})" % tag.encode(), content)
                    assert set(uses) <= {b"12 TL ET\n"}
                else:
                    assert "/FontFile2" in kind["/FontDescriptor"]

    @pytest.mark.parametrize("kind", ["hostile", "scripts"])
    def test_nothing_that_runs(self, certificates, kind):
        reader = PdfReader(io.BytesIO(self.rendered(certificates[kind])))
        names = {
            name for number in range(1, len(reader.xref[0]) + 1) for name in _names(reader, number)
        }
        assert "/Font" in names
        assert not names & {"/JavaScript", "/JS", "/Launch", "/URI", "/EmbeddedFile", "/OpenAction"}

    def test_bookmarks_and_title(self, certificates):
        reader = PdfReader(io.BytesIO(self.rendered(certificates["refuted"])))
        assert reader.metadata.title == "Refuted: shop.local:Market"
        top, below = reader.outline
        assert top.title == "Privacy report of shop.local:Market"
        assert [entry.title for entry in below][:2] == ["What is proved", "Composition over time"]

    def test_page_numbers(self, certificates):
        several = pages(PdfRenderer().render(certificates["bare"], certificates["refuted"]))
        for number, page in enumerate(several, 1):
            assert f"page {number} of {len(several)}" in page.extract_text()

    def test_first_page_holds_verdict_claim_and_guarantee(self, certificates):
        first = joined(pages(self.rendered(certificates["certified"]))[0].extract_text())
        for text in ("✓ Certified", "to at most 73.2 %.", "theorem 2", "Accountant: pure"):
            assert joined(text) in first


def _names(reader, number):
    """All names in an object of the file."""
    left = [reader.get_object(number)]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield from value
            left += value.values()
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str):
            yield value


def _without_footer(text):
    """A footer is drawn first, and its page number last."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.rstrip().endswith(("…", "certified.")))
    return "\n".join(line for line in lines[start + 1 :] if not re.match(r"page \d+ of \d+$", line))


@pytest.mark.parametrize(
    ("logical", "drawn"),
    [
        ("plain text (1)", "plain text (1)"),
        ("ab \u05d0\u05d1\u05d2 cd", "ab \u05d2\u05d1\u05d0 cd"),
        ("\u05d0\u05d1 123, 456", "456 ,123 \u05d1\u05d0"),
        ("\u05d0\u05d1 3.5%", "3.5% \u05d1\u05d0"),
        ("a (\u05d0\u05d1) b", "a (\u05d1\u05d0) b"),
        ("\u05d0 (b) \u05d2", "\u05d2 (b) \u05d0"),
        ("\u05d0\u05d1: x", "x :\u05d1\u05d0"),
    ],
)
def test_order_of_drawing(logical, drawn):
    """By hand, from the rules of UAX #9."""
    assert visual(logical) == drawn


def test_arabic_letters_are_joined():
    """Seen initial, lam with alef final, meem isolated; drawn from the left."""
    assert visual("\u0633\u0644\u0627\u0645") == "\ufee1\ufefc\ufeb3"
    assert visual("\u0628\u200c\u0628") == "\ufe8f\ufe8f"
    assert visual("\u0628\u0628\u0628") == "\ufe90\ufe92\ufe91"


def test_marks_stay_on_their_letters():
    assert visual("\u05d1\u05bc\u05d0") == "\u05d0\u05d1\u05bc"


@pytest.mark.parametrize(
    ("text", "font"),
    [
        ("大安", "dpaudit-han"),
        ("们", "dpaudit-han"),
        ("い", "dpaudit-han"),
        ("여", "dpaudit-hangul"),
    ],
)
def test_each_script_has_its_font(text, font):
    assert f'<font name="{font}">' in marked(text)


def test_markup_is_text():
    assert marked("<b>&amp;</b>") == "&lt;b&gt;&amp;amp;&lt;/b&gt;"
