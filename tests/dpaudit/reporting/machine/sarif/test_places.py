"""Where a result stands."""

import pytest
from foreign_texts import NASTY
from places_in_source import assert_below_root

from dpaudit.certificate import SubjectRecord
from dpaudit.reporting.machine.sarif.renderer import location


class TestPlaces:
    SUBJECT = SubjectRecord("a.b:C", {}, None, "a/b.py:10")

    def test_a_place_in_the_code(self):
        place = location(self.SUBJECT, "a/c d.py:77")
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "a/c%20d.py"
        assert place["physicalLocation"]["region"] == {"startLine": 77}
        assert "logicalLocations" not in place

    @pytest.mark.parametrize("at", ["step 3", "c:3", "3", "step 2.5", "answer"])
    def test_a_label(self, at):
        place = location(self.SUBJECT, at)
        assert place["physicalLocation"]["region"] == {"startLine": 10}
        assert place["logicalLocations"][0]["name"] == at

    def test_a_plan_file(self):
        place = location(SubjectRecord("plans/my plan.toml"))
        assert place == {
            "physicalLocation": {
                "artifactLocation": {"uri": "plans/my%20plan.toml", "uriBaseId": "%SRCROOT%"}
            }
        }

    def test_a_file_of_a_project_is_told_below_its_repository(self, tmp_path, monkeypatch):
        project = tmp_path / "repository" / "my study"
        project.mkdir(parents=True)
        (project / "survey.py").touch()
        monkeypatch.chdir(project)

        def uri(name):
            place = location(SubjectRecord("x:Y", {}, None, f"{name}:6"))
            return place["physicalLocation"]["artifactLocation"]["uri"]

        assert uri("survey.py") == "survey.py"
        (project.parent / ".git").touch()  # a file in a further work tree
        assert uri("survey.py") == "my%20study/survey.py"
        assert uri("elsewhere.py") == "elsewhere.py"

    def test_nothing_known(self):
        assert location(SubjectRecord("vendor:Thing")) is None

    def test_line_zero_is_no_line(self):
        place = location(SubjectRecord("a:B", {}, None, "a.py:0"))
        assert "region" not in place["physicalLocation"]

    @pytest.mark.parametrize("text", NASTY)
    def test_foreign_places_stay_below_the_root(self, text):
        for place in (
            location(SubjectRecord("a:B", {}, None, text)),
            location(SubjectRecord("a:B"), text),
        ):
            if place is not None and "physicalLocation" in place:
                assert_below_root(place["physicalLocation"]["artifactLocation"]["uri"])
