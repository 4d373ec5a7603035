"""Entry point: turns every outcome into an exit code, and every bad input into one sentence."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

import dpaudit
from dpaudit.base.applications import offered
from dpaudit.base.errors import DpAuditError, InconclusiveError, InputError
from dpaudit.base.optional_import import lacking
from dpaudit.base.toml_tables import nearest
from dpaudit.base.validate import printable
from dpaudit.cli import commands
from dpaudit.cli.command import App, Derived, Described, with_options
from dpaudit.cli.exits import Exit, InterruptedRunError, guarded

_LONGEST = 600
"""Of a longer sentence, which repeats what it was given, the beginning and the end are told."""

app = App(
    name="dpaudit",
    help="Certify, audit and report the privacy claims of differentially private algorithms.",
    epilog="Exit codes: 0 certified and not refuted, 1 refuted or claim exceeded, "
    "2 unproven or inconclusive, 3 usage or input error.",
    no_args_is_help=True,
    suggest_commands=False,  # main does
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpaudit {dpaudit.__version__}")
        raise typer.Exit


@app.callback()
def _general(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Nothing but what every command has."""


_KERNEL: dict[str, Any] = {
    "list": commands.list_kinds,
    "explain": commands.explain,
    "certify": commands.certify,
    "calibrate": commands.calibrate,
    "run": commands.run,
    "release": commands.release,
    "audit": commands.audit,
    "replay": commands.replay,
    "report": commands.report,
    "card": commands.card,
    "verify": commands.verify,
    "checker": commands.checker,
    "demo": commands.demo,
    "check": commands.check,
    "init": commands.init,
}
_CLASSES: dict[str, Any] = {"audit": {"cls": Derived}, "replay": {"cls": Described}}
"""Of commands that answer in JSON by another way than all others, or not at all."""
_EXAMPLES: dict[str, tuple[str, ...]] = {
    "list": ("dpaudit list", "dpaudit list gaussian", "dpaudit list --relations"),
    "explain": ("dpaudit explain", "dpaudit explain float-noise"),
    "calibrate": (
        "dpaudit calibrate gaussian --claim 'epsilon = 1, delta = 1e-6' --set count=10",
        "dpaudit calibrate discrete-laplace --accuracy 20 --confidence 0.99",
        "dpaudit calibrate plan.toml --claim 'epsilon = 1, delta = 1e-6' -o new.toml",
    ),
}
"""What stands below the help of a command."""
for _name, _command in (_KERNEL | dict(offered("command"))).items():
    _group, _, _last = _name.rpartition(" ")
    _home = offered("group")[_group] if _group else app
    _shown = "\n\n".join(["Examples:", *_EXAMPLES[_name]]) if _name in _EXAMPLES else None
    _made = {"epilog": _shown} | _CLASSES.get(_name, {})
    _home.command(_last, **_made)(with_options(_name, _command))
for _name, _group in offered("group").items():
    app.add_typer(_group, name=_name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Args:
        arguments: of a caller in Python, who keeps its process; those of the process itself are
            run by a copy of it, under guard.
    """
    if arguments is not None:
        with warnings.catch_warnings():
            sys.exit(_outcome(list(arguments)))
    sys.exit(guarded(lambda: _outcome(sys.argv[1:])))


def _outcome(arguments: list[str]) -> int:
    command = typer.main.get_command(app)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal without our letters gets escapes
            stream.reconfigure(errors="backslashreplace")
    if not os.environ.get("DPAUDIT_DEBUG"):
        warnings.simplefilter("ignore")  # of libraries: what matters is raised, or a finding
    unreadable = [number for number, text in enumerate(arguments, 1) if not _is_readable(text)]
    if unreadable:
        return _write_error(
            f"argument {unreadable[0]} is not UTF-8 text, or holds a null or a part of a path "
            "that is longer than 255 bytes; change it, or set PYTHONUTF8=1.",
            Exit.INPUT,
        )
    try:
        code = command.main(arguments, prog_name="dpaudit", standalone_mode=False)
    except InputError as error:
        return _write_error(str(error), Exit.INPUT)
    except DpAuditError as error:
        from dpaudit.cli import show  # takes half a second, which --help need not wait for

        with show.answering():
            show.answered("refused", {"why": str(error)})
        undecided = isinstance(error, InconclusiveError)
        return _write_error(str(error), Exit.UNPROVEN if undecided else Exit.REFUTED)
    except SystemExit as error:  # of foreign code: whatever its status, nothing is decided
        if isinstance(error.__context__, BrokenPipeError):  # nobody reads on, as in "| head"
            return Exit.INPUT
        if _completes(arguments):
            return Exit.CERTIFIED
        return _write_error(
            "the audited code ended the process (SystemExit) before the command was done, so "
            "there is no verdict; code under audit must return.",
            Exit.UNPROVEN,
        )
    except InterruptedRunError as error:
        return _write_error(f"interrupted; {error}.", Exit.INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        code = Exit.INTERRUPTED
    except Exception as error:
        if hasattr(error, "format_message"):  # the option parser's usage errors
            if not (said := error.format_message()):  # without arguments it printed the help
                return Exit.CERTIFIED
            return _write_error(_usage(error, said), Exit.INPUT)
        missing = lacking(error) if isinstance(error, ModuleNotFoundError) else None
        if missing is not None:
            return _write_error(str(missing), Exit.INPUT)
        if os.environ.get("DPAUDIT_DEBUG"):
            raise
        return _write_error(
            f"unexpected {type(error).__name__}{_innermost(error)} (this is a fault of dpaudit; "
            "DPAUDIT_DEBUG=1 shows the traceback)",
            Exit.INPUT,
        )
    if code == Exit.INTERRUPTED:  # typer makes Ctrl-C a silent code
        return _write_error("interrupted; no file is half written.", Exit.INTERRUPTED)
    return code if isinstance(code, int) else Exit.CERTIFIED


def _innermost(error: BaseException) -> str:
    """Tell where it was raised, and not what it says, which may be a value of data."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f" at {Path(frame.filename).name}:{frame.lineno}"


def _usage(error: Any, said: str) -> str:
    """A usage error with what would be right, by every parser, and where more is told."""
    said, context = said.removeprefix("Invalid value: ").removesuffix("."), error.ctx
    if context is None:  # as the parser of options has it, where a value lacks
        return f"{said}; write it after the option."
    command, path = context.command, context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    if unknown := re.match(r"No such (command|option):? '?([^\s'.]+)", said):
        kind, word = unknown.groups()
        options = [name for each in command.params for name in each.opts if name.startswith("--")]
        words = command.commands if kind == "command" else options
        said = f"there is no {kind} {word}; {nearest(word, words).removesuffix('.')}"
    elif extra := re.match(r"Got unexpected extra arguments? \((.*)\)", said):
        said = f"{extra[1]!r} is more than the command takes; write {usage}"
    elif said.startswith("Missing argument"):
        said = f"{said}; write {usage}"
    return f"{said} (see {path} --help)"


def _completes(arguments: list[str]) -> bool:
    """Tell whether a shell asks for words, or for its script; no code is run then."""
    return "_DPAUDIT_COMPLETE" in os.environ or arguments[:1] in (
        ["--show-completion"],
        ["--install-completion"],
    )


def _is_readable(argument: str) -> bool:
    """Tell whether an argument is text that any file system and any file could hold."""
    try:
        parts = argument.encode().split(b"/")
    except UnicodeEncodeError:  # bytes of the shell that are no text
        return False
    is_path = not any(mark in argument for mark in "{[=:\n ")
    return b"\0" not in argument.encode() and not (is_path and max(map(len, parts)) > 255)


def _write_error(message: str, code: Exit) -> int:
    if len(message) > _LONGEST:
        message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
    with suppress(OSError, ValueError, AttributeError):  # stderr may be closed
        sys.stderr.write(f"dpaudit: {printable(message)}\n")
    return code


if __name__ == "__main__":
    main()
