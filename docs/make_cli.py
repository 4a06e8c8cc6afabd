"""Write docs/cli.md from the command line's own help: python docs/make_cli.py"""

from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from evenplace.cli import app

PAGE = Path(__file__).parent / "cli.md"


def reference() -> str:
    """Every verb with its help, in the order of the command line."""
    root: Any = get_command(app)
    parts = ["# The command line", "", "Written by `python docs/make_cli.py`; do not edit.", ""]
    for name, command in sorted(root.commands.items()):
        for words, verb in _verbs(name, command):
            context = typer.Context(verb, info_name=f"evenplace {words}", max_content_width=96)
            context.terminal_width = 96
            parts += [f"## {words}", "", "```", verb.get_help(context).strip(), "```", ""]
    return "\n".join(parts)


def _verbs(name: str, command: Any) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(name, command)]
    return [(f"{name} {verb}", found) for verb, found in sorted(inner.items())]


if __name__ == "__main__":
    PAGE.write_text(reference())
