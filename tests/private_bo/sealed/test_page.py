"""The page on sealed studies: its files run sealed, by its commands."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from same_releases import written
from sealed_studies import write_rewards

from dpaudit.cli.main import main
from dpaudit.sealed.sandbox import lacking

PAGE = Path(__file__).parents[3] / "docs" / "sealed-studies.md"


@pytest.mark.pages
@pytest.mark.skipif(bool(lacking()), reason="nothing is sealed here")
def test_the_page_on_sealed_studies_does_what_it_says(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    text = PAGE.read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL):
        Path(name).write_text(code, "utf-8")
    rng = np.random.default_rng(0)
    users = [f"user {n}" for n in range(1, 61)]
    write_rewards(
        Path("ratings.csv"),
        {(user, point): float(rng.integers(11)) for user in users for point in range(4)},
    )
    tastes = "\n".join(f"user {n},{rng.random():.2f}" for n in range(1, 31))
    Path("users.csv").write_text(f"user,best\n{tastes}\n", "utf-8")
    arms = ((f"user {n}", *rng.uniform(-1.4, 1.4, 2).round(3), n % 2) for n in range(1, 31))
    written(Path("decisions.csv"), ["user", "x1", "x2", "reward"], arms)
    values = ((f"agent {n % 20}", n % 20, n, rng.random()) for n in range(1000))
    written(Path("agents.csv"), ["agent", "number", "point", "value"], values)
    typed = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    for line in typed.splitlines():
        with pytest.raises(SystemExit) as left:
            main(shlex.split(line, comments=True)[1:])
        assert not left.value.code, line
    for folder in ("out", "found", "chosen", "agreed"):
        made = json.loads(Path(folder, "certificate.json").read_text("utf-8"))
        assert (made["verdict"], made["scope"]) == ("certified", "sealed")
    for folder, function in (("found", "liking"), ("chosen", "choose"), ("agreed", "take_part")):
        owner = json.loads(Path(folder, "owner/owner.json").read_text("utf-8"))
        assert owner["summary"] == {f"units with the default of {function}": 0}
    assert not {"shops", "tastes", "taste"} & sys.modules.keys()  # nothing of it ran here
