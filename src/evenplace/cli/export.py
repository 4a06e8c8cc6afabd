"""evenplace export: a network for people who run it elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import say, tell


def export(
    what: Annotated[str, typer.Argument(help="a run folder, or a method's name")],
    box: Annotated[
        Path | None,
        typer.Option(help="instead of a file, a folder that answers where there is no torch"),
    ] = None,
    onnx: Annotated[Path, typer.Option(help="the file to write")] = Path("model.onnx"),
    checkpoint: Annotated[
        str, typer.Option(help="a method's weights: imagenet, official, or a file")
    ] = "imagenet",
    image_size: Annotated[int | None, typer.Option(help="side of the photos in pixels")] = None,
    int8: Annotated[bool, typer.Option(help="whole numbers: smaller, less exact")] = False,
    photos: Annotated[Path | None, typer.Option(help="photos to measure int8 ranges on")] = None,
) -> None:
    """Write descriptor and classifier as ONNX and compare them with torch; or a whole run."""
    if box is not None:
        from evenplace.run.run import Run

        size = Run.open(what).export_box(box, tell)
        say(
            f"wrote {box}, {size / 1e6:.1f} MB; where it answers: pip install --no-deps evenplace, "
            f"pip install -r {box / 'requirements.txt'}, evenplace serve {box}"
        )
        return
    from evenplace.describe.export import export_onnx, network_of, some_photos

    network = network_of(what, checkpoint)
    sample = some_photos(photos) if photos else ()
    made = export_onnx(network, onnx, image_size=image_size, int8=int8, photos=sample)
    say(
        f"wrote {made.path}, {made.bytes / 1e6:.1f} MB; differs from torch by at most "
        f"{made.difference:.1e}, cosine {made.cosine:.4f}"
    )
