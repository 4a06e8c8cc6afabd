"""python -m tests.documents: every block of the documents, and whether a test types it."""

from tests.documents.blocks import PAGES, TYPED, Block, read_blocks


def standing(block: Block) -> str:
    """Run, marked with its reason, or no command at all."""
    if block.unrun:
        return f"marked: {block.unrun}"
    if block.kind == "bash":
        return "run (tests/serve/test_client.py)"
    return "run" if block.kind in TYPED else "no command"


def table() -> str:
    """Markdown: a row a block, and the counts."""
    blocks = [block for page in PAGES for block in read_blocks(page)]
    typed = [block for block in blocks if block.kind in (*TYPED, "bash")]
    rows = [f"| {block} | {block.kind} | {standing(block)} |" for block in typed]
    marked = sum(bool(block.unrun) for block in typed)
    total = f"{len(typed)} blocks of commands: {len(typed) - marked} run, {marked} marked"
    return "\n".join(["| block | kind | |", "|---|---|---|", *rows, "", total])


print(table())
