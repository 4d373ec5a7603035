"""Jobs of GitHub Actions, step by step: what ``run`` steps do, and what the others are given.

No step leaves the machine. A step that ``uses`` an action is listed with its arguments, not run.
In place of pip stands a command that looks whether what it would install is what is installed: for
dpaudit also from where. A ``run`` step gets the shell, the environment and the files of GitHub, as
https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax describes them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

SHELLS = {None: ("bash", "-e"), "bash": ("bash", "--noprofile", "--norc", "-eo", "pipefail")}
_TOKEN = re.compile(r"'[^']*'|&&|\|\||==|!=|!|[()]|\w+\(\)|[A-Za-z_][\w.-]*|\s+")
_OPERATORS = {"&&": " and ", "||": " or ", "!": " not "}


@dataclass(frozen=True)
class Step:
    """One step that was not skipped."""

    name: str
    code: int = 0
    said: str = ""
    given: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Job:
    """A job on a machine whose workspace is a folder.

    Attributes:
        workspace: where steps run.
        temp: an empty folder of the machine's own.
        contexts: what expressions may name: ``github``, ``inputs`` and others.
        done: the steps that were not skipped, in their order.
        failed: whether one of them failed.
    """

    workspace: Path
    temp: Path
    contexts: dict[str, Any]
    environment: Mapping[str, str] = field(default_factory=dict)
    done: list[Step] = field(default_factory=list)
    failed: bool = False

    def __post_init__(self) -> None:
        (self.temp / "bin").mkdir(parents=True)
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            (self.temp / name).touch()
        self.contexts["github"]["workspace"] = str(self.workspace)
        self.contexts |= {"runner": {"temp": str(self.temp)}, "steps": {}}
        self.contexts |= {"strategy": {"job-index": "0"}}
        self._command("pip", "")
        self._command("python", '[ "$1 $2" = "-m pip" ] || exec "$PYTHON" "$@"; shift 2')

    def _command(self, name: str, before: str) -> None:
        path = self.temp / "bin" / name
        path.write_text(f'#!/bin/bash\n{before}\nexec "$PYTHON" {shlex.quote(__file__)} "$@"\n')
        path.chmod(0o755)

    @property
    def summary(self) -> str:
        """What is shown on the page of the run."""
        return (self.temp / "GITHUB_STEP_SUMMARY").read_text("utf-8")

    @property
    def by_name(self) -> dict[str, Step]:
        """The steps by name, or else by the action or the first line of what they run."""
        return {step.name: step for step in self.done}

    def perform(self, steps: Sequence[Mapping[str, Any]], env: Mapping[str, str]) -> Job:
        """All steps, one after the other."""
        self.contexts["env"] = {name: self.filled(text) for name, text in env.items()}
        for step in steps:
            if self._is_due(str(step.get("if", "success()"))):
                made = self._run(step) if "run" in step else self._listed(step)
                self.done.append(made)
                self.failed |= made.code != 0 and not step.get("continue-on-error", False)
        return self

    def _is_due(self, condition: str) -> bool:
        """A condition that asks nothing of the steps before wants them to have succeeded."""
        condition = condition.removeprefix("${{").removesuffix("}}")
        asks = re.search(r"(always|cancelled|failure|success)\(\)", condition)
        return bool(self.value(condition)) and (asks is not None or not self.failed)

    def _listed(self, step: Mapping[str, Any]) -> Step:
        given = {key: self.filled(str(value)) for key, value in step.get("with", {}).items()}
        return Step(step.get("name", step["uses"]), given=given)

    def _run(self, step: Mapping[str, Any]) -> Step:
        own = {key: self.filled(str(text)) for key, text in step.get("env", {}).items()}
        output = self.temp / "GITHUB_OUTPUT"
        output.write_text("")
        script = self.temp / "script.sh"
        script.write_text(self.filled(step["run"]), "utf-8")
        done = subprocess.run(
            [*SHELLS[step.get("shell")], str(script)],
            cwd=self.workspace,
            env=self._surroundings() | own,
            capture_output=True,
            text=True,
            timeout=300,
        )
        lines = output.read_text("utf-8").splitlines()
        if "id" in step:
            outputs = dict(line.split("=", 1) for line in lines)
            self.contexts["steps"][step["id"]] = {"outputs": outputs}
        name = step.get("name", step["run"].splitlines()[0])
        return Step(name, done.returncode, done.stdout + done.stderr)

    def _surroundings(self) -> dict[str, str]:
        path = [str(self.temp / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        files = {name: str(self.temp / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        known = self.contexts["github"].items()
        facts = {f"GITHUB_{key.upper()}": text for key, text in known if isinstance(text, str)}
        return {
            **os.environ, **self.environment, **self.contexts["env"], **facts, **files,
            "RUNNER_TEMP": str(self.temp), "PATH": os.pathsep.join(path), "CI": "true",
            "PYTHON": sys.executable,
        }  # fmt: skip

    def filled(self, text: str) -> str:
        """A text with the values of its expressions."""
        return re.sub(r"\$\{\{(.*?)\}\}", lambda found: str(self.value(found[1])), text)

    def value(self, expression: str) -> Any:
        """The value of an expression; what nobody has set is empty."""
        tokens = _TOKEN.findall(expression)
        assert "".join(tokens) == expression, f"not understood: {expression}"
        return eval("".join(map(self._python, tokens)).strip())

    def _python(self, token: str) -> str:
        status = {"always": True, "cancelled": False, "failure": self.failed}
        status["success"] = not self.failed
        if token.endswith("()"):
            return repr(status[token.removesuffix("()")])
        if not token[0].isalpha():
            return _OPERATORS.get(token, token)
        value: Any = self.contexts
        for part in token.split("."):
            value = value.get(part, "") if isinstance(value, Mapping) else ""
        return repr(value)


def jobs(path: Path) -> Mapping[str, Any]:
    """The jobs of a workflow by name."""
    found: Mapping[str, Any] = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    return found


def main(words: Sequence[str]) -> None:
    """In place of pip: refuse whatever is not installed already."""
    assert words[0] == "install", f"pip {shlex.join(words)} is not known here"
    wanted: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in ("-r", "-c"):
            lines = Path(next(rest)).read_text("utf-8").splitlines()
            wanted += [line for line in lines if word == "-r" and line and line[0] != "#"]
        else:
            wanted.append(word)
    for each in wanted:
        _require_installed(each)


def _require_installed(wanted: str) -> None:
    own = metadata.distribution("dpaudit")
    origin = json.loads(own.read_text("direct_url.json") or "{}")
    if os.sep in wanted and " @ " not in wanted:  # a folder
        assert (Path(wanted) / "pyproject.toml").exists(), f"{wanted} cannot be installed"
        return
    requirement = Requirement(wanted.partition("  #")[0])
    for extra in requirement.extras:
        needs = [Requirement(each) for each in own.requires or ()]
        for need in needs:
            if need.marker is not None and need.marker.evaluate({"extra": extra}):
                metadata.distribution(need.name)
    version = metadata.version(requirement.name)
    assert requirement.specifier.contains(version, prereleases=True), f"{wanted}: {version}"
    if requirement.url is not None:
        assert requirement.url == origin.get("url"), f"{wanted} is not where dpaudit came from"


if __name__ == "__main__":
    main(sys.argv[1:])
