"""Every table and figure of the paper on one page, in its order, ours beside its own numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from markupsafe import Markup, escape

from evenplace.photos.files import shipped_tables, write_text
from evenplace.report.evaluation import read_kept
from evenplace.report.figures import inline_svg
from evenplace.report.gallery import gallery_html
from evenplace.report.page import Section, page, part, slim_table, table_html
from evenplace.report.scatter import LEAST, tail_places
from evenplace.study.figures import draw
from evenplace.study.runs import Findings, minutes
from evenplace.study.spec import Study, find_study
from evenplace.study.write import about, table_text


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper, as paper.toml lists them: which study answers it, and how."""

    number: str
    title: str
    study: str
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    differs: str = ""  # from the paper's, and why
    sets: tuple[str, ...] = ()  # of the paper's numbers, those of this table
    extra: str = ""  # of EXTRAS


def t_sne(found: Findings) -> Markup:
    """Tail places as each system describes them, or why there is no picture."""
    if find_spec("openTSNE") is None:
        return Markup("<p>Not drawn: pip install evenplace[tsne].</p>")
    indexes = [read_kept(one.runs[0]).index for one in found.outcomes]
    there = [index for index in indexes if index is not None]
    drawn = tail_places([one.parts[0] for one in found.outcomes], there)
    if drawn is None:
        return Markup("<p>Fewer than two tail places have {} photos.</p>").format(LEAST)
    return part("wide", [(inline_svg(drawn[0], "t-SNE of tail places"), drawn[1])])


def answers(found: Findings) -> Markup:
    """Queries with the first five answers of each system."""
    return gallery_html([one.parts[0] for one in found.outcomes])


_NARROW = 5  # inches: figures that stand beside each other
EXTRAS = {"t-sne": t_sne, "answers": answers}
ITEMS = tuple(Item(**item) for item in shipped_tables("study/paper.toml")["items"])
FIRST = {"photos": 300, "queries": 100}  # of a town: a first version takes minutes, not hours
ORDER = tuple(dict.fromkeys(item.study for item in ITEMS))


def paper_studies() -> list[Study]:
    """The studies of the page in its order, each with the systems that it shows."""
    studies = []
    for name in ORDER:
        study, mine = find_study(name), [item for item in ITEMS if item.study == name]
        every = [one.name for one in study.systems]
        shown = {one for item in mine for one in item.systems or every}
        studies.append(study.exactly([one for one in every if one in shown]))
    return studies


def write_paper(
    found: Sequence[Findings], out: Path, command: str, items: Sequence[Item] = ITEMS
) -> Path:
    """Write out/index.html, a section for each table and figure, and the figures as files."""
    by_name = {one.study.name: one for one in found}
    sections = [
        _section(item, by_name[item.study], out / "figures")
        for item in items
        if item.study in by_name
    ]
    sections.append(_times(found))
    lead = f"{command}. {about(found[0])} Figure 3, the framework, is in docs/method.md."
    whole = page("The paper's tables and figures", sections, lead=lead)
    return write_text(out / "index.html", whole)


def _times(found: Sequence[Findings]) -> Section:
    """What each study took; a training or an answer that an earlier one has is not new."""
    rows: list[list[str]] = []
    seen: set[Path] = set()
    for one in found:
        new, alone = minutes(one.folders - seen), minutes(one.folders)
        rows.append([one.study.name, str(len(one.outcomes)), f"{new:.1f}", f"{alone:.1f}"])
        seen |= one.folders
    rows.append(["all", "", f"{minutes(seen):.1f}", ""])
    columns = ["study", "systems", "minutes of one core", "if run alone"]
    return Section(
        "What it took",
        table_html(columns, rows),
        "Training, tuning, indexing and asking; what studies share is counted in the first that "
        "needs it. Drawing towns and figures is left out.",
    )


def _section(item: Item, whole: Findings, folder: Path) -> Section:
    found, body, drawn, wide = _shown(item, whole), Markup(), [], False
    for name in item.tables:
        body += markdown_html(table_text(found, name))
    for name in item.figures:
        slug = re.sub(r"[^a-z0-9]+", "-", f"{item.number} {name}".lower())
        figure, told = draw(found, name, folder / slug)
        drawn.append((inline_svg(figure, told), told))
        wide |= figure.get_figwidth() > _NARROW
    if drawn:
        body += part("wide" if wide else "figures", drawn)
    if item.extra:
        body += EXTRAS[item.extra](found)
    return Section(f"{item.number}: {item.title}", body, item.differs)


def _shown(item: Item, whole: Findings) -> Findings:
    """Its systems, with the paper's numbers of its sets."""
    found = whole.only(item.systems)
    if not item.sets:
        return found
    outcomes = []
    for one in found.outcomes:
        kept = {name: value for name, value in one.system.paper.items() if name in item.sets}
        outcomes.append(replace(one, system=replace(one.system, paper=kept)))
    return replace(found, outcomes=tuple(outcomes))


def markdown_html(text: str) -> Markup:
    """Our own tables.md, whose blocks are paragraphs, headings and tables, as HTML."""
    parts = []
    for block in text.split("\n\n"):
        lines = block.strip().split("\n")
        if lines[0].startswith("|"):
            rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
            words = [at for at, column in enumerate(rows[0]) if column == "kind"]
            parts.append(slim_table(rows[0], rows[2:], words))
        elif heading := re.match("##(#*) ", lines[0]):
            level, title = 3 + len(heading[1]), lines[0][heading.end() :]
            parts.append(Markup("<h{}>{}</h{}>").format(level, title, level))
        elif lines[0]:
            said = re.sub("`(.+?)`", r"<code>\1</code>", str(escape(block)))
            parts.append(Markup(f"<p>{said}</p>"))
    return Markup().join(parts)
