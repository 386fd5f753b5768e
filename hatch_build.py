"""Compiles the modules that every packet passes through with mypyc while a wheel is built.

The sources stay plain Python that does the same without it, more slowly. Where compiling fails (no C compiler, no
headers of Python, anything else), or with ``KWIRESNIFF_PURE=1``, the wheel is pure Python, and one line on stderr says
why. An editable install is always pure. With ``mypy[mypyc]``, setuptools and hatchling, in the checkout::

    python hatch_build.py            compile beside the sources, which Python then prefers
    python hatch_build.py --clean    remove what was compiled

A compiled class whose base is interpreted crashes mypyc, and an interpreted class cannot derive from a compiled one
unless that is marked: ``COMPILED`` is closed under inheritance.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: The modules that are compiled, to one shared library.
COMPILED = (
    "kwiresniff/analysis/body_entities.py",
    "kwiresniff/analysis/client_settings.py",
    "kwiresniff/analysis/client_traffic.py",
    "kwiresniff/analysis/clients.py",
    "kwiresniff/analysis/cluster_evidence.py",
    "kwiresniff/analysis/doctor/bodies.py",
    "kwiresniff/analysis/doctor/cluster.py",
    "kwiresniff/analysis/doctor/context.py",
    "kwiresniff/analysis/doctor/copying.py",
    "kwiresniff/analysis/doctor/doctors.py",
    "kwiresniff/analysis/doctor/evidence.py",
    "kwiresniff/analysis/doctor/examine.py",
    "kwiresniff/analysis/doctor/observer.py",
    "kwiresniff/analysis/doctor/replica_table.py",
    "kwiresniff/analysis/doctor/subjects.py",
    "kwiresniff/analysis/doctor/troubles/abandoned_writes.py",
    "kwiresniff/analysis/doctor/troubles/batches.py",
    "kwiresniff/analysis/doctor/troubles/client_loads.py",
    "kwiresniff/analysis/doctor/troubles/clusters.py",
    "kwiresniff/analysis/doctor/troubles/copy_loops.py",
    "kwiresniff/analysis/doctor/troubles/departures.py",
    "kwiresniff/analysis/doctor/troubles/early_commits.py",
    "kwiresniff/analysis/doctor/troubles/efficiency.py",
    "kwiresniff/analysis/doctor/troubles/hot_partitions.py",
    "kwiresniff/analysis/doctor/troubles/polling.py",
    "kwiresniff/analysis/doctor/troubles/queues.py",
    "kwiresniff/analysis/doctor/troubles/record_clocks.py",
    "kwiresniff/analysis/doctor/troubles/rereads.py",
    "kwiresniff/analysis/doctor/troubles/restarts.py",
    "kwiresniff/analysis/doctor/troubles/restores.py",
    "kwiresniff/analysis/doctor/troubles/slow_answers.py",
    "kwiresniff/analysis/doctor/troubles/starts_at_end.py",
    "kwiresniff/analysis/doctor/troubles/throttling.py",
    "kwiresniff/analysis/doctor/troubles/truncations.py",
    "kwiresniff/analysis/doctor/troubles/unacknowledged.py",
    "kwiresniff/analysis/doctor/troubles/unread.py",
    "kwiresniff/analysis/doctor/troubles/writes.py",
    "kwiresniff/analysis/followed_sessions.py",
    "kwiresniff/analysis/latency.py",
    "kwiresniff/analysis/memory_budget.py",
    "kwiresniff/analysis/places.py",
    "kwiresniff/analysis/record_counts.py",
    "kwiresniff/analysis/sinks.py",
    "kwiresniff/analysis/stats.py",
    "kwiresniff/analysis/stats_keys.py",
    "kwiresniff/analysis/stats_row.py",
    "kwiresniff/analysis/topic_parts.py",
    "kwiresniff/analysis/topic_state.py",
    "kwiresniff/analysis/topic_table.py",
    "kwiresniff/analysis/topic_traffic.py",
    "kwiresniff/base/connect_records.py",
    "kwiresniff/base/fastint.py",
    "kwiresniff/base/field_values.py",
    "kwiresniff/base/flows.py",
    "kwiresniff/base/json_text.py",
    "kwiresniff/base/utf8.py",
    "kwiresniff/capture/packet_range.py",
    "kwiresniff/capture/pcap.py",
    "kwiresniff/capture/pcapng.py",
    "kwiresniff/capture/reader.py",
    "kwiresniff/codec/batch_header.py",
    "kwiresniff/codec/batch_nodes.py",
    "kwiresniff/codec/batch_reader.py",
    "kwiresniff/codec/body_reader.py",
    "kwiresniff/codec/body_walker.py",
    "kwiresniff/codec/digests.py",
    "kwiresniff/codec/dissector.py",
    "kwiresniff/codec/field_facts.py",
    "kwiresniff/codec/field_layout.py",
    "kwiresniff/codec/folding.py",
    "kwiresniff/codec/message_set_dissector.py",
    "kwiresniff/codec/node_values.py",
    "kwiresniff/codec/plan.py",
    "kwiresniff/codec/primitives.py",
    "kwiresniff/codec/record.py",
    "kwiresniff/codec/record_batch.py",
    "kwiresniff/codec/record_dissector.py",
    "kwiresniff/codec/record_limits.py",
    "kwiresniff/codec/record_reader.py",
    "kwiresniff/codec/shown_records.py",
    "kwiresniff/codec/text/json_batches.py",
    "kwiresniff/codec/text/json_bodies.py",
    "kwiresniff/codec/text/json_records.py",
    "kwiresniff/codec/value_reader.py",
    "kwiresniff/digest.py",
    "kwiresniff/export/csv_lines.py",
    "kwiresniff/export/fast_json_lines.py",
    "kwiresniff/export/flat.py",
    "kwiresniff/export/row_buffer.py",
    "kwiresniff/export/times.py",
    "kwiresniff/identity/clusters.py",
    "kwiresniff/identity/copies.py",
    "kwiresniff/identity/held_events.py",
    "kwiresniff/identity/log_ends.py",
    "kwiresniff/identity/views.py",
    "kwiresniff/index/index_sink.py",
    "kwiresniff/index/value_table.py",
    "kwiresniff/model.py",
    "kwiresniff/pipeline/aggregate.py",
    "kwiresniff/pipeline/cluster_sightings.py",
    "kwiresniff/pipeline/entities.py",
    "kwiresniff/pipeline/exchange_row.py",
    "kwiresniff/pipeline/moments.py",
    "kwiresniff/pipeline/unit_tables.py",
    "kwiresniff/identity/addresses.py",
    "kwiresniff/render/batch_rows.py",
    "kwiresniff/render/digest_facts.py",
    "kwiresniff/render/escape.py",
    "kwiresniff/render/format_units.py",
    "kwiresniff/render/headline.py",
    "kwiresniff/render/info_column.py",
    "kwiresniff/render/labels.py",
    "kwiresniff/render/line_wrapping.py",
    "kwiresniff/render/paint.py",
    "kwiresniff/render/record_rows.py",
    "kwiresniff/render/summary.py",
    "kwiresniff/render/tree.py",
    "kwiresniff/render/tree_row.py",
    "kwiresniff/render/tree_rows.py",
    "kwiresniff/render/value_rows.py",
    "kwiresniff/render/values.py",
    "kwiresniff/schema/value_labels.py",
    "kwiresniff/session/analyzer.py",
    "kwiresniff/session/annotation.py",
    "kwiresniff/session/apis.py",
    "kwiresniff/session/attempt.py",
    "kwiresniff/session/body_plan.py",
    "kwiresniff/session/channel.py",
    "kwiresniff/session/connection.py",
    "kwiresniff/session/connection_state.py",
    "kwiresniff/session/connection_table.py",
    "kwiresniff/session/decode.py",
    "kwiresniff/session/delays.py",
    "kwiresniff/session/detection.py",
    "kwiresniff/session/error_codes.py",
    "kwiresniff/session/fetch_sessions.py",
    "kwiresniff/session/flow_table.py",
    "kwiresniff/session/frame_search.py",
    "kwiresniff/session/handshake_buffer.py",
    "kwiresniff/session/in_flight.py",
    "kwiresniff/session/kafka_messages.py",
    "kwiresniff/session/non_kafka.py",
    "kwiresniff/session/output.py",
    "kwiresniff/session/peek.py",
    "kwiresniff/session/phases.py",
    "kwiresniff/session/record_stripper.py",
    "kwiresniff/session/response_reordering.py",
    "kwiresniff/session/sasl_phase.py",
    "kwiresniff/session/secrets.py",
    "kwiresniff/session/services.py",
    "kwiresniff/session/shallow.py",
    "kwiresniff/session/throttle_time.py",
    "kwiresniff/session/tls_cipher.py",
    "kwiresniff/session/tls_ciphers.py",
    "kwiresniff/session/tls_decryption.py",
    "kwiresniff/session/tls_opening.py",
    "kwiresniff/session/tls_phase.py",
    "kwiresniff/session/tls_record_layer.py",
    "kwiresniff/session/tls_records.py",
    "kwiresniff/session/topic_ids.py",
    "kwiresniff/session/withheld.py",
    "kwiresniff/stream/buffer_budget.py",
    "kwiresniff/stream/frame_buffer.py",
    "kwiresniff/stream/frame_handler.py",
    "kwiresniff/stream/frame_reader.py",
    "kwiresniff/stream/half_stream.py",
    "kwiresniff/stream/out_of_order.py",
    "kwiresniff/stream/reassembler.py",
    "kwiresniff/stream/resync.py",
    "kwiresniff/stream/resync_buffer.py",
)
#: mypy's: other packages are absent while a wheel is built, and what comes from them is of any type.
MYPY_OPTIONS = [
    "--config-file=", "--cache-dir=/dev/null", "--no-site-packages", "--ignore-missing-imports",
    "--follow-imports=silent",
]  # fmt: skip
#: The C compiler's. At -O2 compiling takes half as long again, and no command is faster.
OPTIMISATION = "1"
COMPILER_OPTIONS = ["-Wno-all"]
#: Switches compiling off, set to anything but 0 or nothing.
OFF = "KWIRESNIFF_PURE"
#: Seconds. It takes two minutes of processor time; a machine that does much else may need many times that.
LIMIT_S = 3_600


class CompiledBuild(BuildHookInterface[Any]):
    """hatchling's hook: adds the compiled modules to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        self._scratch = tempfile.mkdtemp(prefix="kwiresniff-build-")
        reason = compiled_into(Path(self.root), Path(self._scratch))
        if reason:
            print(f"kwiresniff: built as pure Python, which does the same more slowly: {reason}", file=sys.stderr)
            return
        built = Path(self._scratch)
        for path in built.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"):
            build_data["force_include"][str(path)] = str(path.relative_to(built))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(getattr(self, "_scratch", ""), ignore_errors=True)


def compiled_into(root: Path, target: Path) -> str:
    """Compiles the modules of the checkout ``root`` into ``target``; returns why that failed, or an empty string.

    In a process of its own, because mypy ends the process when it fails.
    """
    if os.environ.get(OFF, "0") not in ("", "0"):
        return f"{OFF} is set"
    if sys.implementation.name != "cpython":
        return "mypyc compiles for CPython only"
    print(f"kwiresniff: compiling {len(COMPILED)} modules, which takes some minutes ({OFF}=1: not)", file=sys.stderr)
    command = [sys.executable, str(Path(__file__).resolve()), "--into", str(target)]
    try:
        done = subprocess.run(
            command, check=False, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return (lines or [f"the compiler ended with {done.returncode}"])[-1] if done.returncode else ""


def compile_modules(target: Path, scratch: Path) -> None:
    """Compiles ``COMPILED``, relative to the working directory, to extension modules under ``target``."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    extensions = mypycify(
        [*MYPY_OPTIONS, *COMPILED],
        only_compile_paths=COMPILED,
        opt_level=OPTIMISATION,
        debug_level="0",
        target_dir=str(scratch / "c"),
        group_name="kwiresniff",
    )
    for extension in extensions:
        extension.extra_compile_args = [*extension.extra_compile_args, *COMPILER_OPTIONS]
    command = Distribution({"name": "kwiresniff", "ext_modules": extensions}).get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(target), str(scratch / "o")
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, metavar="DIR", help="put the compiled modules there, not in the checkout")
    parser.add_argument("--clean", action="store_true", help="remove the compiled modules from the checkout")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent
    os.chdir(root)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for path in [*root.glob(f"*{suffix}"), *root.glob(f"kwiresniff/**/*{suffix}")] if options.into is None else ():
        path.unlink()
    if not options.clean:
        with tempfile.TemporaryDirectory() as scratch:
            compile_modules((options.into or root).resolve(), Path(scratch))


if __name__ == "__main__":
    main()
