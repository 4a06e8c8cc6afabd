"""Draw docs/pictures/architecture.svg and framework.svg: python docs/make_pictures.py

The architecture is read from the imports: rooms in the order data flows, an arc for every room
that another imports.  Both pictures follow the reader's light or dark.
"""

import ast
import html
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "evenplace"
PICTURES = ROOT / "docs" / "pictures"
ROOMS = {
    "photos": "what was taken, where",
    "places": "the map cut into classes",
    "city": "a drawn town with a long tail",
    "losses": "what training rewards",
    "networks": "photo → descriptor",
    "describe": "a network at work on a device",
    "training": "photos + places → network",
    "retrieval": "descriptors → answers",
    "evaluation": "answers → scores",
    "run": "the folder every verb shares",
    "report": "scores → pages",
    "study": "named comparisons",
    "serve": "a run → HTTP",
    "cli": "one verb a file",
}
STAGES = [  # the boxes of the framework, by row: heading, words, tone
    [("photos", "position, heading, time", ""),
     ("places", "grid, kd-tree … each with its count: head, middle, tail", ""),
     ("network", "one descriptor a photo", ""),
     ("losses", "low-visit bias: wᵧ and ν from the counts; Eq. 6 for places, Eq. 7 for pairs",
      "tail")],
    [("query", "one photo", ""),
     ("shortlist", "the classifier keeps the photos of some places", ""),
     ("ranking", "CFD, L2, or a score learned on photos held out", ""),
     ("second look", "points that match in the pictures", ""),
     ("answer", "a position, how sure, or: not here", "tail")],
]  # fmt: skip
STYLE = """<style>
text { font: 14px system-ui, sans-serif; fill: #1a1a1a }
.small { font-size: 11.5px; fill: #555 } .bold { font-weight: 600 }
.box { fill: #f4f6f8; stroke: #9aa5b1 } .tail { fill: #e3f4ee; stroke: #009e73 }
.line { fill: none; stroke: #9aa5b1; stroke-width: 1.5 } .tip { fill: #9aa5b1 }
@media (prefers-color-scheme: dark) {
text { fill: #eee } .small { fill: #aaa } .box { fill: #20262d; stroke: #66717e }
.tail { fill: #12362b; stroke: #2fbf93 } }
</style>"""


def imports() -> dict[str, set[str]]:
    """The rooms that each room imports."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for room in ROOMS:
        for file in (SOURCE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module:
                    parts = node.module.split(".")
                    if parts[0] == "evenplace" and len(parts) > 1 and parts[1] in ROOMS:
                        found[room].add(parts[1])
        found[room].discard(room)
    return found


def architecture() -> str:
    """Rooms from top to bottom; arcs on the right go from a room to those that it imports."""
    step, wide, names = 44, 400, list(ROOMS)
    parts, used = [], imports()
    for row, (room, what) in enumerate(ROOMS.items()):
        files = list((SOURCE / room).rglob("*.py"))
        lines = sum(len(file.read_text().splitlines()) for file in files)
        top = 10 + row * step
        parts.append(_box(10, top, wide, 34, ""))
        parts.append(_text(22, top + 22, room, "bold"))
        parts.append(_text(110, top + 22, what, "small"))
        told = f"{len(files)} files, {lines / 1000:.1f}k lines"
        parts.append(_text(wide, top + 22, told, "small", end=True))
    for room, others in used.items():
        for other in sorted(others):
            start, end = (27 + names.index(one) * step for one in (room, other))
            out = wide + 10 + 20 * (names.index(room) - names.index(other))
            parts.append(
                f'<path class="line" opacity=".7" d="M{wide + 10} {start} C{out} {start} {out} '
                f'{end} {wide + 14} {end}"/>'
            )
            parts.append(f'<path class="tip" d="M{wide + 11} {end} l8 -4 v8 z"/>')
    return _svg(680, 20 + len(names) * step, "Rooms of EvenPlace and what each imports", parts)


def framework() -> str:
    """Training above, answering below: what becomes of photos."""
    parts, width = [], 960
    for row, stages in enumerate(STAGES):
        wide, top = (width - 20) / len(stages), 34 + row * 170
        said = (
            "Training: the tail is told apart by its counts",
            "Answering: from a photo to a place",
        )
        parts.append(_text(10, top - 12, said[row], "small"))
        for number, (name, words, tone) in enumerate(stages):
            left = 10 + number * wide
            parts.append(_box(left, top, wide - 30, 110, tone))
            parts.append(_text(left + 12, top + 26, name, "bold"))
            for line, text in enumerate(_wrapped(words, int((wide - 50) / 6.2))):
                parts.append(_text(left + 12, top + 48 + 16 * line, text, "small"))
            if number + 1 < len(stages):
                x, y = left + wide - 27, top + 55
                parts.append(f'<path class="line" d="M{x} {y} h14"/>')
                parts.append(f'<path class="tip" d="M{x + 22} {y} l-8 -4 v8 z"/>')
    x, y = 10 + 2.43 * (width - 20) / len(STAGES[0]), 34 + 110
    parts.append(f'<path class="line" stroke-dasharray="4 3" d="M{x:g} {y} v48"/>')
    parts.append(f'<path class="tip" d="M{x:g} {y + 58} l-4 -8 h8 z"/>')
    parts.append(_text(x + 10, y + 34, "network, prototypes, weights, calibration", "small"))
    return _svg(width, 330, "From photos to an answer", parts)


def _wrapped(words: str, most: int) -> list[str]:
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) > most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _box(left: float, top: float, wide: float, high: float, tone: str) -> str:
    return (
        f'<rect class="box {tone}" x="{left:g}" y="{top:g}" width="{wide:g}" height="{high}" '
        'rx="6"/>'
    )


def _text(left: float, top: float, words: str, kind: str, *, end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    return f'<text class="{kind}" x="{left:g}" y="{top:g}"{anchor}>{html.escape(words)}</text>'


def _svg(wide: int, high: int, label: str, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img"'
    return f'{head} aria-label="{label}">\n{STYLE}\n' + "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    for name, drawn in (("architecture", architecture()), ("framework", framework())):
        (PICTURES / f"{name}.svg").write_text(drawn, encoding="utf-8")
