"""What bytes hold as dicts, of many structures at once: to open the bytes of each by itself takes ten times as long.

Whatever is unusual is left to ``kwiresniff.codec.embedded``, which says what is wrong.
"""

from __future__ import annotations

from typing import Any, final

from kwiresniff import schema
from kwiresniff.base.fastint import i16
from kwiresniff.codec.body_scanner import MessageSkipper
from kwiresniff.codec.text.body_values import ValueReader, value_steps
from kwiresniff.codec.text.plan import BYTES, Step

#: Bytes of the version before a message.
_VERSION_BYTES = 2
#: What is to be done about bytes: nothing, or what only a careful reader does, or they are none of the messages.
_DONE, _LEFT, _OTHER = 0, 1, 2


@final
class _Format:
    """A message in all its versions, the first of which is ``low``. ``deeper`` are its fields that are bytes again."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.low, high = schema.data_versions(message)
        definitions = [schema.data_message(message, version) for version in range(self.low, high + 1)]
        self.steps: list[Step | None] = [value_steps(one) for one in definitions]
        self.skippers = [MessageSkipper(one) for one in definitions]
        names = [step.name for whole in self.steps if whole is not None for step in whole.steps if step.kind == BYTES]
        self.deeper = list(dict.fromkeys(names))


@final
class ContentReader:
    """Opens what a field of bytes holds: any of several messages, each behind its version as an INT16."""

    def __init__(self, messages: tuple[str, ...]) -> None:
        self._formats = [_Format(message) for message in messages]
        self._reader = ValueReader()

    def open_all(self, structures: list[dict[str, Any]], field: str, member: str) -> tuple[list[int], list[int]]:
        """Puts beside the bytes of each structure what they hold, a dict of ``message``, ``version`` and ``data``.

        Gives the indexes of the structures that are not done with, as their bytes could not be opened here or what
        they hold has bytes in it again, and of those whose bytes are none of the messages. Empty bytes hold nothing.
        """
        left: list[int] = []
        others: list[int] = []
        for index, structure in enumerate(structures):
            raw = structure[field]
            if isinstance(raw, bytes) and raw:
                found = self._open(structure, raw, member)
                if found != _DONE:
                    (left if found == _LEFT else others).append(index)
        return left, others

    def _open(self, structure: dict[str, Any], raw: bytes, member: str) -> int:
        if len(raw) < _VERSION_BYTES:
            return _OTHER
        version = i16(raw, 0)
        for form in self._formats:
            at = version - form.low
            if at < 0:
                continue
            is_known = at < len(form.skippers)
            # To pass over it takes a tenth of failing to decode it.
            end = form.skippers[at if is_known else -1].skip(raw, _VERSION_BYTES)
            if end < 0 or (is_known and end != len(raw)):
                continue
            steps = form.steps[at] if is_known else None
            data = self._reader.body(steps, raw, _VERSION_BYTES) if steps is not None else None
            if data is None:
                return _LEFT
            structure[member] = {"message": form.message, "version": version, "data": data}
            for name in form.deeper:
                if data.get(name):
                    return _LEFT
            return _DONE
        return _OTHER
