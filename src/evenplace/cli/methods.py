"""evenplace methods: every named system, its parts, its size, and the paper's score."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from evenplace.cli.console import console, print_table

_COLUMNS = ("method", "backbone", "aggregator", "params", "dim", "pixels", "data", "R@1 v1 / v2")


def methods(
    name: Annotated[str | None, typer.Argument(help="one system, in full")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """List every named system, or say everything about one."""
    from evenplace.training.method_cards import cards

    found = cards([name] if name else None)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=1))
    elif name:
        print_table(("", name), [row for row in found[0].rows() if row[0] != "name"])
    else:
        rows = [
            (c.name, c.backbone, c.aggregator, f"{c.parameters / 1e6:.0f} M", str(c.dim),
             _pixels(c.image_size), c.data, c.paper or "—")
            for c in sorted(found, key=lambda c: c.name.endswith("-small"))
        ]  # fmt: skip
        print_table(_COLUMNS, rows)
        console.print("R@1 on SF-XL as the paper gives it.  evenplace methods NAME for the rest.")


def _pixels(size: int | tuple[int, int]) -> str:
    return str(size) if isinstance(size, int) else f"{size[0]} x {size[1]}"
