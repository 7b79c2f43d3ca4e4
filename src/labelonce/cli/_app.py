"""The application: its commands, in the order of --help."""

import sys
from typing import Annotated

import typer

from labelonce import __version__
from labelonce.cli import _buying_commands as buying
from labelonce.cli import _label_commands as labels
from labelonce.cli import _run_commands as runs
from labelonce.cli import _trial_commands as trials
from labelonce.cli._options import option, speak_of_options
from labelonce.cli._sharded import app as sharded

app = typer.Typer(
    name="labelonce",
    help="Clean labels and worker skills from noisy crowd labels, even with one label per task.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(sharded, name="sharded")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labelonce {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    _version: Annotated[
        bool, option("Print the version and stop.", "--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    speak_of_options(context, app)


app.command()(labels.aggregate)
app.command()(labels.check)
app.command()(labels.judges)
app.command()(labels.agreement)
app.command()(labels.compare)
app.command()(trials.simulate)
app.command()(runs.train)
app.command()(runs.embed)
app.command()(runs.predict)
app.command()(runs.show)
app.command()(runs.review)
app.command()(runs.report)
app.command()(buying.plan)
app.command("next")(buying.next_)
app.command()(buying.project)
app.command()(buying.serve)
app.command()(trials.demo)


def main() -> None:
    """Run the command line: bad input is one sentence on stderr and exit code 2."""
    try:
        app()
    except (ValueError, TypeError, OSError, ImportError) as error:  # the last: an extra that is not installed
        from labelonce.cli._print import one_line

        typer.echo(f"labelonce: {one_line(str(error))}", err=True)
        sys.exit(2)
