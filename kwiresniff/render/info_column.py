"""The Info column: a few words on what an exchange is about (topics, groups, members, records, producers).

Read from digests where there are some, else from the decoded bodies, in Kafka's field names; a field that is not there
is skipped, because a body may be from any version. Facts are not escaped yet, words are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.base.entities import PARTITION_INDEXES, TOPIC_NAMES
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Exchange, TopicNames
from kwiresniff.render import format_units
from kwiresniff.render.digest_facts import NAMED, NO_RECORDS, NOTHING_NEW, digest_facts
from kwiresniff.render.escape import escape
from kwiresniff.render.theme import OUTCOME_STYLE, OUTCOME_WORDS, Span

#: Where the words go, most important first.
Facts: TypeAlias = list[str]
Fields: TypeAlias = dict[str, Any]

#: Every API's fields that are worth a word, in the order of their worth, with the word in front.
_WORDS: Final = {
    "group_id": "group",
    "generation_id": "generation",
    "generation_id_or_member_epoch": "generation",
    "member_epoch": "epoch",
    "transactional_id": "transaction",
    "producer_id": "producer",
    "mechanism": "mechanism",
    "broker_id": "broker",
}

#: A member id is the client id and a UUID: the end distinguishes members, a whole one would fill the line.
MEMBER_ID_SHOWN = 12

#: A shorter queue is not shown.
_WORTH_A_WORD_NS: Final = 1_000_000

#: Facts of ApiVersions that are kept by their bytes, and bytes of those.
KEPT: Final = 64
MAX_KEPT_BYTES: Final = 4096
_KEPT_VERSIONS: Final[dict[tuple[int, bytes, bytes], list[str]]] = {}

_TOPIC_ARRAYS: Final = ("topics", "topic_data", "topic_partitions", "responses")
_TOPIC_KEYS: Final = (*TOPIC_NAMES, "topic_id")
_ELEMENT_NAMES: Final = ("group_id", "resource_name", "name", "user", "principal_name", "transactional_id", "feature")
_PARTITION_ARRAYS: Final = ("partitions", "partition_data", "partition_indexes", "partition_responses")


def queued_long(exchange: Exchange) -> bool:
    """Whether a request was queued longer than it was worked on, and so long that it is worth a word."""
    return exchange.queued >= _WORTH_A_WORD_NS and exchange.queued > (exchange.broker_ns or 0)


def words(exchange: Exchange, topic_name: TopicNames | None, micro: str) -> list[Span]:
    """What is wrong with an exchange first, then what was waited for, then what it was about; ``micro`` is how µ is
    written.
    """
    found: list[Span] = []
    if exchange.outcome != "ok" or exchange.errors:
        negotiation = exchange.is_negotiation
        for error in dict.fromkeys([name for _, _, name, _ in exchange.errors]):
            found.append(("dim" if negotiation else "bad", escape(error)))
        if negotiation:
            found.append(("dim", "negotiation"))
        elif exchange.outcome != "ok" and not found:
            found.append((OUTCOME_STYLE[exchange.outcome], OUTCOME_WORDS[exchange.outcome]))
    if exchange.problems:
        for code in dict.fromkeys([problem.code for problem in exchange.problems]):
            found.append(("warn", escape(code)))
    if exchange.waiting:
        found.append(("wait", escape(exchange.waiting)))
    if queued_long(exchange):
        found.append(("wait", f"queued {format_units.duration(exchange.queued_ns, micro=micro)}"))
    for fact in facts(exchange, topic_name):
        found.append(("value", escape(fact)))
    return found


def facts(exchange: Exchange, topic_name: TopicNames | None = None) -> list[str]:
    """The facts of an exchange, most important first; empty when no body was decoded."""
    found = digest_facts(exchange, topic_name)
    if found is not None:
        return found
    if exchange.api_key == API_VERSIONS and not exchange.errors:
        return list(_versions_facts(exchange))
    return _body_facts(exchange, topic_name)


def _versions_facts(exchange: Exchange) -> list[str]:
    """What an ApiVersions is about; the brokers of a cluster, asked by clients of one kind, all answer the same, and
    to decode each answer makes a summary of short connections take half as long again.
    """
    request, response = exchange.request, exchange.response
    if request is None or response is None or not (request.is_deferred and response.is_deferred):
        return _body_facts(exchange, None)
    asked, answered = request.frame, response.frame
    if asked is None or answered is None or len(asked) + len(answered) > MAX_KEPT_BYTES:
        return _body_facts(exchange, None)
    key = (exchange.api_version, asked[request.body_offset :], answered[response.body_offset :])
    found = _KEPT_VERSIONS.get(key)
    if found is None:
        if len(_KEPT_VERSIONS) >= KEPT:
            _KEPT_VERSIONS.clear()
        found = _KEPT_VERSIONS[key] = _body_facts(exchange, None)
    return found


def _body_facts(exchange: Exchange, topic_name: TopicNames | None) -> list[str]:
    """The facts in the bodies."""
    request = (exchange.request.body if exchange.request else None) or {}
    response = (exchange.response.body if exchange.response else None) or {}
    if not request and not response:
        return []
    if exchange.api == "Metadata" and exchange.api_version == 0 and request.get("topics") == []:
        request = {"topics": None}  # before version 1 an empty list asks for all of them
    out: list[str] = []
    special = _SPECIAL.get(exchange.api)
    if special is not None:
        special(request, response, topic_name, out)
    if exchange.errors and out and out[-1] == NOTHING_NEW:
        # Nothing came because nothing could.
        out.pop()
    if not out:
        _common(request, response, topic_name, out)
    return out


def _common(request: Fields, response: Fields, topic_name: TopicNames | None, out: Facts) -> None:
    for name, word in _WORDS.items():
        value = _scalar(name, request, response)
        if value is not None:
            out.append(f"{word} {value}")
    topics = _topics(request) or _topics(response)
    if topics:
        out.append(topics_text(topics, topic_name))
        _add_record_facts(_topics(response), "", out)
    else:
        _add_names(request, out)
    member = _scalar("member_id", request, response)
    if member:
        out.append(f"member {member if len(member) <= MEMBER_ID_SHOWN else '…' + member[-MEMBER_ID_SHOWN:]}")


def _scalar(name: str, request: Fields, response: Fields) -> str | None:
    """The field as text from the request, else from the response; None when it says nothing."""
    for body in (request, response):
        value = body.get(name)
        if isinstance(value, int):
            if value != -1:
                return str(value)
        elif text := field_text(value):
            return text
    return None


def _add_names(body: Fields, out: Facts) -> None:
    """Names inside the arrays of a body: ``resources orders,payments``, ``groups billing``."""
    for field, value in body.items():
        names: list[str] = []
        for element in value if isinstance(value, list) else ():
            name = _first_of(element, _ELEMENT_NAMES) if isinstance(element, dict) else element
            if text := field_text(name):
                names.append(text)
        if names:
            out.append(f"{field} {_some(names)}")


def _produce(request: Fields, response: Fields, topic_name: TopicNames | None, out: Facts) -> None:
    topics = _topics(request)
    if topics:
        out.append(topics_text(topics, topic_name))
    _add_record_facts(topics, NO_RECORDS, out)
    if request.get("acks") == 0:
        out.append("acks 0")
    if name := field_text(request.get("transactional_id")):
        out.append(f"transaction {name}")


def _fetch(request: Fields, response: Fields, topic_name: TopicNames | None, out: Facts) -> None:
    answered = _topics(response)
    topics = [topic for topic in answered if _is_filled(topic)] or _topics(request) or answered
    if topics:
        out.append(topics_text(topics, topic_name))
    elif response.get("session_id"):
        out.append(f"session {response['session_id']}")
    if response:
        _add_record_facts(answered, NOTHING_NEW, out)


def _is_filled(topic: Any) -> bool:
    """Whether a topic came with records, or the beginning of some."""
    for part in _partitions(topic):  # noqa: SIM110 - compiled, a generator is dear
        if _batches(part):
            return True
    return False


def _add_record_facts(topics: Sequence[Any], nothing: str, out: Facts) -> None:
    records = size = 0
    codecs: dict[str, None] = {}
    for topic in topics:
        for part in _partitions(topic):
            for batch in _batches(part):
                if batch.get("truncated"):
                    continue
                count = batch.get("records_count")
                records += count if isinstance(count, int) else max(len(batch.get("records") or ()), 1)
                size += batch.get("size_bytes") or 0
                codec = batch.get("compression", "none")
                if codec != "none":
                    codecs[codec] = None
    if not size:
        if nothing:
            out.append(nothing)
        return
    out.append(format_units.count(records, "record"))
    out.append(format_units.size(size))
    if codecs:
        out.append("+".join(codecs))


def _find_coordinator(request: Fields, response: Fields, topic_name: TopicNames | None, out: Facts) -> None:
    keys = _first_list(request, ("coordinator_keys",)) or [request.get("key", request.get("group_id"))]
    out.append(
        f"{'transaction' if request.get('key_type') == 1 else 'group'} {_some([field_text(key) for key in keys])}"
    )
    found = (_first_list(response, ("coordinators",)) or [response])[0]
    if isinstance(found, dict) and (host := field_text(found.get("host"))):
        out.append(f"at {host}:{found.get('port')}")


def _metadata(request: Fields, response: Fields, topic_name: TopicNames | None, out: Facts) -> None:
    asked = _topics(request)
    if asked:
        out.append(topics_text(asked, topic_name))
    elif request:
        out.append("all topics" if request.get("topics") is None else "no topics")
    brokers = _first_list(response, ("brokers",))
    if brokers:
        out.append(format_units.count(len(brokers), "broker"))


def _init_producer_id(request: Fields, response: Fields, topic_name: TopicNames | None, out: Facts) -> None:
    if name := field_text(request.get("transactional_id")):
        out.append(f"transaction {name}")
    if response.get("producer_id", -1) >= 0:
        out.append(f"producer {response['producer_id']} epoch {response.get('producer_epoch')}")


def _add_partitions_to_txn(request: Fields, response: Fields, topic_name: TopicNames | None, out: Facts) -> None:
    """Before version 4 the one transaction is spread over fields of the request's own."""
    for transaction in _first_list(request, ("transactions",)) or [request]:
        if not isinstance(transaction, dict):
            continue
        name = field_text(_first_of(transaction, ("transactional_id", "v3_and_below_transactional_id")))
        if name:
            out.append(f"transaction {name}")
        topics = _first_list(transaction, ("topics", "v3_and_below_topics"))
        if topics:
            out.append(topics_text(topics, topic_name))


def _end_txn(request: Fields, response: Fields, topic_name: TopicNames | None, out: Facts) -> None:
    if "committed" in request:
        out.append("COMMIT" if request["committed"] else "ABORT")
    _common(request, response, topic_name, out)


def _api_versions(request: Fields, response: Fields, topic_name: TopicNames | None, out: Facts) -> None:
    if name := field_text(request.get("client_software_name")):
        out.append(f"{name} {field_text(request.get('client_software_version'))}")
    api_keys = _first_list(response, ("api_keys",))
    if api_keys:
        out.append(format_units.count(len(api_keys), "API"))


_SPECIAL: Final[dict[str, Callable[[Fields, Fields, TopicNames | None, Facts], None]]] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "FindCoordinator": _find_coordinator,
    "Metadata": _metadata,
    "InitProducerId": _init_producer_id,
    "AddPartitionsToTxn": _add_partitions_to_txn,
    "EndTxn": _end_txn,
    "ApiVersions": _api_versions,
}


def topics_text(topics: Sequence[Any], topic_name: TopicNames | None = None) -> str:
    """``orders-0``, ``orders-0,1,2,+9``, ``orders-0 payments-1 +4 topics``."""
    words: list[str] = []
    for topic in topics[:NAMED]:
        words.append(_topic_text(topic, topic_name) if isinstance(topic, dict) else field_text(topic))
    if len(topics) > NAMED:
        words.append(f"+{len(topics) - NAMED} topics")
    return " ".join(words)


def _topic_text(topic: Fields, topic_name: TopicNames | None) -> str:
    name = _first_of(topic, TOPIC_NAMES)
    if name is None and (topic_id := topic.get("topic_id")):
        name = (topic_name and topic_name(topic_id)) or topic_id
    parts: list[str] = []
    for part in _partitions(topic):
        index = _index(part)
        if index is not None:
            parts.append(str(index))
    text = field_text(name) or "?"
    return f"{text}-{_some(parts)}" if parts else text


def _index(part: Any) -> int | None:
    """The number of a partition, which may be all there is of it."""
    if isinstance(part, dict):
        for name in PARTITION_INDEXES:
            if name in part:
                part = part[name]
                break
    return part if isinstance(part, int) else None


def _first_of(fields: Fields, names: Sequence[str]) -> Any:
    """The first of the fields that says something."""
    for name in names:
        value = fields.get(name)
        if value:
            return value
    return None


def _some(words: Sequence[str]) -> str:
    text = ",".join(words[:NAMED])
    return f"{text},+{len(words) - NAMED}" if len(words) > NAMED else text


def _topics(body: Fields) -> list[Any]:
    """The topics of a body; other APIs use the same array names for other things."""
    return [topic for topic in _first_list(body, _TOPIC_ARRAYS) if _is_topic(topic)]


def _is_topic(topic: Any) -> bool:
    if isinstance(topic, dict):
        for key in _TOPIC_KEYS:
            if key in topic:
                return True
    return isinstance(topic, str | bytes)


def _partitions(topic: Any) -> list[Any]:
    return _first_list(topic, _PARTITION_ARRAYS) if isinstance(topic, dict) else []


def _first_list(fields: Fields, names: Sequence[str]) -> list[Any]:
    for name in names:
        value = fields.get(name)
        if isinstance(value, list):
            return value
    return []


def _batches(part: Any) -> list[Fields]:
    """The record batches of a partition; a set that was not decoded counts as one of its size."""
    records = part.get("records") if isinstance(part, dict) else None
    if isinstance(records, dict):
        return [records] if records.get("size_bytes") else []
    return [batch for batch in records if isinstance(batch, dict)] if isinstance(records, list) else []
