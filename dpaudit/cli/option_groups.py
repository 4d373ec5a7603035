"""Options that applications add to the commands of the kernel.

A command names a service that it can use as a parameter of type :data:`Service`. An application
offers, at the point ``options of COMMAND``, a function of options that makes the service; its
options become options of the command. Where nobody offers it, the service is None.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, get_type_hints

from dpaudit.base.applications import offered

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
