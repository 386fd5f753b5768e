"""Which clients would break on another version of Kafka.

Judged is what clients really used, against the versions that the brokers of the target release offer. A client that
negotiates (KIP-35) takes the highest version that both sides have, so a low version alone proves nothing: it does when
the broker offered a higher one, or when the client is Kafka's own Java client, whose releases speak the versions of
the brokers of their time (KIP-896 removed old ones in 4.0).
"""

from __future__ import annotations

from collections.abc import Iterable

from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.errors import SchemaError
from kwiresniff.results.clients import ApiUse, AuditFinding, AuditRow, Client
from kwiresniff.schema import find_release, release_history, releases, versions_in

BREAKS, UNKNOWN, OK, NOT_JUDGED = "breaks", "unknown", "ok", "not_judged"
#: The worst first.
VERDICTS = (BREAKS, UNKNOWN, OK, NOT_JUDGED)

#: The software name of Kafka's own Java client.
JAVA_CLIENT = "apache-kafka-java"


def audit(clients: Iterable[Client], target: str) -> list[AuditRow]:
    """Every client with its verdict, the worst first; raises SchemaError for a release that is not known."""
    release = find_release(target)
    offered = versions_in(release)
    rows = [_judge(client, release, offered) for client in clients]
    return sorted(rows, key=lambda row: VERDICTS.index(row.verdict))


def _judge(client: Client, release: str, offered: dict[int, tuple[int, int]]) -> AuditRow:
    if client.kind == "broker":
        return AuditRow(client, NOT_JUDGED, "a node of the cluster, which is upgraded with it", ())
    if client.kind == "encrypted":
        return AuditRow(client, UNKNOWN, "encrypted, and its keys are not known", ())
    if not client.uses:
        return AuditRow(client, UNKNOWN, "none of its requests is in the capture", ())
    java = _java_versions(client)
    found = [finding for use in client.uses if (finding := _judge_use(use, client, release, offered, java)) is not None]
    findings = tuple(sorted(found, key=lambda finding: (not finding.breaks, finding.use.api_key, finding.use.version)))
    if not findings:
        return AuditRow(client, OK, f"all it used is in Kafka {release}", ())
    verdict = BREAKS if findings[0].breaks else UNKNOWN
    return AuditRow(client, verdict, findings[0].reason, findings)


def _judge_use(
    use: ApiUse,
    client: Client,
    release: str,
    offered: dict[int, tuple[int, int]],
    java: dict[int, tuple[int, int]] | None,
) -> AuditFinding | None:
    there = offered.get(use.api_key)
    if there is not None and there[0] <= use.version <= there[1]:
        return None
    if there is None:
        return _without_api(use, client, release)
    low, high = there
    name = f"{use.api} v{use.version}"
    if use.api_key == API_VERSIONS and use.version > high:
        return None  # answered in version 0, which says what the broker can
    takes = f"Kafka {release} takes v{low}" + ("" if low == high else f" to v{high}")
    if client.negotiates is False:
        return AuditFinding(use, True, there, f"{name}: {takes}, and the client does not ask what a broker can")
    if java is not None and use.api_key in java:
        least, most = java[use.api_key]
        if least <= high and low <= most:
            return None  # it has a version in common with the target and will take that
        spoken = f"v{least}" if least == most else f"v{least} to v{most}"
        return AuditFinding(use, True, there, f"{name}: {takes}, this client speaks {spoken}")
    broker = client.offered.get(use.api_key)
    if use.version < low:
        if client.negotiates and broker is not None and broker[1] > use.version:
            higher = f"{name}: {takes}, and the client went no higher although its broker offered v{broker[1]}"
            return AuditFinding(use, True, there, higher)
        limit = (
            f"it may know higher ones, its broker stopped at v{broker[1]}"
            if broker is not None
            else "whether the client knows higher ones is not in the capture"
        )
        return AuditFinding(use, False, there, f"{name}: {takes}; {limit}")
    return AuditFinding(
        use, False, there, f"{name}: {takes}; whether the client knows lower ones is not in the capture"
    )


def _without_api(use: ApiUse, client: Client, release: str) -> AuditFinding:
    name = f"{use.api} v{use.version}"
    history = release_history(use.api_key)
    names = releases()
    if not history:
        return AuditFinding(use, False, None, f"{name}: no release of Kafka is known to offer {use.api}")
    first, last = history[0][0], history[-1]
    if last[1] is None and names.index(last[0]) <= names.index(release):
        return AuditFinding(use, True, None, f"{name}: {use.api} was removed in Kafka {last[0]}")
    since = f"{name}: {use.api} came with Kafka {first}"
    if client.negotiates:
        return AuditFinding(use, False, None, f"{since}; a client that asks what a broker can may do without")
    return AuditFinding(use, True, None, since)


def _java_versions(client: Client) -> dict[int, tuple[int, int]] | None:
    """The versions of the client's release, when it is Kafka's own and says which release it is."""
    name, version = client.software
    if name != JAVA_CLIENT or not version:
        return None
    try:
        return versions_in(find_release(version))
    except SchemaError:
        return None
