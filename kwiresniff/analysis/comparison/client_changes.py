"""Which clients came and went, and which have another software, user, version of an API or setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from kwiresniff.analysis.comparison.survey import Found, stable_name
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.results.clients import Client, Setting
from kwiresniff.results.comparison import Change

#: A client that was there for less than this share of its capture comes and goes.
MIN_PRESENCE: Final = 0.5


#: An estimate that is less than so many times another one is the same.
ESTIMATE_RATIO: Final = 2.0
#: What is seen of it depends on the load.
_OF_LOAD: Final = "max.in.flight.requests.per.connection"
#: Values without which records can be lost, doubled or read too early.
_SAFE: Final = {"acks": "all", "enable.idempotence": True, "isolation.level": "read_committed"}


class _Seen(NamedTuple):
    """A client by what it is called in captures of different times."""

    clients: list[Client]
    present: float

    def values(self, name: str) -> set[str]:
        """The known values of one property."""
        return set(filter(None, (_PROPERTIES[name](one) for one in self.clients)))

    def settings(self) -> dict[str, Setting]:
        """Each setting as it was last."""
        every = sorted((setting for one in self.clients for setting in one.settings), key=lambda one: one.since_ns)
        return {one.name: one for one in every}

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
    """The changes of clients and their versions, the doubtful changes, and how many clients were compared."""
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


def _differences(name: str, before: _Seen, after: _Seen) -> Iterator[Change]:
    for of in _PROPERTIES:
        known = before.values(of), after.values(of)
        if all(known) and known[0] != known[1]:
            texts = [", ".join(sorted(one)) for one in known]
            yield Change("clients", "info", "changed", name, of, texts[0], texts[1])
    yield from _setting_changes(name, before.settings(), after.settings())
    versions = before.versions(), after.versions()
    other = [api for api in versions[0] if versions[1].get(api, versions[0][api]) != versions[0][api]]
    if other:
        said = [", ".join(f"{api} v{side[api]}" for api in other) for side in versions]
        yield Change("versions", "info", "changed", name, "API versions", said[0], said[1])


def _setting_changes(name: str, before: dict[str, Setting], after: dict[str, Setting]) -> Iterator[Change]:
    for setting, one in before.items():
        other = after.get(setting)
        if other is None or other.value == one.value or setting == _OF_LOAD:
            continue
        if one.estimated or other.estimated:
            low, high = sorted((int(one.value), int(other.value)))
            if high < ESTIMATE_RATIO * max(low, 1):
                continue
        is_unsafe = setting in _SAFE and one.value == _SAFE[setting]
        texts = [_said(each) for each in (one, other)]
        yield Change("settings", "warning" if is_unsafe else "info", "changed", name, setting, texts[0], texts[1])


def _said(setting: Setting) -> str:
    value = str(setting.value).lower() if isinstance(setting.value, bool) else str(setting.value)
    return f"~{value}" if setting.estimated else value
