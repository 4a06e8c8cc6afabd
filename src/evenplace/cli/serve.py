"""evenplace serve: a page for people and an API for programs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import tell
from evenplace.cli.options import Describing, IndexedRun, Promise, Verify, grouped


@dataclass(frozen=True)
class Load:
    """How photos wait and are gathered."""

    queue: Annotated[int, typer.Option(help="photos that may wait; more get 503")] = 128
    patience: Annotated[
        float, typer.Option(help="seconds after which an answer is of no use; then 503")
    ] = 10.0
    batch: Annotated[int, typer.Option(help="photos described together at most")] = 8
    window_ms: Annotated[float, typer.Option(help="how long a batch gathers")] = 4.0


@grouped
def serve(
    run: IndexedRun,
    *,
    port: Annotated[int, typer.Option(help="where to listen")] = 8000,
    host: Annotated[str, typer.Option(help="any but loopback needs a token")] = "127.0.0.1",
    token_file: Annotated[
        Path | None, typer.Option(help="file with the token; or set EVENPLACE_TOKEN")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="a name the service goes by, as often as needed")
    ] = None,
    workers: Annotated[int, typer.Option(help="processes; they share the index in memory")] = 1,
    tiles: Annotated[
        str, typer.Option(help="address of map tiles with {z}, {x}, {y}; none if left out")
    ] = "",
    tiles_credit: Annotated[str, typer.Option(help="whose tiles they are, for the map")] = "",
    photos: Annotated[
        Path | None, typer.Option(help="folder that relative paths of the database start from")
    ] = None,
    promise: Promise,
    verify: Verify = None,
    load: Load,
    how: Describing,
) -> None:
    """Answer questions over HTTP: drop a photo on the page, or POST it to /locate."""
    from evenplace.run.run import Run
    from evenplace.serve.server import serve as serve_run
    from evenplace.serve.settings import Batching, Limits, Settings, read_token

    settings = Settings(
        run, host=host, port=port, token=read_token(token_file), hosts=tuple(allow_host or ()),
        workers=workers, tiles=tiles, tiles_credit=tiles_credit, photos=photos, verify=verify,
        limits=Limits(waiting=load.queue, patience=load.patience),
        batching=Batching(load.batch, load.window_ms), **asdict(promise), **asdict(how),
    )  # fmt: skip
    # Whoever serves for long has the network exported once, and hears what was chosen; a box has
    # nothing to export, and opening its network twice would take memory for both.
    opened = Run.open(run, **how.how(), batch=load.batch)
    if opened.files.describes and opened.files.network_file("model").suffix != ".onnx":
        opened.files.open_describer(expected=None)
    serve_run(settings, lambda address: tell(f"open {address}"))
