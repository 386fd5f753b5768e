"""What a task does with a unit in ``pipeline run``: read it once, write every table, commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from kwiresniff import __version__
from kwiresniff.analysis.audit import audit
from kwiresniff.analysis.clients import Inventory
from kwiresniff.errors import KwiresniffError
from kwiresniff.model import Connection, Event, Exchange, Problem
from kwiresniff.pipeline.aggregate import Errors, Latency
from kwiresniff.pipeline.plan import Unit
from kwiresniff.pipeline.reading import Settings, UnitReading, rows_of
from kwiresniff.pipeline.rows import Rows
from kwiresniff.pipeline.store import Commit, Store, Writer

#: Tables that ``pipeline run`` can write; records only when asked for, they are most of the data, and audit only when
#: there is something to hold clients against.
WRITABLE = ("exchanges", "connections", "problems", "latency", "topic_latency", "errors", "clients", "audit", "records")
WRITTEN = WRITABLE[:-2]
#: What comes of events one by one; the others are put together of many.
_DIRECT = ("exchanges", "connections", "problems", "records")


def settings_text(settings: Settings, tables: Sequence[str]) -> str:
    """What two runs must have in common for the output of one to do for the other."""
    return f"{__version__} {settings!r} {sorted(tables)!r}"


def run_unit(unit: Unit, settings: Settings, tables: Sequence[str], out: str) -> Commit:
    """Decodes a unit into the output folder and commits it; returns the commit.

    A source that cannot be read to its end keeps what was read, gets a row in ``problems``, and is tried again by
    the next run.
    """
    about = {"unit": unit.as_json(), "fingerprint": unit.fingerprint(settings_text(settings, tables))}
    return write_unit(UnitReading(unit, settings), Store(out), unit.id, about, tables, settings.audit_target)


class Reading(Protocol):
    """Events to be written, and counts that are final when they end."""

    rows: Rows
    skipped: list[str]

    @property
    def files(self) -> Sequence[str]: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def packets(self) -> int: ...
    @property
    def other_packets(self) -> dict[str, int]: ...
    def events(self) -> Iterator[Event]: ...


def write_unit(
    reading: Reading,
    store: Store,
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
        _write(_until_failure(reading, failed), reading, writer, tables, target)
        files = writer.publish()
        before_commit(bool(failed))
    commit: Commit = {
        **about,
        "failed": failed[0] if failed else None,
        "files": files,
        "counts": {
            "files": len(reading.files),
            "bytes": reading.bytes_read,
            "packets": reading.packets,
            "rows": {table: count for table, count in writer.counts.items() if table in tables},
            "skipped_files": len(reading.skipped),
            "other_packets": reading.other_packets,
        },
    }
    with store.writable():
        store.commit(name, commit)
    return commit


def _write(
    events: Iterator[Event], reading: Reading, writer: Writer, tables: Sequence[str], target: str | None
) -> None:
    rows = reading.rows
    latency = Latency() if {"latency", "topic_latency"} & set(tables) else None
    errors = Errors() if "errors" in tables else None
    direct = [table for table in tables if table in _DIRECT]
    inventory = Inventory(names=rows.names) if {"clients", "audit"} & set(tables) else None
    for event in events:
        for table in direct:
            for row in rows_of(table, event, rows):
                writer.add(table, row)
        if errors is not None and isinstance(event, Exchange):
            errors.add(event)
            if errors.full():
                _take(errors, writer, tables)
        if inventory is not None:
            if isinstance(event, Exchange):
                inventory.exchange(event)
            elif isinstance(event, Connection):
                inventory.connection(event)
        if latency is not None and isinstance(event, Exchange):
            latency.add(event, rows.mentions(event).topics)
            if latency.full():
                _take(latency, writer, tables)
    for counted in (latency, errors):
        if counted is not None:
            _take(counted, writer, tables)
    if inventory is not None:
        _take_clients(inventory, rows, writer, tables, target)


def _take_clients(inventory: Inventory, rows: Rows, writer: Writer, tables: Sequence[str], target: str | None) -> None:
    clients = inventory.clients()
    for client in clients if "clients" in tables else ():
        writer.add("clients", rows.client(client))
    if target is not None and "audit" in tables:
        for verdict in audit(clients, target):
            writer.add("audit", rows.verdict(verdict, target))
    if "problems" not in tables:
        return
    if inventory.left_out:
        what = f"too many clients: {inventory.left_out} more are not in the tables clients and audit"
        writer.add("problems", rows.problem(Problem("too_many_clients", what)))
    if inventory.cut:
        what = f"{inventory.cut} clients used more API versions or names than are in the tables clients and audit"
        writer.add("problems", rows.problem(Problem("too_many_clients", what)))


def _take(counted: Latency | Errors, writer: Writer, tables: Sequence[str]) -> None:
    for table, row in counted.take():
        if table in tables:
            writer.add(table, row)


def _until_failure(reading: Reading, failed: list[str]) -> Iterator[Event]:
    """The events, and a problem in place of whatever would end them early."""
    events = reading.events()
    while True:
        try:
            event = next(events)
        except StopIteration:
            return
        except Exception as error:
            # One source must not take down the work of all the others, whatever is wrong with it or with us.
            what = str(error) if isinstance(error, KwiresniffError | OSError) else f"{type(error).__name__}: {error}"
            failed.append(what)
            yield Problem("source_failed", f"reading stopped here: {what}")
            return
        yield event


def totals(commits: Sequence[Commit]) -> dict[str, Any]:
    """The counts of several commits added up."""
    result: dict[str, Any] = {
        "files": 0, "bytes": 0, "packets": 0, "skipped_files": 0, "failed": 0, "rows": {}, "other_packets": {},
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
