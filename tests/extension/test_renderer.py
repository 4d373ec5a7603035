"""A new renderer is one class: it is found by its ending, and inherits the suite of all."""

import csv
import io
import math

from renderer_conformance import RendererConformance, squeezed

from dpaudit.reporting import Renderer, render_to
from dpaudit.reporting.machine.junit import leaves
from dpaudit.reporting.text import visible


class CsvRenderer(Renderer):
    """One line for every value of a certificate: its number, the path of the value, the value."""

    name = "csv"
    suffix = ".csv"

    def render(self, *certificates):
        lines = io.StringIO(newline="")
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(("certificate", "path", "value"))
        for number, certificate in enumerate(certificates, 1):
            for path, value in leaves(certificate.to_dict()):
                writer.writerow((number, visible(path), visible(value)))
        return lines.getvalue()


class TestCsv(RendererConformance):
    renderer = CsvRenderer

    def read(self, rendered):
        rows = csv.reader(io.StringIO(rendered, newline=""))
        return squeezed(" ".join(cell for row in rows for cell in row))

    def number(self, value, shown):
        return "null" if value == math.inf else repr(value)


def test_ending_chooses_it(certificates, tmp_path):
    path = render_to(certificates["bare"], tmp_path / "x.csv")
    assert path.read_text("utf-8").splitlines()[0] == "certificate,path,value"
    assert "1,verdict,certified" in path.read_text("utf-8")
