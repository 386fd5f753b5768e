"""Consumers that ask for what their partition does not have."""

from __future__ import annotations

from typing import Any

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.log_ranges import OUT_OF_RANGE
from kwiresniff.analysis.doctor.wording import listed, times


class OffsetOutOfRange(Cause):
    """`offset_out_of_range` (warning): a fetch from outside the log; with the partition, the offset asked for, and the
    range there was as far as the capture shows it.
    """

    codes = ("offset_out_of_range",)
    explains = ("offset_out_of_range",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        asked, apis = one.numbers["asked"], one.noted("apis")
        texts = [f"{each['partition']} from offset {each['offset']}; {_range(each)}" for each in asked]
        often = f", {times(one.count)}" if one.count > 1 else ""
        return self.told(
            one,
            f"{OUT_OF_RANGE}: asks for {listed(texts, 3) or listed(one.noted('partitions'))}{often}",
            _remedy(asked),
            severity="warning" if "Fetch" in apis else "info",
            numbers={
                "error": OUT_OF_RANGE,
                "concerns": [*apis, *one.noted("partitions")],
                "partitions": asked,
                "error_messages": one.noted("messages"),
            },
        )


def _range(asked: dict[str, Any]) -> str:
    first, end = asked["log_start_offset"], asked["log_end_offset"]
    if first is not None and end is not None:
        return f"the log holds {first} to {end}"
    if end is not None:
        return f"the log ends at {end}"
    return f"the log begins at {first}" if first is not None else "its range is not in the capture"


def _remedy(asked: list[dict[str, Any]]) -> str:
    beyond = any(each["log_end_offset"] is not None and each["log_end_offset"] < each["offset"] for each in asked)
    before = any(each["offset"] < (each["log_start_offset"] or 0) for each in asked)
    if beyond and not before:
        return (
            "The offset lies beyond the end: the topic was made anew or truncated (an unclean leader election), or the "
            "offset comes from another cluster. auto.offset.reset says where the consumer goes on."
        )
    if before and not beyond:
        return (
            "The offset has been deleted by retention: the consumer was slower than that, records were skipped. Look "
            "at its lag and at retention.ms and retention.bytes of the topic."
        )
    return (
        "The consumer was slower than retention, or the log was truncated: records were skipped or will be read again, "
        "as auto.offset.reset says."
    )
