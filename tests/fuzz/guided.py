"""Inputs chosen by coverage: ``python -m tests.fuzz.guided TARGET [-atheris_runs=N] [CORPUS_FOLDER]``.

Needs atheris, which sees what plain Python modules execute: run it in a checkout that is not compiled. Half of the
changes are the target's own, which know where fields are, half are libFuzzer's.
"""

from __future__ import annotations

import sys
from random import Random

import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

with atheris.instrument_imports(include=["kwiresniff"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    target = TARGETS[sys.argv.pop(1)]
    seeds = target.seeds()

    def changed(data: bytes, limit: int, number: int) -> bytes:
        rng = Random(number)
        if len(data) <= target.front or rng.random() < 0.1:
            data = rng.choice(seeds)
        if rng.random() < 0.5:
            return target.change(rng, data, seeds, target.front)[:limit]
        mutated: bytes = atheris.Mutate(data, limit)
        return mutated

    def run(data: bytes) -> None:
        if len(data) >= target.front:
            target.run(data)

    atheris.Setup([*sys.argv, "-max_len=8192"], run, custom_mutator=changed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
