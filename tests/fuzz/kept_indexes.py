"""Kept indexes of any bytes: each is refused, or an index whose rows are drawn and read from the captures."""

from __future__ import annotations

import io
import re
import tempfile
from functools import cache
from hashlib import blake2b
from random import Random
from struct import calcsize, pack, unpack_from
from typing import Any

from kwiresniff.browse.row_cells import RowCells
from kwiresniff.cli.browse import model_of
from kwiresniff.cli.index_job import index_captures
from kwiresniff.cli.options import ReadOptions
from kwiresniff.index.kept_index import IndexWriter, UnfitIndex, read_index
from tests.fuzz.mutations import EVIL, evil_integer, mutated
from tests.support.paths import CAPTURES

#: What there are indexes of: pcap, pcapng, a compressed file.
_CAPTURES = tuple(str(CAPTURES / name) for name in ("first-look.pcap", "java-fetch.pcapng", "incidents/fenced.pcap.xz"))
_OF = bytes(32)
#: Magic and fingerprint; the digest.
_FRONT, _DIGEST_BYTES = 8 + len(_OF), 32
_HEAD = "<II"
#: Rows of an index that are read from the capture.
_READ = 3


@cache
def index_seeds() -> tuple[bytes, ...]:
    """The number of a capture, and the file of its index without the digest."""
    found = []
    for number, path in enumerate(_CAPTURES):
        sent: list[Any] = []
        index_captures(sent.append, [path], ReadOptions())
        file = io.BytesIO()
        writer = IndexWriter(file, _OF)
        for one in sent:
            writer.add(one)
        writer.close()
        found.append(bytes([number]) + file.getvalue()[:-_DIGEST_BYTES])
    return tuple(found)


def kept_index(data: bytes) -> None:
    """A file with a digest that is right is refused, or its rows can be drawn, and each is an exchange of the capture
    or none.
    """
    path = _CAPTURES[data[0] % len(_CAPTURES)]
    with tempfile.TemporaryFile() as file:
        file.write(data[1:] + blake2b(data[1:], digest_size=_DIGEST_BYTES).digest())
        file.seek(0)
        try:
            parts = list(read_index(file, _OF, [path]))
        except UnfitIndex as error:
            assert "\n" not in str(error)
            return
    model, _ = model_of((path,), ReadOptions())
    for part in parts:
        model.take(part)
    cells, rows = RowCells(model.index), range(len(model.index))
    assert all(cells.text(row).isprintable() for row in rows)
    for row in rows[:: max(len(rows) // _READ, 1)]:
        details = model.details(row, whole=False)
        if details is not None:
            assert details.exchange.correlation_id == model.index.correlation_ids[row]


def change_index(rng: Random, seed: bytes, seeds: tuple[bytes, ...], front: int) -> bytes:
    """Mostly a number of the first part becomes another one: in its text, or in its columns."""
    begin = front + _FRONT + calcsize(_HEAD)
    size, rows = unpack_from(_HEAD, seed, front + _FRONT)
    text, columns = seed[begin : begin + size], bytearray(seed[begin + size :])
    choice = rng.random()
    if choice < 0.2:
        return seed[: front + _FRONT] + mutated(rng, seed[front + _FRONT :], [one[front:] for one in seeds])
    if choice < 0.6:
        for _ in range(rng.randint(1, 2)):
            found = rng.choice(list(re.finditer(rb"-?\d+|null|true|false", text)))
            value = rng.choice([*map(str, EVIL), "null", "1.5", "[]", '"x"', "1e400", str(rng.randrange(1 << 13))])
            text = text[: found.start()] + value.encode() + text[found.end() :]
    else:
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(columns) // 4) * 4
            columns[at : at + 4] = evil_integer(rng, 4)[::-1] if rng.random() < 0.5 else pack("<I", rng.randrange(99))
    return seed[: front + _FRONT] + pack(_HEAD, len(text), rows) + text + bytes(columns)
