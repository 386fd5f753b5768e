"""Many inputs on all targets: ``python -m tests.fuzz --inputs 10000000 [--target NAME] [--seed TEXT]``.

Each failure is printed once a place in the code, with the input in hex; the exit code is 1 when there was any. An input
that takes longer than ``--seconds`` of the processor's time is a failure, too.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from random import Random

from kwiresniff.base.fastint import COMPILED
from tests.fuzz.targets import TARGETS, Target

#: Inputs between two lines of progress.
REPORT_EVERY = 100_000


def attempt(target: Target, data: bytes, seconds: float) -> str:
    """Why an input is a failure, or an empty text; it names the innermost place of ours in the traceback."""
    begun = time.process_time()
    try:
        target.run(data)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames]
        return f"{type(error).__name__} at {places[-1]}: {error}"[:500]
    spent = time.process_time() - begun
    return f"{spent:.1f} s of CPU" if spent > seconds else ""


def campaign(inputs: int, names: list[str], seed: str, seconds: float) -> dict[tuple[str, str], tuple[str, bytes]]:
    """Run ``inputs`` inputs; failures by target and place, each with its first reason and input."""
    rng = Random(seed)
    targets = [TARGETS[name] for name in names]
    seeds = {target.name: target.seeds() for target in targets}
    shares = [target.share for target in targets]
    failures: dict[tuple[str, str], tuple[str, bytes]] = {}
    tried: Counter[str] = Counter()
    for number in range(1, inputs + 1):
        (target,) = rng.choices(targets, shares)
        data = target.change(rng, rng.choice(seeds[target.name]), seeds[target.name], target.front)
        tried[target.name] += 1
        reason = attempt(target, data, seconds)
        if reason:
            key = (target.name, reason.partition(":")[0])
            if key not in failures:
                failures[key] = (reason, data)
                print(f"{target.name}: {reason}\n  {data.hex()}", flush=True)
        if not number % REPORT_EVERY:
            print(f"{number:,} inputs, {len(failures)} failures: {dict(tried)}", file=sys.stderr, flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="may be repeated; all by default")
    parser.add_argument("--seed", default="", help="other inputs for another text")
    parser.add_argument("--seconds", type=float, default=2.0, help="of CPU that an input may take")
    options = parser.parse_args()
    begun = time.process_time()
    failures = campaign(options.inputs, options.target or list(TARGETS), options.seed, options.seconds)
    build = "compiled" if COMPILED else "plain"
    spent = time.process_time() - begun
    print(f"{options.inputs:,} inputs in the {build} build, {spent:.0f} s of CPU: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
