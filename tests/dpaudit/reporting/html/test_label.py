"""The label for the people whose data it is."""

import pytest
from report_certificates import all_kinds

from dpaudit import UnsupportedError
from dpaudit.reporting import render_to, renderer_for


@pytest.mark.parametrize("kind", sorted(all_kinds()))
def test_every_certificate_has_one_in_words(kind, tmp_path):
    certificate = all_kinds()[kind]
    text = render_to(certificate, tmp_path / "of.label.html").read_text("utf-8")
    assert certificate.to_dict()["digest"] in text
    assert "<script" not in text
    for name in ("Who is protected", "Against whom", "What is not promised"):
        assert f"<dt>{name}</dt>" in text
    refuted = str(certificate.verdict) == "refuted"
    assert ("at least one refutes it" in text) == (refuted and bool(certificate.audits))


def test_it_is_of_one_certificate():
    several = list(all_kinds().values())[:2]
    with pytest.raises(UnsupportedError, match="a label is of one"):
        renderer_for("x.label.html").render(*several)
