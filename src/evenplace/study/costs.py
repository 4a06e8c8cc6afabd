"""What an answer costs: milliseconds by stage, and the bytes that each kind of pipeline reads.

The paper's arithmetic: a retrieval method reads every descriptor of the city, a mixed pipeline
those of its candidates, 4 bytes a number.
"""

from evenplace.report.tables import markdown
from evenplace.study import paper
from evenplace.study.runs import Findings, Outcome
from evenplace.study.spread import spread

SFXL = 2_800_000  # photos of its test database
_KIND = {name: kind for kind, named in paper.KINDS.items() for name in named}


def cost_table(found: Findings) -> str:
    """The paper's memory and time table: sizes, and the median milliseconds of each stage."""
    stages = list(found.outcomes[0].joint.cost.latency)
    columns = ["system", "parameters", "numbers a photo", "index", "process", "candidates",
               *(f"{stage}, ms" for stage in stages), "a query, ms", paper.TIME]  # fmt: skip
    rows = []
    for one in found.outcomes:
        cost = one.joint.cost
        rows.append([
            one.system.name,
            f"{cost.parameters / 1e6:.1f} M",
            f"{cost.dim}",
            f"{cost.index_bytes / 2**20:.1f} MiB",
            f"{cost.resident_bytes / 2**20:.0f} MiB",
            f"{cost.pool_size:.0f}",
            *(f"{cost.latency[stage].median_ms:.2f}" for stage in stages),
            f"{cost.median_ms:.1f}",
            one.system.paper.get(paper.TIME, ""),
        ])  # fmt: skip
    return markdown(columns, rows)


def pipeline_table(found: Findings) -> str:
    """R@1, milliseconds, bytes of the index and of what one query must read."""
    columns = ["kind", "system", "R@1", "LR@1", "a query, ms", "numbers", "index, MB",
               "read, kB", "read at SF-XL's size", paper.V1, paper.V2, paper.TIME]  # fmt: skip
    rows = [_row(one) for one in found.outcomes]
    return (
        f"{markdown(columns, rows)}\n\n“Read” is what ranking must have at hand for one query: all "
        "descriptors under retrieval, those of the candidates else, 4 bytes a number; at SF-XL's "
        f"size {SFXL:,} photos, or the same candidates. The paper's: 450 candidates of 768 numbers "
        f"({_size(read_bytes(450, 768))}; it says 1.35 MB), all photos of 8,448 "
        f"({_size(read_bytes(SFXL, 8448))}; 94.8 GB) and of 8,192 "
        f"({_size(read_bytes(SFXL, 8192))}; 91.9 GB)."
    )


def read_bytes(photos: float, numbers: int) -> int:
    """Float32 descriptors of so many photos."""
    return round(photos * numbers * 4)


def _row(one: Outcome) -> list[str]:
    usual = "retrieval" if one.system.search.get("exact") else "mixed"
    cost, kind = one.joint.cost, _KIND.get(one.system.name, usual)
    photos = len(one.joint.places.labels) if kind == "retrieval" else cost.pool_size
    whole = SFXL if kind == "retrieval" else cost.pool_size
    beside = one.system.paper
    return [
        kind,
        one.system.name,
        spread([part.recall[1] for part in one.parts]),
        spread([part.classifier.recall[1] for part in one.parts]),
        f"{cost.median_ms:.1f}",
        f"{cost.dim:,}",
        f"{cost.index_bytes / 1e6:.1f}",
        f"{read_bytes(photos, cost.dim) / 1e3:,.0f}",
        _size(read_bytes(whole, cost.dim)),
        *(beside.get(column, "") for column in (paper.V1, paper.V2, paper.TIME)),
    ]


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.2f} MB"
