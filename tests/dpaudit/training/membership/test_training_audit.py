"""Attacks on trainings by the command line: answers, exit codes, and what code may do."""

from __future__ import annotations

import json
import shlex

import pytest

from dpaudit.certificate import load_certificate
from dpaudit.cli.main import main
from dpaudit.reporting import render_to
from dpaudit.reporting.view import view

CODE = """
import os, time
import numpy as np
def noisy(mask, rng, noise=1.0):
    return mask + rng.normal(scale=noise, size=mask.size)
def leaky(mask, rng): return 4.0 * mask + rng.normal(size=mask.size)
def dies(mask, rng): os._exit(0)
def kills(mask, rng): os.kill(os.getpid(), 9)
def hangs(mask, rng): time.sleep(60)
def eats(mask, rng): return np.ones(10**10)[: mask.size]
def shape(mask, rng): return mask[:-1] * 1.0
def nan(mask, rng): return np.where(mask, np.nan, 0.0)
def raises(mask, rng): raise ValueError("no data")
def leaves(mask, rng): raise SystemExit(0)
"""
PLAN = """
[plan]
unit = "row"
relation = "add-remove"
trust = "central"
[[invocation]]
mechanism = "gaussian"
sigma = 1.0
sensitivity = 1.0
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainings.py").write_text(CODE)
    (tmp_path / "plan.toml").write_text(PLAN)


def run(line, capsys):
    with pytest.raises(SystemExit) as left:
        main(shlex.split(f"audit trainings.py:{line}"))
    return left.value.code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("line", "code", "method"),
    [
        ("noisy --canaries 200 --epsilon 5 --delta 1e-5", 0, "one-run audit with canaries"),
        ("leaky --canaries 200 --epsilon 1 --delta 1e-5", 1, "one-run audit with canaries"),
        ("noisy --canaries 200 --epsilon 1 --arg noise=0.2", 1, "one-run audit with canaries"),
        ("noisy --canaries 200 --plan plan.toml --delta 1e-5", 0, "one-run audit with canaries"),
        ("leaky --canaries 200 --plan plan.toml --delta 1e-5", 1, "one-run audit with canaries"),
        (
            "leaky --canaries 60 --epsilon 1 --attack rmia --shadows 4 --targets 2",
            1,
            "membership inference, rmia",
        ),
    ],
)
def test_a_report_follows_from_the_command_and_repeats_it(line, code, method, capsys):
    found, out, _ = run(f"{line} --seed 1 --json -o c.json", capsys)
    answer = json.loads(out)
    assert (found, answer["method"]) == (code, method)
    certificate = load_certificate("c.json")
    assert answer["details"] == dict(certificate.audits[0].details)
    (audit,) = view(certificate).audits
    assert audit.figure is not None
    again, repeated, _ = run(f"{audit.command.split(':', 1)[1]} --json", capsys)
    assert (again, json.loads(repeated)) == (code, answer)


def test_the_answer_says_what_is_shown_and_what_is_assumed(capsys):
    code, out, _ = run("noisy --canaries 500 --epsilon 3 --delta 1e-5 --seed 1 -o c.json", capsys)
    words = " ".join(out.split())
    assert code == 0
    assert "one training with 500 canaries, seed 1" in words
    assert "attack AUC 0.7" in words
    assert words.count("only if the privacy curve is that of a Gaussian mechanism (μ-GDP)") == 2
    assert "no canary acts on another: ε ≥ 4." in words
    page = render_to(load_certificate("c.json"), "c.md").read_text("utf-8")
    assert "An attack of one training with 500 canaries does not refute the claim" in page
    assert "- Runs: one training with 500 canaries" in page
    assert "Runs on each side" not in page


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("dies", 2, "train ended its process in model 0: exit status 0; it must return."),
        ("kills", 2, "train ended its process in model 0"),
        ("hangs --timeout 0.3", 2, "train took more than 0.3 s in model 0; it may need"),
        ("eats --memory 200", 2, "train needs more than its memory in model 0"),
        ("shape", 3, "train returned 199 scores; it must give one for each of the 200 examples"),
        ("nan", 3, "scores contains NaN"),
        ("raises", 3, "train raised ValueError in model 0 at "),
        ("leaves", 3, "train raised SystemExit in model 0"),
        ("noisy --arg noise=-1", 3, "train raised ValueError"),
        ("noisy --attack guess", 3, "attack is 'guess'"),
        ("noisy --shadows 5", 3, "--shadows and --targets need an --attack"),
        ("noisy --runs 5", 3, "--runs is given with --canaries"),
        ("noisy --pair 0 1", 3, "--pair is given with --canaries"),
        ("noisy --delta 2", 3, "delta is 2"),
        ("noisy --claim 'mu = 1'", 3, "--claim is given with --epsilon"),
        ("missing", 3, "has no 'missing'"),
    ],
)
def test_whatever_code_or_words_are_wrong_is_one_sentence(line, code, words, capsys):
    found, out, err = run(f"{line} --canaries 200 --epsilon 1", capsys)
    assert (found, out) == (code, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("noisy --canaries 0 --epsilon 1", "canaries is 0; it must be an integer of at least 2"),
        ("noisy --canaries 2.5 --epsilon 1", "'2.5' is not a whole number"),
        ("noisy --canaries -3 --epsilon 1", "'-3' is below 0"),
        ("noisy --canaries 50", "--epsilon is missing"),
        ("noisy --canaries 50 --claim 'mu = 1'", "an audit with canaries tests ε and δ"),
        ("noisy --attack rmia --epsilon 1", "--attack is given without --canaries"),
    ],
)
def test_numbers_and_claims_are_checked_before_training(line, words, capsys):
    code, _, err = run(line, capsys)
    assert code == 3
    assert words in err
