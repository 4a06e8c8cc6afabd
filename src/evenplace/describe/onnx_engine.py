"""A network run by onnxruntime on the CPU: half of torch's time, and no torch.

Descriptors differ from torch's in the seventh digit, far less than the index's float16 rounds:
an index written by one engine answers queries described by the other.

B batch · H, W pixels · D descriptor
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from evenplace.arrays import Bytes, Floats
from evenplace.errors import WeightsError

ABOUT = "evenplace"  # the file's own entry that says which network it is


class OnnxEngine:
    """An exported network; see `engines.Engine`.

    alone: photos come one at a time, so each gets all cores.  Otherwise each core takes a batch
    from file to descriptor by itself: nobody waits for anybody, and decoding never competes with
    the network for a core.
    """

    together: int | None = None
    batch = 4  # measured: 1 and 16 take an eighth more

    def __init__(self, path: Path, *, alone: bool = True) -> None:
        cores = own_cores()
        self.path, self.parallel = path, 1 if alone else cores
        self._session = open_session(path, cores if alone else 1)
        kept = self._session.get_modelmeta().custom_metadata_map.get(ABOUT)
        if kept is None:
            raise WeightsError(
                f"{path} was not written by EvenPlace; export the network again: evenplace export"
            )
        about: dict[str, Any] = json.loads(kept)
        self.dim, self.parameters = int(about["dim"]), int(about["parameters"])
        self.image_size: tuple[int, int] = (about["image_size"][0], about["image_size"][1])
        self.fingerprint = str(about["fingerprint"])
        self.chosen = f"onnxruntime on {cores} core{'s' if cores > 1 else ''} in float32"

    def run(self, pixels: Bytes) -> Floats:
        found: Floats
        (found,) = self._session.run(["descriptors"], {"photos": np.ascontiguousarray(pixels)})
        return found


class SharedNetwork:
    """A small exported network that several threads may ask.

    Whoever asks alone gets all cores; several get one each, since two photos at a time gain more
    than two threads.  Both ways give the same numbers.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._asking, self._lock = path, 0, Lock()
        self._sessions: dict[int, Any] = {}  # by threads

    def run(self, asked: Mapping[str, Floats]) -> list[Floats]:
        """Its outputs, in the file's order."""
        with self._lock:
            self._asking += 1
            threads = own_cores() if self._asking == 1 else 1
            if threads not in self._sessions:
                self._sessions[threads] = open_session(self._path, threads)
        try:
            found: list[Floats] = self._sessions[threads].run(None, dict(asked))
            return found
        finally:
            with self._lock:
                self._asking -= 1


def own_cores() -> int:
    """Cores that are this process's: what the system grants, shared with torchrun's others."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdigit() and int(told):
        return int(told)
    granted = getattr(os, "sched_getaffinity", None)
    cores = len(granted(0)) if granted else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def open_session(path: Path, threads: int) -> Any:
    """An ONNX file, ready to run on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that spin while they wait take the core from whoever else has work: beside busy
    # neighbours a photo took half as long again with it, alone nothing less.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors; it warns of machines it does not know
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as cause:  # onnxruntime's own errors share no base of their own
        raise WeightsError(f"{path} cannot be opened ({cause}); export it again") from cause
