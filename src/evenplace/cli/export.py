"""evenplace export: a network for people who run it elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from evenplace.cli.console import console


def export(
    what: Annotated[str, typer.Argument(help="a run folder, or a method's name")],
    onnx: Annotated[Path, typer.Option(help="the file to write")] = Path("model.onnx"),
    checkpoint: Annotated[
        str, typer.Option(help="a method's weights: imagenet, official, or a file")
    ] = "imagenet",
    image_size: Annotated[int | None, typer.Option(help="side of the photos in pixels")] = None,
    int8: Annotated[bool, typer.Option(help="whole numbers: smaller, less exact")] = False,
    photos: Annotated[Path | None, typer.Option(help="photos to measure int8 ranges on")] = None,
) -> None:
    """Write descriptor and classifier as ONNX, and compare them with torch."""
    from evenplace.describe.export import export_onnx, network_of, some_photos

    network = network_of(what, checkpoint)
    sample = some_photos(photos) if photos else ()
    made = export_onnx(network, onnx, image_size=image_size, int8=int8, photos=sample)
    console.print(
        f"wrote {made.path}, {made.bytes / 1e6:.1f} MB; differs from torch by at most "
        f"{made.difference:.1e}, cosine {made.cosine:.4f}",
        markup=False,
        soft_wrap=True,
    )
