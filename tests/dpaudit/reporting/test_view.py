"""The one picture of what a report says."""

from dataclasses import replace

from dpaudit.interchange.dp_accounting import second_opinion
from dpaudit.reporting.view import view, views


def test_every_audit_is_there(certificate):
    shown = view(certificate)
    assert [audit.record for audit in shown.audits] == list(certificate.audits)


def test_digest_is_that_of_the_record(certificate):
    assert view(certificate).record["digest"] == certificate.to_dict()["digest"]


def test_what_is_drawn_is_not_listed_as_a_fact(certificates):
    (audit,) = view(certificates["scripts"]).audits
    assert audit.figure is not None
    assert not any(name.startswith("roc") for name, _ in audit.facts)


def test_a_run_may_be_missing(certificates):
    shown = view(replace(certificates["certified"], run=None))
    assert (shown.summary, shown.series, shown.series_rows) == ((), (), ())


def test_growth_is_drawn_where_it_is_finite(certificate):
    shown = view(certificate)
    assert (shown.growth is None) == (shown.growth_figure is None)


def test_an_opinion_is_shown_where_it_was_asked_for(certificates):
    several = (certificates["certified"], certificates["bare"])
    assert [shown.opinion for shown in views(several)] == [None, None]
    asked = [second_opinion(each) for each in several]
    assert [shown.opinion for shown in views(several, asked)] == [each.reason for each in asked]
