"""The Info column: a few words on what an exchange is about (topics, groups, members, records, producers).

Read from the decoded bodies, in Kafka's field names; a field that is not there is skipped, because a body may be from
any version. What comes out is not escaped yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.base.batch_layout import CODEC_NAMES
from kwiresniff.base.entities import PARTITION_INDEXES, TOPIC_NAMES
from kwiresniff.model import Exchange, Gist, TopicNames
from kwiresniff.render import units

Facts: TypeAlias = Iterator[str]
Fields: TypeAlias = dict[str, Any]

#: Topics, or partitions of one topic, that are named before the rest is counted.
NAMED = 3

#: What a fetch is about that brought no records.
NOTHING_NEW: Final = "nothing new"

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

#: A member id is the client id and a UUID: the end tells members apart, a whole one would fill the line.
MEMBER_ID_SHOWN = 12

_TOPIC_ARRAYS: Final = ("topics", "topic_data", "topic_partitions", "responses")
_TOPIC_KEYS: Final = (*TOPIC_NAMES, "topic_id")
_ELEMENT_NAMES: Final = ("group_id", "resource_name", "name", "user", "principal_name", "transactional_id", "feature")
_PARTITION_ARRAYS: Final = ("partitions", "partition_data", "partition_indexes", "partition_responses")


def facts(exchange: Exchange, topic_name: TopicNames | None = None) -> list[str]:
    """What the exchange is about, most important first; empty when no body was decoded."""
    if exchange.request is not None and exchange.request.gist is not None:
        return gist_facts(exchange, exchange.request.gist, topic_name)
    request = (exchange.request.body if exchange.request else None) or {}
    response = (exchange.response.body if exchange.response else None) or {}
    if not request and not response:
        return []
    if exchange.api == "Metadata" and exchange.api_version == 0 and request.get("topics") == []:
        request = {"topics": None}  # before version 1 an empty list asks for all of them
    special = _SPECIAL.get(exchange.api)
    out = list(special(request, response, topic_name)) if special else []
    if exchange.errors and out and out[-1] == NOTHING_NEW:
        # Nothing came because nothing could.
        out.pop()
    return out or list(_common(request, response, topic_name))


def gist_facts(exchange: Exchange, asked: Gist, topic_name: TopicNames | None = None) -> list[str]:
    """Facts of a Produce or Fetch whose bodies nobody decoded."""
    answered = exchange.response.gist if exchange.response is not None else None
    out: list[str] = []
    if exchange.api_key == PRODUCE:
        if asked.topics:
            out.append(_told_topics(asked.topics, asked.topic_count, topic_name if asked.by_id else None))
        out += _told_records(asked, "no records")
        if asked.acks == 0:
            out.append("acks 0")
        if asked.transactional_id:
            out.append(f"transaction {asked.transactional_id}")
        return out
    if answered is not None and answered.filled:
        out.append(_told_topics(answered.filled, answered.filled_count, topic_name if answered.by_id else None))
    elif asked.topics:
        out.append(_told_topics(asked.topics, asked.topic_count, topic_name if asked.by_id else None))
    elif answered is not None and answered.topics:
        out.append(_told_topics(answered.topics, answered.topic_count, topic_name if answered.by_id else None))
    elif answered is not None and answered.session_id:
        out.append(f"session {answered.session_id}")
    if answered is not None:
        out += _told_records(answered, NOTHING_NEW)
    return out


def _told_topics(topics: list[tuple[str, list[int], int]], count: int, name_of: TopicNames | None) -> str:
    """``name_of`` has the names of topics that go by their ids: as late as here, more of them are known."""
    words = []
    for name, partitions, partition_count in topics:
        if name_of is not None:
            name = name_of(name) or name
        parts = ",".join([str(index) for index in partitions])
        more = f",+{partition_count - NAMED}" if partition_count > NAMED else ""
        words.append(f"{name}-{parts}{more}" if parts else name)
    if count > NAMED:
        words.append(f"+{count - NAMED} topics")
    return " ".join(words)


def _told_records(gist: Gist, nothing: str) -> list[str]:
    if not gist.size_bytes:
        return [nothing]
    words = [units.count(gist.records, "record"), units.size(gist.size_bytes)]
    if gist.codecs:
        words.append("+".join([CODEC_NAMES[codec] for codec in gist.codecs]))
    return words


def _common(request: Fields, response: Fields, topic_name: TopicNames | None) -> Facts:
    for name, word in _WORDS.items():
        if (value := _scalar(name, request, response)) is not None:
            yield f"{word} {value}"
    topics = _topics(request) or _topics(response)
    if topics:
        yield topics_text(topics, topic_name)
        yield from _record_facts(_topics(response), "")
    else:
        yield from _named(request)
    if member := _scalar("member_id", request, response):
        yield f"member {member if len(member) <= MEMBER_ID_SHOWN else '…' + member[-MEMBER_ID_SHOWN:]}"


def _scalar(name: str, request: Fields, response: Fields) -> str | None:
    """The field as text from the request, else from the response; None when it says nothing."""
    for body in (request, response):
        value = body.get(name)
        if isinstance(value, (str, int)) and value not in ("", -1):
            return str(value)
    return None


def _named(body: Fields) -> Facts:
    """Names inside the arrays of a body: ``resources orders,payments``, ``groups billing``."""
    for field, value in body.items():
        names = []
        for element in value if isinstance(value, list) else ():
            if isinstance(element, dict):
                element = next((element[key] for key in _ELEMENT_NAMES if element.get(key)), None)
            if isinstance(element, str):
                names.append(element)
        if names:
            yield f"{field} {_some(names)}"


def _produce(request: Fields, response: Fields, topic_name: TopicNames | None) -> Facts:
    topics = _topics(request)
    if topics:
        yield topics_text(topics, topic_name)
    yield from _record_facts(topics, "no records")
    if request.get("acks") == 0:
        yield "acks 0"
    if request.get("transactional_id"):
        yield f"transaction {request['transactional_id']}"


def _fetch(request: Fields, response: Fields, topic_name: TopicNames | None) -> Facts:
    answered = _topics(response)
    asked = _topics(request)
    filled = [topic for topic in answered if any(_batches(part) for part in _partitions(topic))]
    if filled or asked or answered:
        yield topics_text(filled or asked or answered, topic_name)
    elif response.get("session_id"):
        yield f"session {response['session_id']}"
    if response:
        yield from _record_facts(answered, NOTHING_NEW)


def _record_facts(topics: Sequence[Fields], nothing: str) -> Facts:
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
                if (codec := batch.get("compression", "none")) != "none":
                    codecs[codec] = None
    if not size:
        if nothing:
            yield nothing
        return
    yield units.count(records, "record")
    yield units.size(size)
    if codecs:
        yield "+".join(codecs)


def _find_coordinator(request: Fields, response: Fields, topic_name: TopicNames | None) -> Facts:
    keys = _first_list(request, ["coordinator_keys"]) or [request.get("key", request.get("group_id"))]
    yield f"{'transaction' if request.get('key_type') == 1 else 'group'} {_some([str(key) for key in keys])}"
    found = _first_list(response, ["coordinators"]) or [response]
    if isinstance(found[0], dict) and found[0].get("host"):
        yield f"at {found[0]['host']}:{found[0].get('port')}"


def _metadata(request: Fields, response: Fields, topic_name: TopicNames | None) -> Facts:
    asked = _topics(request)
    if request:
        yield (
            topics_text(asked, topic_name) if asked else "all topics" if request.get("topics") is None else "no topics"
        )
    if brokers := _first_list(response, ["brokers"]):
        yield units.count(len(brokers), "broker")


def _init_producer_id(request: Fields, response: Fields, topic_name: TopicNames | None) -> Facts:
    if request.get("transactional_id"):
        yield f"transaction {request['transactional_id']}"
    if response.get("producer_id", -1) >= 0:
        yield f"producer {response['producer_id']} epoch {response.get('producer_epoch')}"


def _add_partitions_to_txn(request: Fields, response: Fields, topic_name: TopicNames | None) -> Facts:
    """Before version 4 the one transaction is spread over fields of the request's own."""
    for transaction in _first_list(request, ["transactions"]) or [request]:
        if not isinstance(transaction, dict):
            continue
        name = transaction.get("transactional_id") or transaction.get("v3_and_below_transactional_id")
        if name:
            yield f"transaction {name}"
        if topics := _first_list(transaction, ["topics", "v3_and_below_topics"]):
            yield topics_text(topics, topic_name)


def _end_txn(request: Fields, response: Fields, topic_name: TopicNames | None) -> Facts:
    if "committed" in request:
        yield "COMMIT" if request["committed"] else "ABORT"
    yield from _common(request, response, topic_name)


def _api_versions(request: Fields, response: Fields, topic_name: TopicNames | None) -> Facts:
    if request.get("client_software_name"):
        yield f"{request['client_software_name']} {request.get('client_software_version', '')}"
    if api_keys := _first_list(response, ["api_keys"]):
        yield units.count(len(api_keys), "API")


_SPECIAL: Final[dict[str, Callable[[Fields, Fields, TopicNames | None], Facts]]] = {
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
    words = []
    for topic in topics[:NAMED]:
        if isinstance(topic, str):
            words.append(topic)
        elif isinstance(topic, dict):
            words.append(_topic_text(topic, topic_name))
    if len(topics) > NAMED:
        words.append(f"+{len(topics) - NAMED} topics")
    return " ".join(words)


def _topic_text(topic: Fields, topic_name: TopicNames | None) -> str:
    name = next((topic[key] for key in TOPIC_NAMES if topic.get(key)), None)
    if name is None and (topic_id := topic.get("topic_id")):
        name = (topic_name and topic_name(topic_id)) or topic_id
    parts: list[str] = []
    for part in _partitions(topic):
        index = part if isinstance(part, int) else next((part[key] for key in PARTITION_INDEXES if key in part), None)
        if isinstance(index, int):
            parts.append(str(index))
    text = str(name if name is not None else "?")
    return f"{text}-{_some(parts)}" if parts else text


def _some(words: Sequence[str]) -> str:
    more = [f"+{len(words) - NAMED}"] if len(words) > NAMED else []
    return ",".join([*words[:NAMED], *more])


def _topics(body: Fields) -> list[Any]:
    """The topics of a body; other APIs use the same array names for other things."""
    return [topic for topic in _first_list(body, _TOPIC_ARRAYS) if _is_topic(topic)]


def _is_topic(topic: Any) -> bool:
    return isinstance(topic, str) or (isinstance(topic, dict) and any(key in topic for key in _TOPIC_KEYS))


def _partitions(topic: Any) -> list[Any]:
    return _first_list(topic, _PARTITION_ARRAYS) if isinstance(topic, dict) else []


def _first_list(fields: Fields, names: Iterable[str]) -> list[Any]:
    for name in names:
        if isinstance(value := fields.get(name), list):
            return value
    return []


def _batches(part: Any) -> list[Fields]:
    """The record batches of a partition; a set nobody looked into counts as one of its size."""
    records = part.get("records") if isinstance(part, dict) else None
    if isinstance(records, dict):
        return [records] if records.get("size_bytes") else []
    return [batch for batch in records if isinstance(batch, dict)] if isinstance(records, list) else []
