"""Exchanges as annotated trees: header and body of a message dissected, opened, and without its secrets."""

from __future__ import annotations

from kwiresniff import codec, schema
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.embedded import OPENERS, forwarded
from kwiresniff.codec.folding import dissect_shown
from kwiresniff.codec.node_view import NodeView
from kwiresniff.model import Direction, Dissection, Exchange, Message, Node
from kwiresniff.session.frame_search import MIN_REQUEST_BYTES
from kwiresniff.session.secrets import conceal_dissection, conceal_header, is_sound, may_hide
from kwiresniff.session.topic_ids import TopicNameTable


def _no_name(topic_id: str) -> str | None:
    return None


def dissect_message(
    exchange: Exchange,
    which: Direction,
    topics: TopicNameTable | None = None,
    *,
    show_secrets: bool = False,
    folded: bool = False,
) -> Dissection | None:
    """The tree of one side: ``header`` and ``body``, or the body alone; None without a frame. ``folded`` leaves out
    what trees without ``-v`` do: see ``codec.folding``, and sound headers.
    """
    message = exchange.request if which == "request" else exchange.response
    if message is None or message.frame is None:
        return None
    header: Dissection | None = None
    if message.header_version >= 0 and not (folded and message.version >= 0 and _is_plain(exchange, which, message)):
        header = codec.dissect_header(which, message.header_version, message.frame)
        header.root.name = "header"
        if not show_secrets:
            conceal_header(header, tags=may_hide(exchange.api_key, which))
    body: Dissection | None = None
    if message.version >= 0 and exchange.request is not None:
        definition = schema.message(exchange.api_key, message.version, which)
        topic_name = topics.name if topics is not None else None
        missing = message.size_bytes - len(message.frame)
        opener = OPENERS.get((exchange.api_key, which))
        frame, at = message.frame, message.body_offset
        if folded and message.dissection is not None:
            body, message.dissection = message.dissection, None  # it is changed below
        elif folded:
            opened = opener is not None
            body = dissect_shown(definition, frame, at, opened=opened, topic_name=topic_name, missing=missing)
        else:
            body = dissect(definition, frame, at, topic_name=topic_name, missing=missing)
        sound = is_sound(body.problems, missing)
        if opener is not None and not body.problems:
            opener(NodeView(body.root, body.problems, folded=folded), exchange, topic_name or _no_name)
        if not show_secrets:
            inner = forwarded(exchange)
            inner_api_key = inner.api_key if inner is not None else None
            sensitive = topics.sensitive_configs if topics is not None else None
            conceal_dissection(
                exchange.api_key,
                which,
                body,
                inner_api_key,
                sound=sound,
                sensitive=sensitive,
                request=exchange.request,
            )
        body.root.name = "body"
    if header is None:
        return body
    root = Node(which, "STRUCT", 0, len(message.frame), children=[header.root])
    if body is None:
        return Dissection(root, header.end, header.problems)
    root.children.append(body.root)
    return Dissection(root, body.end, header.problems + body.problems)


def _is_plain(exchange: Exchange, which: Direction, message: Message) -> bool:
    """Whether a header is as most are: nothing is wrong with it, and it has no tagged fields."""
    frame, end = message.frame, message.body_offset
    assert frame is not None
    if which == "response":
        return end == 4 + message.header_version and (end == 4 or frame[4] == 0)
    client_id = exchange.client_id
    if client_id is None or not client_id.isascii() or "\\" in client_id:
        return False
    behind = end - MIN_REQUEST_BYTES - len(client_id)
    return behind == message.header_version - 1 and (not behind or frame[end - 1] == 0)
