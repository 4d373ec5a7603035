"""Rows and commands."""

import math
import shlex
from dataclasses import replace

import pytest

from dpaudit import Claim, Severity
from dpaudit.project.targets import parse_settings
from dpaudit.reporting.figures.privacy import figures
from dpaudit.reporting.figures.runs import series_figures
from dpaudit.reporting.html import svg
from dpaudit.reporting.wording.tables import (
    commands,
    compared_rows,
    invocation_rows,
    replay_command,
    series_rows,
    sorted_findings,
)


def test_invocations_that_differ_in_label_alone_share_a_row(certificates):
    rows = invocation_rows(certificates["exceeded"].plan)
    assert [len(row.labels) for row in rows] == [6, 6]
    assert rows[0].labels[:2] == ("step 0", "step 2")
    assert rows[0].sampling == "poisson: rate = 0.5"
    assert rows[1].parameters == "sigma = 5"
    assert len(invocation_rows(certificates["thousand"].plan)) == 1000


def test_findings_worst_first(certificates):
    found = [f.severity for f in sorted_findings(certificates["refuted"].findings)]
    assert found == [
        Severity.ERROR,
        Severity.ERROR,
        Severity.WARNING,
        Severity.WARNING,
        Severity.NOTE,
    ]


def test_compared_least_first_and_one_chosen(certificates):
    rows = compared_rows(certificates["exceeded"])
    epsilons = [float(row.epsilon.replace("∞", "inf")) for row in rows]
    assert epsilons == sorted(epsilons)
    assert sum(row.chosen for row in rows) == 1
    assert compared_rows(certificates["opaque"]) == ()


def test_command_reads_back_to_the_same_configuration(certificates):
    certificate = certificates["certified"]
    line = shlex.split(commands(certificate)[0])
    assert line[:3] == ["dpaudit", "certify", certificate.subject.name]
    given = [line[i + 1] for i, part in enumerate(line) if part == "--set"]
    plain = {k: v for k, v in certificate.subject.configuration.items() if k != "kernel"}
    assert parse_settings(given) == plain


def test_command_quotes_hostile_text(certificates, hostile_text):
    assert shlex.split(commands(certificates["hostile"])[0])[2] == hostile_text


def test_replay(certificates):
    certificate = certificates["certified"]
    line = shlex.split(replay_command(certificate, certificate.audits[0]))
    assert line[3:6] == ["--pair", "[0.0]", "[1.0]"]
    assert line[line.index("--runs") + 1] == "123457"
    assert line[line.index("--seed") + 1] == "77"
    huge = replace(certificate.audits[0], pair=[list(range(1000)), []])
    assert replay_command(certificate, huge) is None
    assert replay_command(certificate, replace(huge, pair="unknown")) is None
    assert replay_command(certificate, replace(huge, pair={"row": 0, "move": [1.0]})) is None


def test_series(certificates):
    series = certificates["certified"].run["series"]
    rows = {row.name: row for row in series_rows(series)}
    assert rows["empty"].rounds == 0
    assert (rows["simple regret"].first, rows["simple regret"].least) == ("1", "0.000333333")
    drawn = series_figures(series)
    assert [[key.label for key in figure.legend] for figure in drawn] == [
        ["cumulative regret", "without privacy"],
        ["simple regret"],
    ]
    assert "cumulative regret ends at 3000" in drawn[0].description


def test_long_series_are_thinned():
    (figure,) = series_figures({"noise": [float(i * 7919 % 1000) for i in range(100_000)]})
    assert len(svg.markup(figure.plot, figure.name)) < 40_000


def test_figures_show_claim_proof_and_attack(certificates):
    curve, trade_off = figures(certificates["refuted"])
    labels = [key.label for key in curve.legend]
    assert any("guarantee: ε = 1, δ = 0" in label for label in labels)
    assert any("claim" in label for label in labels)
    assert any("attacked" in label for label in labels)
    assert "the strongest attack shows ε ≥ 1.93456" in curve.description
    assert "right at most 69.7 % of the time" in trade_off.description


def test_no_figures_where_nothing_is_known(certificates):
    assert figures(certificates["opaque"]) == ()
    assert figures(replace(certificates["unbounded"], claim=Claim(1.0))) == ()


@pytest.mark.parametrize(
    "values",
    [[1e308, -1e308], [1e308] * 3, [0.0, 1e308, 5e-324], [-1e308], [math.inf, 1.0], [1e-310, 0.0]],
)
def test_extreme_series_are_drawn_in_silence(values):
    (figure,) = series_figures({"regret": values})
    assert "<svg" in svg.markup(figure.plot, figure.name)
    assert ("Values beyond" in figure.description) == (max(map(abs, values)) > 1e100)
