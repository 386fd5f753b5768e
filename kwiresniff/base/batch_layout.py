"""Where the header of a record batch (magic 2) has its fields, and what the bits of its attributes mean.

The header of 61 bytes and the records behind it are big-endian. Messages of magic 0 and 1 have their offset, their size
and their magic at the same places, and the same lowest attributes. Sources: KIP-98, protocol guide ("Record Batch",
"Message sets"), KIP-32 (timestamp types), KIP-534 (delete horizon).

All numbers are ``Final``: compiled modules have them as machine integers.
"""

from __future__ import annotations

from typing import Final

#: Bytes of the header, all fields below included.
HEADER_BYTES: Final = 61
#: Bytes that the length of a batch does not count: its base offset and the length itself.
LOG_OVERHEAD: Final = 12

#: Where each field begins.
LENGTH_AT: Final = 8  # INT32
LEADER_EPOCH_AT: Final = 12  # INT32
MAGIC_AT: Final = 16  # INT8
CRC_AT: Final = 17  # UINT32, of everything from the attributes on
ATTRIBUTES_AT: Final = 21  # INT16
LAST_DELTA_AT: Final = 23  # INT32
BASE_TIMESTAMP_AT: Final = 27  # INT64
MAX_TIMESTAMP_AT: Final = 35  # INT64
PRODUCER_ID_AT: Final = 43  # INT64
PRODUCER_EPOCH_AT: Final = 51  # INT16
BASE_SEQUENCE_AT: Final = 53  # INT32
RECORDS_COUNT_AT: Final = 57  # INT32

#: Bits of the attributes.
CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

#: What the codec bits stand for, from 0 on; brokers know no other numbers.
CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")

#: What a record or a batch without a timestamp has for one.
NO_TIMESTAMP: Final = -1
