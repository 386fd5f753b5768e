"""Record the captures of ``captures/`` from a real broker: ``python3 -m captures.recipes.codec.record [NAME...]``.

Without names everything is recorded anew. Needs Linux, root (for the network namespaces), Java 17 or newer, Maven, Go,
Node.js, tcpdump, iproute2 and Wireshark. ``--work`` is where brokers and client libraries are kept between runs.
The recording, what the broker's own request log said about it and its row in the manifest are written together.
"""

from __future__ import annotations

import argparse
import lzma
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from captures.recipes.codec.catalogue import SCENARIOS
from captures.recipes.shared import manifest, oracle, oracle_responses, oracle_text, programs, rig
from captures.recipes.shared.scenario import KEYLOG, Scenario
from captures.recipes.shared.work import CLIENT_TIMEOUT_S, DEFAULT_WORK

CAPTURES = Path(__file__).parents[2]
FILES = [scenario.file for scenario in SCENARIOS]


def perform(step: tuple[str, ...], running: rig.RunningBroker, work: Path, scratch: Path) -> None:
    """Do something to the brokers, or run a client program in the client's namespace.

    Raises CalledProcessError when the program fails.
    """
    program, *arguments = (word.format(bootstrap=running.bootstrap) for word in step)
    if program in running.actions:
        running.actions[program](*arguments)
        return
    start = programs.command_line(program, tuple(arguments), work)
    subprocess.run(
        rig.inside(rig.CLIENT_SPACE, *start), check=True, cwd=scratch, timeout=CLIENT_TIMEOUT_S, stdout=sys.stderr
    )


def record(scenario: Scenario, work: Path) -> None:
    """Make one recording with its oracle and its manifest row."""
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        target = scratch / f"{scenario.name}.{scenario.tap.form}"
        with rig.network(), ExitStack() as stack:
            if scenario.from_the_start:
                stack.enter_context(rig.recording(scenario.tap, target))
            running = stack.enter_context(scenario.broker.start(work, scratch))
            for step in scenario.prepare:
                perform(step, running, work, scratch)
            starts = [0 if scenario.from_the_start else log.stat().st_size for log in running.request_logs]
            if not scenario.from_the_start:
                stack.enter_context(rig.recording(scenario.tap, target))
            for step in (scenario.client, *scenario.then):
                perform(step, running, work, scratch)
        said = oracle.read_logs(running.request_logs, starts, running.parsers)
        rows = oracle.of_capture(said, target)
        if running.parsers:
            rows = oracle_text.without_repeats(rows)
        if running.response_reader:
            oracle_responses.fill(rows, target, running.response_reader, work)
        if scenario.tls:
            keys = manifest.keylog_for(CAPTURES / scenario.file)
            keys.parent.mkdir(exist_ok=True)
            keys.write_bytes((scratch / KEYLOG).read_bytes())
        seen = manifest.row_of(target, scenario, rows)
        content = target.read_bytes()
    (CAPTURES / scenario.file).parent.mkdir(exist_ok=True)
    (CAPTURES / scenario.file).write_bytes(lzma.compress(content) if scenario.compressed else content)
    oracle.write(rows, CAPTURES / scenario.file)
    manifest.update(scenario, seen, FILES)


def refresh(scenario: Scenario) -> None:
    """Write the manifest row of a recording that is there."""
    capture = CAPTURES / scenario.file
    content = capture.read_bytes()
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / f"{scenario.name}.{scenario.tap.form}"
        plain.write_bytes(lzma.decompress(content) if scenario.compressed else content)
        manifest.update(scenario, manifest.row_of(plain, scenario, oracle.read(capture)), FILES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="captures to record; all when none is named")
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="where downloads are kept")
    parser.add_argument("--manifest-only", action="store_true", help="keep the recordings, write their rows anew")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    chosen = [s for s in SCENARIOS if not options.names or s.name in options.names]
    unknown = set(options.names) - {s.name for s in chosen}
    if unknown:
        parser.error(f"no such recipe: {', '.join(sorted(unknown))}")
    for scenario in chosen:
        print(scenario.file, file=sys.stderr)
        if options.manifest_only:
            refresh(scenario)
        else:
            record(scenario, options.work)


if __name__ == "__main__":
    main()
