"""The command that makes the reports."""

from __future__ import annotations

from pathlib import Path

from audits.papers.__main__ import main

ENTRY = """
[project]
formats = ["html", "md"]
[[subject]]
name = "{name}"
target = "private_bo.local:LDPTGPUCB"
set = {{ epsilon = 1.0, steps = 20 }}
audit = [{{ runs = 1000, seed = 3, pair = [-2.0, 2.0] }}]
"""


def project(folder: Path, name: str = "ldp-tgp-ucb") -> Path:
    path = folder / "dpaudit.toml"
    path.write_text(ENTRY.format(name=name), encoding="utf-8")
    return path


def test_an_error_writes_nothing_and_is_one_sentence(tmp_path, capsys):
    unknown = project(tmp_path, "unheard-of")
    out = tmp_path / "out"
    assert main(["--project", str(unknown), "--folder", str(out)]) == 3
    error = capsys.readouterr().err
    assert "'unheard-of' has no place among the papers" in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_the_command_names_every_verdict(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["--project", str(project(tmp_path)), "--folder", str(out)]) == 0
    assert "ldp-tgp-ucb: certified\n" in capsys.readouterr().out
