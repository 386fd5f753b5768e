"""The task of ``pipeline run`` for one unit: reads it once, writes every table, commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

from kwiresniff import __version__
from kwiresniff.analysis.sinks import WholeEvents
from kwiresniff.base.process_memory import memory_of_a_pass
from kwiresniff.errors import KwiresniffError
from kwiresniff.model import Problem, Sink
from kwiresniff.pipeline.output_store import Commit, OutputStore
from kwiresniff.pipeline.plan import WorkUnit
from kwiresniff.pipeline.unit_reader import Pass, Settings, UnitReader
from kwiresniff.pipeline.unit_tables import UnitTables


def settings_text(settings: Settings, tables: Sequence[str]) -> str:
    """The settings that two runs must have in common to share their output, as text."""
    return f"{__version__} {settings!r} {sorted(tables)!r}"


def options_of(settings: Settings, tables: Sequence[str], grouping: str) -> dict[str, Any]:
    """The options that all of an output folder must have been made with, by what they are called.

    Of the key of hashes there is a hash.
    """
    key = settings.redact_key
    return {
        "--write": sorted(tables),
        "--grouping": grouping,
        "--where": settings.where,
        "--audit": settings.audit_target,
        "--topics": None if settings.topics is None else settings.topics.path,
        "--port": sorted(set(settings.ports)),
        "--redact": None if key is None else f"with key {blake2b(key.encode(), digest_size=4).hexdigest()}",
        "--keylog": settings.keylog,
        "--plugin": list(settings.plugin_names) or None,
        "--schemas": settings.plugin_options.places or None,
        "--value-format": list(settings.plugin_options.value_formats) or None,
        "--decode-as": list(settings.decode_as) or None,
        "--max-decompressed": settings.max_decompressed,
    }


def run_unit(unit: WorkUnit, settings: Settings, tables: Sequence[str], out: str) -> Commit:
    """Decodes a unit into the output folder and commits it; returns the commit.

    A source that cannot be read to its end keeps what was read, gets a row in ``problems``, and is tried again by
    the next run.
    """
    about = {"unit": asdict(unit), "fingerprint": unit.fingerprint(settings_text(settings, tables))}
    with memory_of_a_pass():
        return write_unit(
            UnitReader(unit, settings.for_tables(tables), text="exchanges" in tables),
            OutputStore(out),
            unit.id,
            about,
            tables,
            settings.audit_target,
        )


def write_unit(
    reading: Pass,
    store: OutputStore,
    name: str,
    about: dict[str, Any],
    tables: Sequence[str],
    target: str | None = None,
    before_commit: Callable[[bool], None] = lambda failed: None,
) -> Commit:
    """Writes what a reading gives and commits it under ``name``; the commit begins with ``about``.

    ``target`` is the release that clients are held against. ``before_commit`` is called when all is in place, with
    whether the reading failed.
    """
    failed: list[str] = []
    with store.writable():
        writer = store.writer(name)
        try:
            unit_tables = UnitTables(reading.rows, writer, tables, target, reading.clusters)
            _read_until_failure(reading, unit_tables, failed)
            unit_tables.finish()
            files = writer.publish()
        except BaseException:
            writer.discard()
            raise
        before_commit(bool(failed))
    commit: Commit = {
        **about,
        "failed": failed[0] if failed else None,
        "files": files,
        "counts": {
            **reading.counts(),
            "rows": {table: count for table, count in writer.counts.items() if table in tables},
        },
    }
    with store.writable():
        store.commit(name, commit)
    return commit


def _read_until_failure(reading: Pass, sink: Sink, failed: list[str]) -> None:
    """Gives a reading to a sink, and a problem in place of whatever ends it early, unless it is the sink that fails."""
    whole = WholeEvents(sink)
    try:
        for _ in reading.read(whole):
            pass
    except Exception as error:
        if whole.busy:
            raise
        # One source must not take down the work of all the others, whatever is wrong with it or with us.
        what = str(error) if isinstance(error, KwiresniffError | OSError) else f"{type(error).__name__}: {error}"
        failed.append(what)
        sink.on_problem(Problem("source_failed", f"reading stopped here: {what}"))


def totals(commits: Sequence[Commit]) -> dict[str, Any]:
    """The counts of several commits added up."""
    result: dict[str, Any] = {
        "files": 0, "bytes": 0, "packets": 0, "skipped_files": 0, "not_read": [], "failed": 0, "rows": {},
        "other_packets": {},
    }  # fmt: skip
    for commit in commits:
        result = add_totals(result, {**commit["counts"], "failed": int(commit["failed"] is not None)})
    return result


def add_totals(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two totals added up."""
    added: dict[str, Any] = {}
    for name, value in one.items():
        if isinstance(value, dict):
            keys = {**value, **other[name]}
            added[name] = {key: value.get(key, 0) + other[name].get(key, 0) for key in keys}
        else:
            added[name] = value + other[name]
    return added
