"""Are ours the same networks?  Official code beside ours, the same weights, the same photos.

    python -m benchmarks.equality CHECKOUTS [--write]

CHECKOUTS is a folder with clones of the repositories named in `benchmarks/official.py`; what is
not there is skipped and said so.  Each official module gets weights made from its tensors'
names, its state dict goes through our checkpoint loader, and both describe the same two photos
at two sizes.  --write renews the table in benchmarks/results and the fixtures that guard it in
tests/fixtures/checkpoints.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.official import CASES, Case
from benchmarks.official_dinov2 import DINOV2_CASES
from evenplace.networks.build_model import build_model
from tests.networks.known_weights import known_photos, known_weights, sample

ROOT = Path(__file__).parent
TOLERANCE = 1e-4
TABLE = ROOT / "results" / "equality.md"
FIXTURES = ROOT.parent / "tests" / "fixtures" / "checkpoints"
_GUARDED_FEATURES = ("dinov2-small", "dinov2-small-reg")


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    case: Case
    source: str
    parameters: int
    differences: tuple[float, ...]
    apart: float  # largest difference between the two photos' descriptors: what a miss could be


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--check", action="store_true", help="exit 1 above 1e-4")
    args = parser.parse_args()
    rows = []
    for case in (*DINOV2_CASES, *CASES):
        if args.only not in case.name:
            continue
        if missing := [r for r in case.checkouts if not (args.checkouts / r).exists()]:
            print(f"{case.name}: skipped, {', '.join(missing)} is not in {args.checkouts.name}")
            continue
        rows.append(compare(case, args.checkouts, write=args.write))
        print(line(rows[-1]), flush=True)
    if args.write and not args.only:
        TABLE.write_text(table(rows))
    worst = max((max(row.differences) for row in rows), default=float("inf"))
    print(f"largest difference of {len(rows)} networks: {worst:.1e} (asked: {TOLERANCE:.0e})")
    return 0 if worst <= TOLERANCE or not args.check else 1


def compare(case: Case, folder: Path, *, write: bool) -> Row:
    """Push the official weights through our loader and describe the same photos with both."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # theirs: deprecations, and xformers not being there
        official = case.build(folder).eval()
        shapes = {key: tuple(value.shape) for key, value in official.state_dict().items()}
        weights = known_weights(shapes, case.gain)
        official.load_state_dict(weights)
        ours = _load(case, weights)
        outputs = [
            (_theirs(case, official, size), ours(known_photos(*size))) for size in case.sizes
        ]
        differences = tuple(_largest(theirs - own) for theirs, own in outputs)
        apart = min(_largest(theirs[0] - theirs[1]) for theirs, _ in outputs)
    if write and (case.load is None or case.method in _GUARDED_FEATURES):
        _write_fixture(case, folder, shapes, [theirs for theirs, _ in outputs])
    return Row(case, source(case, folder), _count(official), differences, apart)


def _load(case: Case, weights: dict[str, Tensor]) -> nn.Module:
    if case.load is not None:
        return case.load(weights).eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"official{case.suffix}"
        case.save(weights, path)
        ours = build_model(case.method, case.backbone, weights=path, **case.changes)
    return ours.eval()


def _theirs(case: Case, official: nn.Module, size: tuple[int, int]) -> Tensor:
    photos = known_photos(*size) / 255
    mean, std = torch.tensor(case.mean).view(3, 1, 1), torch.tensor(case.std).view(3, 1, 1)
    return case.describe(official, (photos - mean) / std)


def _largest(difference: Tensor) -> float:
    return float(difference.abs().max())


def _count(official: nn.Module) -> int:
    """Parameters that a descriptor depends on: not DINOv2's mask token, nor BoQ's unused norm."""
    idle = ("mask_token", "dino.norm.weight", "dino.norm.bias")
    return sum(v.numel() for key, v in official.named_parameters() if not key.endswith(idle))


def source(case: Case, folder: Path) -> str:
    """Whose code this was compared with, and which version of it."""
    if not case.checkouts:
        return f"torchvision {version('torchvision')}"
    return f"{case.checkouts[0]} {commit(folder / case.checkouts[0])}"


def commit(folder: Path) -> str:
    """The checkout's commit, from git or from the file a snapshot leaves."""
    note = folder / ".commit"
    if note.exists():
        return note.read_text().strip()[:7]
    answer = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True
    )
    return answer.stdout.strip() or "unknown"


def _write_fixture(
    case: Case, folder: Path, shapes: dict[str, tuple[int, ...]], outputs: list[Tensor]
) -> None:
    content = {
        "method": case.method,
        "backbone": case.backbone,
        "changes": case.changes,
        "source": source(case, folder),
        "gain": case.gain,
        "golden": [
            {"size": size, "entries": sample(output)}
            for size, output in zip(case.sizes, outputs, strict=True)
        ],
        "shapes": shapes,
    }
    text = json.dumps(content, indent=None, separators=(",", ":"))
    (FIXTURES / f"{case.name.replace(' ', '-')}.json").write_text(
        text.replace('],"', '],\n"') + "\n"
    )


def line(row: Row) -> str:
    case = row.case
    sizes = " and ".join(f"{h} x {w}" for h, w in case.sizes)
    differences = " / ".join(f"{d:.1e}" for d in row.differences)
    cells = (case.name, row.source, f"{row.parameters:,}", sizes, differences, f"{row.apart:.1e}")
    return f"| {' | '.join(cells)} |"


def table(rows: list[Row]) -> str:
    head = [
        "Largest difference between a descriptor of the official code and ours, on the same",
        "weights and photos, at two sizes; and, for scale, between the two photos.  Descriptors",
        "are unit vectors.  Made by",
        "`python -m benchmarks.equality CHECKOUTS --write`,",
        f"torch {torch.__version__.split('+')[0]}, CPU, float32.",
        "",
        "| network | official code | parameters | pixels | largest difference | between photos |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join(head + [line(row) for row in rows]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
