"""Exchanges counted into tables: by API, client, topic, broker or connection, or by several of them together.

Deliberate waits (long polls, rebalances, throttling) have histograms of their own, so that they do not look like a slow
broker, and so have the parts of a wait. Tables are bounded: when there are too many different keys, what comes later
goes into one row of others, and so do the rows of least use when all of them together take too much memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Any, Final, final

from kwiresniff.analysis.followed_sessions import FollowedSessions, SessionKeys
from kwiresniff.analysis.latency import BUCKET_BYTES
from kwiresniff.analysis.stats_dimensions import record_counter
from kwiresniff.analysis.stats_keys import Key, Keys, TimeKeys, key_parts, keys_of
from kwiresniff.analysis.stats_row import ROW_BYTES, Row
from kwiresniff.base.placeholders import NO_REQUEST, OTHERS
from kwiresniff.model import Exchange, TopicNames
from kwiresniff.results.stats import StatRow

#: Rows of one table; nobody reads more.
MAX_ROWS = 10_000
#: Memory of one table. A row takes some 5 kB, but keys may be as long as a frame, and histograms fill up.
MAX_TABLE_BYTES = 64 << 20
#: What one exchange can add: a bucket in each of five histograms.
_ADDED_BYTES: Final = 5 * BUCKET_BYTES
#: What may be added between two looks at how much there is, at the least.
_REVIEW_BYTES: Final = 16 << 20
#: Rows of a fetch session that are counted apart because its topics became others in between, until each topic gets its
#: counts; and those of all sessions together.
MAX_APART = 1_024
MAX_ALL_APART = 16_384
#: A topic's id as text.
TOPIC_ID_CHARS = 22


def _key_bytes(key: Key) -> int:
    return sum([getsizeof(part) for part in key_parts(key)])


@final
class _Shared:
    """What was counted for keys that the fetches of a session share.

    ``rows`` follow each other in time: a key gets what is in those from the one at ``since[key]`` on, the exchanges
    since it came. A row covers the time until the row that ``nexts`` has for it. ``names`` are the parts of keys by
    session member, ``others`` the parts of the other dimensions.
    """

    __slots__ = ("count", "names", "nexts", "others", "rows", "since")

    def __init__(self, others: tuple[str, ...]) -> None:
        self.others = others
        self.rows: list[Row] = [Row()]
        self.nexts: list[int] = [1]
        self.since: dict[str, int] = {}
        self.names: dict[Any, str] = {}
        self.count: dict[str, int] = {}  # members by name: one may be there by its id as well

    def turn(self) -> int:
        """Begins another row, because keys come or go, unless the last one is empty; how many rows there are more."""
        if not self.rows[-1].count:
            return 0
        self.rows.append(Row())
        self.nexts.append(len(self.rows))
        return 1

    def come(self, member: Any, name: str) -> bool:
        """Whether a member brings a new key."""
        self.names[member] = name
        members = self.count.get(name, 0)
        self.count[name] = members + 1
        if not members:
            self.since[name] = len(self.rows) - 1
        return not members

    def go(self, member: Any) -> tuple[str, int]:
        """The key that goes with a member, and since when it was there; -1 where another member has it, too."""
        name = self.names.pop(member)
        self.count[name] -= 1
        if self.count[name]:
            return name, -1
        del self.count[name]
        return name, self.since.pop(name)

    def sum(self, at: int) -> Row:
        """What was counted from a row on. The rows on the way cover all of it then, but for the last."""
        way: list[int] = []
        last = len(self.rows) - 1
        while at < last:
            way.append(at)
            at = self.nexts[at]
        for before in reversed(way[:-1]):
            self.rows[before].merge(self.rows[self.nexts[before]])
            self.nexts[before] = last
        if not way:
            return self.rows[last]
        if not self.rows[last].count:
            return self.rows[way[0]]
        found = Row()
        found.merge(self.rows[way[0]])
        found.merge(self.rows[last])
        return found

    def settle(self) -> list[tuple[list[str], Row]]:
        """What the keys get that are there, those with the same together; it is begun anew."""
        came: dict[int, list[str]] = {}
        for key, at in self.since.items():
            came.setdefault(at, []).append(key)
            self.since[key] = 0
        found = [(keys, self.sum(at)) for at, keys in came.items()]
        self.rows, self.nexts = [Row()], [1]
        return [(keys, row) for keys, row in found if row.count]


class StatsTable:
    """One table over one dimension or several together.

    An exchange with several topics counts in the row of each of them, with all its bytes and its whole latency.
    """

    def __init__(
        self, by: Sequence[str], topic_name: TopicNames | None = None, *, records: bool = False, every_ns: int = 0
    ) -> None:
        """With ``every_ns`` the first dimension is ``time``, its key the beginning of a slice of that width in
        nanoseconds.
        """
        self.by = ("time", *by) if every_ns else tuple(by)
        self._keys: list[Keys] = [keys_of(name, topic_name) for name in by]
        if every_ns:
            self._keys.insert(0, TimeKeys(every_ns))
        self._single = self._keys[0] if len(self.by) == 1 else None
        self._usual = self.by == ("api",) and not records
        self._records_at, self._count_records = -1, None
        if records:
            self._records_at, self._count_records = record_counter(self.by, topic_name)
        self._topic_at = -1
        for at, name in enumerate(self.by):
            if name in ("topic", "partition") and topic_name is not None:
                self._topic_at = at
        # What resolves keys of the dimension with that place among the others, when everything has been seen.
        self._resolvers = [
            (at, resolve)
            for at, keys in enumerate(self._keys)
            if (resolve := getattr(keys, "resolve", None)) is not None
        ]
        self._topic_name = topic_name
        # The dimension that fetch sessions have values of, where it is just one.
        of_sessions: list[tuple[int, Any]] = [
            (at, of_session)
            for at, keys in enumerate(self._keys)
            if (of_session := getattr(keys, "of_session", None)) is not None
        ]
        self._session_at = -1
        self._of_session: Any = None
        if len(of_sessions) == 1:
            self._session_at, self._of_session = of_sessions[0]
        self._rows: dict[Key, Row] = {}
        self._limit_bytes = MAX_TABLE_BYTES
        self._held_bytes = 0  # at the most; the next review will find out
        self._closed = False  # for other keys than it has
        self._sessions = FollowedSessions()  # by session and the parts of keys of the other dimensions
        self._apart = 0  # rows of all of them

    def add(self, exchange: Exchange) -> None:
        """Counts one exchange."""
        if self._usual:  # in one step
            self._row(exchange.api or NO_REQUEST).add(exchange)
            return
        if exchange.fetched is not None and self._of_session is not None:
            shared = self._of_session(exchange)
            if shared is not None:
                self._add_shared(shared, exchange)
                return
        keys = self._single(exchange) if self._single is not None else self._combined(self._keys, exchange)
        if self._count_records is not None:
            self._add_with_records(keys, exchange)
            return
        for key in keys:
            self._row(key).add(exchange)

    def _add_shared(self, keys: SessionKeys, exchange: Exchange) -> None:
        """Counts an exchange once for all keys that it has by its session: they get it when somebody looks."""
        at = self._session_at
        besides = list(dict.fromkeys(keys.besides))
        for others in self._combined([*self._keys[:at], *self._keys[at + 1 :]], exchange):
            followed = self._sessions.of((keys.key, others))
            shared: _Shared | None = followed.state
            if shared is None:
                shared = followed.state = _Shared(others)
            if followed.seen is not keys.members:
                self._change(shared, followed.changes(keys.members), keys)
                for dropped in self._sessions.weigh(followed):
                    self._settle(dropped.state)
            shared.rows[-1].add(exchange)
            for name in besides:
                if name not in shared.since:
                    self._row(self._key(others, name)).add(exchange)
            if self._count_records is not None:
                asked, answered = self._count_records(exchange)
                for name in {*asked, *answered}:
                    if name in shared.since or name in besides:
                        row = self._row(self._key(others, name))
                        row.request_records += asked.get(name, 0)
                        row.response_records += answered.get(name, 0)

    def _key(self, others: tuple[str, ...], name: str) -> Key:
        at = self._session_at
        return name if self._single is not None else (*others[:at], name, *others[at:])

    def _change(self, shared: _Shared, changes: list[tuple[Any, bool]], keys: SessionKeys) -> None:
        """Keys that come get what is counted from now on, keys that go what has been."""
        self._apart += shared.turn()
        rows, gone = shared.rows, dict[int, Row]()
        for member, added in changes:
            if added:
                name = keys.name_of(member)
                if shared.come(member, name):
                    self._row(self._key(shared.others, name))  # in the order in which they come
            else:
                name, since = shared.go(member)
                if shared.rows is not rows:  # to make room for a row has settled everything
                    rows, gone = shared.rows, {}
                if since >= 0:
                    row = gone.get(since)
                    if row is None:
                        row = gone[since] = shared.sum(since)
                    self._give(shared.others, [name], row)
        if len(shared.rows) > MAX_APART:
            self._settle(shared)
        elif self._apart > MAX_ALL_APART:
            self._settle_all()

    def _settle(self, shared: _Shared) -> None:
        """Adds what was counted for all keys of a session at once to the row of each."""
        self._apart -= len(shared.rows) - 1
        for names, row in shared.settle():
            self._give(shared.others, names, row)

    def _settle_all(self) -> None:
        for followed in self._sessions.known.values():
            self._settle(followed.state)

    def _give(self, others: tuple[str, ...], names: list[str], row: Row) -> None:
        if row.count:
            self._held_bytes += (row.size_bytes() - ROW_BYTES) * len(names)
            for name in names:
                key = self._key(others, name)
                (self._rows.get(key) or self._new_row(key)).merge(row)

    def _add_with_records(self, keys: Iterable[Key], exchange: Exchange) -> None:
        assert self._count_records is not None
        asked, answered = self._count_records(exchange)
        for key in keys:
            row = self._row(key)
            row.add(exchange)
            whose = key_parts(key)[self._records_at] if self._records_at >= 0 else ""
            row.request_records += asked.get(whose, 0)
            row.response_records += answered.get(whose, 0)

    def _combined(self, parts: list[Keys], exchange: Exchange) -> list[tuple[str, ...]]:
        keys: list[tuple[str, ...]] = [()]
        for part in parts:
            keys = [(*key, value) for key in keys for value in part(exchange)]
        return keys

    def _row(self, key: Key) -> Row:
        self._held_bytes += _ADDED_BYTES
        if self._held_bytes > self._limit_bytes:
            self._review()
        return self._rows.get(key) or self._new_row(key)

    def _new_row(self, key: Key) -> Row:
        if not self._closed and len(self._rows) < MAX_ROWS:
            size = ROW_BYTES + _key_bytes(key)
            if self._held_bytes + size > self._limit_bytes:
                self._review()
            if self._held_bytes + size > self._limit_bytes:
                self._closed = True
            elif not self._closed:
                self._held_bytes += size
                row = self._rows[key] = Row()
                return row
        others = self._others()
        found = self._rows.get(others)
        if found is None:
            found = self._rows[others] = Row()
        return found

    def _others(self) -> Key:
        return OTHERS if self._single is not None else (OTHERS,) * len(self.by)

    def _review(self) -> None:
        """When the table has outgrown its limit, the rows of least use become part of the others until half is left.

        From then on there are no new rows: one for a key that had lost its own would have only part of it.
        """
        self._settle_all()
        rows = self._rows
        sizes = {key: row.size_bytes() + _key_bytes(key) for key, row in rows.items()}
        held = sum(sizes.values())
        if held > self._limit_bytes:
            self._closed = True
            others_key = self._others()
            others = rows.setdefault(others_key, Row())
            for key in sorted(sizes, key=lambda key: rows[key].count):
                if held <= self._limit_bytes // 2:
                    break
                if key != others_key:
                    others.merge(rows.pop(key))
                    held -= sizes[key]
        self._held_bytes = min(held, self._limit_bytes - _REVIEW_BYTES)

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> list[StatRow]:
        """The rows, busiest first."""
        self._rename()
        found = [self._stat_row(key_parts(key), row) for key, row in self._rows.items()]
        return sorted(found, key=lambda row: (-row.count, row.key))

    def _rename(self) -> None:
        """Names rows by what became known later: a topic instead of its id, so that it is never two; a group instead of
        the client that reads for it. Before, each row gets what was counted for many at once."""
        self._settle_all()
        for at, resolve in self._resolvers:
            found = [(key, name) for key in self._rows if (name := resolve(key_parts(key)[at])) is not None]
            for key, name in found:
                self._move(key, at, name)
        at, topic_name = self._topic_at, self._topic_name
        if at < 0 or topic_name is None:
            return
        late: list[tuple[Key, str]] = []
        for key in self._rows:
            part = key_parts(key)[at]
            topic, number = part[:TOPIC_ID_CHARS], part[TOPIC_ID_CHARS:]
            if (not number or number[0] == "-") and len(topic) == TOPIC_ID_CHARS and (name := topic_name(topic)):
                late.append((key, name + number))
        for key, name in late:
            self._move(key, at, name)

    def _move(self, key: Key, at: int, name: str) -> None:
        """Counts a row under another name in one of its dimensions."""
        row = self._rows.pop(key)
        new: Key = name if isinstance(key, str) else (*key[:at], name, *key[at + 1 :])
        known = self._rows.get(new)
        if known is None:
            self._rows[new] = row
        else:
            known.merge(row)

    def _stat_row(self, key: tuple[str, ...], row: Row) -> StatRow:
        waits = row.waits
        waiting = [(reason, histogram.summary()) for reason, histogram in sorted(waits.waiting.items())]
        return StatRow(
            self.by,
            key,
            row.count,
            row.errors,
            row.unanswered,
            row.request_bytes,
            row.response_bytes,
            waits.latency.summary(),
            tuple((reason, summary) for reason, summary in waiting if summary is not None),
            None if waits.queued is None else waits.queued.summary(),
            None if waits.held is None else waits.held.summary(),
            waits.broker.summary(),
            row.negotiation,
            row.request_records if self._count_records is not None else None,
            row.response_records if self._count_records is not None else None,
            None if row.waits.path is None else row.waits.path.summary(),
        )


class StatsTables:
    """Several tables over the same exchanges."""

    def __init__(self, tables: Sequence[StatsTable]) -> None:
        self._tables = list(tables)

    def add(self, exchange: Exchange) -> None:
        """Counts one exchange in every table."""
        for table in self._tables:
            table.add(exchange)
