"""The demo: what everybody sees, and what the owner of the data sees."""

import json

from dpaudit.auditing import audit_subject
from dpaudit.certificate import load_certificate
from dpaudit.workflow import demo


def test_the_regret_is_in_the_owners_files_alone(tmp_path, monkeypatch):
    settings = [each for each in demo.DEMO_SETTINGS if not each.startswith("steps=")]
    monkeypatch.setattr(demo, "DEMO_SETTINGS", (*settings, "steps=20"))

    def audit_shortly(subject, pair, **given):
        return audit_subject(subject, pair, **given | {"runs": 500})

    monkeypatch.setattr(demo, "audit_subject", audit_shortly)
    for _ in range(2):  # the second takes the place of the first
        certificate, written = demo.run_demo(tmp_path, 1)
    assert [each.name for each in written] == [
        "ledger.jsonl",
        "certificate.json",
        "report.html",
        "owner.json",
        "for-owner.html",
    ]
    assert {each.name for each in tmp_path.iterdir()} == {each.name for each in written}
    assert load_certificate(tmp_path / "certificate.json") == certificate
    assert certificate.rehearsal is not None
    assert certificate.rehearsal.done
    assert "final regret" in json.loads((tmp_path / "owner.json").read_text())["summary"]
    for name in ("certificate.json", "report.html"):
        assert "final regret" not in (tmp_path / name).read_text()
    assert "final regret (for the owner alone)" in (tmp_path / "for-owner.html").read_text()
