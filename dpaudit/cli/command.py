"""What every command has: ``--json``, and help on its arguments."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

WANTED: ContextVar[bool] = ContextVar("json", default=False)
"""Whether the command that runs is to answer in JSON."""


def _choose(wanted: bool) -> None:
    WANTED.set(wanted)


_plain = typer.Typer(add_completion=False)
_about: Any = {"help": "Print JSON on stdout.", "expose_value": False, "callback": _choose}


@_plain.command()
def _only(json: Annotated[bool, typer.Option("--json", **_about)] = False) -> None: ...


_JSON = typer.main.get_command(_plain).params[0]


class Described(TyperCommand):
    """A command whose arguments keep their help, which typer before 0.21 loses to click 8.5."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        hints = get_type_hints(self.callback, include_extras=True)
        own: list[Any] = self.params
        for each in own:
            if getattr(each, "help", None) is None and each.name in hints:
                each.help = getattr(hints[each.name].__metadata__[0], "help", None)


class _Answering(Described):
    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.params.append(_JSON)


class App(typer.Typer):
    """Commands, each of which answers in JSON too."""

    def command(self, name: str | None = None, **given: Any) -> Callable[[Any], Any]:
        """Register a command."""
        return super().command(name, **{"cls": _Answering} | given)
