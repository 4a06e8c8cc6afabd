"""Options of every verb that answers: how right it must be, and what to do where none can say."""

from typing import Annotated

import typer

MinPrecision = Annotated[
    float | None,
    typer.Option(
        "--min-precision",
        help="give only answers that are right so often, each and all together, as 0.95",
    ),
]
Insist = Annotated[
    bool, typer.Option("--insist", help="ask for a precision of an uncalibrated run all the same")
]
