"""The command that prints the catalogue."""

import json
import math

from audits.catalogue.__main__ import main


def test_the_command_prints_a_line_a_row_and_writes_the_table(tmp_path, capsys):
    path = tmp_path / "table.json"
    assert main(["--only", "half", "--json", str(path)]) == 0
    assert "Laplace, half the scale" in capsys.readouterr().out
    table = json.loads(path.read_text())
    assert [row["verdict"] for row in table["rows"]] == ["refuted", "refuted"]
    assert math.isclose(table["rows"][0]["true_epsilon"], 2.0)
    assert table["false_alarms"] == {"refuted": 0, "audits": 0}
    assert table["as_expected"] is True


def test_wrong_input_is_one_sentence(capsys):
    assert main(["--seeds", "0", "--only", "half"]) == 3
    assert "seeds is 0" in capsys.readouterr().err
