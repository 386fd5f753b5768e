"""The inventory and the audit, one block of lines per client: what it is, then what it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kwiresniff.base.placeholders import NO_CLIENT_ID
from kwiresniff.render import format_units
from kwiresniff.render.blocks import BlockWriter, cluster_name
from kwiresniff.render.escape import escape
from kwiresniff.render.headline import path_text
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.render.names import name_chunks
from kwiresniff.render.one_line import Column, cluster_column, name_cell
from kwiresniff.results.clients import ApiUse, AuditFinding, AuditRow, Client, Setting

#: Names listed of each kind before the rest is only counted; JSON has them all.
NAMES_SHOWN: Final = 12

_VERDICTS: Final = {
    "breaks": ("bad", "✗ breaks", "x breaks"),
    "unknown": ("warn", "? unknown", "? unknown"),
    "ok": ("good", "✓ ok", "+ ok"),
    "not_judged": ("dim", "- not judged", "- not judged"),
}
_KINDS: Final = {"client": "", "broker": "node of the cluster", "encrypted": "encrypted"}


class ClientWriter(BlockWriter):
    """Writes clients and audit rows."""

    def clients(self, clients: Iterable[Client]) -> None:
        """One block for each, an empty line between two."""
        for index, client in enumerate(clients):
            self._between(index)
            self._line([*self._who(client), [("dim", _counts(client))]])
            self._facts(_client_facts(client))

    def audit(self, rows: Iterable[AuditRow]) -> None:
        """The verdict on each, and what it rests on."""
        for index, row in enumerate(rows):
            self._between(index)
            kind, mark, plain = _VERDICTS[row.verdict]
            words = mark if self._paint.glyphs.arrow == "→" else plain
            self._line([[(kind, words)], *self._who(row.client)])
            self._facts(_identity_facts(row.client))
            if not row.findings:
                self._fact("", [[("dim", row.reason)]])
            for finding in row.findings:
                self._fact("breaks" if finding.breaks else "may break", self._finding(finding))

    def _who(self, client: Client) -> list[Chunk]:
        name = escape(client.client_id) if client.client_id else NO_CLIENT_ID
        path = path_text(client.address, client.broker, client.proxied, self._paint.glyphs.arrow)
        chunks: list[Chunk] = [[("ident" if client.client_id else "dim", name)], [("value", path)]]
        if client.proxied is not None:
            chunks[-1].append(("name", f" by {client.proxied['by']}"))
        if client.cluster:
            chunks.append([("dim", cluster_name(client.cluster))])
        if _KINDS[client.kind]:
            chunks.append([("wait", _KINDS[client.kind])])
        return chunks

    def _finding(self, finding: AuditFinding) -> list[Chunk]:
        use = finding.use
        where = f"{format_units.count(use.count, 'request')}, first in {self._in_packet(use.packet)}"
        return [[("bad" if finding.breaks else "value", escape(finding.reason))], [("dim", where)]]

    def _facts(self, facts: Iterable[tuple[str, list[Chunk]]]) -> None:
        for label, chunks in facts:
            self._fact(label, chunks)


def client_columns(client: Client) -> list[Column]:
    """A client in a line."""
    sasl, tls = client.sasl or {}, client.tls or {}
    return [
        Column("client", True, "ident", name_cell(client.client_id or "")),
        Column("address", True, "value", name_cell(client.address)),
        Column("broker", True, "value", name_cell(client.broker)),
        Column("software", True, "client", name_cell(" ".join(part for part in client.software if part))),
        Column("user", True, "value", name_cell(str(sasl.get("principal") or ""))),
        Column("tls", True, "value", name_cell(str(tls.get("version") or ""))),
        Column("connections", False, "value", str(client.connections)),
        Column("exchanges", False, "value", str(client.exchanges)),
        Column("errors", False, "bad" if client.errors else "dim", str(client.errors)),
        Column("unanswered", False, "warn" if client.unanswered else "dim", str(client.unanswered)),
        Column("topics", False, "dim", str(len(client.topics))),
        Column("groups", False, "dim", str(len(client.groups))),
        *cluster_column(client.cluster),
    ]


def _counts(client: Client) -> str:
    parts = [format_units.count(client.connections, "connection"), format_units.count(client.exchanges, "exchange")]
    if client.errors:
        parts.append(format_units.count(client.errors, "error"))
    if client.unanswered:
        parts.append(f"{client.unanswered:,} unanswered")
    return ", ".join(parts)


def _client_facts(client: Client) -> Iterator[tuple[str, list[Chunk]]]:
    yield from _identity_facts(client)
    if client.uses:
        yield "apis", [[("value", text)] for text in _apis(client.uses)]
    if client.settings:
        yield "settings", [[("name", name + "="), ("value", text)] for name, text in _settings(client.settings)]
    for label, names in (
        ("topics", client.topics),
        ("groups", client.groups),
        ("txn ids", client.transactional_ids),
    ):
        if names:
            yield label, _names(names)
    seen = f"{format_units.date(client.first_ns)} {format_units.clock(client.first_ns, 3)}"
    if client.last_ns > client.first_ns:
        seen += f" for {format_units.duration(client.last_ns - client.first_ns)}"
    traffic = f"{format_units.size(client.request_bytes)} sent, {format_units.size(client.response_bytes)} received"
    yield "seen", [[("value", seen)], [("dim", traffic)]]


def _identity_facts(client: Client) -> Iterator[tuple[str, list[Chunk]]]:
    if client.address_names:
        yield "client is", list(name_chunks(client.address_names))
    if client.broker_names:
        yield "broker is", list(name_chunks(client.broker_names))
    name, version = client.software
    if name:
        yield "software", [[("client", escape(f"{name} {version or ''}".strip()))]]
    elif client.kind == "client":
        negotiation = {
            True: "did not say (ApiVersions below v3)",
            False: "did not say, and did not ask for ApiVersions",
            None: "the beginning of its connections is not in the capture",
        }
        yield "software", [[("dim", negotiation[client.negotiates])]]
    if client.sasl is not None:
        principal, mechanism, outcome = (client.sasl[name] for name in ("principal", "mechanism", "outcome"))
        who = f"{principal} by {mechanism or 'SASL'}" if principal else mechanism or "SASL"
        kind = {"ok": "good", "failed": "bad"}.get(outcome, "dim")
        yield "user", [[("value", escape(who))], [(kind, outcome)]]
    if client.tls is not None:
        words = [str(client.tls["version"] or "TLS")]
        if client.tls["server_name"]:
            words.append(f"to {client.tls['server_name']}")
        words.append("decrypted" if client.tls["decrypted"] else "not decrypted")
        yield "tls", [[("value", escape(" ".join(words)))]]


def _apis(uses: Sequence[ApiUse]) -> Iterator[str]:
    """``Fetch v16 (30)``: every API with its versions and how often."""
    by_api: dict[tuple[int, str], list[ApiUse]] = {}
    for use in uses:
        by_api.setdefault((use.api_key, use.api), []).append(use)
    for (_, api), found in by_api.items():
        versions = ", ".join(f"v{use.version}" for use in found)
        yield f"{escape(api)} {versions} ({sum(use.count for use in found):,})"


def _settings(settings: Sequence[Setting]) -> Iterator[tuple[str, str]]:
    """Each setting with its value, ``~`` in front of an estimated one; of one that was changed, all in their order,
    with the time since which each was seen.
    """
    by_name: dict[str, list[Setting]] = {}
    for one in settings:
        by_name.setdefault(one.name, []).append(one)
    for name, values in by_name.items():
        first, *later = values
        text = _value(first)
        for one in later:
            text += f", {_value(one)} since {format_units.clock(one.since_ns, 3)}"
        yield name, text


def _value(setting: Setting) -> str:
    value = str(setting.value).lower() if isinstance(setting.value, bool) else escape(str(setting.value))
    return f"~{value}" if setting.estimated else value


def _names(names: Sequence[str]) -> list[Chunk]:
    chunks: list[Chunk] = [[("value", escape(name) or '""')] for name in names[:NAMES_SHOWN]]
    if len(names) > NAMES_SHOWN:
        chunks.append([("dim", f"and {len(names) - NAMES_SHOWN:,} more")])
    return chunks
