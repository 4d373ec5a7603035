"""Every subject has its place among the papers."""

from __future__ import annotations

from audits.papers.entries import PAPERS
from audits.papers.generating import PROJECT
from dpaudit.project.project_file import read_project_file
from dpaudit.reporting import suffixes

LISTED = {entry.name: entry for entry in read_project_file(PROJECT, suffixes()).subjects}


def test_every_subject_has_its_place_among_the_papers_and_the_other_way_round():
    places = [name for paper in PAPERS for name in paper.algorithms]
    assert sorted(places) == sorted(LISTED)
