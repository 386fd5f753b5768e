"""Bodies of an exchange: decoded, checked, and named.

The fast decoder does the work; only when it fails, or leaves something over, does the annotating walker read the
same bytes again to say what, where, and how far it got.
"""

from __future__ import annotations

from kwiresniff import codec, schema
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Body, Direction, Exchange, Message, Problem, RecordsMode, Walk
from kwiresniff.session.apis import api_facts
from kwiresniff.session.secrets import conceal, conceal_walk
from kwiresniff.session.topics import Topics
from kwiresniff.session.waits import waiting_reason

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35

#: Problems that leave a body whole: it was read to its last field.
_HARMLESS = frozenset({"trailing_bytes", "guessed_version", "crc_mismatch"})


def read_version(exchange: Exchange, direction: Direction) -> int:
    """The version an exchange's request or response is read as, or -1 when its API is unknown.

    A broker that does not know the version of an ApiVersions request answers in version 0 with
    UNSUPPORTED_VERSION (KIP-511).
    """
    facts = api_facts(exchange.api_key, exchange.api_version)
    response = exchange.response
    if (
        exchange.api_key == API_VERSIONS
        and direction == "response"
        and response is not None
        and response.frame is not None
        and int.from_bytes(response.frame[4:6], "big") == UNSUPPORTED_VERSION
    ):
        return 0
    return facts.read_as


class BodyDecoder:
    """Decodes what an exchange's frames hold, to the depth asked for."""

    def __init__(self, records: RecordsMode, topics: Topics, *, show_secrets: bool = False) -> None:
        self._records: RecordsMode = records
        self._topics = topics
        self._show_secrets = show_secrets

    def decode(self, exchange: Exchange) -> None:
        """Fill in bodies, errors, problems, outcome and waiting of a complete exchange."""
        undecoded = False
        if exchange.request is not None:
            undecoded = not self._decode_message(exchange, exchange.request, "request")
        if exchange.response is not None and exchange.request is not None:
            undecoded |= not self._decode_message(exchange, exchange.response, "response")
            self._collect_errors(exchange)
            exchange.waiting = waiting_reason(exchange)
        if exchange.outcome == "ok":
            exchange.outcome = "error" if exchange.errors else "undecoded" if undecoded else "ok"
        if not self._show_secrets:
            for message, direction in ((exchange.request, "request"), (exchange.response, "response")):
                if message is not None and message.body:
                    conceal(exchange.api_key, direction, message.body)

    def _decode_message(self, exchange: Exchange, message: Message, direction: Direction) -> bool:
        frame = message.frame
        version = read_version(exchange, direction)
        message.version = version
        if version < 0 or frame is None:
            if version < 0 and direction == "request":
                exchange.problems.append(
                    Problem("unknown_api", f"API key {exchange.api_key} is in no Kafka release known here", 0)
                )
            return False
        guess = version != exchange.api_version and exchange.api_key != API_VERSIONS
        if exchange.api_key == API_VERSIONS:
            guess = direction == "request" and version != exchange.api_version
        try:
            decode = codec.decoder(exchange.api_key, version, direction, self._records)
        except SchemaError as error:
            exchange.problems.append(Problem("unknown_version", str(error), 4))
            return False
        issues: list[Problem] = []
        body: Body | None = None
        try:
            body, end = decode(frame, message.body_offset, issues)
        except DecodeError:
            end = -1
        whole = body is not None and end == len(frame) and not issues
        if guess:
            if not whole:
                exchange.problems.append(self._unknown_version(exchange, direction))
                return False
            exchange.problems.append(
                Problem(
                    "guessed_version",
                    f"{exchange.api} v{exchange.api_version} is newer than any known; its {direction} fits v{version}",
                    2,
                )
            )
        if not whole:
            walk = self._walk(exchange, message, direction)
            exchange.problems += walk.problems
            if body is None:
                body = codec.plain(walk.root)
                message.body = body
                self._topics.learn(exchange.api_key, direction, body)
                return all(problem.code in _HARMLESS for problem in walk.problems) and bool(walk.problems)
        assert body is not None
        message.body = body
        self._topics.learn(exchange.api_key, direction, body)
        return True

    def _unknown_version(self, exchange: Exchange, direction: Direction) -> Problem:
        low, high = schema.version_range(exchange.api_key)
        return Problem(
            "unknown_version",
            f"{exchange.api} v{exchange.api_version} is unknown (known: {low} to {high}) and its {direction} "
            f"does not fit v{high}",
            2,
        )

    def _walk(self, exchange: Exchange, message: Message, direction: Direction) -> Walk:
        definition = schema.message(exchange.api_key, message.version, direction)
        assert message.frame is not None
        return codec.walk(
            definition,
            message.frame,
            message.body_offset,
            records=self._records == "full",
            topic_name=self._topics.name,
        )

    def _collect_errors(self, exchange: Exchange) -> None:
        response = exchange.response
        if response is None or not response.body or response.version < 0:
            return
        for path, code in codec.error_finder(exchange.api_key, response.version)(response.body):
            error = schema.error(code)
            exchange.errors.append((path, code, error.name, error.retriable))


def annotate(
    exchange: Exchange, which: Direction, topics: Topics | None = None, *, show_secrets: bool = False
) -> Walk | None:
    """The annotated tree of one side of an exchange: a ``header`` node and a ``body`` node; None if it is absent.

    Needs the frames, so depth ``bodies`` or ``records``.
    """
    message = exchange.request if which == "request" else exchange.response
    if message is None or message.frame is None:
        return None
    walk = codec.walk_header(which, message.header_version, message.frame)
    walk.root.name = "header"
    header = walk.root
    walk.root = type(header)(which, "STRUCT", 0, len(message.frame), children=[header])
    if message.version >= 0 and exchange.request is not None:
        definition = schema.message(exchange.api_key, message.version, which)
        topic_name = topics.name if topics is not None else None
        body = codec.walk(definition, message.frame, message.body_offset, topic_name=topic_name)
        if not show_secrets:
            conceal_walk(exchange.api_key, which, body)
        body.root.name = "body"
        walk.root.children.append(body.root)
        walk.problems += body.problems
        walk.end = body.end
    return walk
