"""Everything on a drawn town: draw, train three systems, index, evaluate by tier, report."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evenplace.city import draw_city
from evenplace.describe.describer import Progress
from evenplace.errors import SettingError
from evenplace.evaluation import Scores, join_scores
from evenplace.photos import read_photos
from evenplace.report.evaluation import write_report
from evenplace.run.run import Run
from evenplace.training.loop import Announce
from evenplace.training.recipe import read_recipe

SYSTEMS = ("cross-entropy", "dapr-m-paper-small", "dapr-m")


@dataclass(frozen=True)
class Demo:
    """What the demo found: the systems, baseline first, over all towns."""

    systems: tuple[Scores, ...]
    title: str
    page: Path
    run: Path  # the recommended system on the first town


def run_demo(
    out: Path,
    *,
    photos: int,
    queries: int,
    seeds: int,
    settings: Sequence[str] = (),
    announce: Announce,
) -> Demo:
    """Compare cross-entropy + L2, the paper's loss and distance, and DAPR as recommended.

    Each seed is another town, trained with another seed; what is there already is used again.
    """
    if seeds < 1:
        raise SettingError(f"seeds={seeds} asks for no town; use 1 or more")
    towns = [_one_town(out, seed, photos, queries, settings, announce) for seed in range(seeds)]
    first = [out / "seed-0" / name for name in SYSTEMS]
    page = write_report(towns[0], out / "report", runs=first)
    systems = tuple(join_scores(parts) for parts in zip(*towns, strict=True))
    asked = systems[0].overall.queries
    title = f"{seeds} town(s) of {photos} photos, seeds 0 to {seeds - 1}, {asked} queries"
    return Demo(systems, title, page, out / f"seed-0/{SYSTEMS[-1]}")


def _one_town(
    out: Path,
    seed: int,
    photos: int,
    queries: int,
    settings: Sequence[str],
    announce: Announce,
) -> list[Scores]:
    town = out / f"town-{photos}-{queries}-{seed}"
    if not town.exists():
        show = announce(f"drawing town {seed}")
        draw_city(town, photos=photos, queries=queries, seed=seed, progress=show)
    database, asked = read_photos(town / "database"), read_photos(town / "queries")
    scores: list[Scores] = []
    for name in SYSTEMS:
        run = Run(out / f"seed-{seed}" / name)
        recipe = read_recipe(name).changed([f"seed={seed}", *settings])

        def tell(what: str, name: str = name) -> Progress:
            return announce(f"{name}: {what}")

        run.train(database, recipe=recipe, cache_folder=out / "cache", announce=tell)
        run.index(database, cache_folder=out / "cache", announce=tell)
        scores.append(run.evaluate(asked, announce=tell))
    return scores
