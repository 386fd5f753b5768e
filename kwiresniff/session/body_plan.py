"""How the bodies of one message are read: written straight from their bytes, digested, or decoded, and then looked
into.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.codec.body_walker import MessageSkipper
from kwiresniff.codec.embedded import OPENERS, QUICK_LOOKS
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction, Exchange, Message, Problem, RecordsMode
from kwiresniff.session.secrets import has_secrets, may_hide, teaches
from kwiresniff.session.topic_ids import carries_ids, names_topics

if TYPE_CHECKING:
    from kwiresniff.codec.digests import DigestReader
    from kwiresniff.codec.plan import Step
    from kwiresniff.codec.value_reader import Decoder

#: ``steps(api_key, version, direction)``: how a writer of text writes a message, None when it cannot.
Plans = Callable[[int, int, Direction], "list[Step] | None"]

#: Where a message may hold a secret: nowhere, in records, or in fields (in any field when it is not sound).
NOWHERE: Final = 0
IN_RECORDS: Final = 1
IN_FIELDS: Final = 2


class BodyPlan:
    """How one direction of an (API, version) is read. ``has_failed``: a body did not decode; ``secrets``: where it may
    have any; ``explains``: a broker's explanation may be the only one.
    """

    __slots__ = (
        "_skipper", "decode", "explains", "guess", "has_failed", "look", "looks", "names_topics", "open", "secrets",
        "steps", "trouble", "version",
    )  # fmt: skip

    def __init__(
        self,
        exchange: Exchange,
        direction: Direction,
        version: int,
        records: RecordsMode,
        plans: Plans | None,
        digests: DigestReader | None,
    ) -> None:
        api_key = exchange.api_key
        self.version = version
        self.decode: Decoder | None = None
        self.trouble: Problem | None = None
        self.has_failed = False
        self._skipper: MessageSkipper | None = None
        self.guess = version != exchange.api_version and not (api_key == API_VERSIONS and version == 0)
        may_name = names_topics(api_key, direction)
        self.names_topics = may_name and version >= 0 and carries_ids(api_key, version, direction)
        self.secrets = _secrets(api_key, direction)
        self.explains = direction == "response" and self.secrets != IN_FIELDS
        self.open = OPENERS.get((api_key, direction))
        self.look = QUICK_LOOKS.get((api_key, direction))
        self.steps: list[Step] | None = None
        self.looks: list[Step] | None = None
        if version < 0:
            if direction == "request":
                message = f"API key {api_key} is in no Kafka release known here"
                self.trouble = Problem("unknown_api", message, 0)
            return
        # Whatever looks into a body needs more than its text. Where a quick look decides that, the writer decides.
        if (self.open is not None or self.secrets) and self.look is None:
            plans = None
            if self.open is not None or teaches(api_key, direction):
                digests = None
        if not self.guess:
            if plans is not None:
                self.steps = plans(api_key, version, direction)
            if digests is not None and not may_name:
                self.looks = digests.steps(api_key, version, direction)
        try:
            self.decode = codec.decoder(api_key, version, direction, records)
        except SchemaError as error:
            self.trouble = Problem("unknown_version", str(error), 2)

    def may_fit(self, exchange: Exchange, message: Message, direction: Direction) -> bool:
        """Whether a body may be one of this message, found out without decoding it."""
        if message.frame is None:
            return True
        if self._skipper is None:
            self._skipper = MessageSkipper(schema.message(exchange.api_key, self.version, direction))
        return self._skipper.skip(message.frame, message.body_offset) >= 0


def _secrets(api_key: int, direction: Direction) -> int:
    if may_hide(api_key, direction):
        return IN_FIELDS
    return IN_RECORDS if has_secrets(api_key, direction) else NOWHERE
