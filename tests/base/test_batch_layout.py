"""Where the fields of a record batch lie."""

from __future__ import annotations

from itertools import accumulate

from kwiresniff.base import batch_layout


def test_the_fields_of_a_batch_header_follow_each_other() -> None:
    """Each begins where the one before it ends, by the sizes of the protocol guide; the last one ends the header."""
    sizes = {
        "BASE_OFFSET_AT": 8, "LENGTH_AT": 4, "LEADER_EPOCH_AT": 4, "MAGIC_AT": 1, "CRC_AT": 4, "ATTRIBUTES_AT": 2,
        "LAST_DELTA_AT": 4, "BASE_TIMESTAMP_AT": 8, "MAX_TIMESTAMP_AT": 8, "PRODUCER_ID_AT": 8, "PRODUCER_EPOCH_AT": 2,
        "BASE_SEQUENCE_AT": 4, "RECORDS_COUNT_AT": 4,
    }  # fmt: skip
    ends = dict(zip(sizes, accumulate(sizes.values()), strict=True))
    found = {name: at for name, at in vars(batch_layout).items() if name.endswith("_AT")}
    assert found == {name: ends[name] - sizes[name] for name in found}
    assert ends["RECORDS_COUNT_AT"] == batch_layout.HEADER_BYTES
