"""The optional compiled build: hot modules become extension modules where there is a C compiler.

The sources stay plain Python that runs the same uncompiled; mypyc only makes it faster. Where a C compiler and Python's
headers are found, a wheel has the modules of ``COMPILED`` compiled beside their sources, and Python prefers that
form. Anywhere else, with ``KWIRESNIFF_PURE=1``, or when anything at all fails, the wheel is pure Python, and one line
on stderr says so. An editable install is always pure.

To add a module, add its path to ``COMPILED``. Give its hot variables types (``i64`` of mypy_extensions, imported under
``TYPE_CHECKING``, is a machine integer), then run the tests both ways::

    python hatch_build.py            compile beside the sources, for tests and measurements in the checkout
    python hatch_build.py --clean    remove that again

This needs ``mypy[mypyc]``.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

from build_backend import c_compiler, obstacle
from lighter_c import lighten

#: Compiled together into one shared library, so that calls between them cost what calls in C cost.
COMPILED = (
    "kwiresniff/analysis/body_entities.py",
    "kwiresniff/analysis/client_traffic.py",
    "kwiresniff/analysis/clients.py",
    "kwiresniff/analysis/doctor/cluster.py",
    "kwiresniff/analysis/doctor/connection_notes.py",
    "kwiresniff/analysis/doctor/efficiency.py",
    "kwiresniff/analysis/doctor/evidence.py",
    "kwiresniff/analysis/doctor/examine.py",
    "kwiresniff/analysis/doctor/latency.py",
    "kwiresniff/analysis/doctor/rule.py",
    "kwiresniff/analysis/followed_sessions.py",
    "kwiresniff/analysis/intake.py",
    "kwiresniff/analysis/latency.py",
    "kwiresniff/analysis/memory_budget.py",
    "kwiresniff/analysis/record_counts.py",
    "kwiresniff/analysis/stats.py",
    "kwiresniff/analysis/stats_keys.py",
    "kwiresniff/analysis/stats_row.py",
    "kwiresniff/analysis/topic_parts.py",
    "kwiresniff/analysis/topic_state.py",
    "kwiresniff/analysis/topic_table.py",
    "kwiresniff/analysis/topic_traffic.py",
    "kwiresniff/base/fastint.py",
    "kwiresniff/base/field_values.py",
    "kwiresniff/base/flows.py",
    "kwiresniff/base/json_text.py",
    "kwiresniff/base/tree_sizes.py",
    "kwiresniff/base/utf8.py",
    "kwiresniff/capture/pcap.py",
    "kwiresniff/capture/pcapng.py",
    "kwiresniff/capture/reader.py",
    "kwiresniff/cli/line_intake.py",
    "kwiresniff/codec/batch_header.py",
    "kwiresniff/codec/batch_nodes.py",
    "kwiresniff/codec/body_scanner.py",
    "kwiresniff/codec/decode_errors.py",
    "kwiresniff/codec/dissector.py",
    "kwiresniff/codec/field_facts.py",
    "kwiresniff/codec/field_layout.py",
    "kwiresniff/codec/folding.py",
    "kwiresniff/codec/message_set_dissector.py",
    "kwiresniff/codec/node_values.py",
    "kwiresniff/codec/primitives.py",
    "kwiresniff/codec/record_batch.py",
    "kwiresniff/codec/record_dissector.py",
    "kwiresniff/codec/record_limits.py",
    "kwiresniff/codec/record_reader.py",
    "kwiresniff/codec/scan_steps.py",
    "kwiresniff/codec/text/batch_reader.py",
    "kwiresniff/codec/text/body_reader.py",
    "kwiresniff/codec/text/body_values.py",
    "kwiresniff/codec/text/content_values.py",
    "kwiresniff/codec/text/digest_bodies.py",
    "kwiresniff/codec/text/json_batches.py",
    "kwiresniff/codec/text/json_bodies.py",
    "kwiresniff/codec/text/json_records.py",
    "kwiresniff/codec/text/plan.py",
    "kwiresniff/codec/text/tree_batches.py",
    "kwiresniff/codec/text/tree_bodies.py",
    "kwiresniff/codec/text/tree_labels.py",
    "kwiresniff/codec/text/tree_marks.py",
    "kwiresniff/codec/text/tree_records.py",
    "kwiresniff/codec/text/tree_text.py",
    "kwiresniff/codec/text/tree_values.py",
    "kwiresniff/codec/value_labels.py",
    "kwiresniff/digest.py",
    "kwiresniff/export/column_buffers.py",
    "kwiresniff/export/csv_lines.py",
    "kwiresniff/export/exchange_columns.py",
    "kwiresniff/export/fast_json_lines.py",
    "kwiresniff/export/flat_columns.py",
    "kwiresniff/export/nested_columns.py",
    "kwiresniff/export/times.py",
    "kwiresniff/model.py",
    "kwiresniff/pipeline/aggregate.py",
    "kwiresniff/pipeline/entities.py",
    "kwiresniff/pipeline/exchange_table.py",
    "kwiresniff/pipeline/shards.py",
    "kwiresniff/pipeline/unit_tables.py",
    "kwiresniff/render/digest_facts.py",
    "kwiresniff/render/escape.py",
    "kwiresniff/render/format_units.py",
    "kwiresniff/render/guides.py",
    "kwiresniff/render/headline.py",
    "kwiresniff/render/heads.py",
    "kwiresniff/render/info_column.py",
    "kwiresniff/render/line_wrapping.py",
    "kwiresniff/render/quick_lines.py",
    "kwiresniff/render/summary_lines.py",
    "kwiresniff/render/tree.py",
    "kwiresniff/render/tree_row.py",
    "kwiresniff/render/tree_rows.py",
    "kwiresniff/render/values.py",
    "kwiresniff/render/wording.py",
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
    "kwiresniff/session/endpoint.py",
    "kwiresniff/session/error_codes.py",
    "kwiresniff/session/fetch_sessions.py",
    "kwiresniff/session/flow_table.py",
    "kwiresniff/session/frame_confirmation.py",
    "kwiresniff/session/frame_search.py",
    "kwiresniff/session/handshake_buffer.py",
    "kwiresniff/session/in_flight.py",
    "kwiresniff/session/kafka_messages.py",
    "kwiresniff/session/malformed.py",
    "kwiresniff/session/non_kafka.py",
    "kwiresniff/session/output.py",
    "kwiresniff/session/peek.py",
    "kwiresniff/session/phases.py",
    "kwiresniff/session/problems.py",
    "kwiresniff/session/readings.py",
    "kwiresniff/session/record_stripper.py",
    "kwiresniff/session/repeated_fetches.py",
    "kwiresniff/session/response_reordering.py",
    "kwiresniff/session/sasl_opaque.py",
    "kwiresniff/session/sasl_phase.py",
    "kwiresniff/session/secrets.py",
    "kwiresniff/session/services.py",
    "kwiresniff/session/shallow.py",
    "kwiresniff/session/signatures.py",
    "kwiresniff/session/throttle_time.py",
    "kwiresniff/session/tls_phase.py",
    "kwiresniff/session/tls_record_layer.py",
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
#: Modules of those that take more than half a hundredth of the time of a command that people wait for: ``stats``,
#: ``read -o jsonl`` and ``-o summary``, ``export``. They are compiled with optimisation, in one and a half times the
#: time. Trees would take a fifteenth less with what writes them among these.
BUSY = (
    "analysis/client_traffic", "analysis/intake", "analysis/latency", "base/fastint", "base/json_text", "capture/pcap",
    "codec/body_scanner", "codec/record_reader", "codec/text/batch_reader", "codec/text/body_reader",
    "codec/text/digest_bodies", "codec/text/json_batches", "codec/text/json_bodies", "codec/text/json_records",
    "digest", "export/column_buffers", "export/csv_lines", "export/exchange_columns", "export/fast_json_lines",
    "export/nested_columns", "model", "pipeline/aggregate", "pipeline/entities", "pipeline/exchange_table",
    "pipeline/unit_tables", "render/digest_facts", "render/format_units", "render/summary_lines", "session/analyzer",
    "session/channel", "session/kafka_messages", "session/output", "session/shallow", "stream/frame_reader",
    "stream/half_stream",
)  # fmt: skip
#: Modules of those whose work is not done for every exchange, or not by the commands that people wait for, or that take
#: less than a third of a hundredth of the time of any. They are compiled without optimisation, in two thirds of the
#: time, which makes no command slower by more than a hundredth.
SELDOM = (
    "analysis/clients", "analysis/doctor/cluster", "analysis/doctor/connection_notes", "analysis/doctor/rule",
    "analysis/memory_budget", "analysis/record_counts", "analysis/topic_parts", "base/tree_sizes", "capture/reader",
    "cli/line_intake", "codec/batch_nodes", "codec/decode_errors", "codec/field_facts", "codec/message_set_dissector",
    "codec/record_batch", "codec/record_limits", "codec/scan_steps", "codec/text/content_values", "codec/text/plan",
    "codec/text/tree_labels", "codec/text/tree_marks", "codec/value_labels",
    "export/flat_columns", "export/times", "pipeline/shards", "render/guides", "render/headline",
    "render/line_wrapping", "render/quick_lines", "render/tree_row", "render/values", "render/wording",
    "session/annotation", "session/apis", "session/attempt", "session/body_plan", "session/delays",
    "session/detection", "session/endpoint", "session/error_codes", "session/flow_table", "session/frame_confirmation",
    "session/handshake_buffer", "session/malformed", "session/non_kafka", "session/phases", "session/problems",
    "session/readings", "session/repeated_fetches", "session/response_reordering", "session/sasl_opaque",
    "session/sasl_phase", "session/secrets", "session/services", "session/signatures", "session/tls_phase",
    "session/tls_record_layer", "session/topic_ids", "session/withheld", "stream/buffer_budget",
    "stream/frame_handler",
)  # fmt: skip
#: What else mypy reads: whose constants and types the compiled modules use often. Of the rest of the package, which is
#: as much again, it knows nothing: values from there are of any type.
TYPED = (
    "base/*.py", "capture/fast_path.py", "capture/file_problems.py", "capture/input_stream.py",
    "capture/packet_decoder.py", "capture/pcapng_blocks.py", "codec/__init__.py", "codec/codecs.py",
    "codec/codegen.py", "codec/compression.py", "codec/control.py", "codec/decoder_gen.py", "codec/error_finders.py",
    "codec/message_set.py", "codec/node_types.py", "codec/reader_gen.py", "codec/record.py", "codec/record_values.py",
    "codec/records.py",
    "codec/scanner_gen.py", "codec/text/*.py", "errors.py", "render/style.py", "render/theme.py", "results/clients.py",
    "results/findings.py", "results/stats.py", "results/topics.py", "schema/types.py", "schema/wire_types.py",
    "session/sasl.py", "session/sensitive_names.py",
)  # fmt: skip
#: The name of the shared library beside the package. The modules find it by this name.
LIBRARY = "kwiresniff"
#: Seconds; on a slow machine it takes one minute.
LIMIT_S = 900
#: Measured with gcc 12: at -O2 the busy modules are as fast as at -O1, within the noise, and take half as long again to
#: compile. Two of the warnings (-Wsequence-point, -Wmisleading-indentation) look at C that nobody wrote, and cost as
#: much as all the rest. Symbols that stay inside the library can be called directly.
OPTIMISATION = "1"
#: gcc's garbage collection only costs time where memory for all of a C file is there.
COMPILER_OPTIONS = ["-Wno-all", "-Wno-unknown-pragmas", "-fvisibility=hidden", "--param=ggc-min-heapsize=2000000"]
#: Passes of gcc that take a sixth of the time of the busy modules, a fourteenth of that of the usual ones, and make the
#: commands no faster. Other compilers do not know all of them.
WITHOUT_PASSES = [
    "-fcf-protection=none", "-fira-algorithm=priority", "-fira-region=one", "-fno-ipa-modref", "-fno-ipa-pure-const",
    "-fno-ipa-reference", "-fno-tree-dominator-opts", "-fno-tree-pta",
]  # fmt: skip
#: Passes that take another twentieth of the time of the usual modules; trees take half a hundredth longer without them.
WITHOUT_PASSES_IN_USUAL = ["-fno-cprop-registers", "-fno-dce", "-fno-forward-propagate"]
#: What else the C files are compiled with, by the beginnings of their names.
OTHER_OPTIMISATION = {"usual": ["-Og"], "seldom": ["-O0"], "ways_in": ["-O0"]}
#: Where the C file that leads from a module's extension into the library names what it calls there.
CALLED = re.compile(r'PyCapsule_GetPointer\(capsule, "(\w+\.init_\w+)"\)')
#: What all of them do there, written once.
ENTERED = """#include <Python.h>
static PyObject *entered(const char *name) {
    PyObject *(*initialize)(void) = (PyObject *(*)(void))PyCapsule_Import(name, 0);
    return initialize ? initialize() : NULL;
}
"""
#: C files that the modules named neither busy nor seldom are joined to, for as many processors.
UNITS = 2

#: Other packages are not there while a wheel is built; what comes from them is of any type. Nothing is read twice, so
#: nothing is kept.
MYPY_OPTIONS = ["--config-file=", "--ignore-missing-imports", "--follow-imports=skip", "--cache-dir=/dev/null"]


class CompiledBuild(BuildHookInterface[Any]):
    """hatchling's hook: adds the compiled modules to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        self._scratch = tempfile.mkdtemp(prefix="kwiresniff-build-")
        reason = obstacle() or compiled_into(Path(self.root), Path(self._scratch))
        if reason:
            print(f"kwiresniff: built as pure Python, which does the same more slowly: {reason}", file=sys.stderr)
            return
        built = Path(self._scratch)
        for path in sorted(built.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}")):
            build_data["force_include"][str(path)] = str(path.relative_to(built))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(getattr(self, "_scratch", ""), ignore_errors=True)


def takes(options: Sequence[str]) -> bool:
    """Whether the C compiler knows all of ``options``, and has nothing to say against them."""
    command = [*c_compiler(), "-Werror", *options, "-c", "-x", "c", os.devnull, "-o", os.devnull]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def compiled_into(root: Path, target: Path) -> str:
    """Compile the modules of the checkout ``root`` into ``target``; returns why that failed, or an empty string.

    A process of its own, because mypy ends the process when it fails, and prints what it likes.
    """
    command = [sys.executable, str(Path(__file__).resolve()), "--into", str(target)]
    try:
        done = subprocess.run(
            command, check=False, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode:
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"the compiler ended with {done.returncode}"
    return ""


def compile_modules(target: Path, scratch: Path) -> None:
    """Compile ``COMPILED``, relative to the working directory, to extension modules under ``target``.

    There is one C file a module, and as many are compiled side by side as there are processors.
    """
    build = importlib.import_module("mypyc.build")
    vars(build)["format_modules"] = lambda modules: []  # a text for who works on mypyc, made in a third of a second
    setuptools = importlib.import_module("setuptools")
    typed = {str(path) for pattern in TYPED for path in Path("kwiresniff").glob(pattern)}
    extensions = build.mypycify(
        [*MYPY_OPTIONS, *COMPILED, *sorted(typed.difference(COMPILED))],
        only_compile_paths=COMPILED,
        opt_level=OPTIMISATION,
        debug_level="0",
        target_dir=str(scratch / "c"),
        group_name=LIBRARY,
        multi_file=True,
    )
    for extension in extensions:
        extension.extra_compile_args = [*extension.extra_compile_args, *COMPILER_OPTIONS]
    lighten(sorted(Path(scratch, "c").glob(f"__native_{LIBRARY}___*.c")))
    (library,) = (extension for extension in extensions if extension.name == f"{LIBRARY}__mypyc")
    library.sources = joined(library.sources, scratch)
    ways_in = shared([extension for extension in extensions if extension is not library], scratch)
    distribution = setuptools.Distribution({"name": LIBRARY, "ext_modules": [library, *(one for one, _ in ways_in)]})
    command = distribution.get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(target), str(scratch / "o")
    command.ensure_finalized()
    by_tier = OTHER_OPTIMISATION
    if takes([*WITHOUT_PASSES, *WITHOUT_PASSES_IN_USUAL]):
        usual = [*OTHER_OPTIMISATION["usual"], *WITHOUT_PASSES, *WITHOUT_PASSES_IN_USUAL]
        by_tier = OTHER_OPTIMISATION | {"busy": WITHOUT_PASSES, "usual": usual}
    one_after_the_other = command.build_extensions

    def build_extensions() -> None:
        command.compiler.compile = side_by_side(command.compiler.compile, by_tier)
        one_after_the_other()

    command.build_extensions = build_extensions
    command.run()
    for built, names in ways_in:
        for name in names:
            path = Path(command.get_ext_fullpath(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(command.get_ext_fullpath(built.name), path)


def joined(sources: Sequence[str], scratch: Path) -> list[str]:
    """The C files, joined to a few larger ones."""
    modules = [source for source in sources if Path(source).name.startswith("__native_") and source.endswith(".c")]
    modules.sort(key=lambda source: Path(source).stat().st_size, reverse=True)
    tiers = {c_file(name): "busy" for name in BUSY} | {c_file(name): "seldom" for name in SELDOM}
    # The file without a module in its name only sets the library up.
    tiers[f"__native_{LIBRARY}.c"] = "seldom"
    usual = [source for source in modules if Path(source).name not in tiers]
    parts = {f"usual{number}": usual[number::UNITS] for number in range(UNITS)}
    # What compiled modules call of mypyc's own is busy, too.
    parts["busy"] = [source for source in sources if source not in modules]
    parts["seldom"] = []
    for source in modules:
        if tier := tiers.get(Path(source).name):
            parts[tier].append(source)
    for name, part in parts.items():
        lines = [f'#include "{Path(source).resolve()}"\n' for source in part]
        (scratch / f"{name}.c").write_text("".join(lines), encoding="utf-8")
    return [str(scratch / f"{name}.c") for name in parts]


def c_file(module: str) -> str:
    """The name that mypyc gives the C file of a module, as ``BUSY`` and ``SELDOM`` name it."""
    return f"__native_{LIBRARY}___{module.replace('/', '___')}.c"


def shared(ways_in: Sequence[Any], scratch: Path) -> list[tuple[Any, list[str]]]:
    """The extension modules that lead into the library, of which a few are built: each leads to many modules, by name.

    Beside each stand the names under which copies of it are found. A hundred of them, one a module, take a fifth of the
    time of the whole build. Python asks an extension for a function called after the last part of the module's name.
    """
    groups: list[dict[str, Any]] = []
    for one in ways_in:
        name = one.name.rpartition(".")[2]
        group = next((group for group in groups if name not in group), None)
        if group is None:
            groups.append(group := {})
        group[name] = one
    found = []
    for number, group in enumerate(groups):
        source = scratch / f"ways_in{number}.c"
        lines = [way_in(name, Path(one.sources[0]).resolve()) for name, one in group.items()]
        source.write_text(ENTERED + "".join(lines), encoding="utf-8")
        built, *others = group.values()
        built.sources = [str(source)]
        found.append((built, [other.name for other in others]))
    return found


def way_in(name: str, shim: Path) -> str:
    """The C code of a module called ``name`` that leads into the library: mypyc's, where it is not as expected."""
    if called := CALLED.search(shim.read_text(encoding="utf-8")):
        return f'PyMODINIT_FUNC PyInit_{name}(void) {{ return entered("{called[1]}"); }}\n'
    # Each has a function for packages besides, of the same name in all.
    return f'#define PyInit___init__ PyInit___init__{name}\n#include "{shim}"\n#undef PyInit___init__\n'


def side_by_side(
    compile_all: Callable[..., list[str]], by_tier: Mapping[str, Sequence[str]]
) -> Callable[..., list[str]]:
    """setuptools' ``compile``, which takes C files and returns object files, as one that uses all processors and the
    options of each file's tier.
    """

    def compile_one(source: str, **options: Any) -> list[str]:
        optimisation = by_tier.get(Path(source).stem.rstrip("0123456789"), [])
        options["extra_postargs"] = [*(options.get("extra_postargs") or ()), *optimisation]
        return compile_all([source], **options)

    def compile_each(sources: Sequence[str], **options: Any) -> list[str]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiled = pool.map(lambda source: compile_one(source, **options), sources)
            return [path for paths in compiled for path in paths]

    return compile_each


def main() -> None:
    # mypy makes objects by the million, keeps nearly all of them to the end, and would have collecting on again when it
    # has read the modules: a tenth of its time.
    gc.disable()
    vars(gc)["enable"] = lambda: None
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
    sys.stdout.flush()
    # Without freeing what mypy made, object by object, which takes three seconds.
    os._exit(0)
