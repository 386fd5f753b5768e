"""Where the fields of a record batch lie."""

from __future__ import annotations

from kwiresniff.base import batch_layout


def test_the_fields_of_a_batch_header_follow_each_other() -> None:
    """Each begins where the one before it ends, by the sizes of the protocol guide; the last one ends the header."""
    sizes = {
        "BASE_OFFSET_AT": 8, "LENGTH_AT": 4, "LEADER_EPOCH_AT": 4, "MAGIC_AT": 1, "CRC_AT": 4, "ATTRIBUTES_AT": 2,
        "LAST_DELTA_AT": 4, "BASE_TIMESTAMP_AT": 8, "MAX_TIMESTAMP_AT": 8, "PRODUCER_ID_AT": 8, "PRODUCER_EPOCH_AT": 2,
        "BASE_SEQUENCE_AT": 4, "RECORDS_COUNT_AT": 4,
    }  # fmt: skip
    at = 0
    for name, size in sizes.items():
        assert getattr(batch_layout, name) == at, name
        at += size
    assert at == batch_layout.HEADER_BYTES
    assert {name for name in vars(batch_layout) if name.endswith("_AT")} == sizes.keys()
