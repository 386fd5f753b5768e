"""Bodies of an exchange: decoded, checked, and named.

The fast decoder does the work; only when it fails, or leaves something over, does the annotating dissector read the
same bytes again to say what, where, and how far it got.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kwiresniff import codec
from kwiresniff.base.api_keys import API_VERSIONS, CREATE_TOPICS, ENVELOPE, FETCH, PRODUCE
from kwiresniff.base.known_ids import METADATA_TOPIC_ID
from kwiresniff.codec.embedded import INTERNAL_TOPICS, BodyView
from kwiresniff.errors import DecodeError
from kwiresniff.model import Body, Direction, Exchange, Message, Problem, RecordsMode
from kwiresniff.session.apis import MAX_FACTS, read_version
from kwiresniff.session.body_plan import IN_FIELDS, BodyPlan, Plans
from kwiresniff.session.error_codes import ErrorCodes, add_errors
from kwiresniff.session.malformed import MalformedBodies
from kwiresniff.session.secrets import conceal, conceal_explanations
from kwiresniff.session.topic_ids import TopicNameTable, names_topics

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.codec.plan import Step
    from kwiresniff.codec.value_reader import Decoder
    from kwiresniff.digest import Digest

#: Frames from this size on are jumped over before they are decoded: that takes a tenth of decoding them in vain. So are
#: those of a message of which one could not be decoded: where many are broken, most of the time went into what was
#: raised.
_ASKED_FIRST_BYTES: Final = 1 << 14

#: APIs whose answers have a digest only without an error: who looks at it takes its partitions, or versions, for good.
_LOOKED_INTO: Final = frozenset({PRODUCE, FETCH, API_VERSIONS})


class BodyDecoder:
    """Decodes the bodies of exchanges to the depth asked for."""

    def __init__(
        self,
        records: RecordsMode,
        topics: TopicNameTable,
        *,
        show_secrets: bool = False,
        encode: Callable[[Any], bytes] | None = None,
        digests: bool = False,
    ) -> None:
        self._writer = (
            codec.body_writer(encode, self._is_internal) if encode is not None and records == "full" else None
        )
        self._plans: Plans | None = _json_plan if self._writer is not None else None
        self._errors: list[tuple[str, int]] = []  # of the answer that is being written
        self._digests = None
        if digests and (records == "headers" or self._writer is not None):
            self._digests = codec.digest_reader(self._is_internal)
        # Whether bodies may be written or digested straight from their bytes.
        self._writes = self._writer is not None or self._digests is not None
        self._records: RecordsMode = records
        self._topics = topics
        self._show_secrets = show_secrets
        # By (api_key << 16) + version, as asked for in the request.
        self._requests: dict[int, BodyPlan] = {}
        self._responses: dict[int, BodyPlan] = {}
        self._error_codes = ErrorCodes()
        self._closer_look: MalformedBodies | None = None

    def decode(self, exchange: Exchange) -> None:
        """Fills in bodies, errors, problems and outcome of an exchange; bytes that do not fit become problems."""
        request, response = exchange.request, exchange.response
        if request is None:
            return
        understood = self._read(exchange, request, "request", self._requests)
        if response is not None:
            if not self._read(exchange, response, "response", self._responses):
                understood = False
            if not response.is_deferred and response.body:
                self._error_codes.collect(exchange, response, response.version)
            if (
                exchange.api_key in (CREATE_TOPICS, ENVELOPE)
                and not self._show_secrets
                and not request.is_deferred
                and request.body
            ):
                # The response may call a config of the request sensitive.
                conceal(exchange.api_key, "request", request.body, sensitive=self._topics.sensitive_configs)
        if exchange.outcome == "ok" and (exchange.errors or not understood):
            exchange.outcome = "error" if exchange.errors else "undecoded"

    def decode_side(self, exchange: Exchange, direction: Direction) -> None:
        """Decodes one message of an exchange as far as it can be read."""
        message = exchange.request if direction == "request" else exchange.response
        assert message is not None
        sides = self._requests if direction == "request" else self._responses
        if not self._read(exchange, message, direction, sides):
            exchange.outcome = "undecoded"
        if direction == "response" and not message.is_deferred and message.body:
            self._error_codes.collect(exchange, message, message.version)

    def _read(self, exchange: Exchange, message: Message, direction: Direction, sides: dict[int, BodyPlan]) -> bool:
        """Decode one message; returns whether it was understood to its last field."""
        api_key = exchange.api_key
        frame = message.frame
        key = (api_key << 16) + exchange.api_version
        side = sides.get(key)
        if side is None or (api_key == API_VERSIONS and direction == "response"):
            side = self._side(exchange, direction, key, sides)
        message.version = side.version
        if side.decode is None or frame is None:
            if side.trouble is not None:
                exchange.problems.append(side.trouble)
            return False
        may_fit = not side.has_failed or side.may_fit(exchange, message, direction)
        if may_fit and self._writes and self._is_written(exchange, message, frame, direction, side):
            return True
        issues: list[Problem] = []
        body: Body | None = None
        end = -1
        if may_fit:
            body, end = self._decoded(exchange, message, frame, direction, side, issues)
        if side.guess:
            self._malformed.report_guess(exchange, direction, side.version, end == len(frame))
            if end != len(frame):
                return False
        understood = body is not None
        sound = True
        if body is None or issues or end != len(frame) or side.guess:
            body, sound = self._malformed.report(exchange, message, direction, body, issues)
        message.body = body
        if side.names_topics and (sound or not side.secrets):
            self._topics.learn(api_key, direction, body)
        is_opened = side.look is None or side.look(body, self._topics.name)
        if is_opened and side.look is not None and self._records == "shown" and understood and not issues:
            # All records are looked into, and nodes have a place for what they hold.
            whole = codec.decoder(api_key, side.version, direction)
            message.body = body = whole(frame, message.body_offset, [])[0]
            self._malformed.dissect(exchange, message, direction)
        if side.explains and not self._show_secrets:
            conceal_explanations(body)
        if not is_opened:
            return understood
        inside: list[Problem] = []
        if side.open is not None and understood:
            side.open(BodyView(body, inside), exchange, self._topics.name)
            exchange.problems += (problem._replace(details={"direction": direction}) for problem in inside)
        if side.secrets and not self._show_secrets:
            inner_sound = _inner_is_sound(inside, direction)
            conceal(
                api_key,
                direction,
                body,
                sound=sound,
                inner_sound=inner_sound,
                sensitive=self._topics.sensitive_configs,
                request=exchange.request,
            )
        return understood

    def _decoded(
        self,
        exchange: Exchange,
        message: Message,
        frame: bytes,
        direction: Direction,
        side: BodyPlan,
        issues: list[Problem],
    ) -> tuple[Body | None, int]:
        """The body and where it ends; no body when the bytes do not fit, of which a large frame is asked first."""
        assert side.decode is not None
        if not side.has_failed and len(frame) > _ASKED_FIRST_BYTES and not side.may_fit(exchange, message, direction):
            return None, -1
        try:
            return side.decode(frame, message.body_offset, issues)
        except DecodeError:
            side.has_failed = True
            return None, -1

    def _is_written(
        self, exchange: Exchange, message: Message, frame: bytes, direction: Direction, side: BodyPlan
    ) -> bool:
        """Whether the body was written, or digested, straight from its bytes, so that it need not be decoded."""
        if side.steps is not None and self._writer is not None:
            errors = self._errors if direction == "response" else None
            message.text = self._writer.text(side.steps, frame, message.body_offset, errors)
            if message.text is not None:
                if errors:
                    add_errors(exchange, errors)
                end: i64 = self._writer.pos
                if self._digests is not None and side.decode is not None:
                    looks, start = side.looks, message.body_offset
                    message.defer(self._digests.digest(looks, frame, start) if looks else None, side.decode)
                if end < len(frame):
                    self._malformed.report_trailing(exchange, message, direction, end)
                return True
        if side.looks is not None and side.decode is not None and self._digests is not None and self._writer is None:
            errors = self._errors if direction == "response" and exchange.api_key not in _LOOKED_INTO else None
            digest = self._digests.digest(side.looks, frame, message.body_offset, errors)
            if digest is not None:
                if errors:
                    add_errors(exchange, errors)
                stop: i64 = self._digests.pos
                sound = stop == len(frame)
                if side.secrets == IN_FIELDS and not self._show_secrets:
                    if not sound and not _nameless(digest):
                        return False
                    message.defer(digest, self._concealing(exchange, direction, side.decode, sound))
                elif side.explains and not self._show_secrets:
                    message.defer(digest, _explaining(side.decode))
                else:
                    message.defer(digest, side.decode)
                if not sound:
                    self._malformed.report_trailing(exchange, message, direction, stop)
                return True
        return False

    def _concealing(self, exchange: Exchange, direction: Direction, decode: Decoder, sound: bool) -> Decoder:
        """A decoder that conceals the secrets of what it gives."""
        api_key, request, sensitive = exchange.api_key, exchange.request, self._topics.sensitive_configs

        def concealed(frame: bytes, body_offset: int, issues: list[Problem]) -> tuple[Body, int]:
            body, end = decode(frame, body_offset, issues)
            conceal(api_key, direction, body, sound=sound, sensitive=sensitive, request=request)
            return body, end

        return concealed

    def _side(self, exchange: Exchange, direction: Direction, key: int, sides: dict[int, BodyPlan]) -> BodyPlan:
        version = read_version(exchange, direction)
        side = sides.get(key)
        if side is None or side.version != version:
            if len(sides) >= MAX_FACTS:
                sides.clear()
            side = sides[key] = BodyPlan(exchange, direction, version, self._records, self._plans, self._digests)
        return side

    @property
    def _malformed(self) -> MalformedBodies:
        """The reader of bodies that do not decode cleanly."""
        if self._closer_look is None:
            self._closer_look = MalformedBodies(self._records, self._topics)
        return self._closer_look

    def _is_internal(self, topic_id: str) -> bool:
        return topic_id == METADATA_TOPIC_ID or self._topics.name(topic_id) in INTERNAL_TOPICS


def _explaining(decode: Decoder) -> Decoder:
    """A decoder that conceals what explanations quote."""

    def concealed(frame: bytes, body_offset: int, issues: list[Problem]) -> tuple[Body, int]:
        body, end = decode(frame, body_offset, issues)
        conceal_explanations(body)
        return body, end

    return concealed


def _nameless(digest: Digest) -> bool:
    """Takes the names out of a digest, as they are withheld; False where it has numbers that are in part."""
    digest.topics = digest.topic_ids = digest.groups = digest.transactional_ids = None
    return digest.partitions is None


def _inner_is_sound(problems: list[Problem], direction: Direction) -> bool:
    """Whether the message inside an Envelope could be read, after what was found wrong inside."""
    inner = f"{direction}_data"
    return all(problem.code != "embedded_undecoded" or problem.path != inner for problem in problems)


def _json_plan(api_key: int, version: int, direction: Direction) -> list[Step] | None:
    """The plan to write bodies as JSON text; None for messages whose bodies other code looks into."""
    return None if names_topics(api_key, direction) else codec.text_steps(api_key, version, direction)
