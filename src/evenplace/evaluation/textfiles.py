"""Predictions as the text files of VPR-methods-evaluation: one a query, paths below three headings.

Query path:
…
Predictions paths:
…
Positives paths:
…
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evenplace.errors import RunError
from evenplace.evaluation.predictions import Predictions
from evenplace.photos.files import whole_file

QUERY, ANSWERS, POSITIVES = "Query path:", "Predictions paths:", "Positives paths:"


@dataclass(frozen=True)
class TextAnswer:
    """One file: a query, its hits best first, and its positives, if the file lists them."""

    query: str
    hits: tuple[str, ...]
    positives: tuple[str, ...]


def write_texts(
    predictions: Predictions, folder: str | Path, positives: Sequence[Sequence[str]] | None = None
) -> int:
    """Write 000.txt, 001.txt … into a folder; returns how many.

    positives: the matches of each query; without them, the right ones among the hits.
    """
    width = max(3, len(str(len(predictions) - 1)))
    for number, query in enumerate(predictions.paths):
        hits = [path for path in predictions.hit_paths[number] if path]
        right = predictions.hit_paths[number][predictions.hit_right[number]]
        matches = right if positives is None else positives[number]
        lines = [QUERY, query, "", ANSWERS, *hits, "", POSITIVES, *matches]
        file = Path(folder) / f"{number:0{width}d}.txt"
        with whole_file(file, RunError, lasting=False) as draft:
            draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(predictions)


def read_texts(where: str | Path) -> list[TextAnswer]:
    """Read one file, or every .txt below a folder in the order of their names."""
    path = Path(where)
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise RunError(f"{path} holds no .txt predictions; check the path")
    return [_read(file) for file in files]


def _read(file: Path) -> TextAnswer:
    parts: dict[str, list[str]] = {QUERY: [], ANSWERS: [], POSITIVES: []}
    current = None
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip() in parts:
            current = line.strip()
        elif line.strip() and current:
            parts[current].append(line.strip())
    if not parts[QUERY] or not parts[ANSWERS]:
        raise RunError(
            f"{file} has no {QUERY!r} and {ANSWERS!r}; give the files VPR-methods-evaluation writes"
        )
    return TextAnswer(parts[QUERY][0], tuple(parts[ANSWERS]), tuple(parts[POSITIVES]))
