"""The page of one or several evaluated systems: who finds what, in the head and in the tail."""

from collections.abc import Callable, Sequence
from pathlib import Path

from evenplace.errors import RunError
from evenplace.evaluation import Scores
from evenplace.report import evaluation_parts as parts
from evenplace.report.figures import save_figure
from evenplace.report.page import Section, page, write_page
from evenplace.report.run_files import read_kept

SECTIONS: tuple[Callable[[parts.Told], Section | None], ...] = (
    parts.glance, parts.score_tables, parts.tiers, parts.long_tail, parts.conditions, parts.where,
    parts.gallery, parts.failures, parts.before_and_after, parts.confidence, parts.metres,
    parts.cost, parts.training,
)  # fmt: skip


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
    told = parts.Told(systems, [read_kept(Path(run)) for run in runs], Path(out), tiles)
    sections = [made for make in SECTIONS if (made := make(told)) is not None]
    for name, figure in told.drawn.items():
        save_figure(figure, told.folder / "figures" / name)
    title = "How even is it? " + " · ".join(system.name for system in systems)
    return write_page(page(title, sections, lead=parts.lead(systems)), told.folder / "index.html")


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
