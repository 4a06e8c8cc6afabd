"""Every table and figure of the paper on one page, in its order, ours beside its own numbers."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from markupsafe import Markup, escape

from evenplace.report.figures import inline_svg
from evenplace.report.gallery import gallery_html
from evenplace.report.page import Section, page, part, slim_table, table_html, write_page
from evenplace.report.run_files import read_kept
from evenplace.report.scatter import LEAST, tail_places
from evenplace.study import paper
from evenplace.study.figures import draw
from evenplace.study.named import find_study
from evenplace.study.runs import Findings, minutes
from evenplace.study.spec import Study
from evenplace.study.write import about, table_text


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper: which study answers it, with which of its systems."""

    number: str
    title: str
    study: str
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    differs: str = ""  # from the paper's, and why
    sets: tuple[str, ...] = ()  # of the paper's numbers, those of this table
    extra: Callable[[Findings], Markup] | None = None


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
PAIR = ("D&C + CosPlace", "DAPR-M")
SMALL = "Our networks are small and the data is not SF-XL: compare rows with each other"
ITEMS = (
    Item("Figure 1", "The long tail", "pipelines", figures=("long-tail",), systems=("D&C",),
         differs="The paper's is of SF-XL and D&C. Places of one photo have no similarity, so the "
         "band ends where they begin."),
    Item("Figure 2", "Where head and tail are", "pipelines", figures=("map",),
         systems=("DAPR-M",), differs="Windows are chosen by a rule; the paper's by hand."),
    Item("Table 1", "Three kinds of pipeline", "pipelines", ("pipelines", "gains"), ("steps",),
         differs="The paper's rows are published networks on SF-XL's 2.8 million photos and a GPU; "
         "ours the same methods in small, on a processor. Classifiers answer by the photos of "
         "their best place. Its ResNet101 and DINOv2 rows have no counterpart here."),
    Item("Table 2", "Low-visit bias in classifiers and CosPlace", "plug-in", ("beside", "gains"),
         systems=("CosPlace", "CosPlace + LB", "D&C", "D&C + LB", "D&C mixed", "D&C mixed + LB"),
         differs=f"{SMALL}. Compare the paper's D&C with our LR@N, the classifier alone; our R@N "
         "of D&C are the photos of its one best place.",
         sets=(paper.V1, paper.V2)),
    Item("Figure 4", "Head, middle and tail", "pipelines", ("tiers", "gains", "gains-5"),
         ("ranks",), PAIR,
         "The paper gains 1.0, 1.3 and 1.5 points of R@1 in head, middle and tail, and 1.7, 1.3 "
         "and 7.4 of R@5."),
    Item("Figure 5", "The distance that ranks", "distance", ("beside", "gains"), ("ranks",),
         ("L2", "CFD", "D&C, L2", "D&C, CFD"),
         f"{SMALL}. Figure 5 has no numbers in the text; CFD here is the paper's to the letter."),
    Item("Table 3", "Low-visit bias in retrieval", "plug-in", ("beside", "gains"),
         systems=("CosPlace", "CosPlace + LB", "SALAD", "SALAD + LB", "BoQ", "BoQ + LB"),
         differs=f"{SMALL}. On several sets at once: study plug-in --train … --test ….",
         sets=(paper.MSLS, paper.PITTS, paper.NORDLAND)),
    Item("Table 4", "The same in the tail", "plug-in", ("tails",),
         systems=("SALAD", "SALAD + LB", "BoQ", "BoQ + LB"),
         differs=f"{SMALL}. The paper's tail fits 30 % of the queries; ours is shown so, and as "
         "the queries of 30 % of the places."),
    Item("Table 5", "What each part adds", "modules", ("beside", "gains"), ("ranks",),
         differs=f"{SMALL}; the paper's are DINOv2. “recommended” is ours."),
    Item("Table 6", "Losses for the long tail", "losses", ("beside", "gains"), ("ranks",),
         differs=f"{SMALL}; the paper's are DINOv2. All rank by CFD."),
    Item("Figure 6", "The extent of a place", "partition", ("areas", "beside", "gains"),
         ("areas",), differs="The paper's per-class R@1 on CPlaNet's kd-tree falls from 14.3 to "
         "12.6 with the extent of the leaf. Squares of a grid are all alike and have no bins."),
    Item("Supplement A, first figure", "Class distributions", "pipelines",
         figures=("distribution",), systems=("DAPR-M",), differs="Of this data, where the paper "
         "has GSV-Cities and MSLS; of several sets: audit --figures FOLDER --beside PHOTOS."),
    Item("Supplement A, second figure", "SALAD by tier", "plug-in", figures=("ranks",),
         systems=("SALAD", "SALAD + LB"), differs="Of this data, where the paper has MSLS and "
         "Pitts30k."),
    Item("Supplement B, first figure", "Strengths β, κ and α", "sensitivity", ("beside",),
         ("lines",), differs="The paper's R@1 peaks at β = .01 and is even for α of .3 to .7."),
    Item("Supplement B, second figure", "Four recent methods", "plug-in", ("beside", "gains"),
         ("hosts",), tuple(f"{host}{bias}" for host in
                           ("CliqueMining", "CricaVPR", "MegaLoc", "ImAge")
                           for bias in ("", " + LB")),
         "One set here, five in the paper, which gives no numbers in the text."),
    Item("Supplement B, third figure", "The cosine margin", "margin", ("beside", "gains"),
         ("ranks",), differs="Drawn without numbers in the paper's text."),
    Item("Supplement B, fourth figure", "CFD in the tail", "distance", ("tiers",),
         ("tiers",), ("L2", "CFD"), f"{SMALL}; the paper's are R@1 of DAPR-M with DINOv2."),
    Item("Supplement C, t-SNE", "Tail places before and after", "modules",
         systems=("CE + L2", "LB + CFD"), extra=t_sne,
         differs="The paper chooses ten tail classes of its training photos."),
    Item("Supplement C, galleries", "Queries and answers", "pipelines", systems=PAIR,
         extra=answers, differs="Rescued, lost and failed queries of every tier, chosen by lot."),
    Item("Supplement E", "Which number to trust", "confidence", ("uncertainty", "confidence"),
         ("precision-recall", "risk"), differs="AUC-PR on this data; the paper's is DINOv2's on "
         "Nordland, Pitts30k and MSLS."),
)  # fmt: skip
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
    return write_page(page("The paper's tables and figures", sections, lead=lead),
                      out / "index.html")  # fmt: skip


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
    if item.extra is not None:
        body += item.extra(found)
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
