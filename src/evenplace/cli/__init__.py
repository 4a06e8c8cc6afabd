"""The command line: one verb a file.  Here they are joined, and errors become sentences."""

import sys
from typing import Annotated

import typer

import evenplace
from evenplace.cli import fetch, index, photos
from evenplace.cli.audit import audit
from evenplace.cli.city import city
from evenplace.cli.console import end_output, sentence, speak_any_name, tell
from evenplace.cli.coverage import coverage
from evenplace.cli.demo import demo
from evenplace.cli.evaluate import evaluate
from evenplace.cli.export import export
from evenplace.cli.locate import locate
from evenplace.cli.methods import methods
from evenplace.cli.process import (
    keep_freed_memory,
    spin_briefly,
    take_short_turns,
    trust_large_pictures,
)
from evenplace.cli.report import report
from evenplace.cli.serve import serve
from evenplace.cli.study import study
from evenplace.cli.train import train
from evenplace.cli.tune import tune
from evenplace.errors import EvenPlaceError

app = typer.Typer(
    help="Find where a photo was taken, on the quiet street as on the busy avenue.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
photos_app = typer.Typer(help="Look at a set of photos before anything else.", no_args_is_help=True)
app.add_typer(photos_app, name="photos")
photos_app.command()(photos.check)
index_app = typer.Typer(
    help="Describe a database, lay it out for search, change and check it.",
    cls=index.BuildByDefault,
    no_args_is_help=True,
)
app.add_typer(index_app, name="index")
for change in (index.build, index.add, index.remove, index.store, index.verify):
    index_app.command()(change)

fetch_app = typer.Typer(
    help="Fetch street imagery that is free, with its licence.", no_args_is_help=True
)
app.add_typer(fetch_app, name="fetch")
fetch_app.command()(fetch.panoramax)
fetch_app.command()(fetch.mapillary)

for verb in (
    audit, city, coverage, train, tune, locate, evaluate, report, study, serve, methods, export,
    demo, index.verify,
):  # fmt: skip
    app.command()(verb)


def _say_version(asked: bool) -> None:
    if asked:
        print(f"evenplace {evenplace.__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option("--version", help="which this is", callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; `--debug` anywhere shows where an error came from."""
    keep_freed_memory()
    spin_briefly()
    take_short_turns()
    trust_large_pictures()
    speak_any_name()
    debug = "--debug" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--debug"]
    try:
        app()
    except (EvenPlaceError, OSError, ModuleNotFoundError) as error:
        if debug or not (text := sentence(error)):
            raise
        tell(f"error: {text}")
        sys.exit(2)
    finally:
        end_output()
