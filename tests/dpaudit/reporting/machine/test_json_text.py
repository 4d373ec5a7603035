"""JSON: the suite of all renderers, and the certificate reads back."""

import json

from renderer_conformance import RendererConformance, leaves, squeezed

from dpaudit.certificate import load_certificate
from dpaudit.reporting import JsonRenderer, render_to


class TestJson(RendererConformance):
    renderer = JsonRenderer

    def read(self, rendered):
        return squeezed(" ".join(leaves(json.loads(rendered))))

    def seen(self, text):
        return squeezed(text)

    def number(self, value, shown):
        return json.dumps(value).replace("Infinity", "null")

    def test_several_are_an_array(self, certificates):
        kinds = ("bare", "refuted")
        records = json.loads(JsonRenderer().render(*(certificates[kind] for kind in kinds)))
        assert records == [json.loads(JsonRenderer().render(certificates[kind])) for kind in kinds]

    def test_reads_back(self, certificates, tmp_path):
        path = render_to(certificates["exceeded"], tmp_path / "again.json")
        assert load_certificate(path) == certificates["exceeded"]
        saved = certificates["exceeded"].save(tmp_path / "saved.json")
        assert saved.read_bytes() == path.read_bytes()
