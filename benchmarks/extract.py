"""JPEG files to descriptors: the describer beside the usual loader, same weights, same photos.

    python -m benchmarks.extract [--photos 192] [--rounds 3] [--check]

Photos are drawn once as JPEGs of 1280 x 960, a phone's and street-level services' order of size,
and of 640 x 480, Pitts30k's.  The usual loader opens each file with PIL, resizes it by
torchvision's transform and collates batches in a DataLoader; it is timed with the number of
workers that serves it best (0, 1 or 2).  The network is EfficientNet-Lite0 with GeM, 224 px, the
same weights in all.  "ours" is the default on a CPU: onnxruntime, each core taking its own photos
from file to descriptor.  "ours, in torch" is what the project did before: photos decoded on
threads ahead of a folded network that has all cores.  Another row gives the usual loader that
folded network, so that what the loader alone is worth can be read off.  Rounds alternate;
medians, by the clock and by processor time, which other work on the machine changes less.
Writes benchmarks/results/extract.md; with --check, exits 1 unless ours is 3 times as fast as the
usual loader and 1.8 times as fast as torch, on both sizes.
"""

import argparse
import datetime
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from evenplace.describe.describer import Describer
from evenplace.networks.checkpoints import load_checkpoint, save_checkpoint
from evenplace.networks.convolutional import import_timm
from evenplace.networks.methods import NetworkSpec
from evenplace.networks.network import PlaceNetwork, build_network

RESULTS = Path(__file__).parent / "results" / "extract.md"
SIZES = ((1280, 960), (640, 480))
WORKERS = (0, 1, 2)
USUAL, BEFORE = 3.0, 1.8  # times as fast as the usual loader, and as we were in torch


class UsualDataset(Dataset[Tensor]):
    """PIL, then torchvision, one photo at a time."""

    def __init__(self, paths: list[str], network: PlaceNetwork) -> None:
        import_timm()  # makes torchvision import beside a CPU build of torch
        from torchvision import transforms

        self.paths = paths
        spec = network.backbone.spec
        self.transform = transforms.Compose(
            [
                transforms.Resize(network.image_size),
                transforms.ToTensor(),
                transforms.Normalize(spec.mean, spec.std),
            ]
        )

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, row: int) -> Tensor:
        pixels: Tensor = self.transform(Image.open(self.paths[row]).convert("RGB"))
        return pixels


class Plain(nn.Module):
    """The same network without our tricks: floats in, every stage as its authors wrote it."""

    def __init__(self, network: PlaceNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, photos: Tensor) -> Tensor:
        maps = photos
        for stage in self.network.backbone.stages:
            maps = stage(maps)
        pooled = self.network.aggregator(_features(maps))
        return nn.functional.normalize(self.network.projection(pooled), dim=1)


class Folded(Plain):
    """Our folded trunk on pixels that the usual loader has already normalised."""

    def forward(self, photos: Tensor) -> Tensor:
        backbone = self.network.backbone
        maps = photos.contiguous(memory_format=torch.channels_last)
        for stage in backbone._folded(list(backbone.stages[: backbone.cut])):
            maps = stage(maps)
        return self.network.describe(maps)


def _features(maps: Tensor) -> Any:
    from evenplace.networks.backbone import Features

    return Features(maps)


def draw(folder: Path, count: int, size: tuple[int, int]) -> list[str]:
    """JPEGs with the detail of a street: smooth shapes and fine grain."""
    dice = np.random.default_rng(0)
    paths = []
    for number in range(count):
        coarse = dice.integers(0, 255, (size[1] // 40, size[0] // 40, 3)).astype(np.uint8)
        picture = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
        grain = dice.normal(0, 12, (size[1], size[0], 1))
        pixels = np.clip(np.asarray(picture) + grain, 0, 255).astype(np.uint8)
        paths.append(str(folder / f"{size[0]}-{number:05d}.jpg"))
        Image.fromarray(pixels).save(paths[-1], quality=90)
    return paths


def ours(describer: Describer, paths: list[str]) -> None:
    assert len(describer.describe(paths).rows) == len(paths)


def usual(network: nn.Module, whole: PlaceNetwork, paths: list[str], workers: int) -> None:
    batches = DataLoader(UsualDataset(paths, whole), batch_size=16, num_workers=workers)
    with torch.inference_mode():
        found = [network(batch).numpy() for batch in batches]
    assert sum(map(len, found)) == len(paths)


def seconds(run: Callable[[], None]) -> tuple[float, float]:
    """By the clock, and of all processors, workers included."""
    began, used = time.perf_counter(), _processor()
    run()
    return time.perf_counter() - began, _processor() - used


def _processor() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def compare(weights: Path, paths: list[str], rounds: int) -> dict[str, tuple[float, float]]:
    """Photos a second, and photos a processor second; medians of alternating rounds."""
    network = load_checkpoint(weights).network
    default = Describer(weights, engine="onnxruntime", expected=len(paths))
    before = Describer(weights, engine="torch")
    plain, folded = Plain(network).eval(), Folded(network).eval()
    few = paths[: len(paths) // 4]
    best = min(WORKERS, key=lambda n: seconds(lambda: usual(plain, network, few, n)))
    ways: dict[str, Callable[[], None]] = {
        "ours": lambda: ours(default, paths),
        "ours, in torch": lambda: ours(before, paths),
        f"PIL + torchvision + DataLoader ({best} workers)": lambda: usual(
            plain, network, paths, best
        ),
        "the same with our folded network": lambda: usual(folded, network, paths, best),
    }
    for describer in (default, before):
        ours(describer, few)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(seconds(way))
    return {
        name: (
            len(paths) / statistics.median(clock for clock, _ in taken),
            len(paths) / statistics.median(used for _, used in taken),
        )
        for name, taken in times.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    lines = ["| photos | loader | photos/s | ours is faster by | photos/processor s | by |"]
    lines += ["|---|---|---|---|---|---|"]
    reached = []
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "model.safetensors"
        save_checkpoint(weights, build_network(NetworkSpec()), {})
        for size in SIZES:
            rates = compare(weights, draw(Path(folder), wanted.photos, size), wanted.rounds)
            mine, own = rates["ours"]
            torchs, usuals = (rate for rate, _ in list(rates.values())[1:3])
            reached += [mine / torchs >= BEFORE, mine / usuals >= USUAL]
            for name, (rate, used) in rates.items():
                gain, less = ("", "") if name == "ours" else (mine / rate, own / used)
                gain, less = (f"{one:.2f}" if one else "" for one in (gain, less))
                lines.append(
                    f"| {size[0]} x {size[1]} | {name} | {rate:.1f} | {gain} | "
                    f"{used:.1f} | {less} |"
                )
    asked = " ".join(["python -m benchmarks.extract", *sys.argv[1:]])
    head = f"`{asked}`, {datetime.date.today()}, seed 0, "
    head += f"{torch.get_num_threads()} threads, torch {torch.__version__}, load average "
    head += f"{os.getloadavg()[0]:.1f} of {os.cpu_count()} cores."
    text = "\n".join(["# Extraction", "", head, "", *lines]) + "\n"
    print(text)
    RESULTS.write_text(text)
    return int(wanted.check and not all(reached))


if __name__ == "__main__":
    sys.exit(main())
