"""The page of one or several evaluated systems: who finds what, in the head and in the tail."""

from collections.abc import Sequence
from pathlib import Path

from evenplace.errors import RunError
from evenplace.evaluation import Scores
from evenplace.report import evaluation_parts as parts
from evenplace.report.figures import save_figure
from evenplace.report.page import Section, page, write_page
from evenplace.report.pictures import Pictures
from evenplace.report.run_files import Kept, read_kept


def write_report(
    scores: Scores | Sequence[Scores],
    out: str | Path,
    *,
    runs: Sequence[str | Path] = (),
    tiles: str | None = None,
) -> Path:
    """Write out/index.html, one file that opens from disk with no network, and out/figures/.

    The first system is what the others are compared with.  runs: the folder each system came
    from; with it the page also shows how alike the photos of a place look, tail places before and
    after, photos of a place on the map, and how training went.  tiles: the address of a base map
    ("https://…/{z}/{x}/{y}.png") to lay under the places; without it nothing is asked of the
    network.
    """
    systems = [scores] if isinstance(scores, Scores) else list(scores)
    _check(systems, runs)
    kept = [read_kept(Path(run)) for run in runs]
    folder = Path(out)
    for name, figure in parts.draw_figures(systems, kept).items():
        save_figure(figure, folder / "figures" / name)
    title = "How even is it? " + " · ".join(system.name for system in systems)
    text = page(title, _sections(systems, kept, folder, tiles), lead=parts.lead(systems))
    return write_page(text, folder / "index.html")


def _sections(
    systems: Sequence[Scores], kept: Sequence[Kept], folder: Path, tiles: str | None
) -> list[Section]:
    pictures = Pictures()
    sections = [
        parts.glance(systems),
        parts.score_tables(systems),
        parts.tiers(systems),
        parts.long_tail(systems, kept),
        parts.conditions(systems),
        parts.where(systems[-1], kept, pictures, folder, tiles),
        parts.gallery(systems, kept, pictures),
        parts.failures(systems),
        parts.before_and_after(systems, kept),
        parts.confidence(systems),
        parts.metres(systems),
        parts.cost(systems),
        parts.training(kept),
    ]
    return [section for section in sections if section is not None]


def _check(systems: Sequence[Scores], runs: Sequence[str | Path]) -> None:
    if not systems:
        raise RunError("there is nothing to report; name at least one evaluated run")
    if runs and len(runs) != len(systems):
        raise RunError(f"{len(systems)} systems and {len(runs)} run folders; give one each")
    for other in systems[1:]:
        if other.predictions.paths != systems[0].predictions.paths:
            raise RunError(
                f"{other.name} and {systems[0].name} were asked different queries; "
                "evaluate both on the same ones"
            )
