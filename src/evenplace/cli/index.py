"""evenplace index: a database to files, updates of them, and a check."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from evenplace.cli.console import bars, print_skipped, say, stoppable, tell
from evenplace.cli.options import AllowPartial, Batched, IndexedRun, Verify, Which, grouped, only
from evenplace.errors import SettingError

if TYPE_CHECKING:
    from evenplace.photos import Photos
    from evenplace.retrieval import Index
    from evenplace.run.run import Run


_FEW = 0.1  # of an index, photos that came later, of which nothing is said
STOPPED = "stopped; the index is as it was, and the same command"


class BuildByDefault(TyperGroup):
    """`evenplace index RUN …` is `evenplace index build RUN …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["build", *args]
        return super().parse_args(ctx, args)


@dataclass(frozen=True)
class Foreign:
    """What describes the database instead of the run's own network."""

    method: Annotated[
        str | None, typer.Option(help="whose network --checkpoint is of: salad, boq, cosplace …")
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="published weights instead of a trained run: file or official; of a run "
            "where another network ranks, that one's: file, official, imagenet or a run"
        ),
    ] = None
    descriptors: Annotated[
        Path | None,
        typer.Option(help="descriptors computed elsewhere: .npy, or .h5 as hloc writes it"),
    ] = None
    cell: Annotated[
        float, typer.Option(help="with --method or --descriptors: side of a place in metres")
    ] = 20.0

    def check(self, run: "Run", changes: dict[str, Any]) -> None:
        """Refuse weights and settings of a network that has no name."""
        if (self.checkpoint or changes) and not self.method and not run.files.second:
            named = f"--checkpoint {self.checkpoint}" if self.checkpoint else ""
            named = named or f"--set {next(iter(changes))}"
            raise SettingError(f"{named} needs its network's name; add --method")

    def warn(self) -> None:
        """Say where weights are at random."""
        if self.method and self.checkpoint == "imagenet":
            tell(
                f"note: ImageNet's weights know no places; what {self.method} trains on top of "
                "them is at random, so expect little before evenplace train"
            )

    def index(
        self, run: "Run", photos: "Photos", announce: Any, changes: dict[str, Any], **laid: Any
    ) -> "Index":
        """Index photos by what was named, or by the run's own network."""
        from evenplace.places import Grid
        from evenplace.retrieval.descriptor_files import read_descriptors

        verify = laid["verify"] or 0
        if self.descriptors:
            given, places = read_descriptors(self.descriptors, photos), Grid(self.cell)
            return run.index_descriptors(
                given, photos, places.partition(photos), keep=laid["keep"], verify=verify
            )
        if self.method:
            return run.index_method(
                photos, self.method, self.checkpoint or "official", cell=self.cell,
                announce=announce, keep=laid["keep"], verify=verify, **changes,
            )  # fmt: skip
        if self.checkpoint or changes:
            run.files.choose_describer(self.checkpoint, **changes)
        return run.index(photos, announce=announce, **laid)


@dataclass(frozen=True)
class Laid:
    """How the index keeps what was described, and where else."""

    size: Annotated[
        int | None, typer.Option("--bytes", help="bytes a photo that descriptors may take")
    ] = None
    keep: Annotated[
        str | None,
        typer.Option(help="or how to keep them: float16, int8, pca256, pca256-int8, pq64 …"),
    ] = None
    verify: Verify = None
    store: Annotated[
        str | None, typer.Option(help="also fill a Milvus store: its address, or a file name")
    ] = None

    def how(self) -> dict[str, Any]:
        """What `Run.index` takes; an unknown codec is refused now rather than after hours."""
        from evenplace.retrieval.codec import codec_for, parse_codec

        if self.size is not None and self.keep:
            raise SettingError(
                f"--bytes {self.size} and --keep {self.keep} say the same thing; give one"
            )
        if self.keep:
            parse_codec(self.keep)
        if self.size is not None:
            codec_for(1, self.size)
        return {"keep": self.keep or self.size, "verify": self.verify}


@grouped
def build(
    run: Annotated[Path, typer.Argument(help="run folder with a trained model, or a new one")],
    *,
    database: Annotated[
        list[Path],
        typer.Option(help="photos to search in, as often as needed; with --protocol, the data set"),
    ],
    protocol: Annotated[
        str | None, typer.Option(help="the database of a named test: sfxl-v1, msls-val-740 …")
    ] = None,
    allow_partial: AllowPartial = False,
    foreign: Foreign,
    laid: Laid,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="of the network of --checkpoint: backbone=, dim=, image_size="),
    ] = None,
    which: Which,
    how: Batched,
) -> None:
    """Describe a database with the run's model and lay it out for search."""
    from evenplace.run.run import Run
    from evenplace.training.distributed import leave_ranks, rank_of_process
    from evenplace.training.recipe import parse_settings

    quiet = rank_of_process() > 0  # one process of several speaks for all
    opened, changes = Run(run, **how.how(quiet=quiet)), parse_settings(settings or [])
    foreign.check(opened, changes)
    kept = laid.how()
    photos = _read(database, which, protocol, allow_partial, given=bool(foreign.descriptors))
    if not quiet:
        foreign.warn()
    again = "begins again" if foreign.descriptors else "goes on"
    with stoppable(lambda: f"{STOPPED} {again}"), bars() as announce:
        built = foreign.index(opened, photos, None if quiet else announce, changes, **kept)
        leave_ranks()
    if not quiet:
        other = foreign.descriptors or foreign.method
        if not other:
            opened.files.export_network(len(photos))
        print_skipped(built.photos.skipped)
        _say_loss(built)
        _fill(opened, laid.store)
        then = f"tune {run}" if other else f"locate {run} photo.jpg"
        _say(opened, built, f"; next: evenplace {then}")


def _read(
    database: list[Path], which: Which, protocol: str | None, allow_partial: bool, *, given: bool
) -> "Photos":
    """The database; given: its descriptors are, row by row."""
    if protocol is None:
        if given:
            return which.read_given(only(database, "--descriptors are the rows of one --database"))
        return which.read(*database)
    from evenplace.photos.protocols import read_protocol

    whole = only(database, "--protocol reads one data set")
    test = read_protocol(protocol, whole, allow_partial)
    say(test.describe())
    return test.database


@grouped
def add(
    run: IndexedRun,
    *,
    database: Annotated[
        list[Path], typer.Option(help="geo-tagged photos to add, as often as needed")
    ],
    replace: Annotated[
        bool, typer.Option(help="the index has these photos: describe them anew")
    ] = False,
    which: Which,
    how: Batched,
) -> None:
    """Add photos to the run's index while others read it; new cells become places at once."""
    from evenplace.run.run import Run

    opened = Run.open(run, **how.how())
    with stoppable(lambda: f"{STOPPED} begins again"), bars() as announce:
        photos = which.read(*database)
        grown = opened.add(photos, replace=replace, announce=announce)
    print_skipped(grown.skipped)
    _warn_of_axes(grown.index, len(photos))
    _fill(opened)
    _say(opened, grown.index)


def remove(
    run: IndexedRun,
    paths: Annotated[list[str], typer.Argument(help="paths of photos, as they were indexed")],
) -> None:
    """Take photos out of the run's index while others read it."""
    from evenplace.run.run import Run

    opened = Run(run)
    left = opened.remove(paths)
    _fill(opened)
    _say(opened, left)


def store(
    run: IndexedRun,
    uri: Annotated[str, typer.Argument(help="address of a Milvus cluster, or a file name")],
) -> None:
    """Fill a store with the run's index; the run asks it from now on."""
    from evenplace.run.run import Run

    _fill(Run.open(run), uri)


def verify(run: IndexedRun) -> None:
    """Read what the run has learned and its index, and compare every file with its checksum."""
    from evenplace.run.checksums import check_files
    from evenplace.run.run import Run

    if learned := check_files(run):
        say(f"as written: {', '.join(learned)}")
    for folder, manifest in Run(run).verify().items():
        say(f"{folder} is whole: generation {manifest.generation}, {len(manifest.files)} files")


def _say(run: "Run", index: "Index", then: str = "") -> None:
    from evenplace.retrieval import open_index
    from evenplace.retrieval.prototypes import MEANS

    filled = index.sizes > 0
    own = int(index.places.extra.get(MEANS, 0 * index.sizes)[filled].sum())
    means = f"{own} places of this database's own (means of descriptors), " if own else ""
    size = sum(open_index(folder).bytes for folder in run.files.indexes)
    say(
        f"{len(index)} photos in {int(filled.sum())} places, {int((index.labels < 0).sum())} in "
        f"no place the model knows, {means}{size / 2**20:.1f} MiB{then}"
    )


def _warn_of_axes(index: "Index", added: int) -> None:
    """Say that new photos are kept as the first ones suggested, where that is no small part.

    What was measured when the axes were fitted tells nothing about streets that look otherwise.
    """
    if index.codec.axes is not None and added > _FEW * len(index):
        tell(
            f"note: {added} of {len(index)} photos are kept along the axes of those indexed "
            "before; where they show other streets, index all of them anew: evenplace index RUN "
            "--database …"
        )


def _fill(run: "Run", uri: str | None = None) -> None:
    """Let the run's store follow its index."""
    from evenplace.run.store import fill_store

    if (filled := fill_store(run.files, uri)) is not None:
        say(f"{filled.uri} holds this generation; locate, evaluate and serve ask it")


def _say_loss(index: "Index") -> None:
    """What keeping descriptors in fewer bytes costs, as it was measured."""
    loss = index.manifest.loss
    if not loss.get("asked"):
        return
    tail = (
        f"; in the tail {loss['tail_exact']:.1f} → {loss['tail_kept']:.1f} "
        f"of {loss['tail_asked']:.0f}"
        if "tail_kept" in loss
        else ""
    )
    say(
        f"descriptors as {index.codec.name}, {index.columns['descriptors'].shape[1]} numbers a "
        f"photo; R@1 of {loss['asked']:.0f} photos left out: {loss['exact']:.1f} as described → "
        f"{loss['kept']:.1f} as kept{tail}"
    )
