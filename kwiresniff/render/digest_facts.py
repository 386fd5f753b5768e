"""The Info column of a Produce or Fetch whose bodies are not decoded: topics, records, codecs, from their digests.

``kwiresniff.render.info_column`` makes the same words of decoded bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.base.batch_layout import CODEC_NAMES
from kwiresniff.digest import Digest, TopicDigest
from kwiresniff.model import Exchange, TopicNames
from kwiresniff.render import format_units

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Topics, or partitions of one topic, that are named before the rest is counted.
NAMED: Final = 3
#: The facts of a Produce and of a Fetch without records.
NO_RECORDS: Final = "no records"
NOTHING_NEW: Final = "nothing new"

_NO_TOPICS: Final[list[TopicDigest]] = []


def digest_facts(exchange: Exchange, topic_name: TopicNames | None = None) -> list[str] | None:
    """The facts of an exchange, most important first; None where one of its messages has no digest."""
    request, response = exchange.request, exchange.response
    asked = request.digest if request is not None else None
    answered = response.digest if response is not None else None
    if asked is None or (response is not None and answered is None):
        return None
    asked_parts = _topics(asked)
    answered_parts = _topics(answered) if answered is not None else _NO_TOPICS
    if asked_parts is None or answered_parts is None:
        return None
    if exchange.api_key == PRODUCE:
        return _produce(asked, asked_parts, topic_name)
    return _fetch(asked_parts, answered, answered_parts, topic_name) if exchange.api_key == FETCH else None


def _topics(digest: Digest) -> list[TopicDigest] | None:
    """The topics of a digest, None where one has no name."""
    parts = digest.parts
    if parts is None:
        return _NO_TOPICS
    for topic in parts:
        if not topic.name:
            return None
    return parts


def _produce(asked: Digest, parts: list[TopicDigest], topic_name: TopicNames | None) -> list[str]:
    out: list[str] = []
    if parts:
        out.append(_topics_text(parts, topic_name))
    _add_record_facts(asked, parts, NO_RECORDS, out)
    if asked.acks == 0:
        out.append("acks 0")
    if asked.transactional_ids is not None:
        out.append(f"transaction {asked.transactional_ids[0]}")
    return out


def _fetch(
    asked: list[TopicDigest], answer: Digest | None, answered: list[TopicDigest], topic_name: TopicNames | None
) -> list[str]:
    out: list[str] = []
    topics = [topic for topic in answered if _is_filled(topic)] or asked or answered
    if topics:
        out.append(_topics_text(topics, topic_name))
    elif answer is not None and answer.session_id:
        out.append(f"session {answer.session_id}")
    if answer is not None:
        _add_record_facts(answer, answered, NOTHING_NEW, out)
    return out


def _is_filled(topic: TopicDigest) -> bool:
    """Whether a topic came with records, or the beginning of some."""
    for partition in topic.partitions:  # noqa: SIM110 - compiled, a generator is dear
        if partition.all_bytes or partition.is_cut:
            return True
    return False


def _topics_text(topics: list[TopicDigest], topic_name: TopicNames | None) -> str:
    """Topics with their partitions: ``orders-0,1,2,+9``. ``topic_name`` gives the names of topic ids, which may have
    become known since the message was read.
    """
    if len(topics) == 1:  # as nearly always
        return _topic_text(topics[0], topic_name)
    words = [_topic_text(topic, topic_name) for topic in topics[:NAMED]]
    if len(topics) > NAMED:
        words.append(f"+{len(topics) - NAMED} topics")
    return " ".join(words)


def _topic_text(topic: TopicDigest, topic_name: TopicNames | None) -> str:
    name = topic.name
    if topic.is_id and topic_name is not None:
        name = topic_name(name) or name
    partitions = topic.partitions
    count = len(partitions)
    if count == 1:
        return f"{name}-{partitions[0].index}"
    if not count:
        return name
    parts = ",".join([str(partition.index) for partition in partitions[:NAMED]])
    return f"{name}-{parts},+{count - NAMED}" if count > NAMED else f"{name}-{parts}"


def _add_record_facts(digest: Digest, topics: list[TopicDigest], nothing: str, out: list[str]) -> None:
    """Add how many records there are, their bytes and codecs, or ``nothing`` where there are none."""
    size: i64 = 0
    codecs: list[int] = []
    for topic in topics:
        for partition in topic.partitions:
            size += partition.all_bytes
            if partition.codec and partition.codec not in codecs:
                codecs.append(partition.codec)
    if not size:
        out.append(nothing)
        return
    out.append(format_units.count(digest.records, "record"))
    out.append(format_units.size(size))
    if codecs:
        out.append("+".join([CODEC_NAMES[codec] for codec in codecs]))
