"""What a run says of itself: log.jsonl, one line an epoch, and TensorBoard where it is wanted."""

import json
from pathlib import Path
from typing import Any

from evenplace.errors import SettingError


class RunLog:
    """Appends lines; lines of epochs that are about to be trained again are taken back."""

    def __init__(self, run: Path, first_epoch: int, tensorboard: bool) -> None:
        self.path = run / "log.jsonl"
        run.mkdir(parents=True, exist_ok=True)
        kept = [line for line in self._lines() if line["epoch"] < first_epoch]
        self.path.write_text("".join(json.dumps(line) + "\n" for line in kept))
        self.writer = _summary_writer(run / "tensorboard") if tensorboard else None

    def write(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if self.writer is not None:
            for name, value in line.items():
                if isinstance(value, (int, float)) and name != "epoch":
                    self.writer.add_scalar(name, value, line["epoch"])
            self.writer.flush()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()

    def _lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:  # half a line, written when the run was killed
                continue
        return found


def _summary_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise SettingError(
            "tensorboard=true needs the package tensorboard; pip install tensorboard, or leave it"
        ) from None
    return SummaryWriter(str(folder))
