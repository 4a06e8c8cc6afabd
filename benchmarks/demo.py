"""The demo, timed: does it keep its promises, and does DAPR find the tail?

    python benchmarks/demo.py [--seeds 3] [--photos 2000] [--queries 400] [--check]

Runs `evenplace demo` in a process of its own and takes its wall time and peak memory; with more
than one seed each is another town and another training.  Writes benchmarks/results/demo.md; with
--check, exits 1 unless one seed takes at most 8 minutes (10 with the set-up) and 6 GB.
"""

import argparse
import datetime
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evenplace.demo import SYSTEMS
from evenplace.evaluation import join_scores
from evenplace.report.tables import COLUMNS, GAIN_COLUMNS, gain_rows, markdown, score_rows
from evenplace.run.run import Run

RESULTS = Path(__file__).parent / "results" / "demo.md"
MINUTES, GIGABYTES = 8.0, 6.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--photos", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--out", type=Path, help="keep the runs here")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    out = asked.out or Path(tempfile.mkdtemp(prefix="evenplace-demo-"))
    fresh = not (out / "seed-0").exists()
    words = ["demo", "--out", out, "--seeds", asked.seeds]
    words += ["--photos", asked.photos, "--queries", asked.queries]
    began = time.monotonic()
    evenplace = [sys.executable, "-c", "from evenplace.cli import main; main()"]
    subprocess.run([*evenplace, *map(str, words)], check=True)
    minutes = (time.monotonic() - began) / 60 / asked.seeds
    gigabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    runs = [
        [Run(out / f"seed-{s}" / name).scores() for s in range(asked.seeds)] for name in SYSTEMS
    ]
    systems = [join_scores(parts) for parts in runs]
    text = "\n\n".join(
        [
            markdown(COLUMNS, score_rows(systems)),
            markdown(GAIN_COLUMNS, gain_rows(systems)) + "\n\n\\* the 95 % interval excludes 0",
            f"{minutes:.1f} minutes a seed without the set-up"
            f"{'' if fresh else ' (seeds that were there already are not trained again)'}, "
            f"peak memory {gigabytes:.1f} GB.",
        ]
    )
    said = [word for word in sys.argv[1:] if word not in ("--out", str(asked.out))]
    command = " ".join(["python benchmarks/demo.py", *said])
    head = f"# The demo\n\n{datetime.date.today()}, `{command}`, "
    head += f"{systems[0].overall.queries} queries.\n\n"
    RESULTS.write_text(head + text + "\n")
    print(text)
    if asked.out is None:
        shutil.rmtree(out)
    return 0 if not asked.check or (minutes <= MINUTES and gigabytes <= GIGABYTES) else 1


if __name__ == "__main__":
    sys.exit(main())
