"""The command that prints the catalogue."""

import json
import math

from audits.catalogue.__main__ import main


def test_the_command_prints_a_line_a_row_and_writes_the_table(tmp_path, capsys):
    path = tmp_path / "table.json"
    assert main(["--only", "half", "--json", str(path)]) == 0
    assert "Laplace, half the scale" in capsys.readouterr().out
    table = json.loads(path.read_text())
    assert {row["verdict"] for row in table["rows"]} == {"refuted"}
    assert math.isclose(table["rows"][0]["true_epsilon"], 2.0)
    assert table["found"]["hits"] == table["found"]["trials"] == len(table["rows"])
    assert table["rows_missed"] == []
    assert table["false_alarms"] == {"hits": 0, "trials": 0, "interval": [0.0, 1.0]}
    assert table["above_truth"]["hits"] == 0
    assert table["as_expected"] is True


def test_the_last_lines_are_what_the_table_says(capsys):
    assert main(["--only", "exception", "--right-seeds", "2", "--right-runs", "300"]) == 0
    found, alarms, above = capsys.readouterr().out.splitlines()[-3:]
    assert found.startswith("found: 2 of 2 (100.00 %;")
    assert found.endswith("less than 95%: none")
    assert alarms.startswith("false alarms: 0 of 2 (0.00 %;")
    assert above.startswith("lower bound above the true ε: 0 of 3 (0.00 %;")


def test_a_page_names_the_command_that_makes_it_again(tmp_path, capsys):
    path = tmp_path / "page.md"
    assert main(["--only", "half", "--seed", "3", "--markdown", str(path)]) == 0
    page = path.read_text()
    assert f"`python -m audits.catalogue --seed 3 --only half --markdown {path}`" in page
    assert "| Laplace, half the scale | (1, 0) | 2 | 3000 | " in page


def test_wrong_input_is_one_sentence(capsys):
    assert main(["--seeds", "0", "--only", "half"]) == 3
    assert "seeds is 0" in capsys.readouterr().err
