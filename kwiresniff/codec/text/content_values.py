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

    def open_all(self, structures: list[dict[str, Any]], field: str, member: str) -> list[int]:
        """Puts beside the bytes of each structure what they hold, a dict of ``message``, ``version`` and ``data``.

        Gives the indexes of the structures that are not done with: their bytes could not be opened here, or what they
        hold has bytes in it again. Empty bytes hold nothing.
        """
        left: list[int] = []
        for index, structure in enumerate(structures):
            raw = structure[field]
            if isinstance(raw, bytes) and raw and not self._open(structure, raw, member):
                left.append(index)
        return left

    def _open(self, structure: dict[str, Any], raw: bytes, member: str) -> bool:
        """Whether nothing is left to do."""
        if len(raw) < _VERSION_BYTES:
            return False
        version = i16(raw, 0)
        for format in self._formats:
            at = version - format.low
            if at < 0:
                continue
            steps = format.steps[at] if at < len(format.steps) else None
            if steps is None:
                return False
            if format.skippers[at].skip(raw, _VERSION_BYTES) != len(raw):  # which takes a tenth of failing to decode it
                continue
            data = self._reader.body(steps, raw, _VERSION_BYTES)
            if data is None:
                return False
            structure[member] = {"message": format.message, "version": version, "data": data}
            for name in format.deeper:  # noqa: SIM110 - compiled, a generator is dear
                if data.get(name):
                    return False
            return True
        return False
