"""What a run folder holds, file by file.  Every verb reads it, adds its files, can be repeated.

recipe.toml           every choice, and the only truth about them     train, or index
places.parquet        the map cut into places                         train, or index
photos.parquet        what was trained on, for `tune`                 train
model.safetensors     the network and its prototypes                  train, or index --method
log.jsonl  cache/     the losses, the frozen trunk's output           train
fused.json            the learned weights of the fused score          tune
calibration.json      rehearsed answers, behind every confidence      tune
look.json             the learned second look, and its rehearsal      tune
index/                descriptors, photos and places to search in     index
describer.safetensors  ranking/   the same of a second network        index, where two answer
checksums.json        of what was learned, for `verify`               train, tune, index
scores.json  predictions.parquet  scored_places.parquet               evaluate
store.json            where a store holds the descriptors              index --store
abstention.json       what a precision that was asked for delivered   evaluate
report/index.html                                                     report
model.onnx  describer.onnx   the networks for onnxruntime             where that pays; see `box`
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenplace.describe.describer import Describer
from evenplace.describe.engines import Wanted, export_where_it_pays
from evenplace.errors import RunError, SettingError
from evenplace.networks.methods import NetworkSpec
from evenplace.photos.files import write_text
from evenplace.photos.table import Photos
from evenplace.places import Places
from evenplace.retrieval.rehearsal import Rehearsal
from evenplace.run.checksums import sealing
from evenplace.training.recipe import Recipe, read_recipe

if TYPE_CHECKING:  # what runs or trains a network needs torch, which a box has not
    from evenplace.networks.network import PlaceNetwork

NO_NETWORK = NetworkSpec(backbone="none", aggregator="none")  # of a run of others' descriptors


@dataclass(frozen=True)
class RunFolder:
    """The files of a run by what they are, and those that are read whole.

    how: device, engine, precision and batch of whatever describes its photos.
    """

    path: Path
    how: dict[str, Any] = field(default_factory=dict)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @property
    def recipe(self) -> Recipe:
        if not (self / "recipe.toml").exists():
            raise RunError(
                f"{self.path} is no run folder; make one: evenplace train PHOTOS --run {self.path}"
            )
        return read_recipe(self / "recipe.toml")

    @property
    def places(self) -> Places:
        return Places.read(self / "places.parquet")

    @property
    def trained(self) -> bool:
        """Whether the run trained its network, or took it, or its descriptors, from somebody."""
        from evenplace.training.progress import has_progress

        return has_progress(self.path) or (self / "photos.parquet").exists()

    @property
    def trained_on(self) -> Photos:
        """The photos the network was trained on."""
        kept = self / "photos.parquet"
        if not kept.exists():
            raise RunError(
                f"{kept} does not exist, so nothing can be held out; train the run again"
            )
        return Photos.read(kept)

    @property
    def rehearsal(self) -> Rehearsal:
        """What `tune` asked with held-out photos, and the answers."""
        return Rehearsal.read(self / "calibration.json")

    @property
    def indexes(self) -> list[Path]:
        """The indexes in the order they are written: the one that others watch comes last."""
        second = [self / "ranking"] if self.second else []
        return [*second, self / "index"]

    @property
    def network(self) -> "PlaceNetwork":
        from evenplace.networks.checkpoints import load_checkpoint

        return load_checkpoint(self / "model.safetensors").network

    @property
    def describer(self) -> "PlaceNetwork":
        """The network that ranks, where that is not the run's own."""
        from evenplace.networks.checkpoints import load_checkpoint

        kept = self / "describer.safetensors"
        if not kept.exists():
            raise RunError(
                f"{kept} does not exist; index first: evenplace index {self.path} --database PHOTOS"
            )
        return load_checkpoint(kept).network

    @property
    def describes(self) -> bool:
        """Whether the run has a network, or was made of descriptors that others computed."""
        return self.recipe.network.backbone != NO_NETWORK.backbone

    def open_describer(self, **how: Any) -> Describer:
        """What describes the run's photos: its network, with the one that ranks if another."""
        if not self.describes:
            raise RunError(
                f"{self.path} was made of descriptors and has no network for photos; ask it with "
                "descriptors by what made those: --descriptors FILE, or --descriptor for one"
            )
        second = self.network_file("describer") if self.second else None
        if second is not None and not second.exists():
            _ = self.describer  # says how to get it
        how = {"expected": 1, **self.how, **how}
        return Describer(self.network_file("model"), second, **how)

    def export_network(self, photos: int) -> None:
        """Leave the network exported where so many photos pay: `locate` then needs no torch."""
        how = {name: value for name, value in self.how.items() if name != "batch"}
        export_where_it_pays(self.network_file("model"), Wanted(expected=photos, **how))

    def network_file(self, name: str) -> Path:
        """The weights of a network, or the network exported, which is all that a box has."""
        weights = self / f"{name}.safetensors"
        exported = weights.with_suffix(".onnx")
        return exported if exported.exists() and not weights.exists() else weights

    @property
    def boxed(self) -> bool:
        """Whether this is a box: networks exported, and their weights elsewhere."""
        return self.network_file("model").suffix == ".onnx"

    def refuse_box(self) -> None:
        """What a run learns or lays out anew has to be done where its weights and photos are."""
        if self.boxed:
            raise RunError(
                f"{self.path} is a box, which only answers; do this in the run it was exported "
                f"from, and then: evenplace export RUN --box {self.path}"
            )

    def write_recipe(self, recipe: Recipe) -> None:
        write_text(self / "recipe.toml", recipe.to_toml())

    @property
    def second(self) -> str | None:
        """The method whose network ranks, if not the run's own; None before there is a run."""
        return self.recipe.search.describer if (self / "recipe.toml").exists() else None

    def choose_describer(self, weights: str | None = None, **changes: Any) -> None:
        """Keep the network that ranks in describer.safetensors.

        weights, changes: as in `build_describer`.  With neither, what is kept already stays, and
        the authors' weights are the first.
        """
        method, kept = self.second, self / "describer.safetensors"
        if not method:
            raise SettingError(
                f"{self.path} ranks with the network it trained; for another one set describer= "
                "in training"
            )
        if weights or changes or not kept.exists():
            from evenplace.networks.build_model import build_describer
            from evenplace.networks.checkpoints import save_checkpoint

            network = build_describer(method, weights or "official", **changes)
            with sealing(self.path, kept.name):
                save_checkpoint(kept, network, {"name": method})
