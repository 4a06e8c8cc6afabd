"""evenplace study: one table or figure of the paper, trained, asked and printed."""

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenplace.cli.console import bars, say
from evenplace.cli.options import Box, City, ForAll, Heading, Radius, Which, Zone, grouped
from evenplace.errors import SettingError

if TYPE_CHECKING:
    from evenplace.study import Findings, Split, Study


@dataclass(frozen=True)
class Sources:
    """What is trained on and effort."""

    data: Annotated[
        str, typer.Option(help="town, a set under EVENPLACE_DATA, or a folder of photos")
    ] = "town"
    train: Annotated[
        list[Path] | None, typer.Option(help="photos to train on instead, as often as needed")
    ] = None
    test: Annotated[
        list[Path] | None,
        typer.Option(help="a data set to test on: SF-XL, MSLS, Pitts30k, Nordland …; often"),
    ] = None
    database: Annotated[Path | None, typer.Option(help="photos to search in")] = None
    queries: Annotated[
        str | None, typer.Option(help="photos to ask with, beside --database; or how many at most")
    ] = None
    protocol: Annotated[
        str | None, typer.Option(help="the named test of --test; found by looking")
    ] = None

    @property
    def most(self) -> int | None:
        """How many queries at most, where --queries is a number."""
        return int(self.queries) if self.queries and self.queries.isdigit() else None

    def tests(self, which: dict[str, Any]) -> list["Split"]:
        """Every test that is asked, with the photos to train on."""
        from evenplace.photos import join_photos, read_photos
        from evenplace.study.data import read_pair, read_test

        queries = None if self.queries is None or self.most is not None else Path(self.queries)
        if not self.train:
            raise SettingError("a test of its own needs photos to train on; add --train PHOTOS")
        if bool(self.database) != bool(queries):
            raise SettingError("--database and --queries go together; give both, or --test")
        if not self.test and not self.database:
            raise SettingError("nothing is asked; add --test DATA, or --database and --queries")
        if self.database and self.protocol:
            raise SettingError(
                f"--protocol {self.protocol} reads a data set's folder; give it with --test"
            )
        photos = join_photos([read_photos(folder, **which) for folder in self.train])
        tests = [one for at in self.test or [] for one in read_test(at, photos, self.protocol)]
        pair = self.database and queries and read_pair(self.database, queries, photos)
        return [*tests, *([pair] if pair else [])]


@dataclass(frozen=True)
class Effort:
    """How often, and where to."""

    seeds: Annotated[
        int | None, typer.Option(help="splits (towns) and trainings to average over: 3, of paper 1")
    ] = None
    first_seed: Annotated[int, typer.Option(help="the first of them, as of towns unseen")] = 0
    out: Annotated[
        Path, typer.Option(help="folder of all studies, which share trainings; this one's is NAME")
    ] = Path("runs/studies")

    @property
    def command(self) -> str:
        """What was typed, but for where it goes."""
        words = [word for word in sys.argv[1:] if word != "--out" and Path(word) != self.out]
        return " ".join(["evenplace", *words])


@dataclass(frozen=True)
class Asking:
    """What is asked of one set, and what counts as right."""

    photos: Annotated[int | None, typer.Option(help="database photos at most")] = None
    radius: Radius = 25.0
    heading: Heading = None
    development: Annotated[
        bool,
        typer.Option("--development", help="ask with database photos, the test queries unseen"),
    ] = False


Name = Annotated[
    str,
    typer.Argument(
        help="losses, modules, plug-in, sensitivity, partition, margin, distance, confidence, "
        "cost, tail, abstention, beyond, choices, rewards, fine-tuning, contest, layer, "
        "descriptors, pipelines, second-look, elsewhere or another-day; paper is all of the "
        "paper's, on one page"
    ),
]


@grouped
def study(
    name: Name,
    *,
    sources: Sources,
    system: Annotated[
        list[str] | None, typer.Option(help="only these of its systems, as SALAD, BoQ; often")
    ] = None,
    effort: Effort,
    asking: Asking,
    settings: ForAll = None,
    city: City = None,
    zone: Zone = None,
    bbox: Box = None,
) -> None:
    """Run a named study: train what it needs, resume what it has, write tables and figures.

    With --test or --database it trains on --train once and asks every test.
    --city, --zone and --bbox choose among the photos of --data or --train.
    """
    from evenplace.study import find_study
    from evenplace.study.paper_page import FIRST, paper_studies

    whole = name == "paper"
    if whole and system:
        raise SettingError("paper has its own systems; leave --system out, or name one study")
    which = Which(city=city, zone=zone, bbox=bbox).chosen()
    studies = paper_studies() if whole else [find_study(name).only(system or [])]
    if studies[0].development and not asking.development:
        raise SettingError(
            f"{name} chooses settings: on a test's own queries it would choose by the answers; "
            "add --development"
        )
    if effort.seeds is None:
        effort = replace(effort, seeds=1 if whole else 3)
    if sources.train or sources.test or sources.database:
        _transfer(studies, sources.tests(which), effort, settings or [])
        return
    given = {"first": effort.first_seed, "queries": sources.most, **vars(asking), **which}
    if whole and sources.data == "town":
        given |= {most: given[most] or many for most, many in FIRST.items()}
    _one_set(studies, sources.data, effort, settings or [], given)


def _one_set(
    studies: Sequence["Study"],
    data: str,
    effort: Effort,
    settings: Sequence[str],
    given: dict[str, Any],
) -> None:
    """Run studies on one set, each with a folder of its own; several on one page too."""
    from evenplace.study import read_splits, run_study, write_findings
    from evenplace.study.write import table_text

    out, found = effort.out, []
    ending = ["development"] * given["development"]
    with bars() as announce:
        splits = read_splits(data, effort.seeds or 0, out / "data", announce=announce, **given)
        for one in studies:
            found.append(run_study(one, splits, out, settings=settings, announce=announce))
            folder = out / "-".join([one.name, Path(data).name, *ending])
            page = write_findings(found[-1], folder, command=effort.command)
            say(f"tables: {page}\nfigures: {page.parent / 'figures'}")
    if len(studies) > 1:
        _page(found, Path(data).name, effort)
        return
    for table in studies[0].tables:
        say(table_text(found[0], table) + "\n")


def _transfer(
    studies: Sequence["Study"], tests: Sequence["Split"], effort: Effort, settings: Sequence[str]
) -> None:
    """Train once, ask every test, print the tables of all; of several studies a page a test."""
    from evenplace.study import run_study, write_findings
    from evenplace.study.write import transfer_tables, write_transfer

    found: dict[str, list[Findings]] = {one.name: [] for one in tests}
    with bars() as announce:
        for study, one in itertools.product(studies, tests):
            splits = [replace(one, seed=seed) for seed in range(effort.seeds or 0)]
            made = run_study(study, splits, effort.out, settings=settings, announce=announce)
            folder = effort.out / f"{study.name}-{one.name.partition(' ')[0]}"
            write_findings(made, folder, command=effort.command)
            found[one.name].append(made)
    for number, study in enumerate(studies):
        beside = {name: every[number] for name, every in found.items()}
        say(transfer_tables(beside))
        page = write_transfer(beside, effort.out / f"{study.name}-transfer", effort.command)
        say(f"tables: {page}")
    for name in found if len(studies) > 1 else ():
        _page(found[name], name.partition(" ")[0], effort)


def _page(found: Sequence["Findings"], name: str, effort: Effort) -> None:
    from evenplace.study.paper_page import write_paper

    page = write_paper(found, effort.out / f"paper-{name}", effort.command)
    say(f"page: {page}")
