"""Which engine runs a network: torch on a device, or onnxruntime on the CPU.

onnxruntime takes half of torch's time on a CPU, and needs the network as an ONNX file.  That is
made once, beside the weights (model.safetensors, model.onnx), where the time pays or is asked for.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evenplace.arrays import Bytes, Floats
from evenplace.describe.onnx_engine import OnnxEngine
from evenplace.errors import EvenPlaceError, SettingError, WeightsError, unknown_name
from evenplace.networks.fingerprint import fingerprint_of

if TYPE_CHECKING:
    from evenplace.networks.network import PlaceNetwork

ENGINES = ("auto", "onnxruntime", "torch", "torch-compile")
Tell = Callable[[str], None]  # hears what was chosen, in a sentence
PRECISIONS = ("auto", "float32", "bfloat16", "float16")
_PAYS = 200  # photos: seconds of exporting, once, against half the time of this and all questions
_GPU = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA's driver, the same under WSL, AMD's


class Engine(Protocol):
    """One network, ready to describe."""

    dim: int
    image_size: tuple[int, int]  # height and width of the photos it is asked with
    together: int | None  # photos that must be described together; None if each is by itself
    batch: int  # how many photos at a time suit the device
    parallel: int  # batches it runs at once, each on a thread of the caller's
    parameters: int
    chosen: str  # where and how it runs, in a few words

    @property
    def fingerprint(self) -> str: ...
    def run(self, pixels: Bytes) -> Floats:
        """(B, 3, H, W) -> unit descriptors (B, D)."""


@dataclass(frozen=True)
class Wanted:
    """What was asked of the engine.

    expected: photos that are coming; None for a service, whose photos come one by one and
    without end.  local: this process's number on its machine, for its own GPU.
    """

    device: str = "auto"
    engine: str = "auto"
    precision: str = "auto"
    expected: int | None = None
    local: int = 0
    tell: Tell = lambda text: None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise unknown_name("engine", self.engine, ENGINES)
        if self.precision not in PRECISIONS:
            raise unknown_name("precision", self.precision, PRECISIONS)

    @property
    def torch(self) -> bool:
        """Whether torch was asked for, compiled or not."""
        return self.engine.startswith("torch")

    @property
    def alone(self) -> bool:
        return self.expected is None or self.expected < 2

    @property
    def pays(self) -> bool:
        """Whether so many photos are worth an export."""
        return self.expected is None or self.expected >= _PAYS or self.engine == "onnxruntime"


def start_engine(network: "PlaceNetwork | Path", wanted: Wanted) -> Engine:
    """Run a network: one in memory, a run's .safetensors, or an exported .onnx."""
    refused = _refused(network, wanted)
    if isinstance(network, Path) and network.suffix == ".onnx":
        if wanted.torch or refused:
            why = f"onnxruntime {refused}" if refused else "it is for onnxruntime"
            raise SettingError(f"{network} is an exported network, and {why}; use the run itself")
        return OnnxEngine(network, alone=wanted.alone)
    if wanted.engine == "onnxruntime" and refused:
        raise SettingError(f"onnxruntime {refused}; use the engine torch")
    if isinstance(network, Path) and not wanted.torch and not refused:
        exported = _exported(network, wanted)
        if exported is not None:
            return exported
    from evenplace.describe.torch_engine import TorchEngine  # slow to load, absent from a box

    if isinstance(network, Path):
        from evenplace.networks.checkpoints import load_checkpoint

        network = load_checkpoint(network).network
    compiled = wanted.engine == "torch-compile"
    return TorchEngine(network, wanted.device, wanted.precision, wanted.local, compiled)


def _refused(network: "PlaceNetwork | Path", wanted: Wanted) -> str:
    """Why onnxruntime cannot run it, or should not; empty where it can."""
    if not isinstance(network, Path):
        return "runs networks from files, and this one is in memory"
    if find_spec("onnxruntime") is None:
        return "is not installed (pip install onnxruntime)"
    if wanted.device not in ("auto", "cpu"):
        return f"runs on the CPU here, not on {wanted.device}"
    if wanted.precision not in ("auto", "float32"):
        return f"runs in float32 here, not in {wanted.precision}"
    chosen = wanted.engine != "auto" or wanted.device != "auto" or network.suffix == ".onnx"
    if not chosen and _may_have_gpu():
        return "leaves a GPU idle"
    return ""


def _may_have_gpu() -> bool:
    """Whether torch is worth asking for a GPU; loading it to ask takes seconds."""
    return sys.platform != "linux" or any(Path(device).exists() for device in _GPU)


def _exported(weights: Path, wanted: Wanted) -> OnnxEngine | None:
    """The network as it is kept beside its weights, made anew if it is another's or absent."""
    found = _kept(weights, wanted.alone)
    if found is not None or not wanted.pays:
        return found
    try:
        return OnnxEngine(_export(weights, wanted.tell), alone=wanted.alone)
    except (EvenPlaceError, RuntimeError, ImportError) as cause:
        if wanted.engine == "onnxruntime":
            raise
        wanted.tell(f"torch describes, since {weights} cannot be exported: {cause}")
        return None


def export_where_it_pays(weights: Path, wanted: Wanted) -> None:
    """Leave a network exported for those who ask one photo at a time, and would not wait for it."""
    if wanted.pays and not wanted.torch and not _refused(weights, wanted):
        _exported(weights, wanted)


def exported(weights: Path, tell: Tell) -> Path:
    """A network's ONNX file, beside its weights; made where there is none of these weights."""
    found = _kept(weights, alone=True)
    return _export(weights, tell) if found is None else found.path


def _kept(weights: Path, alone: bool) -> OnnxEngine | None:
    kept = weights.with_suffix(".onnx")
    try:
        found = OnnxEngine(kept, alone=alone) if kept.exists() else None
    except WeightsError:
        return None  # damaged, or by an older version: made anew
    return found if found and found.fingerprint == fingerprint_of(weights) else None


def _export(weights: Path, tell: Tell) -> Path:
    from evenplace.describe.export import export_onnx
    from evenplace.networks.checkpoints import load_checkpoint
    from evenplace.photos.files import whole_file

    kept = weights.with_suffix(".onnx")
    tell(f"exporting {kept}, once for these weights (some ten seconds)")
    with whole_file(kept) as draft:
        export_onnx(load_checkpoint(weights).network, draft, places=False)
    return kept
