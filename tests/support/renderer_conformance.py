"""The suite that every renderer inherits: a subclass names the renderer and how it is read."""

import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import report_certificates

import dpaudit
from dpaudit.base.numbers import down, plain, up
from dpaudit.certificate import Certificate
from dpaudit.reporting import Renderer, render_to
from dpaudit.reporting.text import visible
from dpaudit.reporting.view import view

_RENDERED, _SECONDS, _VIEWS = {}, {}, {}
"""By identity: the certificates live as long as the session."""

SEVERAL = ("refuted", "opaque", "certified", "hostile")
"""What is shown side by side."""

_ELSEWHERE = """
import importlib.util, pathlib, sys
from dpaudit.certificate import load_certificate
from dpaudit.reporting import render_to, suffixes
source, certificate, folder = map(pathlib.Path, sys.argv[1:4])
if source.name != "dpaudit":
    spec = importlib.util.spec_from_file_location("renderer_elsewhere", source)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
for suffix in sys.argv[4:] or suffixes():
    render_to(load_certificate(certificate), folder / f"c{suffix}")
"""


@cache
def rendered_elsewhere(source, *wanted):
    """The certified one in wanted or all formats, by a process that knows the renderers of a file.

    Whatever the time, the folder, the user, the language and the order of sets.
    """
    other = {"PYTHONHASHSEED": "42", "TZ": "Asia/Taipei", "LC_ALL": "C", "USER": "somebody"}
    other["PYTHONPATH"] = os.pathsep.join(sys.path)
    with tempfile.TemporaryDirectory() as folder:
        path = report_certificates.all_kinds()["certified"].save(Path(folder, "certificate"))
        line = [sys.executable, "-c", _ELSEWHERE, source, path, folder, *wanted]
        subprocess.run(line, check=True, cwd=folder, env=os.environ | other)
        return {file.name: file.read_bytes() for file in Path(folder).glob("c.*")}


def squeezed(text):
    """Words with single spaces."""
    return " ".join(text.split())


def leaves(value):
    """Every name and value of a JSON record, as text."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield "null" if value == "infinity" else value
    else:
        yield json.dumps(value)


def as_bytes(rendered):
    """What stands in the file."""
    return rendered if isinstance(rendered, bytes) else rendered.encode()


class RendererConformance:
    """A subclass gives the renderer and how a reader sees its output."""

    renderer: type[Renderer]

    def read(self, rendered):
        """The text that a reader sees, with single spaces."""
        raise NotImplementedError

    def number(self, value, shown):
        return shown

    def test_every_fact_appears(self, certificate):
        assert self.missing(self.rendered(certificate), certificate) == []

    def rendered(self, *certificates):
        """Once in a session: rendering takes time."""
        key = (self.renderer, *map(id, certificates))
        if key not in _RENDERED:
            _SECONDS[key], _RENDERED[key] = self.timed(*certificates)
        return _RENDERED[key]

    def timed(self, *certificates):
        """Processor time of rendering, and what was rendered."""
        start = time.process_time()
        rendered = self.renderer().render(*certificates)
        return time.process_time() - start, rendered

    def test_every_fact_of_several_appears(self, certificates):
        several = [certificates[name] for name in SEVERAL]
        rendered = self.rendered(*several)
        assert [self.missing(rendered, each) for each in several] == [[] for _ in SEVERAL]

    def missing(self, rendered, certificate):
        text = self.read(rendered).casefold()
        return [fact for fact in self.facts(certificate) if fact.casefold() not in text]

    def facts(self, certificate):
        record = certificate.to_dict()
        yield self.seen(certificate.subject.name)
        yield str(certificate.verdict)
        yield from (record["digest"], record["plan_hash"])
        if certificate.subject.code_hash:
            yield certificate.subject.code_hash
        yield self.seen(certificate.subject.location)
        yield from self.numbers_of(certificate)
        for invocation in certificate.plan.invocations:
            yield from (self.seen(invocation.at), invocation.mechanism.kind)
        yield from (str(certificate.plan.unit), str(certificate.plan.relation))
        for audit in certificate.audits:
            yield from map(self.seen, (audit.method, audit.event or "", audit.power))
            yield from (audit.verdict, str(audit.runs))
        for finding in certificate.findings:
            yield from map(self.seen, (finding.rule, finding.message, finding.remedy, finding.at))
            yield str(finding.severity)
        yield from map(self.seen, certificate.not_covered)
        for assumption in certificate.assumptions:
            yield from map(self.seen, (str(assumption.premise), assumption.evidence))
            yield str(assumption.standing)
        if certificate.rehearsal is not None:
            yield from map(self.seen, certificate.rehearsal.neighbours)
        for name, version in certificate.versions.items():
            yield from (self.seen(name), self.seen(version))
        run = certificate.run or {"summary": {}, "series": {}}
        for name in (*run["summary"], *run["series"], *certificate.subject.configuration):
            yield self.seen(name)

    def numbers_of(self, certificate):
        claim, proved = certificate.claim, certificate.guarantee
        if claim is not None:
            yield self.number(claim.epsilon, plain(claim.epsilon))
            yield self.seen(claim.source)
        if proved is not None:
            yield self.number(proved.epsilon, up(proved.epsilon))
            yield str(proved.accountant)
            yield from proved.compared
        for audit in certificate.audits:
            yield self.number(audit.epsilon_lower, down(audit.epsilon_lower))

    def seen(self, text):
        """How a text of the certificate looks in the output of :meth:`read`."""
        return squeezed(visible(text))

    def test_same_bytes_for_same_certificate(self, certificates):
        for name in ("exceeded", "hostile", "scripts"):  # "certified": in another process, below
            text = json.dumps(certificates[name].to_dict(), sort_keys=True)  # in another order
            again = Certificate.from_dict(json.loads(text))
            assert self.rendered(certificates[name]) == self.renderer().render(again), name

    def test_same_bytes_in_another_process(self, certificates):
        source = Path(inspect.getsourcefile(self.renderer))
        package = Path(dpaudit.__file__).parent
        own = package in source.parents
        files = (
            rendered_elsewhere(package) if own else rendered_elsewhere(source, self.renderer.suffix)
        )
        expected = as_bytes(self.rendered(certificates["certified"]))
        assert files[f"c{self.renderer.suffix}"] == expected

    def test_nothing_of_another_certificate_appears(self, certificates):
        self.rendered(certificates["certified"])
        text = self.read(self.renderer().render(certificates["bare"])).casefold()
        foreign = (
            *certificates["certified"].not_covered,
            *(audit.event for audit in certificates["certified"].audits),
            "B was read off the data.",
            "dearest place",
            certificates["certified"].to_dict()["digest"],
            certificates["certified"].subject.name,
        )
        assert [fact for fact in foreign if self.seen(fact).casefold() in text] == []

    def test_thousand_invocations_are_quick_and_small(self, certificates):
        """Ten times the invocations: at most twenty-five times the time, in the same process."""
        thousand, hundred = certificates["thousand"], report_certificates.many(100)
        self.rendered(certificates["bare"])  # and whatever is made once
        rendered = self.rendered(thousand)
        small = min(self.timed(hundred)[0] for _ in range(2))
        large = _SECONDS[self.renderer, id(thousand)]
        if large > 25 * small:  # something else may have run: once more
            large, _ = self.timed(thousand)
        assert large <= 25 * small
        assert len(as_bytes(rendered)) < 2_000_000

    def test_is_found_by_its_suffix(self, tmp_path, certificates):
        path = tmp_path / f"REPORT{self.renderer.suffix.upper()}"
        assert render_to(certificates["bare"], path) == path
        assert path.read_bytes() == as_bytes(self.rendered(certificates["bare"]))
        assert list(tmp_path.iterdir()) == [path]


class JsonConformance(RendererConformance):
    """Of renderers that write JSON."""

    def read(self, rendered):
        return squeezed(" ".join(leaves(json.loads(rendered))))

    def seen(self, text):
        return squeezed(text)

    def number(self, value, shown):
        return json.dumps(value).replace("Infinity", "null")


class PeopleConformance(RendererConformance):
    """What a format for people shows beyond the certificate's own fields, and follows from it."""

    def facts(self, certificate):
        yield from super().facts(certificate)
        if id(certificate) not in _VIEWS:
            _VIEWS[id(certificate)] = view(certificate)
        shown = _VIEWS[id(certificate)]
        yield from map(self.seen, (shown.headline.sentence, *shown.headline.details))
        yield from map(self.seen, (shown.statement.promise, *shown.statement.setting))
        for row in shown.statement.assumptions:
            yield from map(self.seen, (row.holds, row.fails, row.left))
        for step in () if shown.growth is None else (*shown.growth.within, *shown.growth.beyond):
            yield up(step.epsilon)
        for audit in shown.audits:
            for name, value in audit.facts:
                yield from map(self.seen, (name, value))
            yield self.seen("" if audit.figure is None else audit.figure.description)
        for checklist in shown.checklists:
            yield self.seen(checklist.title)
            for item in checklist.items:
                yield from map(self.seen, (item.title, item.rule, item.status, item.reason))

    def test_verdicts_are_told_apart_without_colour(self, certificates):
        kinds = {"certified": "certified", "opaque": "unproven", "refuted": "refuted"}
        starts = {self.read(self.rendered(certificates[kind])).casefold()[:900] for kind in kinds}
        assert len(starts) == 3
        for verdict in kinds.values():
            assert sum(verdict in start for start in starts) == 1

    def test_several_begin_with_a_table_of_verdicts(self, certificates):
        several = [certificates[kind] for kind in SEVERAL]
        text = self.read(self.rendered(*several))
        start = text[text.index(self.seen("Privacy reports")) :][:2500]
        assert self.seen("4 reports: 2 refuted, 1 unproven, 1 certified.") in start
        for certificate in several:
            assert self.seen(certificate.subject.name)[:40] in start

    def test_missing_optional_parts(self, certificates):
        text = self.read(self.rendered(certificates["bare"]))
        assert self.seen("nothing was attacked") in text
        assert self.seen("The certificate names nothing.") in text
