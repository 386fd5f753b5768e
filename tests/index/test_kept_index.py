"""An index in a file: the same index comes back, and no file makes another thing of it than an index."""

from __future__ import annotations

import io
import os
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import pytest

import kwiresniff
from kwiresniff.browse.row_cells import RowCells, columns_of
from kwiresniff.capture.packet_places import Place
from kwiresniff.index import ExchangeIndex, Indexed, IndexSink
from kwiresniff.index.columns import MOST, narrow_part
from kwiresniff.index.exchange_index import NARROW, ConnectionEnds, IndexPart
from kwiresniff.index.kept_index import (
    MAX_FILE_BYTES,
    MAX_PART_ROWS,
    MAX_TEXT_BYTES,
    IndexWriter,
    UnfitIndex,
    fingerprint,
    read_index,
)
from kwiresniff.session.topic_ids import SavedTopics
from tests.support.exchanges import exchange
from tests.support.paths import CAPTURES

OF = bytes(range(32))
CAPTURE = str(CAPTURES / "java-fetch.pcapng")
HEADER_BYTES, DIGEST_BYTES = 40, 32


class Recorder(kwiresniff.Sink):
    """Hands exchanges on to an index."""

    def __init__(self, sink: IndexSink) -> None:
        self._sink = sink

    def on_exchange(self, exchange: kwiresniff.Exchange) -> None:
        self._sink.on_exchange(exchange)


def message(part: IndexPart, *, done: bool = True) -> Indexed:
    """A part with something in each of its members."""
    topics = SavedTopics({"id": "orders"}, ("ssl.keystore.password",), False)
    return Indexed(part, [], topics, 1.0, ("a gap of 10 bytes",), 1, done)


def part_of(name: str) -> IndexPart:
    """The index of a recording."""
    sink = IndexSink(lambda topic_id: None)
    kwiresniff.read_into(Recorder(sink), CAPTURES / name)
    return sink.take()


def kept(*messages: Indexed) -> bytes:
    """The bytes of a file with these parts."""
    out = io.BytesIO()
    writer = IndexWriter(out, OF)
    for one in messages:
        writer.add(one)
    writer.close()
    return out.getvalue()


def read(data: bytes, path: Path, of: bytes = OF, files: Sequence[str] = (CAPTURE,)) -> list[Indexed]:
    """What a file with these bytes holds."""
    path.write_bytes(data)
    with path.open("rb") as file:
        return list(read_index(file, of, files))


def sealed(data: bytes) -> bytes:
    """A changed file with a digest that is right."""
    front = data[:-DIGEST_BYTES]
    return front + blake2b(front, digest_size=DIGEST_BYTES).digest()


def draw(messages: list[Indexed]) -> None:
    """Does with every row what a list does with it."""
    index = ExchangeIndex()
    for one in messages:
        index.extend(one.part)
    cells = RowCells(index)
    for row in range(len(index)):
        found = index.exchange(row)
        assert found.latency_ns is None or found.latency_ns >= 0
        assert cells.text(row).isprintable()
        assert "".join(text for _, text in cells.spans(row, columns_of(200))).isprintable()
        array("q", [message.first_ns for message in (found.request, found.response) if message is not None])


def test_an_index_comes_back_as_it_was(tmp_path: Path) -> None:
    """In every member, in parts, with numbers of all sizes and texts of all kinds."""
    odd = exchange(client_id="\udcff\x1b[2J", request={"topics": [{"name": "orders", "partitions": []}]})
    sink = IndexSink(lambda topic_id: None)
    sink.on_exchange(odd)
    first = message(sink.take(), done=False)
    sink.on_exchange(exchange(correlation_id=-5))
    second = message(sink.take())
    column = narrow_part([MOST + 1, -MOST - 1, 7])
    assert column.wide
    proxied = {"client": "192.0.2.1:7", "broker": None, "by": "PROXY v1"}
    ends = ConnectionEnds(8, "[2001:db8::1]:9", "[2001:db8::2]:9092", proxied)
    empty = IndexPart(b"", b"", b"", b"", b"", b"", [narrow_part([]) for _ in NARROW], [], [ends], 3)
    wide = second.part._replace(narrow=[narrow_part([MOST * 9]), *second.part.narrow[1:]])
    sent = [first, second._replace(part=wide, done=False), second._replace(part=empty)]
    found = read(kept(*sent), tmp_path / "i.kwi")
    assert [one._replace(fraction=0) for one in found] == [one._replace(fraction=0) for one in sent]
    assert [one.fraction for one in found] == sorted(one.fraction for one in found) and found[-1].fraction == 1


def test_an_index_of_something_else_is_refused(tmp_path: Path) -> None:
    """Another capture, other options, no index at all."""
    data, path = kept(message(part_of("java-fetch.pcapng"))), tmp_path / "i.kwi"
    with pytest.raises(UnfitIndex, match="are others"):
        read(data, path, of=bytes(32))
    for other in (b"", b"{}", data[1:]):
        with pytest.raises(UnfitIndex):
            read(other, path)


def test_an_index_that_was_cut_or_changed_is_refused(tmp_path: Path) -> None:
    """At any byte."""
    data, path = kept(message(part_of("java-fetch.pcapng"))), tmp_path / "i.kwi"
    for at in range(len(data)):
        for broken in (data[:at], data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]):
            with pytest.raises(UnfitIndex):
                read(broken, path)
    with pytest.raises(UnfitIndex):
        read(data + b"\0", path)


@pytest.mark.parametrize("flip", [0x01, 0xFF])
def test_a_changed_index_whose_digest_is_right_is_an_index_or_refused(flip: int, tmp_path: Path) -> None:
    """Whoever wrote it: its rows can be drawn, and its numbers fit where they go."""
    data, path = kept(message(part_of("java-fetch.pcapng"))), tmp_path / "i.kwi"
    refused = 0
    for at in range(HEADER_BYTES, len(data) - DIGEST_BYTES):
        try:
            draw(read(sealed(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]), path))
        except UnfitIndex:
            refused += 1
    assert 0 < refused < len(data) - HEADER_BYTES - DIGEST_BYTES


def test_members_of_another_type_are_refused(tmp_path: Path) -> None:
    """Each is JSON of its own."""
    part, path = part_of("java-fetch.pcapng"), tmp_path / "i.kwi"
    first = message(part)
    odd: list[Indexed] = [
        first._replace(problems=("\x1b[2J",)),
        first._replace(problem_count=-1),
        first._replace(places=[(1, 2)]),  # type: ignore[list-item]
        first._replace(places=[(5, 1, 1), (5, 2, 1)]),  # type: ignore[list-item]
        first._replace(places=[Place(5, Path(CAPTURE).stat().st_size + 1, 1)]),
        first._replace(topics=[1, 2, 3]),  # type: ignore[arg-type]
        first._replace(part=part._replace(connections=[])),
        first._replace(part=part._replace(connections=[(1, "x\ny", "z", None)])),  # type: ignore[list-item]
        first._replace(part=part._replace(values=[])),
        first._replace(part=part._replace(values=[["a", ["b"]]] * 9)),
        first._replace(part=part._replace(narrow=part.narrow[1:])),
        first._replace(part=part._replace(left_out=1.5)),  # type: ignore[arg-type]
    ]
    for size in (-1, 1 << 32):
        narrow = list(part.narrow)
        narrow[NARROW.index("response_bytes")] = narrow_part([size] * len(part.outcomes))
        odd.append(first._replace(part=part._replace(narrow=narrow)))
    for one in odd:
        with pytest.raises(UnfitIndex):
            read(kept(one), path)
    with pytest.raises(UnfitIndex):
        read(kept(first._replace(part=part)), path, files=())


def test_no_more_is_read_than_the_file_has(tmp_path: Path) -> None:
    """Heads may promise any number of bytes and rows."""
    path, front = tmp_path / "i.kwi", kept()[:HEADER_BYTES]
    for size, rows in ((MAX_TEXT_BYTES + 1, 0), (2, MAX_PART_ROWS + 1), (2, MAX_PART_ROWS), (MAX_TEXT_BYTES, 1)):
        with pytest.raises(UnfitIndex):
            read(front + size.to_bytes(4, "little") + rows.to_bytes(4, "little") + b"{}" * 100, path)
    deep = b"[" * 100_000
    with pytest.raises(UnfitIndex):
        read(front + len(deep).to_bytes(4, "little") + bytes(4) + deep, path)
    with path.open("wb") as file:
        file.write(front)
        file.truncate(MAX_FILE_BYTES + 1)
    with path.open("rb") as file, pytest.raises(UnfitIndex):
        list(read_index(file, OF, [CAPTURE]))


def test_a_part_that_could_not_be_read_again_is_not_written() -> None:
    """Its texts may be of any size."""
    part = part_of("java-fetch.pcapng")
    with pytest.raises(UnfitIndex, match="too large"):
        kept(message(part._replace(values=["x" * MAX_TEXT_BYTES])))


def test_a_capture_has_another_fingerprint_when_it_changes(tmp_path: Path) -> None:
    """In its bytes, its length, its time; or when it is read otherwise."""
    path = tmp_path / "capture"
    path.write_bytes(bytes(3 << 20))
    os.utime(path, ns=(0, 10))
    found = {fingerprint([str(path)], 1), fingerprint([str(path)], 2), fingerprint([str(path)] * 2, 1)}
    assert fingerprint([str(path)], 1) in found
    for at in (0, (3 << 20) - 1):
        data = bytearray(3 << 20)
        data[at] = 1
        path.write_bytes(data)
        os.utime(path, ns=(0, 10))
        found.add(fingerprint([str(path)], 1))
    os.utime(path, ns=(0, 11))
    found.add(fingerprint([str(path)], 1))
    path.write_bytes(bytes(3 << 20) + b"\0")
    os.utime(path, ns=(0, 10))
    found.add(fingerprint([str(path)], 1))
    assert len(found) == 7
