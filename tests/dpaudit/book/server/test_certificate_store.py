"""Certificates are found by hash, and by nothing else."""

from __future__ import annotations

import json

import pytest
from booking import gaussian

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.book.server.certificate_store import CertificateStore
from dpaudit.book.server.request_context import certificates_in
from dpaudit.certificate import Claim, SubjectRecord, certify


@pytest.fixture
def found():
    return certify(gaussian(), claim=Claim(9.0, 1e-6), subject=SubjectRecord("x")).to_dict()


def test_what_is_there_and_what_is_not(found, tmp_path, monkeypatch):
    monkeypatch.setattr("dpaudit.book.server.certificate_store._PAUSE", 0.0)
    shelf, digest = CertificateStore(tmp_path), found["digest"]
    for name, text in (
        ("a", "{"),
        ("b", "[]"),
        ("c", '{"digest": 3}'),
        ("d", "\xff"),
        ("e", "[" * 9999),
    ):
        (tmp_path / f"{name}.json").write_text(text, "latin-1")
    assert digest not in shelf
    (tmp_path / "deep").mkdir()
    path = tmp_path / "deep" / "x.json"
    path.write_text(files.pretty_json(found))
    assert digest in shelf
    assert shelf.certificate(digest).to_dict() == found
    path.write_text(files.pretty_json(found | {"digest": "ab" * 32}))
    with pytest.raises(InputError):
        shelf.certificate(digest)
    for wrong in ("", "ab" * 31, "../x"):
        assert wrong not in shelf
    assert digest not in CertificateStore(None)


def test_no_link_leads_out(found, tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "x.json").write_text(json.dumps(found))
    (inside / "x.json").symlink_to(outside / "x.json")
    (inside / "more").symlink_to(outside)
    assert found["digest"] not in CertificateStore(inside)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(InputError, match="it must be a folder"):
        certificates_in(tmp_path / "none")
