"""What every command has: ``--json``, help on its arguments, and options of applications.

A command names a service that it can use as a parameter of type :data:`Service`. An application
offers, at the point ``options of COMMAND``, a function of options that makes the service; its
options become options of the command. Where nobody offers it, the service is None.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import cached_property
from types import SimpleNamespace
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand

from dpaudit.base.applications import offered

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


class Derived(TyperCommand):
    """A command whose options follow from classes that take long to load: made when it is used."""

    @property
    def params(self) -> Any:
        """What the whole command takes."""
        return self.whole.params

    @params.setter
    def params(self, _: object) -> None:
        """Nothing: the parser of commands gives what it read of the signature, which is empty."""

    def make_context(self, *args: Any, **given: Any) -> Any:
        """Hand all words to the whole command."""
        return self.whole.make_context(*args, **given)

    @cached_property
    def whole(self) -> Any:
        """The command with its options, whose defaults are None, and False of a flag."""
        command: Any = inspect.unwrap(self.callback)  # type: ignore[arg-type]
        options, own = command.options(), inspect.Parameter.KEYWORD_ONLY
        command.__signature__ = inspect.Signature(
            [
                inspect.Parameter(
                    name, own, default=False if get_args(each)[0] is bool else None, annotation=each
                )
                for name, each in options.items()
            ]
        )
        command.__annotations__ = options
        app = App(add_completion=False, rich_markup_mode="rich")
        app.command(self.name)(command)
        return typer.main.get_command(app)


def derived(options: Callable[[], Mapping[str, Any]]) -> Callable[[Any], Any]:
    """Let a command of class :class:`Derived` have the options that a function makes.

    Args:
        options: gives annotations by the names of parameters, in the order of the help.
    """

    def declare(command: Any) -> Any:
        command.options = options
        command.__signature__, command.__annotations__ = inspect.Signature(), {}
        return command

    return declare


_SERVICE = object()
Service = Annotated[Any, _SERVICE]
"""Of a parameter which an application makes from options of its own."""


def with_options(name: str, command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the options of all its services, for the parser.

    Args:
        name: of the command, as it is typed.
        command: a function, whose services are filled by what is offered.
    """
    makers = offered(f"options of {name}")
    own: list[inspect.Parameter] = []
    services: list[inspect.Parameter] = []
    for each in _parameters(command):
        marks = getattr(each.annotation, "__metadata__", ())
        (services if _SERVICE in marks else own).append(each)
    if not services:
        return command
    used = {each.name: makers[each.name] for each in services if each.name in makers}
    options = {service: _parameters(maker) for service, maker in used.items()}

    def run(**given: Any) -> Any:
        for service, parameters in options.items():
            words = {each.name: given.pop(each.name) for each in parameters}
            given[service] = used[service](**words)
        return command(**given)

    everything = [*own, *(each for parameters in options.values() for each in parameters)]
    run.__name__, run.__doc__, run.__module__ = name, command.__doc__, command.__module__
    run.__annotations__ = {each.name: each.annotation for each in everything}
    vars(run)["__signature__"] = inspect.Signature(everything)
    return run


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Its parameters by keyword, with annotations that are evaluated; what it returns is not."""
    given = inspect.signature(function).parameters
    named = SimpleNamespace(__annotations__={name: each.annotation for name, each in given.items()})
    hints = get_type_hints(named, function.__globals__, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [each.replace(annotation=hints[name], kind=keyword) for name, each in given.items()]
