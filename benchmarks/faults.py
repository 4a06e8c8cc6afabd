"""Killed at any moment, or read while it is written: nothing corrupt, nothing lost, nothing left.

    python -m benchmarks.faults kills [--kills 200] [--only VERB] [--seed 0] [--write] [--check]
    python -m benchmarks.faults updates [--seconds 600] [--readers 4] [--write] [--check]

kills    `evenplace train`, `index`, `index add` and `index remove` on a drawn town of 60 photos,
         each killed (SIGKILL) at a random moment of the processor time it takes, from its first
         line on.  After every kill the run is verified, and holds the photos of before or of
         after; the same command, typed again, must end well and leave no file that an unbroken
         one does not leave.  A training is killed several times, ended, and compared with one
         that nobody killed, byte by byte.  Commands are typed in forks of a process that has the
         command line loaded, so that no kill is wasted on `import torch`.
         --only leaves the other verbs out; --seconds ends it early, with what was found by then.
updates  one process adds and removes photos for as long as it is told, now and then by the command
         line and otherwise by the library, the others open the index, ask, reopen and verify it.
"""

import argparse
import datetime
import io
import json
import os
import pickle
import platform
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_threads] = "1"  # before numpy: a process with threads must not fork

RESULTS = Path(__file__).parent / "results"
TRAIN = (
    "epochs=3", "image_size=64", "dim=32", "batch=16", "checkpoint=0", "folds=2", "verify=0",
)  # fmt: skip
SHARES = {"train": 0.25, "index": 0.25, "add": 0.25, "remove": 0.25}
IN_A_ROW = 6  # kills of one training before it may end
LEARNED = ("model.safetensors", "places.parquet", "photos.parquet", "calibration.json",
           "fused.json", "recipe.toml")  # fmt: skip


@dataclass
class Found:
    """Kills by verb, and what they broke."""

    kills: Counter[str] = field(default_factory=Counter)
    ended: int = 0  # before their moment came
    trainings: int = 0
    corrupt: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    until: float = float("inf")

    def enough(self, verb: str, wanted: int) -> bool:
        """Whether a verb was killed as often as was wanted, or there is no time for more."""
        return self.kills[verb] >= wanted or time.monotonic() > self.until


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("kills", "updates"))
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--only", choices=SHARES, action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 unless every figure is met")
    args = parser.parse_args()
    _load()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["TMPDIR"] = str(Path(folder, "tmp"))
        Path("tmp").mkdir()
        rows = (kills if args.part == "kills" else updates)(args)
    told = [f"| {what} | {found} | {want} | {'yes' if met else 'NO'} |"
            for what, found, want, met in rows]  # fmt: skip
    lines = [*head(args), "| figure | found | wanted | met |", "| --- | --- | --- | --- |", *told]
    print("\n".join(lines))
    if args.write:
        (RESULTS / f"{args.part}.md").write_text("\n".join(lines) + "\n")
    return 0 if all(met for *_, met in rows) or not args.check else 1


Row = tuple[str, str, str, bool]


def head(args: argparse.Namespace) -> list[str]:
    size = f"--kills {args.kills} --seed {args.seed}"
    size += "".join(f" --only {verb}" for verb in args.only or [])
    title = "Killed at random moments"
    if args.part == "updates":
        size = f"--seconds {args.seconds:g} --readers {args.readers}"
        title = "Read while it is written"
    return [
        f"# {title}",
        "",
        f"`python -m benchmarks.faults {args.part} {size}` on {datetime.date.today()}: "
        f"{platform.machine()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}; a "
        f"drawn town of 60 photos, `dapr-m` with {', '.join(TRAIN)}.",
        "",
    ]


def _load() -> None:
    """Import what commands need, once, but for onnxruntime, whose import starts a thread."""
    import evenplace.cli
    import evenplace.run.indexing
    import evenplace.run.run
    import evenplace.run.tune
    import evenplace.training.loop  # noqa: F401


def begin(*words: str) -> int:
    """Start a command in a fork; its words go to said.txt."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        with Path("said.txt").open("w") as said, redirect_stdout(said), redirect_stderr(said):
            from evenplace.cli import main as typed

            sys.argv = ["evenplace", *words]
            try:
                typed()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:
                traceback.print_exc()
    finally:
        os._exit(code)


def run(*words: str) -> str:
    """Type a command to its end; what it said if it failed."""
    code = os.waitstatus_to_exitcode(os.waitpid(begin(*words), 0)[1])
    return "" if code == 0 else f"exit {code}: {Path('said.txt').read_text()[-400:]}"


def kill(moment: float, *words: str) -> bool:
    """Kill a command when it has taken so many seconds of the processor; False if it had ended."""
    pid = begin(*words)
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if _spent(pid) >= moment:
            os.kill(pid, signal.SIGKILL)
            return os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        time.sleep(0.002)
    return False


def _spent(pid: int) -> float:
    """Nanoseconds a process ran, by the scheduler; finer than its clock ticks."""
    threads = Path(f"/proc/{pid}/task")
    try:
        parts = [(one / "schedstat").read_text() for one in threads.iterdir()]
    except OSError:  # it ended
        return float("inf")
    return sum(int(part.split()[0]) for part in parts) / 1e9


def cost(*words: str) -> float:
    """Processor seconds of a whole command."""
    before = os.times()
    if broken := run(*words):
        raise SystemExit(f"{' '.join(words)}: {broken}")
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def in_child(work: Callable[[], Any]) -> Any:
    """What a function gives, computed in a fork, since reading an index starts threads.

    An exception comes back as its text.
    """
    return end(start(work))


def start(work: Callable[[], Any]) -> tuple[int, io.BufferedReader]:
    """Begin to compute something in a fork."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with os.fdopen(writing, "wb") as file:
            try:
                found = work()
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            pickle.dump(found, file)
        os._exit(0)
    os.close(writing)
    return pid, os.fdopen(reading, "rb")


def end(started: tuple[int, io.BufferedReader]) -> Any:
    """Wait for what a fork computes."""
    pid, file = started
    with file:
        found = pickle.load(file)
    os.waitpid(pid, 0)
    return found


def kills(args: argparse.Namespace) -> list[Row]:
    """Kill every verb its share of times."""
    rng, found = random.Random(args.seed), Found(until=time.monotonic() + args.seconds)
    town()
    some = {verb: share for verb, share in SHARES.items() if verb in (args.only or SHARES)}
    wanted = {verb: round(share * args.kills / sum(some.values())) for verb, share in some.items()}
    kill_trainings(rng, found, wanted.get("train", 0))
    if some.keys() - {"train"}:
        kill_index(rng, found, wanted.get("index", 0))
        kill_updates(rng, found, {verb: wanted.get(verb, 0) for verb in ("add", "remove")})
    told = ", ".join(f"{count} of {verb}" for verb, count in found.kills.items())
    for kind in (found.corrupt, found.lost, found.left, found.differing):
        print(*kind, sep="\n", file=sys.stderr)
    killed = found.kills.total()
    return [
        ("kills", f"{killed}: {told}; {found.ended} more ended first", f"{args.kills}",
         killed >= args.kills),
        ("corrupt: a run or an index that is not whole, a command that fails when typed again",
         f"{len(found.corrupt)}", "0", not found.corrupt),
        ("lost: an index with other photos than before or after", f"{len(found.lost)}", "0",
         not found.lost),
        ("left over after the next command", f"{len(found.left)}", "0", not found.left),
        (f"files of {found.trainings} resumed trainings that differ from the unbroken one",
         f"{len(found.differing)} of {found.trainings * len(LEARNED)}", "0", not found.differing),
    ]  # fmt: skip


def town() -> None:
    """A town in two folders: one to train on and index, one to add and remove."""
    from evenplace.city import draw_city

    in_child(lambda: str(draw_city("town", photos=80, queries=4, size=64)))
    photos = sorted(Path("town/database").glob("*.jpg"))
    Path("more").mkdir()
    for photo in photos[::4]:
        photo.rename(Path("more", photo.name))


def train_words(folder: str) -> list[str]:
    changed = [word for setting in TRAIN for word in ("--set", setting)]
    return ["train", "town/database", "--run", folder, *changed]


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def kill_trainings(rng: random.Random, found: Found, wanted: int) -> None:
    """Kill a training some times, let it end, compare; again until there were enough kills."""
    whole = cost(*train_words("whole"))
    names = _files(Path("whole"))
    say(f"an unbroken training takes {whole:.1f} s of the processor")
    while not found.enough("train", wanted):
        folder, killed = f"run{found.trainings}", 0
        while killed < IN_A_ROW and not found.enough("train", wanted):
            if not kill(rng.uniform(0, whole), *train_words(folder)):
                found.ended += 1
                break
            found.kills["train"] += 1
            killed += 1
        if broken := run(*train_words(folder)):
            found.corrupt.append(f"train after {killed} kills: {broken}")
        found.trainings += 1
        found.left += [f"train: {name}" for name in _files(Path(folder)) - names] + _temporary()
        for name in LEARNED:
            if not _same(Path("whole", name), Path(folder, name)):
                found.differing.append(f"{folder}/{name} after {killed} kills")
        shutil.rmtree(folder)
        say(f"train: {found.kills['train']} kills")


def kill_index(rng: random.Random, found: Found, wanted: int) -> None:
    """Kill `index` of a run without an index, and of one with another database."""
    shutil.copytree("whole", "first")
    words = ("index", "first", "--database", "town/database")
    spent = cost(*words)
    names, sums = _files(Path("first")), _sums(Path("first"))
    shutil.copytree("first", "run")
    other = ("index", "run", "--database", "more")
    while not found.enough("index", wanted):
        fresh = rng.random() < 0.5
        if fresh:
            shutil.rmtree("run")
            shutil.copytree("whole", "run")
        before, words = _photos("run"), ("index", "run", "--database", "town/database")
        if not fresh and before is not None and len(before) == 60:
            words = other
        _kill_once(rng, found, "index", spent, words, before)
        if words is not other and _sums(Path("run")) != sums:
            found.corrupt.append("index: other bytes than an unbroken one")
        left = _files(Path("run")) - names
        found.left += [f"index: {name}" for name in left] + _temporary()
    shutil.rmtree("run")
    say(f"index: {found.kills['index']} kills")


def kill_updates(rng: random.Random, found: Found, wanted: dict[str, int]) -> None:
    """Kill `add` and `remove` in turns; photos that were added are removed again."""
    added = [str(path) for path in sorted(Path("more").glob("*.jpg"))]
    both = (("add", ("index", "add", "first", "--database", "more")),
            ("remove", ("index", "remove", "first", *added)))  # fmt: skip
    spent = {verb: cost(*words) for verb, words in both}
    names = _files(Path("first"))
    while any(not found.enough(verb, wanted[verb]) for verb, _ in both):
        for verb, words in both:
            _kill_once(rng, found, verb, spent[verb], words, _photos("first"), "first")
            left = _files(Path("first")) - names
            found.left += [f"{verb}: {name}" for name in left] + _temporary()
    say(f"add and remove: {found.kills['add']} and {found.kills['remove']} kills")


def _kill_once(
    rng: random.Random,
    found: Found,
    verb: str,
    spent: float,
    words: Sequence[str],
    before: frozenset[str] | None,
    folder: str = "run",
) -> None:
    """Kill a command, look at what it left, and type it again unless it had done its work."""
    killed = kill(rng.uniform(0, spent), *words)
    found.kills[verb] += killed
    found.ended += not killed
    now = _photos(folder)
    done = not killed or (now is not None and now != before)
    if now is not None and (broken := run("verify", folder)):
        found.corrupt.append(f"{verb}: {broken}")
    if isinstance(now, str) or (now is None and before is not None):
        found.corrupt.append(f"{verb}: {now}")
    if not done and (broken := run(*words)):
        found.corrupt.append(f"{verb}, typed again: {broken}")
    after = _photos(folder)
    if now not in (before, after) or after == before:
        found.lost.append(f"{verb}: {now and len(now)} photos, {before and len(before)} before")


def _photos(folder: str) -> frozenset[str] | None:
    """The photos of a run's index; None where it has none yet."""
    from evenplace.retrieval import open_index

    if not Path(folder, "index/manifest.json").exists():
        return None
    found: frozenset[str] | None = in_child(
        lambda: frozenset(open_index(Path(folder, "index")).photos.paths)
    )
    return found


def _files(folder: Path) -> set[str]:
    """Names below a folder; of an index those that its manifest does not name."""
    index = folder / "index"
    known = {"lock", "manifest.json"}
    if (index / "manifest.json").exists():
        known |= set(json.loads((index / "manifest.json").read_text())["files"])
    found = set()
    for file in folder.rglob("*"):
        inside = file.is_relative_to(index) and file != index
        if not (inside and (file.is_dir() or str(file.relative_to(index)) in known)):
            found.add(str(file.relative_to(folder)))
    return found


def _sums(folder: Path) -> list[str]:
    told = json.loads((folder / "index/manifest.json").read_text())["files"]
    return sorted(entry["sha256"] for entry in told.values())


def _temporary() -> list[str]:
    found = [f"tmp/{path.name}" for path in Path("tmp").iterdir()]
    for path in Path("tmp").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return found


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.read_bytes() == other.read_bytes()


@dataclass
class Read:
    """What one reading process met."""

    opened: int = 0
    asked: int = 0
    verified: int = 0
    generations: set[int] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)


def updates(args: argparse.Namespace) -> list[Row]:
    """One process changes the index by the command line, the others read it."""
    town()
    for words in (train_words("run"), ["index", "run", "--database", "town/database"]):
        if broken := run(*words):
            raise SystemExit(broken)
    until = time.monotonic() + args.seconds
    readers = [start(partial(read, number, until)) for number in range(args.readers)]
    added = [str(path) for path in sorted(Path("more").glob("*.jpg"))]
    failed, rng, written = [], random.Random(args.seed), 0
    while time.monotonic() < until:
        some = rng.sample(added, rng.randint(1, len(added)))
        Path("some.csv").write_text(_table(some))
        for words in (["index", "add", "run", "--database", "some.csv"],
                      ["index", "remove", "run", *some]):  # fmt: skip
            if broken := run(*words):
                failed.append(broken)
            written += 1
        changed = in_child(partial(change, rng.random(), min(until, time.monotonic() + 20)))
        failed += [changed] if isinstance(changed, str) else []
        written += changed if isinstance(changed, int) else 0
    met = [end(reader) for reader in readers]
    opened, asked, verified = (sum(getattr(one, name) for one in met)
                               for name in ("opened", "asked", "verified"))  # fmt: skip
    errors = failed + [error for one in met for error in one.errors]
    alarms = [alarm for one in met for alarm in one.alarms]
    print(*errors, *alarms, sep="\n", file=sys.stderr)
    seen = set().union(*(one.generations for one in met))
    return [
        ("generations written, and seen by readers", f"{written}, {len(seen)}", "",
         len(seen) > min(written, 4) // 2),
        ("indexes opened, questions, verifications", f"{opened:,}, {asked:,}, {verified:,}", "",
         min(opened, asked, verified) > 0),
        ("exceptions", f"{len(errors)}", "0", not errors),
        ("false alarms of verify", f"{len(alarms)}", "0", not alarms),
    ]  # fmt: skip


def change(seed: float, until: float) -> int:
    """Take photos out and put them back by the library; how many generations that made."""
    import numpy as np

    from evenplace.retrieval import open_index
    from evenplace.retrieval.update import add_photos, remove_photos

    rng, folder, written = random.Random(seed), Path("run/index"), 0
    while time.monotonic() < until:
        index = open_index(folder)
        rows = np.array(rng.sample(range(len(index)), rng.randint(1, 20)))
        photos, vectors = index.photos[rows], index.vectors(rows)
        remove_photos(folder, photos.paths)
        time.sleep(0.05)  # or readers would find no time to open one
        add_photos(folder, vectors, photos, model=index.model)
        written += 2
        time.sleep(0.05)
    return written


def _table(paths: Sequence[str]) -> str:
    """The photos as a CSV of their SF-XL positions."""
    rows = [f"{path},{path.split('@')[1]},{path.split('@')[2]},{path.split('@')[3]}"
            for path in paths]  # fmt: skip
    return "\n".join(["path,east,north,zone", *rows]) + "\n"


def read(number: int, until: float) -> Read:
    """Open, ask, reopen, verify, in a random order, until the time is over."""
    import numpy as np

    from evenplace.retrieval import Search, open_index, verify_index

    met, rng, folder = Read(), random.Random(number), Path("run/index")
    engine = Search(open_index(folder))
    while time.monotonic() < until:
        try:
            what = rng.random()
            if what < 0.2:
                engine = Search(open_index(folder))
                met.opened += 1
            elif what < 0.4:
                engine = engine.reopen()
                met.opened += 1
            elif what < 0.9:
                row = rng.randrange(len(engine.index))
                asked = np.atleast_2d(engine.index.vectors(np.array([row])))
                best = engine.answers(asked, 5)[0].hits[0]
                if best.path != engine.index.paths(np.array([row]))[0] and best.similarity < 0.999:
                    met.errors.append(f"photo {row} is not its own best match")
                met.asked += 1
            met.generations.add(engine.index.manifest.generation)
        except Exception as error:
            met.errors.append(f"{type(error).__name__}: {error}")
        if what >= 0.9:
            try:
                verify_index(folder)
                met.verified += 1
            except Exception as error:
                met.alarms.append(f"{type(error).__name__}: {error}")
    return met


if __name__ == "__main__":
    sys.exit(main())
