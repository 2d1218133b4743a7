"""The list of commands. The module of a command, with its options, is imported when it is called: `trace` is `trace.py`
and `guard run` is `guard_run.py`, each with a function `command`.
"""

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

_COMMANDS = {
    "run": "Run a study or a scenario.",
    "studies": "List the studies.",
    "claims": "Check each claim of the publication against a run.",
    "table": "Print a table of a run next to the published values.",
    "report": "Write the report of a run.",
    "trace": "Show one transfer segment by segment.",
    "explore": "Open the explorer in a browser.",
    "shell": "Run any program inside a scenario's network.",
    "script": "Run packet scripts.",
    "conform": "Compare the local kernel with the linux profile.",
    "probe": "Measure the initial window of a server.",
    "explain": "Compare two initial windows round by round.",
    "observe": "Read your own traffic: logs, captures, tables.",
    "advise": "Recommend an initial window for your own users.",
    "compare": "Compare two data sets of your own.",
    "scorecard": "Evaluate a scheme by the cases of RFC 9743.",
    "doctor": "List the features of this machine.",
}
_GUARD = {
    "rehearse": "Replay a log through the guard.",
    "run": "Watch connections of this host and raise windows.",
    "status": "Show the state of a running guard.",
    "undo": "Remove the routes of a guard that was killed.",
}
_HELP: dict[str, Any] = {"context_settings": {"help_option_names": ["-h", "--help"]}, "rich_markup_mode": None}


def load(path: str) -> Any:
    """The command of a path such as "guard run", with its options."""
    if path in ("claims", "report", "table"):
        # A run has many small cells, over which Polars' threads wait actively: a seventh of a report's CPU time.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
    single = typer.Typer(add_completion=False, **_HELP)
    single.command(path.split()[-1])(import_module(f"firstflight.cli.{path.replace(' ', '_')}").command)
    return typer.main.get_command(single)


class _Commands(TyperGroup):
    prefix = ""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if isinstance(command, TyperGroup) else load(f"{self.prefix}{name}"), rest


class _GuardCommands(_Commands):
    prefix = "guard "


def _not_loaded() -> None:
    """For the list of commands, which needs names and one line each."""


app = typer.Typer(
    name="firstflight",
    help="A laboratory for TCP's initial window.",
    cls=_Commands,
    pretty_exceptions_enable=False,
    **_HELP,
)
guard = typer.Typer(
    help="Raise the initial window per destination, with a stop rule and a fallback.",
    cls=_GuardCommands,
    no_args_is_help=True,
    **_HELP,
)
for _name, _text in _GUARD.items():
    guard.command(_name, short_help=_text)(_not_loaded)
app.add_typer(guard, name="guard", short_help="Raise the initial window of this host, with a stop rule.")
for _name, _text in _COMMANDS.items():
    app.command(_name, short_help=_text)(_not_loaded)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        from importlib.metadata import version as version_of

        print(version_of("firstflight"))
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)
