"""Processor seconds of a command alone and beside busy loops: is it a good neighbour?

    python benchmarks/neighbours.py demo --photos 600 --out FOLDER

The folder gets `-alone` and `-beside` appended, and must be new each time: finished work is not
done again.  On a machine that others use too, look at the ratio and run it twice.
"""

import os
import resource
import subprocess
import sys
import time

LOOPS = 2  # as many as the machine of the issue has cores


def processor_seconds(words: list[str]) -> tuple[float, float]:
    """What evenplace with these words takes of the processor, and of the clock."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "evenplace", *words], check=True, stdout=subprocess.DEVNULL
    )
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, ended - began


def named(words: list[str], end: str) -> list[str]:
    """The same words with another --out folder."""
    at = words.index("--out") + 1
    return [*words[:at], words[at] + end, *words[at + 1 :]]


def main(words: list[str]) -> None:
    load = os.getloadavg()[0]
    alone, alone_clock = processor_seconds(named(words, "-alone"))
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(LOOPS)]
    try:
        beside, beside_clock = processor_seconds(named(words, "-beside"))
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    print(f"load before: {load:.1f}; GOMP_SPINCOUNT={os.environ.get('GOMP_SPINCOUNT', 'ours')}")
    print(f"alone:  {alone:.0f} processor seconds, {alone_clock:.0f} on the clock")
    print(f"beside: {beside:.0f} processor seconds, {beside_clock:.0f} on the clock")
    print(f"ratio:  {beside / alone:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
