"""Options of every verb that describes photos: the same names, the same meaning."""

from typing import Annotated, Any

import typer

from evenplace.cli.console import errors

Device = Annotated[str, typer.Option("--device", help="auto, cuda, mps or cpu")]
Engine = Annotated[
    str,
    typer.Option("--engine", help="runs the network: auto, onnxruntime, torch or torch-compile"),
]
Precision = Annotated[str, typer.Option("--precision", help="auto, float32, bfloat16 or float16")]
BatchSize = Annotated[
    int | None, typer.Option("--batch", help="photos at a time; what suits the device if left out")
]
Verify = Annotated[
    int | None,
    typer.Option("--verify", help="candidates to look at a second time; 0 for none"),
]


def describing(
    device: str, engine: str, precision: str, batch: int | None, *, quiet: bool = False
) -> dict[str, Any]:
    """What a `Describer` takes; it says on stderr what was chosen, unless quiet."""
    how: dict[str, Any] = {
        "device": device, "engine": engine, "precision": precision, "batch": batch,
    }  # fmt: skip
    return how if quiet else how | {"tell": tell}


def tell(text: str) -> None:
    errors.print(text, markup=False, soft_wrap=True)
