"""The ways bytes can fail to fit a definition, each with its code and one line of English."""

from __future__ import annotations

from typing import Any

from kwiresniff.errors import DecodeError
from kwiresniff.model import Problem


def truncated(path: str = "", missing: int = 0) -> DecodeError:
    """The bytes end inside a field; ``missing`` more would have been needed, 0 where that is not known."""
    beyond = f"{missing} bytes " if missing else ""
    where = f" in {path}" if path else ""
    return DecodeError(f"the message ends {beyond}too early{where}", code="truncated", path=path)


def trailing_bytes(end: int, remaining: int, details: dict[str, Any] | None = None) -> Problem:
    """The problem of bytes behind a message, which do not make it fail."""
    return Problem("trailing_bytes", f"{remaining} bytes follow the end of the message", end, details=details)


def bad_length(length: int, path: str) -> DecodeError:
    """A length that is negative and stands for no null."""
    return DecodeError(f"{path} has length {length}, which it may not have", code="bad_length", path=path)


def null_value(path: str) -> DecodeError:
    """A null where the definition allows none."""
    return DecodeError(f"{path} is null, which it may not be", code="bad_length", path=path)


def bad_count(count: int, remaining: int, path: str) -> DecodeError:
    """An array count that is negative or more than the rest of the message can hold."""
    if remaining < 0:
        return truncated(path, -remaining)
    reason = f"with {remaining} bytes left" if count >= 0 else "which is no count"
    return DecodeError(f"{path} counts {count} entries, {reason}", code="bad_array_count", path=path)


def bad_varint(path: str = "") -> DecodeError:
    """A varint that goes on for longer than its type allows."""
    where = f" in {path}" if path else ""
    return DecodeError(f"a varint{where} runs past its largest size", code="bad_varint", path=path)


def bad_mark(mark: int, null: int, path: str) -> DecodeError:
    """The INT8 ``mark`` before a nullable structure that is neither 1 nor ``null``, the mark of a null one."""
    return DecodeError(f"{path} starts with {mark} instead of 1 or {null}", code="bad_struct_mark", path=path)


def bad_tag_size(path: str, size: int, used: int, remaining: int) -> DecodeError:
    """A tagged field that takes ``used`` bytes and says ``size``; when the frame ends first, that is what is wrong."""
    if remaining < 0:
        return truncated(path, -remaining)
    return DecodeError(f"the tagged field {path} says {size} bytes but takes {used}", code="bad_tag_size", path=path)


def invalid_utf8(path: str = "") -> DecodeError:
    """A string that is not UTF-8."""
    return DecodeError(invalid_utf8_text(path or "a string"), code="invalid_utf8", path=path)


def invalid_utf8_text(path: str) -> str:
    """The text of the problem of such a string; the reading can go on."""
    return f"{path} is not valid UTF-8"


def too_many_entries(most: int) -> DecodeError:
    """More than ``most`` fields and elements in one message."""
    return DecodeError(f"the message is made of more than {most:,} values", code="too_many_fields")


def bad_records_count(count: int, offset: int) -> DecodeError:
    """A batch that counts fewer than no records; ``offset`` is that of the count, INT32."""
    return DecodeError(f"records_count is {count}", code="bad_records_count", offset=offset)


def missing_records(count: int, present: int, offset: int) -> DecodeError:
    """A batch that ends, at ``offset``, before all the records that it counts."""
    message = f"records_count is {count}, the batch holds {present}"
    return DecodeError(message, code="bad_records_count", offset=offset)


def bytes_after_records(size: int, count: int, offset: int) -> DecodeError:
    """A batch that has ``size`` bytes, from ``offset`` on, behind the records that it counts."""
    return DecodeError(f"{size} bytes are left after {count} records", code="bad_records_count", offset=offset)


def bytes_in_message(size: int, offset: int) -> DecodeError:
    """A message of a message set that has ``size`` bytes, from ``offset`` on, behind its value."""
    return DecodeError(f"{size} bytes are left in the message", code="bad_record", offset=offset)


def nested_too_deep(most: int) -> DecodeError:
    """A compressed message set inside ``most`` others."""
    return DecodeError(f"message sets nested more than {most} deep", code="nested_too_deep")


def bad_inner_crc(offset: int) -> DecodeError:
    """A message, of this ``offset`` in the log, of a compressed set whose checksum is wrong."""
    return DecodeError(f"the CRC of the inner message at offset {offset} is wrong", code="bad_crc")
