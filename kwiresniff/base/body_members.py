"""Members that a decoded body has beside the fields of its definition, and what a batch says that is not all there.

They are part of the output (docs/output.md) and never change.
"""

from __future__ import annotations

from typing import Final

#: Tagged fields that no definition has, by tag number.
UNKNOWN_TAGS: Final = "_tagged_fields"
#: Behind the name of a bytes field: what those bytes hold.
DECODED: Final = "_decoded"
#: What stands in the place of something that ``--redact`` hides, or is what it leaves of a decoded value, says so.
REDACTED: Final = "redacted"
#: A batch at the end of a record set of which the rest was not sent (``truncated`` in a body).
CUT_SHORT: Final = "cut short"

#: Members of batches of all formats, of their records, and of headers: fields of the format by their names, and what is
#: said beside them. Below ``control`` and ``decoded`` stand messages of their own. A record has what a user wrote in
#: fields of the same names as its headers.
BATCH_MEMBERS: Final = frozenset({
    "attributes", "base_offset", "base_sequence", "base_timestamp", "batch_length", "compression", "crc", "crc_valid",
    "is_control", "is_transactional", "last_offset_delta", "magic", "max_timestamp", "message_size",
    "partition_leader_epoch", "producer_epoch", "producer_id", "records", "records_count", "size_bytes", "timestamp",
    "timestamp_type", "truncated", "uncompressed_size_bytes",
})  # fmt: skip
RECORD_MEMBERS: Final = frozenset({"control", "decoded", "headers", "key", "offset", "timestamp", "value"})
HEADER_MEMBERS: Final = frozenset({"key", "value"})
