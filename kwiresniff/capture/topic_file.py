"""Names of topic ids from outside: what ``--topics FILE`` reads.

Either as ``kafka-topics.sh --describe`` prints them (``Topic: orders\tTopicId: 2S4...``), or a name and an id a line,
in either order, with spaces, tabs or a comma between. Other lines are passed over.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from kwiresniff.errors import CaptureError

_DESCRIBED: Final = re.compile(r"\bTopic:\s*(\S+)\s+TopicId:\s*(\S+)")
_UUID_BYTES: Final = 16
#: What is read of the file: a hundred thousand topics.
MAX_FILE_BYTES: Final = 64 << 20


def read_topic_file(path: str) -> dict[str, str]:
    """Names by id. Raises CaptureError when there is no such file, or no name in it."""
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or error}") from None
    found = dict(filter(None, map(_entry, text.splitlines())))
    if not found:
        raise CaptureError(f"{path}: no topic with its id in it; make it with: kafka-topics.sh --describe")
    return found


def _entry(line: str) -> tuple[str, str] | None:
    """Id and name in a line."""
    described = _DESCRIBED.search(line)
    words = [described[1], described[2]] if described else re.split(r"[\s,]+", line.strip())
    if len(words) != 2 or words[0].startswith("#"):
        return None
    name, topic_id = words
    if _is_id(topic_id):
        return topic_id, name
    return (name, topic_id) if _is_id(name) else None


def _is_id(text: str) -> bool:
    try:
        return len(text) == 22 and len(base64.urlsafe_b64decode(text + "==")) == _UUID_BYTES
    except (ValueError, binascii.Error):
        return False
