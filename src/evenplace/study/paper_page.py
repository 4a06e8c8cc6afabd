"""Every table and figure of the paper on one page, in its order, ours beside its own numbers."""

import html
from collections.abc import Sequence
from pathlib import Path

from evenplace.report.figures import inline_svg
from evenplace.report.page import Section, page, table_html, write_page
from evenplace.study.figures import CAPTIONS, FIGURES
from evenplace.study.runs import Findings
from evenplace.study.tables import TABLES
from evenplace.study.write import TITLES, about

ORDER = {  # the paper's numbering, and the study that answers it
    "pipelines": "Table 1, Figure 4: three kinds of pipeline",
    "plug-in": "Tables 2 to 4: low-visit bias in other methods",
    "distance": "Figure 5: the distance that ranks",
    "modules": "Table 5: what each part adds",
    "losses": "Table 6: losses for the long tail",
    "partition": "Figure 6: the extent of a place",
    "sensitivity": "Supplement B1: the strengths",
    "margin": "Supplement B3: the cosine margin",
    "confidence": "Supplement, uncertainty: which number to trust",
}
ELSEWHERE = (
    "Figures 1 and 2 and the supplement's class distributions are pages of the data: `evenplace "
    "audit PHOTOS`. Figure 3 is docs/method.md. The t-SNE of tail places and the galleries are in "
    "`evenplace report RUN --tsne`."
)


def write_paper(found: Sequence[Findings], out: Path, command: str) -> Path:
    """Write out/index.html: a section a study, with its tables and figures."""
    sections = [
        Section(ORDER.get(one.study.name, one.study.name), _study_html(one), one.study.note)
        for one in found
    ]
    lead = f"{command}. {about(found[0])} {ELSEWHERE}" if found else ELSEWHERE
    return write_page(
        page("The paper's tables and figures", sections, lead=lead), out / "index.html"
    )


def _study_html(found: Findings) -> str:
    parts = [f"<p>{html.escape(found.study.question)}</p>"]
    for name in found.study.tables:
        parts.append(f"<h3>{TITLES[name]}</h3>{markdown_html(TABLES[name](found))}")
    for name in found.study.figures:
        drawing = inline_svg(FIGURES[name](found), html.escape(CAPTIONS[name]))
        parts.append(f"<figure>{drawing}<figcaption>{CAPTIONS[name]}</figcaption></figure>")
    return "".join(parts)


def markdown_html(text: str) -> str:
    """Our own tables.md, whose blocks are paragraphs, headings and tables, as HTML."""
    parts = []
    for block in text.split("\n\n"):
        lines = block.strip().split("\n")
        if lines[0].startswith("|"):
            rows = [[html.escape(cell.strip()) for cell in line.strip("|").split(" | ")]
                    for line in lines]  # fmt: skip
            parts.append(f'<div class="wide">{table_html(rows[0], rows[2:])}</div>')
        elif lines[0].startswith("### "):
            parts.append(f"<h4>{html.escape(lines[0][4:])}</h4>")
        elif lines[0]:
            parts.append(f"<p>{html.escape(block)}</p>")
    return "".join(parts)
