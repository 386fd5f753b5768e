"""Which clients came and went, and which have another software, user or version of an API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from kwiresniff.analysis.comparison.survey import Found, stable_name
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.results.clients import Client
from kwiresniff.results.comparison import Change

#: A client that was there for less than this share of its capture comes and goes.
MIN_PRESENCE: Final = 0.5


class _Seen(NamedTuple):
    """A client by what it is called in captures of different times."""

    clients: list[Client]
    present: float

    def values(self, name: str) -> set[str]:
        """What is known of one of its properties."""
        return set(filter(None, (_PROPERTIES[name](one) for one in self.clients)))

    def versions(self) -> dict[str, int]:
        """The version of each API that it uses most."""
        uses: dict[str, Counter[int]] = {}
        for use in (use for one in self.clients for use in one.uses if use.api_key != API_VERSIONS):
            uses.setdefault(use.api, Counter())[use.version] += use.count
        return {api: counts.most_common(1)[0][0] for api, counts in uses.items()}


def _software(client: Client) -> str:
    return " ".join(part for part in client.software if part)


def _user(client: Client) -> str:
    return str((client.sasl or {}).get("principal") or "")


def _tls(client: Client) -> str:
    return str((client.tls or {}).get("version") or "")


_PROPERTIES: Final = {"software": _software, "user": _user, "TLS": _tls}


def client_changes(before: Found, after: Found) -> tuple[list[Change], list[Change], int]:
    """What changed of clients and their versions, what may have changed, and how many clients were compared."""
    earlier, later = _by_name(before), _by_name(after)
    found: list[Change] = []
    doubtful: list[Change] = []
    for name in sorted({*earlier, *later}):
        one, other = earlier.get(name), later.get(name)
        if one is not None and other is not None:
            found += _differences(name, one, other)
        elif other is not None:
            came = Change("clients", "info", "new", name, "", None, _described(other))
            (found if other.present >= MIN_PRESENCE else doubtful).append(came)
        elif one is not None:
            went = Change("clients", "info", "gone", name, "", _described(one), None)
            (found if one.present >= MIN_PRESENCE else doubtful).append(went)
    return found, doubtful, len({*earlier, *later})


def _by_name(side: Found) -> dict[str, _Seen]:
    found: dict[str, list[Client]] = {}
    for client in side.clients:
        if client.kind == "client" and client.exchanges:
            found.setdefault(stable_name(client.client_id, client.address), []).append(client)
    span_ns = max(side.last_ns - side.first_ns, 1)
    return {
        name: _Seen(ones, (max(one.last_ns for one in ones) - min(one.first_ns for one in ones)) / span_ns)
        for name, ones in found.items()
    }


def _described(seen: _Seen) -> str:
    software = ", ".join(sorted(seen.values("software")))
    hosts = sorted({one.address for one in seen.clients})
    at = hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"
    return f"{software or 'software not known'} at {at}"


def _differences(name: str, before: _Seen, after: _Seen) -> Iterable[Change]:
    for of in _PROPERTIES:
        known = before.values(of), after.values(of)
        if all(known) and known[0] != known[1]:
            texts = [", ".join(sorted(one)) for one in known]
            yield Change("clients", "info", "changed", name, of, texts[0], texts[1])
    versions = before.versions(), after.versions()
    other = [api for api in versions[0] if versions[1].get(api, versions[0][api]) != versions[0][api]]
    if other:
        said = [", ".join(f"{api} v{side[api]}" for api in other) for side in versions]
        yield Change("versions", "info", "changed", name, "API versions", said[0], said[1])
