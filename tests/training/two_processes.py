"""What each of two processes does in tests/training/test_distributed.py.

    python -m tests.training.two_processes TOWN FOLDER [WORK …]

torchrun's variables say which of the two it is; what it saw goes to FOLDER/WORK-RANK.json.
"""

import json
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from typer.testing import CliRunner

from evenplace.cli import app
from evenplace.errors import RunError
from evenplace.photos import read_photos
from evenplace.training.distributed import join_ranks, leave_ranks, rank_of_process
from evenplace.training.fit import Session
from tests.training.town import quick_run

PATIENCE, WORK = 10.0, 13  # seconds a group waits for a word, and the first process works


def fit(town: Path, out: Path) -> dict[str, list[float]]:
    """The losses of each case of FOLDER/cases.json."""
    photos, cases = read_photos(town), json.loads((out / "cases.json").read_text())
    return {
        name: list(quick_run(photos, out / name, *settings).losses)
        for name, settings in cases.items()
    }


def stop(town: Path, out: Path) -> list[float]:
    """The losses of the case `groups`, stopped within its second epoch and taken up again."""
    photos, settings = read_photos(town), json.loads((out / "cases.json").read_text())["groups"]
    learn, steps = Session._learn, [0]

    def until_the_fifth(self: Session, *args: Any) -> None:
        steps[0] += 1
        if steps[0] == 5:
            raise InterruptedError
        learn(self, *args)

    Session._learn = until_the_fifth  # type: ignore[assignment,method-assign]
    with suppress(InterruptedError):
        quick_run(photos, out / "stopped", *settings)
    assert steps[0] == 5
    return list(quick_run(photos, out / "stopped", *settings).losses)


def lead(town: Path, out: Path) -> dict[str, Any]:
    """Work that outlasts the patience of the processes' own group; then work that fails."""
    ranks = join_ranks("cpu")
    hasty = dist.new_group(timeout=timedelta(seconds=PATIENCE))
    ranks, began = replace(ranks, group=hasty), time.monotonic()
    ranks.lead(lambda: time.sleep(WORK))
    seconds, said = time.monotonic() - began, ""
    try:
        ranks.lead(_fail)
    except (RunError, ZeroDivisionError) as error:
        said = f"{type(error).__name__}: {error}"
    return {"seconds": seconds, "said": said}


def _fail() -> None:
    raise ZeroDivisionError("the disk is full")


def typed(town: Path, out: Path) -> str:
    """What `evenplace train` says, with a recipe that has folds."""
    words = ["train", str(town), "--out", str(out / "typed"), "--method", "dapr-m", "--dev"]
    words += [word for one in ("image_size=32", "dim=16") for word in ("--set", one)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    return " ".join(done.output.split())


def main(town: str, out: str, *names: str) -> None:
    torch.set_num_threads(1)
    for work in (fit, stop, lead, typed):
        if names and work.__name__ not in names:
            continue
        seen = work(Path(town), Path(out))
        Path(out, f"{work.__name__}-{rank_of_process()}.json").write_text(json.dumps(seen))
    leave_ranks()


if __name__ == "__main__":
    main(*sys.argv[1:])
